"""A command's condition on rows, which this process evaluates exactly or refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from optimist.core.data.partition_values import partition_columns_of
from optimist.core.expressions.moments import Moment
from optimist.core.predicates import Predicate, ensure_columns
from optimist.core.predicates.moments import predicate_at
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.row_filter import ensure_exact, row_mask

__all__ = ["RUN_WITH_SPARK", "LocalCondition"]

RUN_WITH_SPARK = "Nothing was written. Run the command with DeltaTable of optimist.spark."
"""The remedy for parts that can't be evaluated without Spark."""


@dataclass(frozen=True, slots=True)
class LocalCondition:
    """A condition whose value is exact for every row.

    Attributes:
        text: The SQL, for the history.
        predicate: The condition, with columns in the table's spelling.
        is_partition_only: Whether it names partition columns only, so that a file matches as a
            whole or not at all.
        zone: The time zone in which it is evaluated.
    """

    text: str
    predicate: Predicate
    is_partition_only: bool
    zone: str = "UTC"

    @classmethod
    def of(
        cls, given: str | Predicate, snapshot: Snapshot, moment: Moment | None = None
    ) -> LocalCondition:
        """Resolve a condition against a table.

        Args:
            given: SQL text or a tree.
            snapshot: The version of the table.
            moment: When the statement began; None refuses functions of the moment.

        Raises:
            UsageError: It can't be parsed, or only Spark can evaluate a part of it (kind
                `OPTIMIST_NEEDS_SPARK`, field `part`).
            SchemaError: It names an unknown column.
        """
        columns = snapshot.partition_columns
        return cls.on(given, snapshot.schema, columns, moment, zone=snapshot.zone)

    @classmethod
    def on(
        cls,
        given: str | Predicate,
        schema: StructType,
        partition_columns: Sequence[str],
        moment: Moment | None = None,
        *,
        zone: str,
    ) -> LocalCondition:
        """Resolve a condition against columns, as `of` does against a table's."""
        predicate = ensure_columns(predicate_at(moment, given, schema.names), schema)
        ensure_exact(predicate, schema, remedy=RUN_WITH_SPARK, zone=zone)
        names = {path[0].lower() for path in predicate.columns()}
        partitions = {name.lower() for name in partition_columns}
        return cls(str(given), predicate, bool(names) and names <= partitions, zone)

    def matching_partitions(self, snapshot: Snapshot, files: pa.Table) -> pa.Table:
        """Return the files of matching partitions, for a condition on partition columns only."""
        values = partition_columns_of(files, snapshot.partition_schema, zone=self.zone)
        return files.filter(row_mask(self.predicate, values, zone=self.zone, remedy=RUN_WITH_SPARK))
