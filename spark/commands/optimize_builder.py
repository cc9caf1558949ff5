"""`DeltaOptimizeBuilder`: names and signatures of `delta.tables`, to the letter."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.spark.session.arguments import ensure_exactly, ensure_value

__all__ = ["DeltaOptimizeBuilder"]


class DeltaOptimizeBuilder:
    """An OPTIMIZE that is being put together; get one with `DeltaTable.optimize`."""

    def __init__(self, run: Callable[[str | None], DataFrame]) -> None:
        self._run = run
        self._predicate: str | None = None

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only the partitions for which the condition is true."""
        ensure_value(partitionFilter, str, "partitionFilter", "a string")
        self._predicate = partitionFilter
        return self

    def executeCompaction(self) -> DataFrame:
        """Make few large files of many small ones.

        Returns:
            One row: the table's path, and `metrics` as Delta has them.

        Raises:
            UsageError: The condition names a column that is no partition column (kind
                `DELTA_NON_PARTITION_COLUMN_REFERENCE`), or the table is clustered (kind
                `OPTIMIST_NOT_BUILT_YET`).
            DeltaConcurrentModificationException: Other commits came first, again and again.
        """
        return self._run(self._predicate)

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Rearrange the rows so that files have narrow ranges of these columns.

        Raises:
            ArgumentTypeError: A column is not text.
            UsageError: It is not built yet (kind `OPTIMIST_NOT_BUILT_YET`).
        """
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        for name in names:
            ensure_exactly(name, (str,), "Z-order column", "str")
        raise not_built_yet("OPTIMIZE ZORDER BY")
