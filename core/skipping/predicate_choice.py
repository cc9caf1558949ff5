"""The files that a predicate needs, as a choice that checkpoints are read by (spec 5.8, 9.5)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from optimist.core.log.file_choice import FileChoice, Keep, Stage
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.group_bounds import GroupBounds
from optimist.core.predicates import Predicate
from optimist.core.schema.types import StructType
from optimist.core.skipping.group_statistics import GroupStatistics
from optimist.core.skipping.pruner import FilePruner

__all__ = ["Pruning"]


@dataclass(frozen=True, slots=True)
class Pruning:
    """How files are pruned, whichever files these are.

    Attributes:
        schema: The table's schema.
        partition_columns: The logical names of the partition columns.
        zone: The session's time zone.
        trust_float_maximum: See `FilePruner`.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    zone: str = "UTC"
    trust_float_maximum: bool = False

    def of(self, files: pa.Table) -> FilePruner:
        """Return a pruner of these files."""
        return FilePruner(
            files,
            self.schema,
            self.partition_columns,
            zone=self.zone,
            trust_float_maximum=self.trust_float_maximum,
        )

    def choice(self, predicate: Predicate, *, use_statistics: bool = True) -> FileChoice:
        """Return the choice of the files that `FilePruner.prune` would leave of all files."""
        if predicate == Predicate.TRUE:
            return FileChoice()
        pruner = self.of(FILES_SCHEMA.empty_table())
        prepared = pruner.prepared(predicate)
        stages = []
        if self.partition_columns:
            stages.append(Stage(("partitionValues",), self._keep(predicate, use_statistics=False)))
        has_statistics = use_statistics and bool(pruner.data_paths(prepared))
        if has_statistics:
            stages.append(Stage(("stats",), self._keep(predicate, use_statistics=True)))
        return FileChoice(
            tuple(stages), lambda bounds: self._may_hold(prepared, bounds, has_statistics)
        )

    def _keep(self, predicate: Predicate, *, use_statistics: bool) -> Keep:
        return lambda files: self.of(files).keep_mask(predicate, use_statistics=use_statistics)

    def _may_hold(
        self, prepared: Predicate, bounds: GroupBounds, has_statistics: bool
    ) -> pa.BooleanArray:
        statistics = GroupStatistics(
            bounds, self.schema, self.partition_columns, use_statistics=has_statistics
        )
        # For its row groups no column is a partition column: each may hold many values.
        groups = FilePruner(
            statistics.files, self.schema, (), zone=self.zone, statistics=statistics
        )
        return groups.keep_mask(prepared)
