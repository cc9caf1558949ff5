"""The writing of a checkpoint: a version's whole state, to start from (spec 5.8).

A classic checkpoint is one Parquet file. If the table's policy is `v2`, the file actions are in
sidecars of bounded size, and a small top-level file names them. Multi-part checkpoints, which can
be incomplete, are never written. Rows go from the snapshot's Arrow batches through a temporary file
into the store, so that memory holds one batch, whatever the table's size.

1. Encode batch by batch into temporary files of this machine. Sidecars are created in the store one
   by one, under names that nobody knows yet.
2. Count the adds in the encoded files, and compare the sums of the files with the version checksum,
   if one is known.
3. Create the checkpoint's file if it is absent. Before this step, readers can't find anything. A
   checkpoint that exists already is as good as ours.
4. Overwrite the hint last, so that nobody is sent to an incomplete checkpoint. If the log has a
   newer one by now, its writer does that. Of a checkpoint that existed already, the hint does not
   say the bytes and the columns, which may be another writer's.

A crash before step 3 leaves at most sidecars that nothing names. Cleanup removes them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from optimist.core.errors import (
    LogFileNotFoundError,
    OptimistError,
    StorageError,
    TableError,
    TableNotFoundError,
)
from optimist.core.errors.kinds import (
    MALFORMED_CHECKPOINT,
    MALFORMED_COMMIT,
    MALFORMED_PARTITION_VALUE,
    MISSING_PART_FILES,
    PREDECESSOR_MISSING,
)
from optimist.core.log.checkpoint_kinds import complete_checkpoints
from optimist.core.log.last_checkpoint import LastCheckpoint, write_last_checkpoint
from optimist.core.log.limits import LogLimits
from optimist.core.log.many_files import FilesOrigin
from optimist.core.log.names import (
    LogFileKind,
    classic_checkpoint_name,
    commit_name,
    listing_start,
    parse_log_file_name,
    v2_checkpoint_name,
)
from optimist.core.log.segment import commit_version
from optimist.core.log.sidecars import Manifest, Sidecar
from optimist.core.log_upkeep.base_checkpoint import CopiedGroup
from optimist.core.log_upkeep.checkpoint_layout import LAYOUT_KEY, Layout
from optimist.core.log_upkeep.checkpoint_rows import CheckpointRows, Way, rows_of, state_actions
from optimist.core.log_upkeep.later_commits import commits_after
from optimist.core.log_upkeep.sidecar_plan import plan_sidecars
from optimist.core.log_upkeep.sidecar_writer import SidecarWriter
from optimist.core.log_upkeep.spooled_parquet import SpooledParquet, put_once
from optimist.core.options.engine import EngineOptions
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.gates import ensure_writable, supports
from optimist.core.runtime.clock import Clock
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import data_type_to_json
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot

__all__ = [
    "CheckpointProgress",
    "Progress",
    "has_v2_policy",
    "write_checkpoint",
    "write_compatibility_checkpoint",
]

_LOG = logging.getLogger(__name__)
_UNREADABLE = frozenset({MALFORMED_CHECKPOINT, MALFORMED_COMMIT, MISSING_PART_FILES})
_MOST_HINT_CHARACTERS = 40_000
"""Of each optional part of the hint: readers refuse a long one as a whole."""


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """The progress of a checkpoint.

    Attributes:
        version: The version of the checkpoint.
        files_done: The number of live files that are encoded.
        num_files: The number of live files; None if it is unknown until all are read.
    """

    version: int
    files_done: int
    num_files: int | None


Progress = Callable[[CheckpointProgress], None]
"""Called after each batch; if it raises, the checkpoint ends and nothing is published."""


def write_checkpoint(
    store: LogStore,
    snapshot: Snapshot,
    *,
    options: EngineOptions,
    clock: Clock,
    progress: Progress | None = None,
    origin: FilesOrigin | None = None,
) -> LastCheckpoint:
    """Write the snapshot's version as a checkpoint, then `_last_checkpoint`.

    The head of this module lists the steps. The version is looked for in the log before something
    is created, before the checkpoint is published, and once more after that: if the table was
    dropped meanwhile, and perhaps made anew, the checkpoint is deleted.

    Args:
        store: The store of the log.
        snapshot: The version.
        options: The engine's options.
        clock: The source of time.
        progress: Called after each batch of files.
        origin: Where all files of the version were taken from by its last commit, if they were.

    Raises:
        TableNotFoundError: The snapshot has no table.
        ProtocolError: The table needs a writer feature that this engine lacks.
        TableError: The sums differ from the version checksum's (kind
            `DELTA_TXN_LOG_FAILED_INTEGRITY`), or the file has a wrong number of adds (kind
            `DELTA_CHECKPOINT_SNAPSHOT_MISMATCH`). Nothing was published.
        StorageError: The store failed, or the version is no longer in the log (kind
            `OPTIMIST_PREDECESSOR_MISSING`). The table is unchanged.
    """
    if snapshot.version < 0:
        raise TableNotFoundError(
            f"The table at {snapshot.table_path} does not exist, so it can't be checkpointed. "
            "Check the path.",
            kind="DELTA_TABLE_NOT_FOUND",
            path=snapshot.table_path,
        )
    # This engine would not write the log entries of an unknown feature, and cleanup would then
    # delete them.
    ensure_writable(
        snapshot.protocol,
        snapshot.metadata,
        table_path=snapshot.table_path,
        version=snapshot.version,
    )
    start_s = clock.monotonic_s()
    job = _Job(store, snapshot, options, clock, progress)
    write = job.write_v2 if has_v2_policy(snapshot) else job.write_classic
    last = _write_in_some_way(write, Way(origin=origin))
    if job.is_newest or not _is_overtaken(store, snapshot):
        write_last_checkpoint(store, snapshot.log_path, last, options=options)
    elapsed_ms = round(1000 * (clock.monotonic_s() - start_s))
    _LOG.info(
        "Wrote the checkpoint of version %d of %s in %d ms",
        snapshot.version,
        without_secrets(snapshot.table_path),
        elapsed_ms,
    )
    return last


def write_compatibility_checkpoint(
    store: LogStore, snapshot: Snapshot, *, options: EngineOptions, clock: Clock
) -> str:
    """Write a V2 checkpoint under a classic name, and leave the hint alone (spec 5.8).

    Engines that do not know V2 names then find one recent checkpoint, with the protocol by which
    they refuse the table. Without it, the log would look truncated to them. If a V2 checkpoint of
    the same version exists, its sidecars and their tags are used. Nothing is written if the version
    has a checkpoint with a name that those engines know.

    Returns:
        The path of the checkpoint that those engines find.

    Raises:
        TableError, StorageError: See `write_checkpoint`.
    """
    start = listing_start(snapshot.log_path, snapshot.version)
    found = [
        item
        for item in complete_checkpoints(store.list_from(start))
        if item.version == snapshot.version
    ]
    for item in found:
        if item.kind is not LogFileKind.V2_CHECKPOINT:
            return item.files[0].path  # it has the protocol that those engines must see
    job = _Job(store, snapshot, options, clock)
    path = join(snapshot.log_path, classic_checkpoint_name(snapshot.version))
    manifest = found[-1].open(store).manifest() if found else None
    if manifest is not None:
        job.write_top_level(Layout.of(snapshot, is_large=False), path, manifest)
    else:
        _write_in_some_way(lambda way: job.write_v2(way, path), Way())
    return path


def has_v2_policy(snapshot: Snapshot) -> bool:
    """Tell whether the table wants V2 checkpoints and its protocol allows them."""
    wants = snapshot.properties.checkpoint_policy == "v2"
    return wants and supports(snapshot.protocol, "v2Checkpoint")


class _Job:
    """The writer of one checkpoint.

    Attributes:
        is_newest: Whether no commit came after the version until the checkpoint was published.
        is_created: Whether the checkpoint is ours, and not another writer's of the same name.
    """

    def __init__(
        self,
        store: LogStore,
        snapshot: Snapshot,
        options: EngineOptions,
        clock: Clock,
        progress: Progress | None = None,
    ) -> None:
        self.is_newest = self.is_created = False
        self._store = store
        self._snapshot = snapshot
        self._options = options
        self._clock = clock
        self._progress = progress
        self._limits = LogLimits.of(options)

    def write_classic(self, way: Way) -> LastCheckpoint:
        most = self._options.checkpoint_row_group_rows
        rows = rows_of(self._store, self._snapshot, most, self._limits, way)
        schema = rows.layout.classic_schema
        path = join(self._snapshot.log_path, classic_checkpoint_name(self._snapshot.version))
        with SpooledParquet(schema, self._snapshot.properties) as file:
            if rows.is_large:
                file.add_metadata({LAYOUT_KEY: rows.layout.digest})
            file.write(pa.RecordBatch.from_pylist(state_actions(self._snapshot), schema=schema))
            for item in rows.file_groups(schema):
                if isinstance(item, CopiedGroup):
                    file.copy(item.group)
                else:
                    file.write(item)
                self._report(rows)
            self._ensure_complete(rows, file.finish())
            self._publish(path, lambda: file.publish(self._store, path))
            body = self._short_schema(schema) if self.is_created else None
            hint = {} if body is None else {"checkpointSchema": body}
            size_bytes = file.size_bytes if self.is_created else None
            return self._make_hint(rows, file.num_rows, size_bytes, hint)

    def write_v2(self, way: Way, path: str | None = None) -> LastCheckpoint:
        """Write sidecars, then the top-level file at `path`, or under a V2 name without it."""
        most = self._options.checkpoint_part_size or self._options.checkpoint_row_group_rows
        rows = rows_of(self._store, self._snapshot, most, self._limits, way)
        writer = SidecarWriter(self._store, self._snapshot, self._clock, rows, most)
        commits_after(self._store, self._snapshot)
        try:
            for _ in self._write_sidecars(writer, rows, way, most):
                self._report(rows)
            self._ensure_complete(rows, writer.counted)
        except BaseException:  # whatever the error is, nobody will ever name these files
            writer.take_back()
            raise
        if path is None:
            extension = self._options.checkpoint_v2_top_level_format
            name = v2_checkpoint_name(self._snapshot.version, self._clock.new_uuid(), extension)
            path = join(self._snapshot.log_path, name)
        manifest = Manifest(tuple(writer.sidecars), self._make_tags(rows, writer))
        try:
            size_bytes, actions = self.write_top_level(rows.layout, path, manifest)
        except StorageError as error:
            if error.kind == PREDECESSOR_MISSING:  # else the top level may be there, and name them
                writer.take_back()
            raise
        hint = self._make_v2_hint(path, size_bytes, actions, manifest.sidecars)
        num_actions = writer.num_actions + len(actions) + len(manifest.sidecars)
        size_bytes += sum(item.size_bytes for item in manifest.sidecars)
        return self._make_hint(rows, num_actions, size_bytes, hint)

    def _write_sidecars(
        self, writer: SidecarWriter, rows: CheckpointRows, way: Way, most: int
    ) -> Iterator[int]:
        if not rows.is_large:
            return writer.write_few()
        plan = None
        if way.continues and not rows.is_taken:
            plan = plan_sidecars(
                self._store,
                self._snapshot,
                rows.layout,
                most_rows=most,
                limits=self._limits,
                now_ms=self._clock.now_ms(),
            )
        return writer.write_many(plan)

    def write_top_level(
        self, layout: Layout, path: str, manifest: Manifest
    ) -> tuple[int, list[dict[str, Any]]]:
        """Write the top-level file of sidecars, and return its size and its other actions."""
        body = {"version": self._snapshot.version, "tags": dict(manifest.tags)}
        actions = [{"checkpointMetadata": body}, *state_actions(self._snapshot)]
        named = [{"sidecar": item.to_dict()} for item in manifest.sidecars]
        if path.endswith(".json"):
            return self._publish_json(path, [*actions, *named]), actions
        schema = layout.top_level_schema
        with SpooledParquet(schema, self._snapshot.properties) as file:
            file.write(pa.RecordBatch.from_pylist([*actions, *named], schema=schema))
            file.finish()
            self._publish(path, lambda: file.publish(self._store, path))
            return file.size_bytes, actions

    def _publish_json(self, path: str, actions: list[dict[str, Any]]) -> int:
        lines = (json.dumps(item, separators=(",", ":"), ensure_ascii=False) for item in actions)
        data = "".join(f"{line}\n" for line in lines).encode()
        self._publish(path, lambda: put_once(lambda: self._store.put_if_absent(path, data), path))
        return len(data)

    def _publish(self, path: str, put: Callable[[], bool]) -> None:
        """Create the file from which readers find the checkpoint, if the table is still there.

        The timeline that the second look guards against: we look -> the table is dropped and made
        anew -> we create the file, which the new log takes for its own.
        """
        commits_after(self._store, self._snapshot)
        self.is_created = put()
        try:
            self.is_newest = not commits_after(self._store, self._snapshot)
        except OptimistError as error:
            if self.is_created and error.kind == PREDECESSOR_MISSING:
                if self._begins_above():
                    return
                self._store.delete(path)
            raise

    def _begins_above(self) -> bool:
        """Return whether the log begins above the version, unlike that of a table made anew.

        Then a cleanup has found our file and removed the commits below it: nothing else holds the
        table's files.
        """
        log_path, segment = self._snapshot.log_path, self._snapshot.segment
        if segment is None or segment.last_seen is None:
            return False
        for status in self._store.list_from(listing_start(log_path, 0)):
            name = parse_log_file_name(status.name)
            if name is not None and name.kind is LogFileKind.COMMIT:
                return name.version > commit_version(segment.last_seen)
        return False

    def _report(self, rows: CheckpointRows) -> None:
        if self._progress is None:
            return
        known = self._snapshot.checksum
        num_files = known.num_files if known else None
        # Not the tombstones that follow the files: nobody knows how many there are.
        self._progress(CheckpointProgress(self._snapshot.version, rows.num_files, num_files))

    def _make_tags(self, rows: CheckpointRows, writer: SidecarWriter) -> dict[str, str]:
        tags = {
            "sidecarNumActions": str(writer.num_actions),
            "sidecarSizeInBytes": str(sum(item.size_bytes for item in writer.sidecars)),
            "numOfAddFiles": str(rows.num_files),
        }
        schema = self._short_schema(rows.layout.file_schema)
        return tags if schema is None else {**tags, "sidecarFileSchema": json.dumps(schema)}

    def _make_hint(
        self,
        rows: CheckpointRows,
        num_actions: int,
        size_bytes: int | None,
        extra: dict[str, Any],
    ) -> LastCheckpoint:
        return LastCheckpoint(
            version=self._snapshot.version,
            size=num_actions,
            size_in_bytes=size_bytes,
            num_of_add_files=rows.num_files,
            extra=extra,
        )

    def _short_schema(self, schema: pa.Schema) -> Any:
        """Return the schema as Spark's JSON, or None if it is too long to store beside the file."""
        body = data_type_to_json(from_arrow_schema(schema))
        is_short = len(json.dumps(body)) <= self._options.checkpoint_schema_write_threshold
        return body if is_short else None

    def _make_v2_hint(
        self,
        path: str,
        size_bytes: int,
        actions: list[dict[str, Any]],
        sidecars: tuple[Sidecar, ...],
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "path": path.rpartition("/")[2],
            "sizeInBytes": size_bytes,
            "modificationTime": self._clock.now_ms(),
        }
        named = [item.to_dict() for item in sidecars]
        for key, items, most in (
            ("nonFileActions", actions, self._options.last_checkpoint_non_file_actions_threshold),
            ("sidecarFiles", named, self._options.last_checkpoint_sidecars_threshold),
        ):
            if len(items) <= most and len(json.dumps(items)) <= _MOST_HINT_CHARACTERS:
                body[key] = items
        return {"v2Checkpoint": body}

    def _ensure_complete(self, rows: CheckpointRows, counted: int) -> None:
        if counted != rows.num_files:
            raise TableError(
                f"The checkpoint of version {self._snapshot.version} was written with {counted} "
                f"files, but the version has {rows.num_files}. The checkpoint was not published, "
                "and the table is unchanged. Report this as a bug.",
                kind="DELTA_CHECKPOINT_SNAPSHOT_MISMATCH",
                version=self._snapshot.version,
                written=counted,
                expected=rows.num_files,
            )
        self._snapshot.ensure_agrees(num_files=rows.num_files, size_bytes=rows.size_bytes)


