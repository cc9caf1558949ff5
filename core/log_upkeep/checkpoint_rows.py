"""A version's state as the rows of a checkpoint, batch by batch (spec 5.8).

It makes no Python object per file of the table, and keeps no batch beyond those that it sorts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from optimist.core.log.file_sizes import ensure_possible
from optimist.core.log.file_table import TOMBSTONES_SCHEMA
from optimist.core.log.limits import LogLimits
from optimist.core.log.many_files import FilesOrigin
from optimist.core.log.names import LogFileKind
from optimist.core.log.typed_rows import TypedFile
from optimist.core.log_upkeep.base_checkpoint import (
    ContinuedBase,
    CopiedGroup,
    changes_since_checkpoint,
    sorted_base,
)
from optimist.core.log_upkeep.checkpoint_layout import Layout
from optimist.core.log_upkeep.external_sort import regrouped, sorted_rows
from optimist.core.log_upkeep.spooled_parquet import example_file
from optimist.core.log_upkeep.taken_rows import taken_rows
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.actions import Action, action_to_dict
from optimist.core.snapshot import Snapshot
from optimist.core.values.exact_sums import exact_sum

__all__ = ["CheckpointRows", "Way", "rows_of", "state_actions", "with_struct"]

_LONGEST_NUMBER = 20
_PARSED_ROWS = 16_384
_Rows: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]
_Groups: TypeAlias = Callable[[], Iterator[pa.RecordBatch | CopiedGroup]]


@dataclass(frozen=True, slots=True)
class Way:
    """How the rows of a checkpoint are found. If one way fails, another may succeed.

    Attributes:
        typed_partitions: Whether partition values are also written with their types.
        continues: Whether rows are taken over from the checkpoint before, if it is of this engine.
        origin: Where all files of the version were taken from by its last commit, if they were. The
            checkpoint there may have their typed columns.
        in_memory: Whether all files are read into memory first. If the checkpoint before is
            damaged, only such a read finds a replacement.
    """

    typed_partitions: bool = True
    continues: bool = True
    origin: FilesOrigin | None = None
    in_memory: bool = False


class CheckpointRows:
    """The rows of a checkpoint. Single use.

    Args:
        layout: The columns of the rows.
        adds: Yields the live files as row groups, in the columns of `layout.add_schema`, or as they
            are stored in the checkpoint before.
        tombstones: Yields the tombstones as row groups, in the columns of `TOMBSTONES_SCHEMA`.
        is_large: Whether the files fill more than one row group.
        is_taken: Whether the live files have the typed columns of another table or version.

    Attributes:
        layout: The columns of the rows.
        adds: Yields the live files as row groups, in the columns of `layout.add_schema`, or as they
            are stored in the checkpoint before.
        tombstones: Yields the tombstones as row groups, in the columns of `TOMBSTONES_SCHEMA`.
        is_large: Whether the files fill more than one row group.
        is_taken: Whether the live files have the typed columns of another table or version.
        num_files: The number of live files so far.
        size_bytes: The sum of their sizes.
    """

    def __init__(
        self,
        layout: Layout,
        adds: _Groups,
        tombstones: _Rows,
        *,
        is_large: bool = False,
        is_taken: bool = False,
    ) -> None:
        self.layout = layout
        self.is_large = is_large
        self.is_taken = is_taken
        self.adds = adds
        self.tombstones = tombstones
        self.num_files = 0
        self.size_bytes = 0

    def file_groups(self, schema: pa.Schema) -> Iterator[pa.RecordBatch | CopiedGroup]:
        """Yield live files, then tombstones, in the columns of `schema`. Other columns are null.

        Raises:
            TableError: A partition value does not fit its type, and the table wants typed ones
                (kind `OPTIMIST_MALFORMED_PARTITION_VALUE`).
        """
        for item in self.adds():
            if isinstance(item, CopiedGroup):
                self.count(item.group.num_rows, item.size_bytes)
                yield item
            else:
                self.count(item.num_rows, exact_sum(item.column("size")))
                yield with_struct(schema, "add", item)
        for batch in self.tombstones():
            yield with_struct(schema, "remove", batch.select(TOMBSTONES_SCHEMA.names))

    def file_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the same, every row group read."""
        for item in self.file_groups(schema):
            if isinstance(item, CopiedGroup):
                yield from (with_struct(schema, "add", rows) for rows in item.rows())
            else:
                yield item

    def add_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the live files, read even if they are stored as they should be."""
        for item in self.adds():
            yield from item.rows() if isinstance(item, CopiedGroup) else (item,)

    def count(self, num_files: int, size_bytes: int) -> None:
        """Count live files that are in the checkpoint.

        Raises:
            TableError: The sizes are impossible (kind `OPTIMIST_IMPOSSIBLE_COUNT`).
        """
        self.num_files += num_files
        self.size_bytes += size_bytes
        ensure_possible(self.size_bytes)


def rows_of(
    store: LogStore, snapshot: Snapshot, group_rows: int, limits: LogLimits, way: Way
) -> CheckpointRows:
    """Return the rows of a version's checkpoint.

    Args:
        store: The store of the log.
        snapshot: The version.
        group_rows: The most rows of a row group.
        limits: The most that is read of the log.
        way: How to find them.

    Raises:
        TableError, LogFileNotFoundError: The log is damaged.
    """
    if way.in_memory:
        _ = snapshot.files, snapshot.tombstones
    few = None
    if not (way.continues and _is_known_as_large(store, snapshot, group_rows, limits)):
        few = _all_or_none(snapshot.iter_files(group_rows), group_rows)
    is_large = few is None
    layout = Layout.of(snapshot, is_large=is_large, typed_partitions=way.typed_partitions)

    def tombstones() -> Iterator[pa.RecordBatch]:
        return regrouped(snapshot.iter_tombstones(group_rows), group_rows)

    if few is not None:
        batches = few
        return CheckpointRows(
            layout, lambda: regrouped(map(layout.rows, batches), group_rows), tombstones
        )

    taken = None
    if way.origin is not None:
        taken = taken_rows(snapshot.files, way.origin, layout, limits, group_rows)

    def adds() -> Iterator[pa.RecordBatch | CopiedGroup]:
        continued: Iterator[pa.RecordBatch | CopiedGroup] | None = taken
        if continued is None and way.continues:
            continued = _continued(store, snapshot, layout, limits, group_rows)
        if continued is not None:
            return continued
        # Few at once: parsed statistics take twice the memory of their texts.
        files = snapshot.iter_files(_PARSED_ROWS)
        return sorted_rows(map(layout.rows, files), layout.keys, group_rows)

    return CheckpointRows(layout, adds, tombstones, is_large=True, is_taken=taken is not None)


def state_actions(snapshot: Snapshot) -> tuple[dict[str, Any], ...]:
    """Return the live non-file actions of a version as JSON objects, without expired ones."""
    actions: Sequence[Action] = (
        snapshot.protocol,
        snapshot.metadata,
        *snapshot.set_transactions.values(),
        *snapshot.stored_domains.values(),
    )
    return tuple(action_to_dict(action) for action in actions)


def _continued(
    store: LogStore, snapshot: Snapshot, layout: Layout, limits: LogLimits, group_rows: int
) -> Iterator[pa.RecordBatch | CopiedGroup] | None:
    """Return the row groups that continue the checkpoint before, or None if they can't."""
    segment = snapshot.segment
    base = None if segment is None else sorted_base(store, segment, layout, limits)
    if segment is None or base is None:
        return None
    changes = changes_since_checkpoint(store, segment, limits)
    if changes is None:
        return None
    like = example_file(layout.classic_schema, snapshot.properties)
    return ContinuedBase(base, changes, layout, limits, group_rows).groups(like)


