"""Arrow tables in every layout, sliced and in pieces: what is appended is what is read."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, UsageError
from optimist.core.predicates.builder import col

TEXTS = pa.array(["a", "b", None, "a", "", "\x00"])
NUMBERS = [[1], [], None, [None], [2, 3], [4]]
DECIMALS = [Decimal("1.50"), None, Decimal("-99.25"), Decimal("0.00"), Decimal("0.01"), None]
DEEP = pa.struct([("a", pa.list_(pa.struct([("b", pa.map_(pa.string(), pa.list_(pa.int8())))])))])
LAYOUTS = {
    "dictionary": TEXTS.dictionary_encode(),
    "large text": TEXTS.cast(pa.large_string()),
    "text view": TEXTS.cast(pa.string_view()),
    "binary view": TEXTS.cast(pa.binary()).cast(pa.binary_view()),
    "large binary": TEXTS.cast(pa.large_binary()),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 5, 6], pa.int32()), ["a", None, ""]),
    "runs of a dictionary": pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 5, 6], pa.int32()), pa.array(["a", None, ""]).dictionary_encode()
    ),
    "fixed binary": pa.array([b"ab", None, b"\x00\x00", b"\xff\xff", b"cd", b"ef"], pa.binary(2)),
    "large list": pa.array(NUMBERS, pa.large_list(pa.int64())),
    "list view": pa.array(NUMBERS, pa.list_view(pa.int64())),
    "large list view": pa.array(NUMBERS, pa.large_list_view(pa.int64())),
    "list view out of order": pa.ListViewArray.from_arrays(
        pa.array([4, 0, 2, 1, 0, 5], pa.int32()),
        pa.array([2, 2, 1, 0, 6, 1], pa.int32()),
        pa.array(range(6), pa.int16()),
        mask=pa.array([False, False, True, False, False, False]),
    ),
    "fixed list": pa.array(
        [[1, 2], None, [3, None], [4, 5], [6, 7], [None, None]], pa.list_(pa.int32(), 2)
    ),
    "decimal32": pa.array(DECIMALS, pa.decimal32(9, 2)),
    "decimal64": pa.array(DECIMALS, pa.decimal64(18, 2)),
    "decimal256": pa.array(DECIMALS, pa.decimal256(38, 2)),
    "uint8": pa.array([255, 0, None, 1, 2, 3], pa.uint8()),
    "uint16": pa.array([65535, 0, None, 1, 2, 3], pa.uint16()),
    "uint32": pa.array([2**32 - 1, 0, None, 1, 2, 3], pa.uint32()),
    "half float": pa.array([1.5, None, math.inf, -0.0, 6e-8, 65504.0], pa.float16()),
    "date64": pa.array(
        [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1970, 1, 1)] + [None] * 2,
        pa.date64(),
    ),
    "seconds": pa.array([0, 1, None, -62135596800, 253402300799, 2], pa.timestamp("s")),
    "nanoseconds": pa.array([0, 1000, None, -1000, 2000, 3000], pa.timestamp("ns")),
    "another zone": pa.array([0, 1, None, -1, 2, 3], pa.timestamp("us", "America/New_York")),
    "empty arrays": pa.array([[], [], None, [], [], []], pa.list_(pa.string())),
    "null values in maps": pa.array(
        [[("a", None)], [], None, [("b", 1), ("c", None)], [], []], pa.map_(pa.string(), pa.int32())
    ),
    "large maps": pa.array(
        [[("a", b"x")], [], None, [("b", None)], [], []],
        pa.map_(pa.large_string(), pa.large_binary()),
    ),
    "struct of a dictionary": pa.StructArray.from_arrays(
        [TEXTS.dictionary_encode(), pa.array(range(6), pa.uint16())], names=["s", "u"]
    ),
    "list of a dictionary": pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, 5, 6], pa.int32()), TEXTS.dictionary_encode()
    ),
    "list of views": pa.array([["a"], [], None, [None], ["b"], [""]], pa.list_(pa.string_view())),
    "null structs over values": pa.StructArray.from_arrays(
        [pa.array(range(6))], names=["a"], mask=pa.array([True, False] * 3)
    ),
    "deep": pa.array(
        [
            {"a": [{"b": [("k", [1, None]), ("l", None), ("m", [])]}, {"b": None}, None]},
            {"a": []}, {"a": None}, None, {"a": [{"b": []}]}, None,
        ],
        DEEP,
    ),
}  # fmt: skip
PIECES = {
    "whole": lambda array: [array],
    "slice": lambda array: [array.slice(1, 3)],
    "pieces": lambda array: [array.slice(0, 2), array.slice(2, 0), array.slice(2)],
    "nothing": lambda array: [array.slice(3, 0)],
}


def rows_of(log):
    return log.to_arrow().sort_by("id")["v"].to_pylist()


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_appended_is_what_is_read(tmp_path, layout, pieces):
    values = pa.chunked_array(PIECES[pieces](LAYOUTS[layout]))
    log = DeltaLog.for_path(str(tmp_path / "table"))
    wanted = values.to_pylist()
    log.append(pa.table({"id": range(len(values)), "v": values}))
    assert rows_of(log) == wanted
    log.append(pa.table({"id": range(10, 10 + len(values)), "v": values}))
    assert rows_of(log) == wanted * 2
    assert log.count("v IS NULL") == 2 * wanted.count(None)
    peer = deltalake.DeltaTable(log.table_path).to_pyarrow_table().sort_by("id")
    assert peer["v"].to_pylist() == wanted * 2


@pytest.mark.parametrize("is_nested", [False, True])
def test_fields_of_structs_are_found_in_any_case_and_order(tmp_path, is_nested):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    first = pa.struct([("One", pa.int64()), ("two", pa.string())])
    second = pa.struct([("TWO", pa.string()), ("one", pa.int64())])
    for at, row in enumerate([{"One": 1, "two": "x"}, {"TWO": "y", "one": 2}]):
        kind = (first, second)[at]
        values = pa.array([[row]], pa.list_(kind)) if is_nested else pa.array([row], kind)
        log.append(pa.table({"id": [at], "v": values}))
    wanted = [{"One": 1, "two": "x"}, {"One": 2, "two": "y"}]
    assert rows_of(log) == ([[item] for item in wanted] if is_nested else wanted)


def test_what_would_be_lost_is_refused(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    data = pa.table({"id": [1, 2], "v": pa.array([{"t": 1000}, {"t": 1001}],
                     pa.struct([("t", pa.timestamp("ns"))]))})  # fmt: skip
    with pytest.raises(SchemaError) as caught:
        log.append(data)
    assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"
    assert caught.value.fields["column"] == "v.t"
    assert not list(tmp_path.rglob("*.parquet"))


HALF = "a\ud83d"
REFUSED = {
    "in a predicate's text": lambda log: log.to_arrow(f"s = '{HALF}'"),
    "as a value": lambda log: log.count(col("s") == HALF),
    "in a list": lambda log: log.files(col("s").isin(["x", HALF])),
    "as a beginning": lambda log: log.to_arrow(col("s").startswith(HALF)),
    "in a pattern": lambda log: log.to_arrow(col("s").like(f"{HALF}%")),
    "as a column": lambda log: log.to_arrow(f"`{HALF}` = 1"),
    "in the user's metadata": lambda log: log.append(pa.table({"s": ["x"]}), user_metadata=HALF),
    "as an application's id": lambda log: log.append(pa.table({"s": ["x"]}), txn=(HALF, 1)),
}


@pytest.mark.parametrize("place", REFUSED)
def test_half_a_character_is_refused(tmp_path, place):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    log.append(pa.table({"s": ["x", "😀"]}))
    with pytest.raises(UsageError) as caught:
        REFUSED[place](log)
    assert caught.value.kind == "OPTIMIST_INVALID_TEXT"
    assert str(caught.value).isascii()
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert log.to_arrow()["s"].to_pylist() == ["x", "😀"]
