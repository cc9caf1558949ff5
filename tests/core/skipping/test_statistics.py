"""Statistics: which columns, what is written from a footer, and what is read from the log."""

import datetime as dt
import io
import json
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.data.parquet.footer_statistics import nan_free_columns, stats_from_footer
from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.data.statistics.string_bounds import lower_bound, upper_bound
from optimist.core.errors import SchemaError
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.stats_property import bounded_columns
from optimist.core.schema.types import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from optimist.core.skipping.statistics import FileStatistics, stats_table

UTC = dt.timezone.utc
TOP = "\U0010ffff"


def field(name, kind, physical=None):
    metadata = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    data_type = PrimitiveType(kind) if isinstance(kind, str) else kind
    return StructField(name, data_type, metadata=metadata)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("abcd", "abcd"),
        ("abcde", "abcd\x7f"),
        ("abcdé", "abcd" + TOP),
        ("abcd" + TOP * 2, "abcd" + TOP * 2),
        ("abcd" + TOP * 3, None),
        ("abcd" + TOP * 2 + "z", "abcd" + TOP * 2 + "\x7f"),
        ("abcd\x7f", "abcd" + TOP),
        ("abc😀x", "abc😀\x7f"),
        ("", ""),
    ],
)
def test_upper_bounds_of_text_follow_the_vectors(text, bound):
    assert upper_bound(text, 4) == bound


@pytest.mark.parametrize(
    ("text", "bound"),
    [("abcd", "abcd"), ("abcde", "abcd"), ("abc😀x", "abc😀"), ("😀😀😀", "😀😀"), ("", "")],
)
def test_lower_bounds_of_text_never_split_a_character(text, bound):
    assert lower_bound(text, 4) == bound


@given(st.text(st.sampled_from("a~\x7fé\ud7ff\uffff😀" + TOP)), st.integers(1, 5))
def test_bounds_of_text_enclose_it_and_are_short(text, length):
    low, high = lower_bound(text, length), upper_bound(text, length)
    assert low.encode() <= text.encode()
    assert len(low.encode("utf-16-le")) // 2 <= length + 1
    assert high is None or text.encode() <= high.encode()
    assert high is None or len(high.encode("utf-16-le")) // 2 <= 2 * length + 4


SCHEMA = StructType(
    (
        field("p", "string"),
        field("i", "integer"),
        field("x", "double"),
        field("s", "string"),
        field("n", DecimalType(22, 2)),
        field("m", DecimalType(9, 2)),
        field("d", "date"),
        field("t", "timestamp"),
        field("c", "timestamp_ntz"),
        field("o", "boolean"),
        field("b", "binary"),
        field(
            "st",
            StructType(
                (
                    field("q", "long"),
                    field("l", ArrayType(PrimitiveType("long"))),
                )
            ),
        ),
        field("mp", MapType(PrimitiveType("string"), PrimitiveType("long"))),
    )
)


def columns_of(schema, partition_columns=(), configuration=None):
    properties = TableProperties.from_configuration(configuration or {})
    return stats_columns(schema, partition_columns, properties)


def test_the_first_leaves_get_statistics_and_lists_take_a_place():
    everything = columns_of(SCHEMA, ["P"])
    assert everything[0] == ("i",)
    assert everything[-3:] == (("st", "q"), ("st", "l"), ("mp",))
    assert columns_of(SCHEMA, ["p"], {"delta.dataSkippingNumIndexedCols": "12"})[-1] == (
        "st",
        "l",
    )
    assert columns_of(SCHEMA, ["p"], {"delta.dataSkippingNumIndexedCols": "0"}) == ()
    assert columns_of(SCHEMA, ["p"], {"delta.dataSkippingNumIndexedCols": "-1"}) == everything
    wide = StructType(tuple(field(f"c{i}", "long") for i in range(40)))
    assert len(columns_of(wide, [], {"delta.dataSkippingNumIndexedCols": "many"})) == 32
    assert len(columns_of(wide)) == 32


