"""Checkpoints whose statistics or partition values are there as structs only (spec 5.8)."""

import datetime as dt
import io
import itertools
import json
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.data.partition_values import partition_column_of
from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.names import classic_checkpoint_name, commit_name, log_path_of
from optimist.core.log.parquet_actions import add_batches, remove_batches
from optimist.core.log.parsed_columns import partition_value_maps, statistics_texts
from optimist.core.protocol.actions import Metadata, actions_to_bytes
from optimist.core.schema.types import PrimitiveType, StructField
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
VALUES = pa.struct(
    {
        "text": pa.string(),
        "whole": pa.int32(),
        "real": pa.float64(),
        "exact": pa.decimal128(12, 2),
        "day": pa.date32(),
        "when": pa.timestamp("us", "UTC"),
        "wall": pa.timestamp("us"),
        "bytes": pa.binary(),
        "list": pa.list_(pa.int8()),
        "in": pa.struct({'x "y"': pa.int64()}),
    }
)
STATS = pa.struct(
    {
        "numRecords": pa.int64(),
        "tightBounds": pa.bool_(),
        "minValues": VALUES,
        "nullCount": pa.struct({"text": pa.int64(), "in": pa.struct({'x "y"': pa.int64()})}),
    }
)


def as_json(value):
    """The naive rendering of one value; what JSON can't hold is left out."""
    if isinstance(value, dict):
        inner = {key: as_json(item) for key, item in value.items() if key not in ("bytes", "list")}
        return {key: item for key, item in inner.items() if item is not None}
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + ("Z" if value.tzinfo else "")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return float(value) if isinstance(value, Decimal) else value


_years = {"min_value": dt.datetime(1, 1, 1), "max_value": dt.datetime(9999, 12, 30)}
_rows = st.fixed_dictionaries(
    {
        "numRecords": st.none() | st.integers(0, 2**62),
        "tightBounds": st.none() | st.booleans(),
        "minValues": st.none()
        | st.fixed_dictionaries(
            {
                "text": st.none() | st.text(max_size=6),
                "whole": st.none() | st.integers(-(2**31), 2**31 - 1),
                "real": st.none() | st.floats(),
                "exact": st.none() | st.decimals(-(10**9), 10**9, places=2),
                "day": st.none() | st.dates(),
                "when": st.none() | st.datetimes(**_years, timezones=st.just(dt.timezone.utc)),
                "wall": st.none() | st.datetimes(**_years),
                "in": st.none() | st.fixed_dictionaries({'x "y"': st.none() | st.integers(0, 9)}),
            }
        ),
        "nullCount": st.none() | st.fixed_dictionaries({"text": st.none() | st.integers(0, 9)}),
    }
)


@given(st.lists(st.none() | _rows, max_size=5))
def test_structs_become_the_json_that_a_row_by_row_writer_would_write(rows):
    texts = statistics_texts(pa.array(rows, STATS)).to_pylist()
    assert [text and json.loads(text) for text in texts] == [row and as_json(row) for row in rows]


def test_control_characters_and_quotes_are_escaped():
    every = "".join(map(chr, range(0x20))) + '"\\\x7f\u2028é😀'
    rows = [{"minValues": {"text": every}}]
    (text,) = statistics_texts(pa.array(rows, STATS)).to_pylist()
    assert json.loads(text)["minValues"]["text"] == every
    assert text.isprintable() or "\x7f" in text
    assert "\n" not in text


def test_slices_and_nanoseconds_are_rendered_like_the_whole():
    kind = pa.struct({"t": pa.timestamp("ns", "UTC"), "f": pa.float32()})
    array = pa.array([{"t": number * 10**18 + 7, "f": number / 2} for number in range(4)], kind)
    assert statistics_texts(array.slice(1, 2)).to_pylist() == [
        '{"t":"2001-09-09T01:46:40.000000Z","f":0.5}',
        '{"t":"2033-05-18T03:33:20.000000Z","f":1}',
    ]


PARTITIONS = {
    "text": (pa.string(), "string", ["a b", "", None]),
    "whole": (pa.int32(), "integer", [1, -5, None]),
    "real": (pa.float64(), "double", [1.5, -math.inf, None]),
    "flag": (pa.bool_(), "boolean", [True, False, None]),
    "day": (pa.date32(), "date", [dt.date(1, 1, 1), dt.date(2024, 2, 29), None]),
    "when": (
        pa.timestamp("us", "UTC"),
        "timestamp",
        [
            dt.datetime(1800, 1, 1, 3, 4, 5, 6, dt.timezone.utc),
            dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc),
            None,
        ],
    ),
    "wall": (
        pa.timestamp("us"),
        "timestamp_ntz",
        [dt.datetime(1800, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 7), None],
    ),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_typed_partition_values_become_texts_that_mean_the_same(name):
    kind, type_name, values = PARTITIONS[name]
    rows = [{"other": "x", name: value} for value in values]
    maps = partition_value_maps(pa.array(rows, pa.struct({"other": pa.string(), name: kind})))
    assert [dict(row)["other"] for row in maps.to_pylist()] == ["x"] * 3
    files = pa.table({"partitionValues": maps})
    read = partition_column_of(files, StructField(name, PrimitiveType(type_name))).to_pylist()
    assert read == [None if value == "" else value for value in values]


