"""Which columns of a file have a dictionary, and that no type and no name is in the way."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.data.parquet.dictionary_choice import columns_with_dictionary


def encodings(log: DeltaLog) -> dict[str, bool]:
    """Whether each Parquet column has a dictionary."""
    (uri,) = log.files()["path"].to_pylist()
    group = pq.ParquetFile(f"{log.table_path}/{uri}").metadata.row_group(0)
    columns = map(group.column, range(group.num_columns))
    return {column.path_in_schema: column.has_dictionary_page for column in columns}


def test_only_values_that_repeat_have_a_dictionary(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    count = 20_000
    rows = pa.table(
        {
            "key": range(count),
            "text": [f"text {n}" for n in range(count)],
            "a.b": [float(n) for n in range(count)],
            "again": [n % 7 for n in range(count)],
            "round": [n % 5000 for n in range(count)],
            "nested": [{"n": n % 3, "list": [n % 2], "map": [("k", n % 2)]} for n in range(count)],
        },
        schema=pa.schema(
            [
                ("key", pa.int64()),
                ("text", pa.string()),
                ("a.b", pa.float64()),
                ("again", pa.int64()),
                ("round", pa.int64()),
                (
                    "nested",
                    pa.struct(
                        [
                            ("n", pa.int64()),
                            ("list", pa.list_(pa.int64())),
                            ("map", pa.map_(pa.string(), pa.int64())),
                        ]
                    ),
                ),
            ]
        ),
    )
    log.write(rows)
    assert encodings(log) == {
        "key": False,
        "text": False,
        "a.b": False,
        "again": True,
        "round": True,
        "nested.n": True,
        "nested.list.list.element": True,
        "nested.map.key_value.key": True,
        "nested.map.key_value.value": True,
    }
    assert log.to_arrow().equals(rows.cast(log.to_arrow().schema))


@pytest.mark.parametrize(
    ("values", "has_dictionary"),
    [
        (np.arange(1_000_000), False),
        (np.arange(1_000_000) % 100_000, True),
        (np.arange(1_000_000) // 2, True),
        (np.arange(50_000)[::-1], False),
        (np.arange(50_000) % 25_000, True),
        (np.random.default_rng(1).integers(0, 100_000, 1_000_000), True),
        (np.random.default_rng(1).integers(0, 2**62, 1_000_000), False),
    ],
)
def test_a_dictionary_is_found_useful_however_values_come_round(values, has_dictionary):
    rows = pa.table({"x": values})
    assert columns_with_dictionary(rows) == (has_dictionary or [])


def test_types_whose_values_arrow_does_not_count_keep_a_dictionary():
    encoded = pa.array(["a", "b"]).dictionary_encode()
    rows = pa.table({"x": encoded, "y": pa.array(["a", "b"], pa.string_view()), "z": [1, 2]})
    assert columns_with_dictionary(rows) == ["x", "y"]


@pytest.mark.parametrize("values", [[], [None, None], [1, None, 2]])
def test_few_values_and_nulls_are_no_error(values):
    rows = pa.table({"x": pa.array(values, pa.int64())})
    assert columns_with_dictionary(rows) in (True, [])


@pytest.mark.parametrize(
    "value",
    [
        True,
        1.5,
        Decimal("9" * 38),
        dt.date(1, 1, 1),
        dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
        "text",
        b"\xff",
        ["list"],
        {"a": {"b": 1}},
    ],
)
def test_no_type_is_in_the_way(tmp_path, value):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    rows = pa.table({"x": [value, None]})
    log.write(rows)
    assert log.to_arrow()["x"].to_pylist() == rows["x"].to_pylist()


def test_the_choice_is_the_same_however_the_rows_are_cut():
    count = 30_000
    rows = pa.table({"key": range(count), "round": [n % 5000 for n in range(count)]})
    whole = columns_with_dictionary(rows)
    assert whole == ["round"]
    cuts = [rows.slice(start, size) for start, size in [(0, 1), (1, 0), (1, 7000), (7001, count)]]
    assert columns_with_dictionary(pa.concat_tables(cuts)) == whole
