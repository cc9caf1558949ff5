"""The live files and tombstones of a table as Arrow: schemas, conversions, file keys.

Everything as long as the table's file list stays in Arrow. Only the files of one commit, or the few
files that a command touches, become `AddFile` values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from optimist.core.values.text_bytes import bytes_of

__all__ = [
    "ACTIONS_SCHEMA",
    "DELETION_VECTOR_TYPE",
    "FILES_SCHEMA",
    "STRING_MAP_TYPE",
    "TOMBSTONES_SCHEMA",
    "add_files",
    "canonical_path",
    "canonical_paths",
    "conform",
    "deletion_vector_of",
    "file_actions_batch",
    "file_keys",
    "files_table",
    "last_per_key",
    "table_keys",
    "with_column",
    "without_keys",
    "without_vectors",
]

STRING_MAP_TYPE = pa.map_(pa.string(), pa.string())
DELETION_VECTOR_TYPE = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)
FILES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", STRING_MAP_TYPE),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", STRING_MAP_TYPE),
        ("deletionVector", DELETION_VECTOR_TYPE),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
    ]
)
"""One row per live file. Column names are the protocol's, and `path` is as in the log."""
TOMBSTONES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", STRING_MAP_TYPE),
        ("size", pa.int64()),
        ("deletionVector", DELETION_VECTOR_TYPE),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
"""One row per removed file, without `stats` and `tags`, which no state keeps (spec 5.8)."""
ACTIONS_SCHEMA = pa.schema(
    [
        ("isAdd", pa.bool_()),
        *FILES_SCHEMA,
        ("deletionTimestamp", pa.int64()),
        ("extendedFileMetadata", pa.bool_()),
    ]
)
"""Adds and removes in the order of the commits: the later row wins."""

_ABSENT_IN_ADDS: Mapping[str, Any] = {"partitionValues": {}, "modificationTime": 0}
_KEY_SEPARATOR = "\x00"
_WORTH_THREADS = 100_000


def files_table(adds: Iterable[AddFile]) -> pa.Table:
    """Return the files as a table of `FILES_SCHEMA`, in the given order."""
    rows = [_row_of_action(add) for add in adds]
    return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)


def add_files(table: pa.Table) -> tuple[AddFile, ...]:
    """Return the few rows of a `FILES_SCHEMA` table that a command touches, as values."""
    return tuple(_add_file(row) for row in table.to_pylist(maps_as_pydicts="strict"))


def without_vectors(files: pa.Table) -> pa.Table:
    """Return a `FILES_SCHEMA` table without deletion vectors, as if no row were deleted."""
    return with_column(files, "deletionVector", pa.nulls(files.num_rows, DELETION_VECTOR_TYPE))