def test_no_rows_and_no_columns_make_empty_maps():
    assert len(partition_value_maps(pa.array([], pa.struct({"p": pa.string()})))) == 0
    assert partition_value_maps(pa.array([{}, {}], pa.struct({}))).to_pylist() == [[], []]


def parquet_of(rows, kind, column="add", **arguments):
    sink = io.BytesIO()
    table = pa.Table.from_pylist([{column: row} for row in rows], pa.schema({column: kind}))
    pq.write_table(table, sink, **arguments)
    return sink.getvalue()


def adds_of(rows, kind, **arguments):
    with CheckpointFile(io.BytesIO(parquet_of(rows, kind, **arguments))) as file:
        return pa.Table.from_batches(add_batches(file, 1_000_000), FILES_SCHEMA).to_pylist()


SMALL = pa.struct({"numRecords": pa.int64()})


def test_statistics_come_from_the_struct_where_the_text_is_missing():
    kind = pa.struct({"path": pa.string(), "size": pa.int64(), "stats_parsed": SMALL})
    (row,) = adds_of([{"path": "a", "size": 1, "stats_parsed": {"numRecords": 3}}], kind)
    assert row["stats"] == '{"numRecords":3}'


def test_the_text_is_preferred_and_its_gaps_are_filled():
    kind = pa.struct(
        {"path": pa.string(), "size": pa.int64(), "stats": pa.string(), "stats_parsed": SMALL}
    )
    rows = [
        {"path": "a", "size": 1, "stats": '{"numRecords":1,"x":2}', "stats_parsed": None},
        {"path": "b", "size": 1, "stats": None, "stats_parsed": {"numRecords": 4}},
        None,
        {"path": "c", "size": 1, "stats": None, "stats_parsed": None},
    ]
    found = [row["stats"] for row in adds_of(rows, kind)]
    assert found == ['{"numRecords":1,"x":2}', '{"numRecords":4}', None]


BOTH = pa.struct(
    {
        "path": pa.string(),
        "size": pa.int64(),
        "stats": pa.string(),
        "stats_parsed": SMALL,
        "partitionValues": pa.map_(pa.string(), pa.string()),
        "partitionValues_parsed": pa.struct({"p": pa.int32()}),
    }
)


@pytest.mark.parametrize("footer", [True, False, ["add.path"], ["add.stats"]], ids=str)
@pytest.mark.parametrize("empty", [None, []], ids=str)
@given(plain=st.lists(st.none() | st.booleans(), min_size=1, max_size=5))
def test_each_gap_is_filled_whatever_the_footer_says(footer, empty, plain):
    filled = {"stats": '{"numRecords":1}', "partitionValues": [("p", "1")]}
    parsed = {"stats_parsed": {"numRecords": 2}, "partitionValues_parsed": {"p": 2}}
    gaps = {"stats": None, "partitionValues": empty}
    rows = [
        None
        if is_plain is None
        else {"path": "a", "size": 1, **(filled if is_plain else gaps), **parsed}
        for is_plain in plain
    ]
    found = adds_of(rows, BOTH, write_statistics=footer, row_group_size=2)
    expected = [1 if is_plain else 2 for is_plain in plain if is_plain is not None]
    assert [json.loads(row["stats"])["numRecords"] for row in found] == expected
    assert [dict(row["partitionValues"]) for row in found] == [{"p": str(n)} for n in expected]


def test_struct_statistics_are_not_read_where_every_file_has_the_text(monkeypatch):
    monkeypatch.setattr(
        "optimist.core.log.parquet_actions.statistics_texts", lambda _: pytest.fail("rendered")
    )
    kind = pa.struct(
        {"path": pa.string(), "size": pa.int64(), "stats": pa.string(), "stats_parsed": SMALL}
    )
    rows = [None, {"path": "a", "size": 1, "stats": "{}", "stats_parsed": {"numRecords": 4}}]
    assert [row["stats"] for row in adds_of(rows, kind)] == ["{}"]


