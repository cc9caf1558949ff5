"""Reading a checkpoint column by column (spec 5.6, 5.8): no Python object per file.

A reader is asked for three things separately, because they cost differently: the non-file actions
(a few rows; row groups that have none are skipped by their Parquet statistics), the live files, and
the tombstones, which only the writer of the next checkpoint wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from optimist.core.actions import Action, action_from_dict
from optimist.core.errors import TableError
from optimist.core.log.file_table import FILES_SCHEMA, TOMBSTONES_SCHEMA, conform
from optimist.core.logstore import FileStatus, LogStore

__all__ = ["CheckpointReader", "ClassicCheckpointReader"]

_BATCH_ROWS = 131_072
# A leaf that every row of the action has; where a row group has only nulls in it, it has no such
# action.
_KEY_LEAVES = {
    "protocol": "protocol.minReaderVersion",
    "metaData": "metaData.id",
    "txn": "txn.appId",
    "domainMetadata": "domainMetadata.domain",
    "add": "add.path",
    "remove": "remove.path",
    "sidecar": "sidecar.path",
    "checkpointMetadata": "checkpointMetadata.version",
}
_STATE_COLUMNS = ("protocol", "metaData", "txn", "domainMetadata")
_V2_COLUMNS = ("checkpointMetadata", "sidecar")


class CheckpointReader(Protocol):
    """What the replay asks of a checkpoint, whatever its kind.

    Every method raises `TableError` of kind `OPTIMIST_MALFORMED_CHECKPOINT` for a damaged file, and
    `OPTIMIST_UNSUPPORTED_CHECKPOINT` for content this engine does not understand.
    """

    def state_actions(self) -> tuple[Action, ...]:
        """Protocol, metadata, application transactions and domain metadata."""

    def live_files(self) -> Iterator[pa.RecordBatch]:
        """The live files as batches of `FILES_SCHEMA`."""

    def tombstones(self) -> Iterator[pa.RecordBatch]:
        """The removed files as batches of `TOMBSTONES_SCHEMA`."""


class ClassicCheckpointReader:
    """A checkpoint in a single Parquet file with one nullable struct column per kind of action."""

    def __init__(self, store: LogStore, files: tuple[FileStatus, ...]) -> None:
        self._store = store
        self._path = files[0].path

    def state_actions(self) -> tuple[Action, ...]:
        """See `CheckpointReader.state_actions`."""
        with self._opened() as file:
            self._ensure_no_v2_content(file)
            return tuple(
                action_from_dict({column: _without_nulls(row)})
                for column in _STATE_COLUMNS
                for batch in _struct_batches(file, column, None)
                for row in batch.to_pylist(maps_as_pydicts="strict")
            )

    def live_files(self) -> Iterator[pa.RecordBatch]:
        """See `CheckpointReader.live_files`."""
        return self._file_actions("add", FILES_SCHEMA)

    def tombstones(self) -> Iterator[pa.RecordBatch]:
        """See `CheckpointReader.tombstones`."""
        return self._file_actions("remove", TOMBSTONES_SCHEMA)

    def _file_actions(self, column: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._opened() as file:
            for array in _struct_batches(file, column, schema.names):
                yield _in_state(conform(array, schema))

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        with self._store.open_read(self._path) as source:
            try:
                with pq.ParquetFile(source) as file:
                    yield file
            except (pa.ArrowException, TableError, OSError, KeyError, ValueError) as error:
                # pyarrow reports a damaged file by any of these, some of them builtin errors.
                if isinstance(error, TableError) and error.kind != "OPTIMIST_MALFORMED_ACTION":
                    raise
                raise TableError(
                    f"The checkpoint {self._path} can't be read: {error}.",
                    kind="OPTIMIST_MALFORMED_CHECKPOINT",
                    path=self._path,
                ) from error

    def _ensure_no_v2_content(self, file: pq.ParquetFile) -> None:
        # A V2 checkpoint may bear a classic name; its live files then stand in sidecars.
        for column in _V2_COLUMNS:
            for _ in _struct_batches(file, column, None):
                raise TableError(
                    f"The checkpoint {self._path} is a V2 checkpoint under a classic name, which "
                    "this version can't read.",
                    kind="OPTIMIST_UNSUPPORTED_CHECKPOINT",
                    path=self._path,
                )


def _struct_batches(
    file: pq.ParquetFile, column: str, fields: list[str] | None
) -> Iterator[pa.StructArray]:
    """The non-null rows of a struct column, with these of its fields (None: all of them)."""
    index = file.schema_arrow.get_field_index(column)
    if index < 0:
        return
    groups = _groups_with(file, _KEY_LEAVES[column])
    present = {field.name for field in file.schema_arrow.field(index).type}
    wanted = [column] if fields is None else [f"{column}.{n}" for n in fields if n in present]
    if not groups or not wanted:
        return
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=wanted):
        array = batch.column(0)
        if array.null_count:
            array = array.drop_null()
        if len(array):
            yield array


def _groups_with(file: pq.ParquetFile, leaf: str) -> list[int]:
    leaves = [file.schema.column(index).path for index in range(len(file.schema))]
    if leaf not in leaves:
        return list(range(file.num_row_groups))
    index = leaves.index(leaf)
    return [
        group
        for group in range(file.num_row_groups)
        if not _is_all_null(file.metadata.row_group(group), index)
    ]


def _is_all_null(group: pq.RowGroupMetaData, index: int) -> bool:
    statistics = group.column(index).statistics
    if statistics is None or not statistics.has_null_count:
        return False
    return bool(statistics.null_count == group.num_rows)


def _in_state(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`dataChange` is false in a state (spec 5.6), whatever a checkpoint's writer left there."""
    index = batch.schema.get_field_index("dataChange")
    if not pc.any(batch.column(index), min_count=0).as_py():
        return batch
    columns = list(batch.columns)
    columns[index] = pa.repeat(pa.scalar(False), batch.num_rows)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _without_nulls(value: Any) -> Any:
    """Parquet has every column in every row; JSON leaves the absent ones out."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value