def _is_known_as_large(
    store: LogStore, snapshot: Snapshot, group_rows: int, limits: LogLimits
) -> bool:
    """Return whether the checksum or the checkpoint before says that there are many files.

    To look at some of the files would read row groups, or several sidecars, as a whole.
    """
    known, segment = snapshot.checksum, snapshot.segment
    if known is not None:
        return known.num_files > group_rows
    checkpoint = segment.checkpoint if segment else None
    if checkpoint is None:
        return False
    if checkpoint.kind is LogFileKind.CLASSIC_CHECKPOINT:
        num_adds = TypedFile(store, checkpoint.files[0].path, limits).num_adds()
        return num_adds is not None and num_adds > group_rows
    if checkpoint.kind is not LogFileKind.V2_CHECKPOINT:
        return False
    manifest = checkpoint.open(store, limits).manifest()
    number = manifest.tags.get("numOfAddFiles", "") if manifest else ""
    return number.isdecimal() and len(number) < _LONGEST_NUMBER and int(number) > group_rows


def _all_or_none(batches: Iterator[pa.RecordBatch], most: int) -> tuple[pa.RecordBatch, ...] | None:
    """Return the batches if they have at most this many rows, else None."""
    found = []
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > most:
            return None
        found.append(batch)
    return tuple(found)


def with_struct(schema: pa.Schema, name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows as one struct column of a schema whose other columns are null."""
    values = pa.StructArray.from_arrays(rows.columns, fields=list(schema.field(name).type))
    columns = [
        values if field.name == name else pa.nulls(len(values), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
