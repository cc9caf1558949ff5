"""The files that a predicate needs, as a choice that checkpoints are read by (spec 5.8, 9.5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeAlias

import pyarrow as pa

from optimist.core.data.partition_values import partition_schema
from optimist.core.errors import SchemaError, TableError
from optimist.core.log.file_choice import FileChoice, Keep, Stage
from optimist.core.log.file_lines import numbered_partitions
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.group_bounds import GroupBounds
from optimist.core.predicates import Predicate
from optimist.core.schema.types import StructType
from optimist.core.skipping.group_statistics import GroupStatistics
from optimist.core.skipping.partition_predicate import partition_predicate
from optimist.core.skipping.pruner import FilePruner

__all__ = ["PartitionTexts", "Pruning", "are_in_partitions"]

PartitionTexts: TypeAlias = Mapping[str, str | None]
"""The values of one partition as the log has them: texts by the columns' physical names."""

_MOST_COMPARED = 64
"""Row groups are compared with so many partitions at most."""


def are_in_partitions(
    values: pa.ChunkedArray, partitions: Sequence[PartitionTexts]
) -> pa.BooleanArray:
    """Return for each file whether it has exactly the texts of one of some partitions.

    Args:
        values: The column `partitionValues` of the files.
        partitions: The partitions. A value that a file lacks counts as null.
    """
    texts: dict[tuple[str, ...], set[tuple[str | None, ...]]] = defaultdict(set)
    for partition in partitions:
        texts[tuple(partition)].add(tuple(partition.values()))
    masks = []
    for chunk in values.chunks:
        numbers, found = numbered_partitions(chunk)
        is_wanted = [
            any(tuple(map(each.get, names)) in some for names, some in texts.items())
            for each in found
        ]
        masks.append(pa.array(is_wanted, pa.bool_()).take(numbers))
    return pa.concat_arrays(masks) if masks else pa.array([], pa.bool_())


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

    def choice_of_partitions(self, partitions: Sequence[PartitionTexts]) -> FileChoice:
        """Return the choice of the files that `are_in_partitions`."""
        stage = Stage(
            ("partitionValues",),
            lambda files: are_in_partitions(files["partitionValues"], partitions),
        )
        predicate = self._predicate_of(partitions)
        if predicate is None:
            return FileChoice((stage,))
        return FileChoice((stage,), self.choice(predicate, use_statistics=False).may_hold)

    def _predicate_of(self, partitions: Sequence[PartitionTexts]) -> Predicate | None:
        """Return what is true for all rows of some partitions, or None if that is unknown."""
        fields = partition_schema(self.schema, self.partition_columns)
        names = {field.physical_name for field in fields}
        is_known = all(partition.keys() == names for partition in partitions)
        if not (names and is_known and 0 < len(partitions) <= _MOST_COMPARED):
            return None
        try:
            return reduce(
                or_,
                (
                    partition_predicate(fields, [each[field.physical_name] for field in fields])
                    for each in partitions
                ),
            )
        except (TableError, SchemaError):  # a text that is no value of its column's type
            return None

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
