"""Adds and removes as lines of a commit, made from Arrow columns (protocol "Actions").

It serves commits as long as the table, in which no file becomes a Python value. Its output is, byte
for byte, the output of `actions_to_bytes` for the same `AddFile` and `RemoveFile` values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import MALFORMED_ACTION
from optimist.core.log.file_table import DELETION_VECTOR_TYPE
from optimist.core.values.text_bytes import buffer_of, bytes_of

__all__ = [
    "add_lines",
    "distinct_map_keys",
    "distinct_partition_columns",
    "distinct_partitions",
    "numbered_partitions",
    "remove_lines",
]

_BATCH_ROWS = 8_192
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}
_ESCAPES: Mapping[str, str] = {
    "\\": "\\\\",  # first, because the others bring more of them
    '"': '\\"',
    **{char: _SHORT_ESCAPES.get(char, f"\\u{ord(char):04x}") for char in map(chr, range(0x20))},
}
"""The characters that JSON can't hold, as Python's `json` escapes them."""
_FIRST_PRINTABLE = 0x20
_PRINTABLE = frozenset('"\\')
"""Those of them that are common: one look at all bytes shows that there are no others."""
_VECTOR_KEYS = (
    "storageType",
    "pathOrInlineDv",
    "sizeInBytes",
    "cardinality",
    "offset",
    "maxRowIndex",
)
_OF_ADDS = (
    "path",
    "partitionValues",
    "size",
    "modificationTime",
    "dataChange",
    "stats",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider",
)
_OF_REMOVES = (
    "path",
    "deletionTimestamp",
    "dataChange",
    "extendedFileMetadata",
    "partitionValues",
    "size",
    "stats",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
)


def add_lines(files: pa.Table) -> Iterator[pa.Buffer]:
    """Yield the lines that add these files, many at a time.

    Args:
        files: Rows of `FILES_SCHEMA`.

    Raises:
        TableError: A text is not UTF-8 (kind `OPTIMIST_MALFORMED_ACTION`).
    """
    yield from _render_lines("add", _OF_ADDS, files, {})


def remove_lines(files: pa.Table, deletion_timestamp_ms: int) -> Iterator[pa.Buffer]:
    """Yield the lines that remove these files with `dataChange` true, many at a time.

    Args:
        files: Rows of `FILES_SCHEMA`, as added.
        deletion_timestamp_ms: The time of their removal.

    Raises:
        TableError: As `add_lines`.
    """
    same = {"deletionTimestamp": f"{deletion_timestamp_ms}", "dataChange": "true"}
    yield from _render_lines("remove", _OF_REMOVES, files, {**same, "extendedFileMetadata": "true"})


def distinct_partitions(files: pa.Table) -> list[dict[str, str | None]]:
    """Return the values of the files' partition columns, each combination once."""
    chunks = files["partitionValues"].chunks
    texts = [pc.unique(_map_objects(chunk, absent="{}")) for chunk in chunks]
    return [json.loads(text) for text in _distinct_texts(texts)]


def distinct_partition_columns(files: pa.Table) -> list[list[str]]:
    """Return the partition columns for which files have values, each combination once.

    A column occurs twice if a file has two values for it.
    """
    return distinct_map_keys(files["partitionValues"])


def distinct_map_keys(maps: pa.ChunkedArray) -> list[list[str]]:
    """Return the keys of maps of texts, each combination once, as often as a map repeats them."""
    texts = [
        pc.unique(_join_per_map(chunk, _to_json_texts(_entries(chunk)[0])))
        for chunk in maps.chunks
        if chunk.null_count < len(chunk)
    ]
    return [json.loads(f"[{text}]") for text in _distinct_texts(texts)]


def numbered_partitions(values: pa.MapArray) -> tuple[pa.Array, list[dict[str, str | None]]]:
    """Return for each file the number of its partition, and the values of these partitions.

    Args:
        values: The column `partitionValues` of files. The first of two values for a column counts.
    """
    encoded = _map_objects(values, absent="{}").dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    found = [json.loads(text, object_pairs_hook=_first_of_each) for text in texts]
    return encoded.indices, found


def _first_of_each(pairs: list[tuple[str, str | None]]) -> dict[str, str | None]:
    return dict(reversed(pairs))


def _distinct_texts(texts: list[pa.Array]) -> list[str]:
    found: list[str] = pc.unique(pa.chunked_array(texts, pa.string())).to_pylist()
    return found


def _to_json_texts(texts: pa.Array) -> pa.Array:
    """Return each text as a JSON string with its quotes, and null for null."""
    return _enclose('"', _escape(texts), '"')


def _escape(texts: pa.Array) -> pa.Array:
    """Return each text as it stands between the quotes of a JSON string."""
    data = bytes_of(texts)
    if not data:
        return texts
    has_controls = np.frombuffer(data, np.uint8).min() < _FIRST_PRINTABLE
    for char, escape in _ESCAPES.items():
        if (has_controls or char in _PRINTABLE) and char.encode() in data:
            texts = pc.replace_substring(texts, char, escape)
    return texts