def _is_overtaken(store: LogStore, snapshot: Snapshot) -> bool:
    """Return whether the log has a checkpoint above the version, whose writer writes the hint.

    A checkpoint without its commit does not count: no reader begins with it.
    """
    above = list(store.list_from(listing_start(snapshot.log_path, snapshot.version + 1)))
    names = {status.name for status in above}
    return any(commit_name(each.version) in names for each in complete_checkpoints(above))


def _write_in_some_way(write: Callable[[Way], LastCheckpoint], way: Way) -> LastCheckpoint:
    """Write the checkpoint, or try other ways that may succeed."""
    while True:
        try:
            return write(way)
        except (LogFileNotFoundError, TableError) as error:
            following = _next_way(way, error)
            if following is None:
                raise
            way = following


def _next_way(way: Way, error: OptimistError) -> Way | None:
    """Return another way to find the rows, or None if none can help against the error."""
    if error.kind == MALFORMED_PARTITION_VALUE and way.typed_partitions:
        # The texts are always written, so this only costs time for readers.
        _LOG.warning("The checkpoint is written without partitionValues_parsed: %s", error)
        return replace(way, typed_partitions=False)
    if not isinstance(error, LogFileNotFoundError) and error.kind not in _UNREADABLE:
        return None
    if way.origin is not None:
        _LOG.info("The files are read without the checkpoint that they come from: %s", error)
        return replace(way, origin=None)
    if way.continues:
        _LOG.info("The checkpoint before can't be continued, so all files are read: %s", error)
        return replace(way, continues=False)
    if way.in_memory:
        return None
    _LOG.debug(
        "The checkpoint can't be written batch by batch, so the files are read into memory: %s",
        error,
    )
    return replace(way, in_memory=True)
