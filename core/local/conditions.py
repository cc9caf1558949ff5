"""A command's condition on rows: this process evaluates it exactly, or refuses it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from optimist.core.data.partition_values import partition_columns_of
from optimist.core.predicates import Predicate, ensure_columns
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.row_filter import ensure_exact, row_mask

__all__ = ["RUN_WITH_SPARK", "LocalCondition"]

RUN_WITH_SPARK = "Nothing was written. Run the command with DeltaTable of optimist.spark."
"""What to do with what the local plane can't evaluate."""


@dataclass(frozen=True, slots=True)
class LocalCondition:
    """A condition whose value is known for every row.

    Attributes:
        text: SQL, for the history.
        predicate: The condition, its columns in the table's spelling.
        is_partition_only: Only partition columns are named, so whole files match or do not.
        zone: The time zone in which it is evaluated.
    """

    text: str
    predicate: Predicate
    is_partition_only: bool
    zone: str = "UTC"

    @classmethod
    def of(cls, given: str | Predicate, snapshot: Snapshot) -> LocalCondition:
        """Resolve a condition against a table.

        Raises:
            UsageError: It does not parse, or a part of it can be evaluated only by Spark (kind
                `OPTIMIST_NEEDS_SPARK`, field `part`).
            SchemaError: It names an unknown column.
        """
        parsed = Predicate.of(given)
        predicate = ensure_columns(parsed, snapshot.schema)
        ensure_exact(predicate, snapshot.schema, remedy=RUN_WITH_SPARK)
        names = {path[0].lower() for path in predicate.columns()}
        partitions = {name.lower() for name in snapshot.partition_columns}
        return cls(str(given), predicate, bool(names) and names <= partitions)

    def matching_partitions(self, snapshot: Snapshot, files: pa.Table) -> pa.Table:
        """The files in partitions that match, for a condition that names no other columns."""
        values = partition_columns_of(files, snapshot.partition_schema, zone=self.zone)
        return files.filter(row_mask(self.predicate, values, zone=self.zone, remedy=RUN_WITH_SPARK))