def _render_lines(
    action: str, keys: tuple[str, ...], files: pa.Table, same: Mapping[str, str]
) -> Iterator[pa.Buffer]:
    for batch in files.to_batches(max_chunksize=_BATCH_ROWS):
        line = _LineOfColumns(f'{{"{action}":{{')
        for key in keys:
            if key in same:
                line.add_text(f'{line.comma}"{key}":{same[key]}')
            else:
                _add_member(line, key, batch.column(key))
        line.add_text("}}\n")
        lines = line.joined()
        _ensure_utf8(lines)
        yield buffer_of(lines)


class _LineOfColumns:
    """The parts of the lines of many files, which are copied once, when all are there.

    Args:
        start: The text with which each line begins.
    """

    def __init__(self, start: str) -> None:
        self._parts: list[pa.Array | str] = []
        self._text = start
        self.comma = ""

    def add_text(self, text: str) -> None:
        """Add the same text to each line."""
        self._text += text
        self.comma = ","

    def add_column(self, texts: pa.Array) -> None:
        """Add to each line the text of its row, which is not null."""
        self._parts += [self._text, texts]
        self._text = ""

    def joined(self) -> pa.Array:
        """Return the lines."""
        return pc.binary_join_element_wise(*self._parts, self._text, "")


def _ensure_utf8(lines: pa.StringArray) -> None:
    """Refuse text that is not UTF-8, which the Parquet of a checkpoint may hold.

    Raises:
        TableError: A text is not UTF-8 (kind `OPTIMIST_MALFORMED_ACTION`).
    """
    try:
        lines.validate(full=True)
    except pa.ArrowInvalid as error:
        raise TableError(
            "The commit names files with a text (path, partition value, statistics or tag) that is "
            f"not UTF-8 ({shown(error)}). The checkpoint that holds it is damaged. Nothing was "
            "written. Remove the checkpoint, so that the commits are read in its place.",
            kind=MALFORMED_ACTION,
        ) from None


def _add_member(line: _LineOfColumns, key: str, values: pa.Array) -> None:
    """Add a column as members `"key":value` of objects, and nothing for null."""
    if values.null_count == len(values) and key != "partitionValues":
        return
    name = f'{line.comma}"{key}":'
    if values.null_count or not pa.types.is_string(values.type):
        texts = _json_values(key, values)
        if texts.null_count:
            line.add_text("")
            line.add_column(pc.fill_null(_enclose(name, texts, ""), ""))
            return
        line.add_text(name)
        line.add_column(texts)
        return
    line.add_text(f'{name}"')
    line.add_column(_escape(values))
    line.add_text('"')


def _to_members(key: str, values: pa.Array) -> pa.Array:
    """Return a column as members `"key":value` of objects, null for null."""
    return _enclose(f'"{key}":', _json_values(key, values), "")


def _json_values(key: str, values: pa.Array) -> pa.Array:
    """Return the values of a column as JSON, null for null."""
    if key == "partitionValues":
        return _map_objects(values, absent="{}")
    if pa.types.is_map(values.type):
        return _map_objects(values, absent=None)
    if values.type == DELETION_VECTOR_TYPE:
        return _vector_objects(values)
    if pa.types.is_string(values.type):
        return _to_json_texts(values)
    return values.cast(pa.string())


def _map_objects(maps: pa.MapArray, *, absent: str | None) -> pa.Array:
    """Return maps of texts as JSON objects."""
    keys, items = _entries(maps)
    if items.null_count:
        values = pc.fill_null(_to_json_texts(items), "null")
        entries = pc.binary_join_element_wise('"', _escape(keys), '":', values, "")
    else:
        entries = pc.binary_join_element_wise('"', _escape(keys), '":"', _escape(items), '"', "")
    objects = _enclose("{", _join_per_map(maps, entries), "}")
    if not maps.null_count:
        return objects
    return pc.if_else(maps.is_valid(), objects, pa.scalar(absent, pa.string()))


def _entries(maps: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of all maps, one after the other."""
    start, end = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    return maps.keys.slice(start, end - start), maps.items.slice(start, end - start)


def _join_per_map(maps: pa.MapArray, texts: pa.Array) -> pa.Array:
    """Join the texts of a map's entries with commas, one text per map."""
    offsets = pc.subtract(maps.offsets, maps.offsets[0])
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")


def _vector_objects(vectors: pa.StructArray) -> pa.Array:
    """Return descriptors of deletion vectors as JSON objects, and null for null."""
    if vectors.null_count == len(vectors):
        return pa.nulls(len(vectors), pa.string())
    fields = dict(zip(DELETION_VECTOR_TYPE.names, vectors.flatten(), strict=True))
    first, *rest = (_to_members(key, fields[key]) for key in _VECTOR_KEYS)
    # Arrow leaves out a row that has only nulls, and all later rows would move up.
    body = pc.binary_join_element_wise(pc.fill_null(first, ""), *rest, ",", null_handling="skip")
    return pc.if_else(vectors.is_valid(), _enclose("{", body, "}"), pa.scalar(None, pa.string()))


def _enclose(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, texts, after, "")
