"""Writing a checkpoint: a version's whole state in one file, to start from (spec 5.8)."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core.actions import Action, action_to_dict
from optimist.core.clock import Clock
from optimist.core.errors import StorageError, TableError, TableNotFoundError
from optimist.core.log.checksum import checksum_of_files
from optimist.core.log.file_table import FILES_SCHEMA, STRING_MAP_TYPE, TOMBSTONES_SCHEMA
from optimist.core.log.last_checkpoint import LastCheckpoint, write_last_checkpoint
from optimist.core.log.names import classic_checkpoint_name
from optimist.core.logstore import LogStore, PutOutcome
from optimist.core.options import EngineOptions
from optimist.core.paths import join
from optimist.core.snapshot import Snapshot

__all__ = ["checkpoint_bytes", "write_checkpoint"]

_logger = logging.getLogger(__name__)
_ROW_GROUP_ROWS = 131_072
_STATE_FIELDS = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            (
                "format",
                pa.struct([("provider", pa.string()), ("options", STRING_MAP_TYPE)]),
            ),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", STRING_MAP_TYPE),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}


def write_checkpoint(
    store: LogStore, snapshot: Snapshot, *, options: EngineOptions, clock: Clock
) -> LastCheckpoint:
    """Write the snapshot's version as a classic checkpoint, then `_last_checkpoint`.

    1. Sum up the live files and compare with the version checksum, where one is known.
    2. Encode, and count the adds in what was encoded.
    3. Create the file if it is absent. A checkpoint that is there already is as good as ours.
    4. Overwrite the hint, so that nobody is sent to a checkpoint that is not complete.

    Raises:
        TableNotFoundError: The snapshot is of no table.
        TableError: The sums differ (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`), or the file does not
            hold what it should (kind `DELTA_CHECKPOINT_SNAPSHOT_MISMATCH`); nothing was published.
        StorageError: The store failed; the table is as it was.
    """
    if snapshot.version < 0:
        raise TableNotFoundError(
            f"There is no table at {snapshot.table_path}, so there is nothing to checkpoint.",
            kind="DELTA_TABLE_NOT_FOUND",
            path=snapshot.table_path,
        )
    start_s = clock.monotonic_s()
    _ensure_sums_agree(snapshot, options)
    data, num_actions = checkpoint_bytes(snapshot)
    _ensure_complete(data, snapshot)
    path = join(snapshot.log_path, classic_checkpoint_name(snapshot.version))
    _publish(store, path, data)
    last = LastCheckpoint(
        version=snapshot.version,
        size=num_actions,
        size_in_bytes=len(data),
        num_of_add_files=snapshot.num_files,
    )
    write_last_checkpoint(store, snapshot.log_path, last, options=options)
    elapsed_ms = round(1000 * (clock.monotonic_s() - start_s))
    _logger.info("Wrote the checkpoint %s in %d ms", path, elapsed_ms)
    return last


def checkpoint_bytes(snapshot: Snapshot) -> tuple[bytes, int]:
    """The content of the checkpoint file, and how many actions it holds."""
    add_schema = _add_schema(snapshot)
    types = {
        "txn": _STATE_FIELDS["txn"],
        "add": pa.struct(list(add_schema)),
        "remove": pa.struct(list(TOMBSTONES_SCHEMA)),
        "metaData": _STATE_FIELDS["metaData"],
        "protocol": _STATE_FIELDS["protocol"],
        "domainMetadata": _STATE_FIELDS["domainMetadata"],
    }
    schema = pa.schema(list(types.items()))
    sink = io.BytesIO()
    num_actions = 0
    with pq.ParquetWriter(sink, schema, compression="snappy") as writer:
        for batch in _batches(snapshot, schema, add_schema):
            writer.write_batch(batch, row_group_size=_ROW_GROUP_ROWS)
            num_actions += batch.num_rows
    return sink.getvalue(), num_actions


def _add_schema(snapshot: Snapshot) -> pa.Schema:
    properties = snapshot.properties
    # Struct statistics are not written yet. A table that asks for them alone keeps its statistics
    # as JSON rather than losing them.
    if properties.checkpoint_write_stats_as_json or properties.checkpoint_write_stats_as_struct:
        return FILES_SCHEMA
    return FILES_SCHEMA.remove(FILES_SCHEMA.get_field_index("stats"))


def _batches(
    snapshot: Snapshot, schema: pa.Schema, add_schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    yield _state_batch(snapshot, schema)
    for table, column, fields in (
        (snapshot.files, "add", add_schema),
        (snapshot.tombstones, "remove", TOMBSTONES_SCHEMA),
    ):
        for batch in table.select(fields.names).to_batches(max_chunksize=_ROW_GROUP_ROWS):
            yield _with_column(
                schema, column, pa.StructArray.from_arrays(batch.columns, fields=list(fields))
            )


def _state_batch(snapshot: Snapshot, schema: pa.Schema) -> pa.RecordBatch:
    actions: Sequence[Action] = (
        snapshot.protocol,
        snapshot.metadata,
        *snapshot.set_transactions.values(),
        *snapshot.domain_metadata.values(),
    )
    rows: list[dict[str, Any]] = [action_to_dict(action) for action in actions]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def _with_column(schema: pa.Schema, name: str, values: pa.Array) -> pa.RecordBatch:
    columns = [
        values if field.name == name else pa.nulls(len(values), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ensure_sums_agree(snapshot: Snapshot, options: EngineOptions) -> None:
    known = snapshot.checksum
    table = snapshot.table_state
    actual = checksum_of_files(snapshot.files, state=table, options=options)
    if known is None or actual is None:
        return
    pairs = (
        ("numFiles", known.num_files, actual.num_files),
        ("tableSizeBytes", known.table_size_bytes, actual.table_size_bytes),
    )
    wrong = [f"{name} is {found}, not {noted}" for name, noted, found in pairs if found != noted]
    if not wrong:
        return
    message = (
        f"Version {snapshot.version} of {snapshot.table_path} does not agree with its version "
        f"checksum: {'; '.join(wrong)}. The table can be read and written; no checkpoint was "
        "written. A commit or a .crc file was damaged or changed."
    )
    if options.checksum_mismatch_fatal:
        raise TableError(message, kind="DELTA_TXN_LOG_FAILED_INTEGRITY", version=snapshot.version)
    _logger.error(message)


def _ensure_complete(data: bytes, snapshot: Snapshot) -> None:
    """Count the adds in what was encoded, from the file itself (spec 5.8.8)."""
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        written = sum(
            len(batch) - batch.column(0).null_count
            for batch in file.iter_batches(_ROW_GROUP_ROWS, columns=["add.size"])
        )
    if written != snapshot.num_files:
        raise TableError(
            f"The checkpoint of version {snapshot.version} came out with {written} files, but the "
            f"version has {snapshot.num_files}. It was not published; the table is as it was.",
            kind="DELTA_CHECKPOINT_SNAPSHOT_MISMATCH",
            version=snapshot.version,
            written=written,
            expected=snapshot.num_files,
        )


def _publish(store: LogStore, path: str, data: bytes) -> None:
    outcome = store.put_if_absent(path, data)
    if outcome is PutOutcome.UNKNOWN:
        # The same bytes again: if the lost request did arrive, the answer is EXISTS.
        outcome = store.put_if_absent(path, data)
    if outcome is PutOutcome.UNKNOWN:
        raise StorageError(
            f"The store gave no answer while creating {path}; the checkpoint may or may not be "
            "there. The table is complete either way.",
            kind="OPTIMIST_WRITE_OUTCOME_UNKNOWN",
            path=path,
            retryable=True,
        )
