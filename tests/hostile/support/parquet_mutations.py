"""Parquet files with a wrong bit, another schema, other values, or very many rows."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hostile_values import Chance, Surroundings
from json_mutations import mutated_json

__all__ = ["flipped", "mutated_parquet", "truncated"]

_MAX_ROWS = 200_000
Mutation = Callable[[bytes, Chance, Surroundings], tuple[bytes, str]]


def mutated_parquet(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    """The file with one thing changed."""
    mutate: Mutation = chance.choice(_MUTATIONS)
    try:
        return mutate(data, chance, around)
    except (pa.ArrowException, ValueError, TypeError, KeyError, IndexError, OSError, OverflowError):
        return flipped(data, chance, around)  # what can't be written so is damaged instead


def flipped(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    """Some bits are changed; of a Parquet file those of the footer in half of the cases."""
    damaged, places = bytearray(data), []
    start = _footer_start(data) if chance.random() < 0.5 else 0
    for _ in range(chance.choice((1, 1, 2, 8))):
        if start < len(damaged):
            place = chance.randrange(start, len(damaged))
            damaged[place] = chance.choice((damaged[place] ^ 1 << chance.randrange(8), 0, 255))
            places.append(place)
    return bytes(damaged), f"bytes {places} are changed"


def truncated(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    """The file ends too early, is empty, or goes on."""
    if chance.random() < 0.2:
        more = chance.choice((b"\0", b"\n", data, b"PAR1", b"\xff" * 5000))
        return data + more, f"{len(more)} bytes follow"
    length = chance.choice((0, 1, 4, len(data) - 1, chance.randrange(len(data) + 1)))
    return data[: max(0, length)], f"it is cut at {length}"


def _footer_start(data: bytes) -> int:
    if data[-4:] != b"PAR1" or len(data) < 12:
        return 0
    (length,) = struct.unpack("<I", data[-8:-4])
    return max(0, len(data) - 8 - length)


def _wrong_length(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    length = chance.choice((0, 1, len(data), 0x7FFFFFFF, 0xFFFFFFFF, chance.randrange(1 << 32)))
    return data[:-8] + struct.pack("<I", length) + data[-4:], f"its footer has {length} bytes"


def _swapped_pages(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    end = max(8, _footer_start(data))
    one, other = sorted((chance.randrange(4, end), chance.randrange(4, end)))
    span = min(other - one, end - other, 64)
    swapped = data[:one] + data[other : other + span] + data[one + span : other]
    swapped += data[one : one + span] + data[other + span :]
    return swapped, f"{span} bytes at {one} and {other} are swapped"


def _without_column(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    rows = _read(data)
    name = chance.choice(rows.schema.names)
    return _written(rows.drop_columns([name])), f"the column {name} is gone"


def _renamed(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    rows = _read(data)
    names = list(rows.schema.names)
    place = chance.randrange(len(names))
    said = names[place]
    names[place] = chance.choice((names[0], said.upper(), "", "a.b", "\n", "add", "x" * 10_000))
    return _written(rows.rename_columns(names)), f"the column {said} is called {names[place]!r:.80}"


def _retyped(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    rows = _read(data)
    place = chance.randrange(rows.num_columns)
    kind = chance.choice(_TYPES)
    column = _filled(rows.column(place), kind, chance)
    name = rows.schema.names[place]
    return _written(rows.set_column(place, name, column)), f"the column {name} is {kind}"


def _filled(column: pa.ChunkedArray, kind: pa.DataType, chance: Chance) -> Any:
    try:
        return column.cast(kind)
    except (pa.ArrowException, NotImplementedError):
        value = pa.scalar(None, kind)
        if pa.types.is_integer(kind):
            value = pa.scalar(chance.choice((0, 1, 127)), kind)
        return pa.repeat(value, len(column))


def _revalued(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    rows = _read(data)
    values = rows.to_pylist(maps_as_pydicts="lossy")
    place = chance.randrange(len(values))
    values[place], said = mutated_json(values[place], chance, around)
    try:
        changed = pa.Table.from_pylist(values, schema=rows.schema)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        changed = pa.Table.from_pylist(_as_lists_of_pairs(values))
    return _written(changed), f"row {place}: {said}"


def _as_lists_of_pairs(values: list[Any]) -> list[Any]:
    """What no given schema fits: Arrow infers one."""
    return [value if isinstance(value, dict) else {"value": value} for value in values]


def _repeated(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    rows = _read(data)
    place = chance.randrange(rows.num_rows)
    count = chance.choice((2, 3, 1000, 20_000))
    more = pa.concat_tables([rows.slice(place, 1)] * min(count, 1000)).combine_chunks()
    more = pa.concat_tables([more] * max(1, count // 1000))
    return _written(pa.concat_tables([rows, more])), f"row {place} is there {count} times more"


def _fewer(data: bytes, chance: Chance, around: Surroundings) -> tuple[bytes, str]:
    rows = _read(data)
    place, count = chance.randrange(rows.num_rows + 1), chance.choice((0, 1, rows.num_rows))
    return _written(rows.slice(place, count)), f"only {count} rows from {place} on"


def _read(data: bytes) -> pa.Table:
    rows = pq.read_table(io.BytesIO(data))
    if rows.num_rows > _MAX_ROWS:
        raise ValueError("it has enough rows")
    return rows


def _written(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd")
    return sink.getvalue()


_TYPES = (
    pa.string(),
    pa.large_string(),
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.binary(),
    pa.null(),
    pa.date32(),
    pa.timestamp("ns"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ms", "Europe/Berlin"),
    pa.decimal128(38, 37),
    pa.decimal256(76, 0),
    pa.list_(pa.int64()),
    pa.struct([("path", pa.string())]),
    pa.struct([("path", pa.int64()), ("size", pa.string())]),
    pa.map_(pa.string(), pa.int8()),
    pa.dictionary(pa.int32(), pa.string()),
    pa.time64("us"),
    pa.duration("us"),
)
_MUTATIONS: tuple[Mutation, ...] = (
    flipped,
    flipped,
    truncated,
    _wrong_length,
    _swapped_pages,
    _without_column,
    _renamed,
    _retyped,
    _retyped,
    _revalued,
    _revalued,
    _revalued,
    _repeated,
    _fewer,
)