@pytest.mark.parametrize("has_empty_column", [False, True])
def test_partition_values_come_from_the_struct_where_the_map_is_missing(has_empty_column):
    fields = {"path": pa.string(), "size": pa.int64()}
    if has_empty_column:
        fields["partitionValues"] = pa.map_(pa.string(), pa.string())
    kind = pa.struct(fields | {"partitionValues_parsed": pa.struct({"p": pa.int32()})})
    rows = [
        {"path": "a", "size": 1, "partitionValues_parsed": {"p": 7}},
        {"path": "b", "size": 1, "partitionValues_parsed": {"p": None}},
    ]
    assert [row["partitionValues"] for row in adds_of(rows, kind)] == [[("p", "7")], [("p", None)]]


def test_what_an_old_writer_left_out_means_what_its_absence_means():
    kind = pa.struct({"path": pa.string(), "size": pa.int32()})
    rows = [{"path": f"f{number}", "size": number} for number in range(3)]
    found = adds_of(rows, kind)
    assert [row["partitionValues"] for row in found] == [[]] * 3
    assert {row["modificationTime"] for row in found} == {0}
    assert {row["dataChange"] for row in found} == {False}
    assert {row["stats"] for row in found} == {None}
    gone = parquet_of([{"path": "a"}], pa.struct({"path": pa.string()}), "remove")
    with CheckpointFile(io.BytesIO(gone)) as file:
        (batch,) = remove_batches(file, 1_000_000)
    assert batch.to_pylist()[0]["deletionTimestamp"] is None


def test_some_absent_maps_among_others_are_empty_ones():
    kind = pa.struct(
        {
            "path": pa.string(),
            "size": pa.int64(),
            "partitionValues": pa.map_(pa.string(), pa.string()),
        }
    )
    rows = [
        {"path": "a", "size": 1, "partitionValues": [("p", "1")]},
        {"path": "b", "size": 1, "partitionValues": None},
        {"path": "c", "size": 1, "partitionValues": [("p", None)]},
    ]
    found = [row["partitionValues"] for row in adds_of(rows, kind)]
    assert found == [[("p", "1")], [], [("p", None)]]


@pytest.mark.parametrize("missing", ["path", "size"])
def test_an_add_without_its_path_or_size_is_an_error(missing):
    kind = pa.struct({"path": pa.string(), "size": pa.int64()})
    row = {"path": "a", "size": 1} | {missing: None}
    with pytest.raises(ValueError, match=missing):
        adds_of([row, {"path": "a", "size": 1}], kind)


def test_timestamps_of_96_bits_reach_beyond_the_year_2262():
    kind = pa.struct(
        {
            "path": pa.string(),
            "size": pa.int64(),
            "stats_parsed": pa.struct({"maxValues": pa.struct({"t": pa.timestamp("us", "UTC")})}),
        }
    )
    late = dt.datetime(9999, 12, 31, 1, 2, 3, tzinfo=dt.timezone.utc)
    rows = [{"path": "a", "size": 1, "stats_parsed": {"maxValues": {"t": late}}}]
    (row,) = adds_of(rows, kind, use_deprecated_int96_timestamps=True)
    assert json.loads(row["stats"])["maxValues"]["t"].startswith("9999-12-31T01:02:03")


def test_a_table_with_struct_statistics_alone_is_pruned_by_them():
    path = f"memory://parsed/t{next(_COUNTER)}"
    log_path = log_path_of(path)
    store = MemoryLogStore()
    columns = [("p", "integer"), ("x", "long")]
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns]
    text = json.dumps({"type": "struct", "fields": fields})
    bounds = pa.struct({"x": pa.int64()})
    kind = pa.struct(
        {
            "path": pa.string(),
            "size": pa.int64(),
            "partitionValues_parsed": pa.struct({"p": pa.int32()}),
            "stats_parsed": pa.struct(
                {"numRecords": pa.int64(), "minValues": bounds, "maxValues": bounds}
            ),
        }
    )
    rows = [
        {
            "path": f"f{number}",
            "size": 1,
            "partitionValues_parsed": {"p": number % 2},
            "stats_parsed": {
                "numRecords": 2,
                "minValues": {"x": number},
                "maxValues": {"x": number},
            },
        }
        for number in range(10)
    ]
    meta = Metadata("id", text, partition_columns=("p",))
    store.put_overwrite(f"{log_path}/{commit_name(4)}", actions_to_bytes((meta,)))
    adds = pq.read_table(io.BytesIO(parquet_of(rows, kind)))
    state = pa.Table.from_pylist(
        [
            {
                "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
                "metaData": {"id": "id", "schemaString": text, "partitionColumns": ["p"]},
            }
        ]
    )
    sink = io.BytesIO()
    pq.write_table(pa.concat_tables([state, adds], promote_options="default"), sink)
    store.put_overwrite(f"{log_path}/{classic_checkpoint_name(4)}", sink.getvalue())
    snapshot = DeltaLog(path, store, clock=ManualClock()).snapshot()
    assert snapshot.scan("p = 1 AND x > 4").files["path"].to_pylist() == ["f5", "f7", "f9"]