def with_column(files: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return a `FILES_SCHEMA` table with other values in one of its columns."""
    index = files.schema.get_field_index(name)
    return files.set_column(index, files.schema.field(index), values)


def file_actions_batch(
    actions: Iterable[AddFile | RemoveFile | Mapping[str, Any]], schema: pa.Schema = ACTIONS_SCHEMA
) -> pa.RecordBatch:
    """Return adds and removes of commits, in order, as one batch.

    `dataChange` is false in a table's state, whatever the commit has (spec 5.6).

    Args:
        actions: The actions. A mapping is the parsed body of an action with the additional key
            `isAdd`.
        schema: The columns wanted, of those of `ACTIONS_SCHEMA`.

    Raises:
        pyarrow.ArrowInvalid, pyarrow.ArrowTypeError: A value has not the protocol's type.
    """
    rows = [item if isinstance(item, Mapping) else _row_of_action(item) for item in actions]
    columns = [_build_column(rows, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conform(array: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    """Return fields of a struct column as a batch of this schema, with nulls for absent ones."""
    present = {field.name: index for index, field in enumerate(array.type)}
    flat = array.flatten()
    columns = [
        _conform(flat[present[field.name]], field.type)
        if field.name in present
        else _null_array(len(array), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def deletion_vector_of(row: Mapping[str, Any] | None) -> DeletionVectorDescriptor | None:
    """Return the descriptor from a `DELETION_VECTOR_TYPE` row in Python form, and None for None."""
    if row is None:
        return None
    return DeletionVectorDescriptor(
        storage_type=row["storageType"],
        path_or_inline_dv=row["pathOrInlineDv"],
        size_in_bytes=row["sizeInBytes"],
        cardinality=row["cardinality"],
        offset=row["offset"],
        max_row_index=row["maxRowIndex"],
    )


def file_keys(batch: pa.RecordBatch) -> pa.Array:
    """Return the key of each logical file: its canonical path and deletion vector (spec 5.6).

    Usually there are no escapes and vectors. Then this is the path column itself, uncopied.
    """
    paths = _canonical_paths(batch.column("path"))
    vectors = batch.column("deletionVector")
    if vectors.null_count == len(vectors):
        return paths
    parts = dict(zip(DELETION_VECTOR_TYPE.names, vectors.flatten(), strict=True))
    offset = pc.binary_join_element_wise("@", parts["offset"].cast(pa.string()), "")
    unique_id = pc.binary_join_element_wise(
        _KEY_SEPARATOR, parts["storageType"], parts["pathOrInlineDv"], ""
    )
    suffix = pc.binary_join_element_wise(unique_id, pc.fill_null(offset, ""), "")
    return pc.binary_join_element_wise(paths, pc.fill_null(suffix, ""), "")


def table_keys(files: pa.Table) -> pa.ChunkedArray:
    """Return the key of each file of a table (see `file_keys`)."""
    return pa.chunked_array([file_keys(batch) for batch in files.to_batches()], pa.string())


def canonical_path(path: str) -> str:
    """Return an `add.path` in the form that all spellings of one file share (spec 5.6).

    The form is percent-decoded, and a `file:` URI becomes a plain path.
    """
    plain = "/" + path[len("file:") :].lstrip("/") if path.startswith("file:/") else path
    return unquote(plain)


def canonical_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Convert a column of `add.path` as `canonical_path` does, uncopied if nothing changes."""
    if isinstance(paths, pa.ChunkedArray):
        return pa.chunked_array([_canonical_paths(chunk) for chunk in paths.chunks], pa.string())
    return _canonical_paths(paths)


def last_per_key(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the last row of each key, in the order of the batch (spec 5.6)."""
    if batch.num_rows < 2:
        return batch
    keys = file_keys(batch)
    if pc.count_distinct(keys).as_py() == len(keys):  # as after CLONE: much faster than grouping
        return batch
    keyed = pa.table([keys, pa.array(range(batch.num_rows))], names=["key", "row"])
    # For few rows, waking Arrow's threads costs more than grouping, and many writers would do it.
    grouped = keyed.group_by("key", use_threads=batch.num_rows > _WORTH_THREADS)
    last = grouped.aggregate([("row", "max")])["row_max"]
    if len(last) == batch.num_rows:
        return batch
    return batch.take(last.combine_chunks().sort())


def without_keys(
    batch: pa.RecordBatch, keys: pa.Array, gone: pa.Array
) -> tuple[pa.RecordBatch, pa.Array]:
    """Return the batch without the rows whose key is in `gone`, and the other keys.

    Both are returned uncopied if no row has such a key.
    """
    if len(gone) > len(keys):
        # Arrow hashes the value set anew in each call, so make it the shorter side.
        gone = gone.filter(pc.is_in(gone, value_set=keys))
    hit = pc.is_in(keys, value_set=gone)
    if not pc.any(hit, min_count=0).as_py():
        return batch, keys
    kept = pc.invert(hit)
    return batch.filter(kept), keys.filter(kept)


def _canonical_paths(paths: pa.Array) -> pa.Array:
    is_local = pc.starts_with(paths, "file:/")
    if pc.any(is_local, min_count=0).as_py():
        paths = _without_scheme(paths, is_local)
    if b"%" not in bytes_of(paths):  # much faster than asking each path
        return paths
    escaped = pc.match_substring(paths, "%")
    return pc.replace_with_mask(paths, escaped, _decode_paths(paths.filter(escaped)))


def _without_scheme(paths: pa.Array, is_local: pa.Array) -> pa.Array:
    is_usual = pc.all(is_local).as_py() and not pc.any(pc.starts_with(paths, "file://")).as_py()
    if is_usual:  # as delta-spark and CLONE write them: much faster than an expression
        return pc.replace_substring(paths, "file:/", "/", max_replacements=1)
    return pc.replace_substring_regex(paths, "^file:/+", "/")


def _decode_paths(paths: pa.Array) -> pa.Array:
    # Escapes occur in directory names, which many files share: decode each distinct one once.
    split = pc.extract_regex(paths, r"(?s)^(?P<folder>.*/)?(?P<name>[^/]*)$")
    folders, names = (_decode_distinct(split.field(field)) for field in ("folder", "name"))
    return pc.binary_join_element_wise(folders, names, "")


def _decode_distinct(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring(texts, "%"), min_count=0).as_py():
        return texts
    encoded = texts.dictionary_encode()
    distinct = pa.array([unquote(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return distinct.take(encoded.indices)


def _null_array(length: int, kind: pa.DataType) -> pa.Array:
    # Batches share one array of nulls, because few tables use all columns.
    return _shared_nulls(1 << length.bit_length(), kind).slice(0, length)


@lru_cache(maxsize=64)
def _shared_nulls(length: int, kind: pa.DataType) -> pa.Array:
    return pa.nulls(length, kind)


def _conform(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.null_count == len(array):
        return _null_array(len(array), wanted)
    if array.type == wanted:
        return array
    if pa.types.is_struct(wanted) and pa.types.is_struct(array.type):
        inner = conform(array, pa.schema(list(wanted)))
        return pa.StructArray.from_arrays(
            inner.columns, fields=list(wanted), mask=array.is_null() if array.null_count else None
        )
    return array.cast(wanted)


def _build_column(rows: Sequence[Mapping[str, Any]], field: pa.Field) -> pa.Array:
    if field.name == "dataChange":
        return pa.repeat(pa.scalar(False), len(rows))
    values = [row.get(field.name) for row in rows]
    if field.name in _ABSENT_IN_ADDS:
        # Old writers leave these out of adds. A remove may lack them.
        absent = _ABSENT_IN_ADDS[field.name]
        values = [
            absent if value is None and row["isAdd"] else value
            for value, row in zip(values, rows, strict=True)
        ]
    return pa.array(values, field.type)


def _row_of_action(action: AddFile | RemoveFile) -> dict[str, Any]:
    row: dict[str, Any] = {
        "isAdd": isinstance(action, AddFile),
        "path": action.path,
        "partitionValues": action.partition_values,
        "size": action.size,
        "dataChange": action.data_change,
        "stats": action.stats,
        "tags": action.tags,
        "deletionVector": _vector_row(action.deletion_vector),
        "baseRowId": action.base_row_id,
        "defaultRowCommitVersion": action.default_row_commit_version,
    }
    if isinstance(action, AddFile):
        row["modificationTime"] = action.modification_time
        row["clusteringProvider"] = action.clustering_provider
    else:
        row["deletionTimestamp"] = action.deletion_timestamp
        row["extendedFileMetadata"] = action.extended_file_metadata
    return row


def _vector_row(vector: DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    if vector is None:
        return None
    return {
        "storageType": vector.storage_type,
        "pathOrInlineDv": vector.path_or_inline_dv,
        "offset": vector.offset,
        "sizeInBytes": vector.size_in_bytes,
        "cardinality": vector.cardinality,
        "maxRowIndex": vector.max_row_index,
    }


def _add_file(row: Mapping[str, Any]) -> AddFile:
    return AddFile(
        path=row["path"],
        partition_values=row["partitionValues"] or {},
        size=row["size"],
        modification_time=row["modificationTime"],
        data_change=row["dataChange"],
        stats=row["stats"],
        tags=row["tags"],
        deletion_vector=deletion_vector_of(row["deletionVector"]),
        base_row_id=row["baseRowId"],
        default_row_commit_version=row["defaultRowCommitVersion"],
        clustering_provider=row["clusteringProvider"],
    )