def test_named_columns_get_statistics_and_structs_mean_their_leaves():
    schema = StructType((*SCHEMA, field("a,b", "long")))
    named = {
        "delta.dataSkippingStatsColumns": "ST, s,`a,b`",
        "delta.dataSkippingNumIndexedCols": "1",
    }
    assert columns_of(schema, ["p"], named) == (
        ("s",),
        ("st", "q"),
        ("st", "l"),
        ("a,b",),
    )
    assert columns_of(schema, ["p"], {"delta.dataSkippingStatsColumns": ""}) == ()


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("p", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
        ("b", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("mp", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("i, I", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("i, nope", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("t.i", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("st, st.q", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("a b (", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("i.", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ],
)
def test_columns_that_can_have_no_statistics_are_refused_when_they_are_set(names, kind):
    given = TableProperties.from_configuration({"delta.dataSkippingStatsColumns": names})
    with pytest.raises(SchemaError) as caught:
        bounded_columns(given.data_skipping_stats_columns, SCHEMA, ["p"])
    assert caught.value.kind == kind


def footer_of(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False, **options)
    buffer.seek(0)
    return pq.read_metadata(buffer)


ROWS = pa.table(
    {
        "p": ["x", "y", "z"],
        "i": pa.array([3, None, -1], pa.int32()),
        "x": [1.5, -0.5, None],
        "s": ["a" * 40, "é" * 40, None],
        "n": pa.array([Decimal("1.10"), None, Decimal("-2.00")], pa.decimal128(22, 2)),
        "m": pa.array([Decimal("1.10"), None, Decimal("-2.00")], pa.decimal128(9, 2)),
        "d": [dt.date(1890, 1, 1), None, dt.date(2024, 2, 29)],
        "t": pa.array([-1, 2, 1_000_999], pa.timestamp("us", "UTC")),
        "c": pa.array([-1, 2, 1_000_999], pa.timestamp("us")),
        "o": [True, None, False],
        "b": [b"\xff", b"a", None],
        "st": pa.array(
            [{"q": 1, "l": [1]}, None, {"q": None, "l": None}],
            pa.struct([("q", pa.int64()), ("l", pa.list_(pa.int64()))]),
        ),
        "mp": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("as_integer", [True, False])
def test_a_footer_gives_the_statistics_of_the_protocol(group, as_integer):
    footer = footer_of(ROWS, row_group_size=group, store_decimal_as_integer=as_integer)
    columns = columns_of(SCHEMA, ["p"])
    text = stats_from_footer(footer, SCHEMA, columns, nan_free=nan_free_columns(ROWS))
    assert json.loads(text) == {
        "numRecords": 3,
        "minValues": {
            "i": -1,
            "x": -0.5,
            "s": "a" * 32,
            "n": -2.0,
            "m": -2.0,
            "d": "1890-01-01",
            "t": "1969-12-31T23:59:59.999Z",
            "c": "1969-12-31T23:59:59.999",
            "st": {"q": 1},
        },
        "maxValues": {
            "i": 3,
            "x": 1.5,
            "s": "é" * 32 + TOP,
            "n": 1.1,
            "m": 1.1,
            "d": "2024-02-29",
            "t": "1970-01-01T00:00:01.000Z",
            "c": "1970-01-01T00:00:01.000",
            "st": {"q": 1},
        },
        "nullCount": {
            **dict.fromkeys("ixsnmdob", 1),
            "t": 0,
            "c": 0,
            "st": {"q": 2},
        },
    }
    assert '"n":-2.00' in text


def test_what_a_footer_does_not_say_for_certain_is_left_out():
    schema = StructType(
        tuple(
            field(name, kind)
            for name, kind in [
                ("nan", "double"),
                ("inf", "double"),
                ("old", "timestamp"),
                ("none", "long"),
                ("absent", "string"),
                ("plain", "long"),
            ]
        )
    )
    rows = pa.table(
        {
            "nan": [1.0, math.nan],
            "inf": [1.0, math.inf],
            "old": pa.array([0, 1], pa.timestamp("ns", "UTC")),
            "none": pa.array([None, None], pa.int64()),
            "plain": [1, 2],
        }
    )
    footer = footer_of(rows, use_deprecated_int96_timestamps=True)
    columns = columns_of(schema)
    found = json.loads(
        stats_from_footer(
            footer, schema, columns, nan_free=nan_free_columns(rows), tight_bounds=True
        )
    )
    assert found["minValues"] == {"plain": 1}
    assert found["maxValues"] == {"plain": 2}
    assert found["nullCount"]["none"] == found["nullCount"]["absent"] == 2
    assert found["tightBounds"] is True
    without = footer_of(rows.select(["plain"]), write_statistics=False)
    bare = json.loads(stats_from_footer(without, schema, [("plain",)]))
    assert bare == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}


def test_float_bounds_of_arrows_writer_need_to_be_known_free_of_nan():
    schema = StructType((field("x", "double"),))
    footer = footer_of(pa.table({"x": [1.0, 2.0]}))
    assert json.loads(stats_from_footer(footer, schema, [("x",)]))["minValues"] == {}
    known = stats_from_footer(footer, schema, [("x",)], nan_free=[("x",)])
    assert json.loads(known)["maxValues"] == {"x": 2.0}
    nested = pa.table({"st": [{"a": 1.0, "b": math.nan}], "y": [None], "z": pa.array([1.0])})
    assert nan_free_columns(nested) == {("st", "a"), ("z",)}


def test_footers_are_looked_up_by_physical_names_even_with_dots_in_them():
    inner = StructType((field("q", "long", "col-2"),))
    schema = StructType((field("st", inner, "col-1"), field("a", "long", "col-1.col-2")))
    rows = pa.table({"col-1": [{"col-2": 1}], "col-1.col-2": [7]})
    found = json.loads(stats_from_footer(footer_of(rows), schema, columns_of(schema)))
    assert found["minValues"] == {"col-1": {"col-2": 1}, "col-1.col-2": 7}


def read(texts, *paths, schema=SCHEMA, chunk=3):
    array = pa.array(texts, pa.string())
    chunks = [array.slice(i, chunk) for i in range(0, len(array), chunk)]
    files = pa.table({"stats": pa.chunked_array(chunks, pa.string())})
    return stats_table(files, paths, schema)


def both(low, high):
    return json.dumps({"numRecords": 1, "minValues": low, "maxValues": high, "nullCount": {}})


def test_statistics_become_typed_columns():
    text = json.dumps(
        {
            "numRecords": 3,
            "tightBounds": False,
            "minValues": {"i": 1, "n": 1.5, "d": "2024-01-01", "st": {"q": 4}},
            "maxValues": {"i": 9, "n": 2, "d": "2024-01-02", "t": "2024-01-01T01:00:00.000+01:00"},
            "nullCount": {"i": 0, "o": 2, "st": {"q": 1}},
        }
    )
    found = read([text, None], ("I",), ("n",), ("d",), ("t",), ("st", "q"), ("o",))
    assert found.schema.field("min.1").type == pa.decimal128(22, 2)
    assert "min.5" not in found.column_names
    assert {name: value for name, value in found.to_pylist()[0].items() if value is not None} == {
        "numRecords": 3,
        "tightBounds": False,
        "min.0": 1,
        "max.0": 9,
        "nullCount.0": 0,
        "min.1": Decimal("1.50"),
        "max.1": Decimal("2.00"),
        "min.2": dt.date(2024, 1, 1),
        "max.2": dt.date(2024, 1, 2),
        "max.3": dt.datetime(2024, 1, 1, tzinfo=UTC),
        "min.4": 4,
        "nullCount.4": 1,
        "nullCount.5": 2,
    }
    assert set(found.to_pylist()[1].values()) == {None}


DAMAGED = [
    "",
    "   ",
    "{",
    "[]",
    "null",
    "17",
    "{} {}",
    '{}}\n{"s":{}',
    '{"numRecords":1}{"numRecords":2}',
    '{"numRecords":1,"numRecords":2,"minValues":{"i":7}}',
    '{"minValues":[],"maxValues":3}',
    '{"minValues":{"i":"x"},"maxValues":{"i":{}},"numRecords":true}',
    '{"minValues":{"i":1.5},"maxValues":{"i":99999999999999999999}}',
    '{"minValues":{"i":3000000000},"maxValues":{"i":null}}',
    '{"minValues":{"s":"\\ud800"},"maxValues":{"s":5}}',
    '{"minValues":{"d":"2024-02-30","t":"2024-01-01T00:00:00"},"maxValues":{"d":"x","t":"x"}}',
    '{"minValues":{"n":1.234},"maxValues":{"n":"NaN"}}',
    "\ud7ff",
]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_damaged_statistics_count_as_absent_and_shift_no_other_row(damaged):
    texts = [both({"i": 1}, {"i": 1}), damaged, None, both({"i": 4}, {"i": 4}), damaged]
    found = read(texts, ("i",), ("s",), ("d",), ("t",), ("n",))
    assert found["min.0"].to_pylist() == [1, None, None, 4, None]
    assert found["max.0"].to_pylist() == [1, None, None, 4, None]
    for name in ("min.1", "max.1", "min.2", "max.2", "min.3", "max.3", "min.4", "max.4"):
        assert found[name].to_pylist() == [None] * 5


def test_unusual_but_sound_statistics_are_read():
    texts = [
        '{\n  "numRecords": 2,\r\n  "minValues": {"i": 1}\n}',
        '{"numRecords":2e0,"minValues":{"i":1.0},"maxValues":{"x":"NaN"}}',
        '{"minValues":{"x":"-Infinity","n":1E+2},"maxValues":{"x":1}}',
        '{"maxValues":{"c":"2024-01-01T00:00:00.000Z","d":"1500-01-01"}}',
        '{"maxValues":{"c":"2024-01-01"},"other":{"s":[1,{}]}}',
    ]
    found = read(texts, ("i",), ("x",), ("c",), ("n",), ("d",))
    assert found["numRecords"].to_pylist() == [2, 2, None, None, None]
    assert found["min.0"].to_pylist()[:2] == [1, 1]
    assert math.isnan(found["max.1"].to_pylist()[1])
    assert found["min.1"].to_pylist()[2] == -math.inf
    assert found["max.2"].to_pylist()[3:] == [dt.datetime(2024, 1, 1)] * 2
    assert found["min.3"].to_pylist()[2] == Decimal(100)
    assert found["max.4"].to_pylist()[3] == dt.date(1500, 1, 1)


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.integers(-(2**31), 2**31 - 1).map(lambda i: both({"i": i}, {"i": i})),
            st.sampled_from(DAMAGED),
            st.just('{"minValues":{"x":"NaN"}}'),
        ),
        max_size=12,
    ),
    st.integers(1, 5),
)
def test_every_row_keeps_its_place_among_damaged_ones(texts, chunk):
    found = read(texts, ("i",), ("x",), chunk=chunk)
    expected = []
    for text in texts:
        sound = text is not None and text not in DAMAGED and "NaN" not in text
        expected.append(json.loads(text)["minValues"]["i"] if sound else None)
    assert found["min.0"].to_pylist() == expected


def test_many_rows_with_a_few_damaged_ones_are_all_read():
    texts = [both({"i": i}, {"i": i}) for i in range(70_000)]
    for place in (5, 65_535, 65_536, 69_999):
        texts[place] = "{"
    found = read(texts, ("i",), chunk=70_000)["min.0"]
    assert found.null_count == 4
    assert found[65_534].as_py() == 65_534
    assert found[69_998].as_py() == 69_998


def test_structs_and_unknown_columns_have_no_statistics_of_their_own():
    files = pa.table({"stats": pa.array([both({"st": {"q": 1}}, {"st": {"q": 2}})])})
    held = FileStatistics(files, SCHEMA)
    assert held.column(("st",)) is None
    assert held.column(("nope",)) is None
    assert held.num_records.to_pylist() == [1]
    assert held.column(("ST", "Q")).low.to_pylist() == [1]
    with pytest.raises(KeyError):
        stats_table(files, [("st",)], SCHEMA)
