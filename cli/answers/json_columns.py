"""Arrow columns as JSON text, column by column, without a Python object for each row.

| type | JSON |
|---|---|
| numbers | a number; NaN and the infinities are text |
| decimals | text, so that no digit is lost |
| dates and times | text in ISO's spelling; a time with a zone is in UTC and ends with `Z` |
| binary | text of hexadecimal digits |
| lists | an array |
| structs, and maps whose keys are text | an object |
| other maps | an array of objects with `key` and `value` |
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["json_facts", "json_lines", "json_texts", "plain_texts"]

Array: TypeAlias = Any

_TEXT = pa.large_string()  # long columns have more than two gigabytes of text
_INVISIBLE = r"[\x00-\x1f\x7f-\x9f\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"
_INVISIBLE_CODES = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x200E, 0x200F),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
"""What would end a line, control a terminal, or turn the direction of the text there."""
_NULL = "null"


def json_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return each row of a batch as one JSON object."""
    columns = [json_texts(column) for column in batch.columns]
    return _objects(batch.schema.names, columns, batch.num_rows)


def json_facts(row: pa.Table) -> dict[str, object]:
    """Return the one row of a table as values that JSON has."""
    found: dict[str, object] = json.loads(json_lines(row.to_batches()[0])[0].as_py())
    return found


def json_texts(values: Array) -> pa.Array:
    """Return each value of an array as JSON."""
    texts = _texts_of(values)
    return pc.fill_null(texts, pa.scalar(_NULL, _TEXT))


def plain_texts(values: Array, null: str = "NULL") -> pa.Array:
    """Return each value of an array as one line for people: text without quotes, others as JSON.

    Args:
        values: The values.
        null: What stands for a missing value.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    is_text = _is_text(values.type)
    texts = _visible(_unicode(values)) if is_text else _texts_of(values)
    if _is_quoted(values.type) and not is_text:
        texts = pc.replace_substring(texts, '"', "")
    return pc.fill_null(texts, pa.scalar(null, _TEXT))


def _texts_of(values: Array) -> pa.Array:
    """Return JSON of the values that are there, and null for the others."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _texts_of(values.dictionary_decode())
    if isinstance(values, pa.ExtensionArray):
        return _texts_of(values.storage)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), _TEXT)
    if pa.types.is_map(kind):
        return _texts_of_map(values)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _where_valid(values, _joined(values.offsets, json_texts(values.values)))
    if pa.types.is_fixed_size_list(kind):
        return _texts_of(values.cast(pa.list_(kind.value_type)))
    if pa.types.is_struct(kind):
        columns = [json_texts(column) for column in values.flatten()]
        names = [field.name for field in kind]
        return _where_valid(values, _objects(names, columns, len(values)))
    return _texts_of_scalars(values)


def _texts_of_scalars(values: Array) -> pa.Array:
    kind = values.type
    if _is_text(kind):
        return _quoted(_escaped(_unicode(values)))
    if _is_binary(kind):
        return _quoted(_hexadecimal(values.cast(pa.large_binary())))
    if pa.types.is_floating(kind):
        return _texts_of_floats(values)
    if pa.types.is_timestamp(kind):
        utc = values.cast(pa.timestamp(kind.unit, "UTC")) if kind.tz else values
        return _quoted(pc.replace_substring(utc.cast(_TEXT), " ", "T", max_replacements=1))
    texts = values.cast(_TEXT)
    return _quoted(texts) if _is_quoted(kind) else texts


def _texts_of_floats(values: Array) -> pa.Array:
    wide = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
    texts = wide.cast(_TEXT)
    if pc.all(pc.is_finite(wide), min_count=0).as_py():
        return texts
    names = pc.if_else(
        pc.is_nan(wide), "NaN", pc.if_else(pc.greater(wide, 0), "Infinity", "-Infinity")
    )
    return pc.if_else(pc.is_finite(wide), texts, _quoted(names.cast(_TEXT)))


def _texts_of_map(values: Array) -> pa.Array:
    keys, items = json_texts(values.keys), json_texts(values.items)
    if _is_text(values.type.key_type):
        pairs = _element_wise(keys, ":", items)
        return _where_valid(values, _joined(values.offsets, pairs, "{", "}"))
    pairs = _objects(["key", "value"], [keys, items], len(keys))
    return _where_valid(values, _joined(values.offsets, pairs))


def _objects(names: list[str], columns: list[pa.Array], length: int) -> pa.Array:
    if not names:
        return pa.repeat(pa.scalar("{}", _TEXT), length)
    parts: list[Any] = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        parts += [f"{',' if number else '{'}{_name(name)}:", column]
    return _element_wise(*parts, "}")


def _name(name: str) -> str:
    return json.dumps(name)  # of a column, not of a row


def _joined(offsets: Array, texts: pa.Array, begin: str = "[", end: str = "]") -> pa.Array:
    lists = pa.ListArray.from_arrays(offsets.cast(pa.int32()), texts)
    return _element_wise(begin, pc.binary_join(lists, pa.scalar(",", _TEXT)), end)


def _where_valid(values: Array, texts: pa.Array) -> pa.Array:
    return texts if not values.null_count else pc.if_else(values.is_valid(), texts, None)


def _element_wise(*parts: Any) -> pa.Array:
    columns = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, pa.scalar("", _TEXT))


def _quoted(texts: pa.Array) -> pa.Array:
    return _element_wise('"', texts, '"')


def _unicode(values: Array) -> pa.Array:
    """Return texts with a replacement character for each byte of a data file that is no UTF-8.

    Arrow does not look at the bytes of texts when it reads a file. Some of them control a terminal.
    """
    texts = values.cast(_TEXT)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        given = texts.cast(pa.large_binary()).to_pylist()
        return pa.array([x if x is None else x.decode("utf-8", "replace") for x in given], _TEXT)
    return texts


def _escaped(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring(texts, "\\", "\\\\")
    return _visible(pc.replace_substring(texts, '"', '\\"'))


def _visible(texts: pa.Array) -> pa.Array:
    """Write what is invisible by its number, as JSON does."""
    if not pc.any(pc.match_substring_regex(texts, _INVISIBLE)).as_py():
        return texts
    for code in _INVISIBLE_CODES:
        texts = pc.replace_substring(texts, chr(code), f"\\u{code:04x}")
    return texts


def _hexadecimal(values: Array) -> pa.Array:
    """Return two digits for each byte, by one call for all values."""
    size, offset = len(values), values.offset
    _, offsets, data = values.buffers()
    starts = pa.Array.from_buffers(pa.int64(), offset + size + 1, [None, offsets])[offset:]
    first, last = starts[0].as_py(), starts[-1].as_py()
    digits = b"" if data is None else data[first:last].to_pybytes().hex().encode()
    doubled = pc.multiply(pc.subtract(starts, first), 2)
    texts = pa.Array.from_buffers(_TEXT, size, [None, doubled.buffers()[1], pa.py_buffer(digits)])
    return _where_valid(values, texts)


def _is_text(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in kinds)


def _is_binary(kind: pa.DataType) -> bool:
    kinds = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(is_kind(kind) for is_kind in kinds)


def _is_quoted(kind: pa.DataType) -> bool:
    """Return whether JSON has some of the values in quotes, and people do not."""
    kinds = (_is_binary, pa.types.is_temporal, pa.types.is_decimal, pa.types.is_floating)
    return any(is_kind(kind) for is_kind in kinds)
