"""`DeltaOptimizeBuilder`: names and signatures of `delta.tables`, to the letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pyspark.sql import DataFrame

from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.requests.columns import path_of
from optimist.spark.session.arguments import ensure_exactly, ensure_value

__all__ = ["DeltaOptimizeBuilder"]


class DeltaOptimizeBuilder:
    """An OPTIMIZE that is being built, from `DeltaTable.optimize`."""

    def __init__(self, run: Callable[[Rearrangement, str | None], DataFrame]) -> None:
        self._run = run
        self._predicate: str | None = None

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Optimize only the partitions for which the condition is true."""
        ensure_value(partitionFilter, str, "partitionFilter", "a string")
        self._predicate = partitionFilter
        return self

    def executeCompaction(self) -> DataFrame:
        """Compact many small files into few large files.

        Returns:
            One row: the table's path, and `metrics` as Delta has them.

        Raises:
            UsageError: The condition names a column that is not a partition column (kind
                `DELTA_NON_PARTITION_COLUMN_REFERENCE`), or the table is clustered (kind
                `DELTA_CLUSTERING_WITH_PARTITION_PREDICATE`).
            DeltaConcurrentModificationException: Other commits came first, again and again.
        """
        return self._run(Rearrangement(), self._predicate)

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Rearrange all rows so that each file has a narrow range of each of these columns.

        Returns:
            One row, as for `executeCompaction`.

        Raises:
            ArgumentTypeError: A column is not text.
            UsageError: A column does not exist, is a partition column or has no statistics, or the
                table is clustered (kind `DELTA_CLUSTERING_WITH_ZORDER_BY`).
            DeltaConcurrentModificationException: Other commits came first, again and again.
        """
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        paths = []
        for name in names:
            ensure_exactly(name, (str,), "Z-order column", "str")
            paths.append(path_of(cast(str, name)))
        return self._run(Rearrangement(z_order_by=tuple(paths)), self._predicate)
