"""What footers say of column chunks: Arrow's answers, and no danger from forged ones."""

import datetime as dt
import io
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forged_footers import with_a_key, with_footer, with_short_bounds
from optimist.core.values.column_chunks import ColumnChunks
from optimist.core.values.thrift_values import STRUCT, read_struct, write_struct

ROWS = pa.table(
    {
        "long": [1, 2],
        "text": ["x" * 300, None],
        "flag": [True, False],
        "wide": pa.array([Decimal("1.50"), None], pa.decimal128(30, 2)),
        "real": [1.5, float("nan")],
        "fixed": pa.array([b"abc", b"abd"], pa.binary(3)),
        "list": [[1, 2], [3]],
        "struct": [{"x": 1, "y": "s"}, None],
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8())),
        "time": [dt.datetime(2020, 1, 1)] * 2,
        "null": pa.nulls(2),
    }
)


def stored(rows, **options):
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def chunks_of(data):
    return ColumnChunks(pq.read_metadata(io.BytesIO(data)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_deprecated_int96_timestamps": True, "store_decimal_as_integer": True},
        {"write_page_index": True, "sorting_columns": [pq.SortingColumn(0)]},
        {"write_statistics": False},
    ],
)
def test_the_statistics_of_a_sound_file_are_those_of_arrow(options):
    chunks = chunks_of(stored(ROWS, row_group_size=1, **options))
    metadata = chunks.metadata
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            plain = metadata.row_group(group).column(column).statistics
            found = chunks.statistics(group, column)
            assert found == plain if plain is None else found.equals(plain)


@pytest.mark.parametrize(
    ("values", "bound"),
    [
        (pa.array([7777, 8888], pa.int64()), struct.pack("<q", 7777)),
        (pa.array([7777, 8888], pa.int32()), struct.pack("<i", 8888)),
        (pa.array([7777.0, 8888.0]), struct.pack("<d", 7777)),
        (pa.array([b"abcd", b"abce"], pa.binary(4)), b"abce"),
    ],
)
def test_bounds_that_are_too_short_are_no_statistics(values, bound):
    rows = pa.table({"a": values, "b": ["x", "y"]})
    chunks = chunks_of(with_short_bounds(stored(rows), bound))
    assert chunks.statistics(0, 0) is None
    assert chunks.statistics(0, 1).min == "x"


def test_a_text_may_have_bounds_of_any_length():
    chunks = chunks_of(with_short_bounds(stored(pa.table({"a": ["abcd", "wxyz"]})), b"abcd"))
    assert chunks.statistics(0, 0).min == "a"


def test_a_chunk_of_another_type_than_its_column_has_no_statistics():
    of_longs, of_texts = b"\x1c\x15\x04\x19", b"\x1c\x15\x0c\x19"
    data = with_footer(stored(pa.table({"a": [1]})), lambda it: it.replace(of_longs, of_texts))
    chunks = chunks_of(data)
    assert chunks.chunk(0, 0).physical_type == "BYTE_ARRAY"
    assert chunks.statistics(0, 0) is None


def test_a_chunk_with_a_key_is_refused_and_the_others_are_not():
    chunks = chunks_of(with_a_key(stored(pa.table({"a": [1, 2], "b": ["x", "y"]}))))
    with pytest.raises(OSError, match="'a' is encrypted"):
        chunks.chunk(0, 0)
    assert chunks.statistics(0, 0) is None
    assert chunks.chunk(0, 1).num_values == 2
    assert chunks.statistics(0, 1).max == "y"


def test_statistics_of_places_beside_those_of_values_do_no_harm():
    def with_places(footer):
        fields, _ = read_struct(footer)
        (group,) = fields[4][1][1]
        meta = group[1][1][1][0][3][1]
        corner = (7, struct.pack("<d", 1.5))
        meta[17] = STRUCT, {1: (STRUCT, dict.fromkeys(range(1, 5), corner))}
        return write_struct(fields)

    data = with_footer(stored(pa.table({"a": [1, 2], "b": ["x", "y"]})), with_places)
    chunks = chunks_of(data)
    assert (chunks.statistics(0, 0).min, chunks.statistics(0, 1).max) == (1, "y")
    footer, _ = read_struct(data, len(data) - 8 - struct.unpack("<I", data[-8:-4])[0])
    assert footer[4][1][1][0][1][1][1][0][3][1][17][1][1][1][4] == (7, struct.pack("<d", 1.5))
