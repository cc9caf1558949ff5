"""Numbers and JSON that others wrote: no text of a few bytes costs memory, time or a crash."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pytest

from bounded import run_bounded
from optimist.core.data.statistics.stats_text import num_live_rows, num_rows, stats_of
from optimist.core.errors import SchemaError, TableError
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor, DomainMetadata
from optimist.core.protocol.properties import TableProperties
from optimist.core.protocol.property_values import parse_interval_ms
from optimist.core.schema.types import schema_from_json
from optimist.core.skipping.statistics import FileStatistics, stats_table
from optimist.core.transaction.conflicts.row_ids import assign_row_ids, high_water_mark
from optimist.core.values.foreign_json import MAX_JSON_DEPTH, parse_exact_json, parse_json

_MONSTERS = ("1e999999", "-1e999999", "1e-999999", "1e99999999999999999999", "9" * 9_999)


def _schema(kind: str) -> str:
    field = {"name": "a", "type": kind, "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


@pytest.mark.parametrize("kind", ["decimal(38,2)", "decimal(5,0)", "long", "byte", "date"])
def test_bounds_with_monstrous_numbers_count_as_absent_at_once(kind: str) -> None:
    printed = run_bounded(
        """
        import sys, pyarrow as pa
        from optimist.core.skipping.statistics import stats_table
        from optimist.core.schema.types import schema_from_json

        schema, monsters = schema_from_json(sys.argv[1]), sys.argv[2:]
        texts = [
            '{"numRecords":2,"minValues":{"a":%s},"maxValues":{"a":%s}}' % (number, number)
            for number in monsters
        ]
        found = stats_table(pa.table({"stats": texts * 400}), [("a",)], schema)
        print(found["min.0"].null_count, found["max.0"].null_count)
        """,
        _schema(kind),
        *_MONSTERS,
    )
    assert printed.split() == ["2000", "2000"]


def test_a_monstrous_number_costs_its_neighbours_nothing() -> None:
    schema = schema_from_json(_schema("decimal(38,2)"))
    texts = ['{"numRecords":2,"minValues":{"a":1e999999},"maxValues":{"a":12.25}}'] * 3
    found = stats_table(pa.table({"stats": texts}), [("a",)], schema)
    assert [str(value) for value in found["max.0"]] == ["12.25"] * 3
    assert found["numRecords"].to_pylist() == [2, 2, 2]


def test_counts_below_zero_count_as_absent() -> None:
    schema = schema_from_json(_schema("long"))
    texts = ['{"numRecords":-5,"nullCount":{"a":-1}}', '{"numRecords":5,"nullCount":{"a":0}}']
    odd = ['{"numRecords":-5.0,\\n"nullCount":{"a":-1}}'.replace("\\n", "\n")]
    statistics = FileStatistics(pa.table({"stats": texts + odd}), schema)
    column = statistics.column(("a",))
    assert column is not None
    assert column.null_count.to_pylist() == [None, 0, None]
    assert statistics.num_records.to_pylist() == [None, 5, None]


@pytest.mark.parametrize(
    "text", ["", "[]", "x", "[" * 5_000, '{"numRecords":NaN}', '{"numRecords":1e400}', "null"]
)
def test_damaged_statistics_of_one_file_say_nothing(text: str) -> None:
    assert stats_of(text) in ({}, {"numRecords": float("inf")})
    assert num_rows(text) is None


@pytest.mark.parametrize(
    ("count", "deleted", "live"), [(5, 2, 3), (5, 5, 0), (5, 6, None), (-1, 0, None), (5, -1, None)]
)
def test_live_rows_are_known_only_where_a_vector_fits_its_file(count, deleted, live) -> None:
    vector = DeletionVectorDescriptor("u", "x", size_in_bytes=1, cardinality=deleted)
    stats = json.dumps({"numRecords": count})
    add = AddFile("f", {}, 1, 0, True, stats=stats, deletion_vector=vector)
    assert num_live_rows(add) == live


@pytest.mark.parametrize(
    "text",
    [
        *("[" * depth + "]" * depth for depth in (MAX_JSON_DEPTH + 1, 900, 100_000)),
        *('{"a":' * depth + "1" + "}" * depth for depth in (MAX_JSON_DEPTH + 1, 900, 100_000)),
        "[" * 100_000,
        '{"a":NaN}',
        "[Infinity]",
        "9" * 10_000,
        "\ufeff{}",
    ],
)
def test_what_is_no_json_for_everybody_is_a_value_error(text: str) -> None:
    assert sys.get_int_max_str_digits() < 10_000
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_json_may_be_wide_and_moderately_deep() -> None:
    text = "[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH
    assert json.dumps(parse_json(text)) == text
    wide = [{"a": "[" * 9}] * 5_000
    assert parse_json(json.dumps(wide).encode()) == wide


def test_exact_json_keeps_all_digits_and_makes_no_digit_of_an_exponent() -> None:
    assert str(parse_exact_json("[12345678901234567890.10]")[0]) == "12345678901234567890.10"
    assert parse_exact_json("1e999999").adjusted() == 999_999
    with pytest.raises(ValueError, match="exponent"):
        parse_exact_json("1e99999999999999999999")


@pytest.mark.parametrize(
    "text", ["9" * 5_000 + " days", "9" * 100 + " days", "1 day " * 100_000, "1000000000 weeks"]
)
def test_an_interval_beyond_64_bits_of_microseconds_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"interval|64 bits"):
        parse_interval_ms(text)
    configuration = {"delta.logRetentionDuration": text, "delta.checkpointInterval": "9" * 30}
    parsed = TableProperties.from_configuration(configuration)
    assert parsed.log_retention_ms > TableProperties().log_retention_ms  # nothing may get lost
    assert parsed.checkpoint_interval == TableProperties().checkpoint_interval


@pytest.mark.parametrize("kind", ["decimal(9999999999,0)", "decimal(38,9999999999)"])
def test_a_decimal_of_billions_of_digits_is_no_type(kind: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(_schema(kind))
    assert caught.value.kind == "OPTIMIST_UNKNOWN_TYPE"


@pytest.mark.parametrize(
    "mark",
    ["1e999999", "1e400", "NaN", '"x"', "null", "true", "1.5", str(1 << 63), "[", "9" * 5_000],
)
def test_a_row_id_mark_that_is_none_is_an_error_of_ours(mark: str) -> None:
    domain = DomainMetadata("delta.rowTracking", f'{{"rowIdHighWaterMark":{mark}}}')
    with pytest.raises(TableError) as caught:
        high_water_mark([domain], default=0)
    assert caught.value.kind == "OPTIMIST_MALFORMED_ROW_TRACKING"


def test_row_ids_never_leave_64_bits() -> None:
    add = AddFile("f", {}, 1, 0, True, stats='{"numRecords":5}')
    top = (1 << 63) - 1
    assign_row_ids([add], known_mark=-1, next_mark=top - 5)
    with pytest.raises(TableError) as caught:
        assign_row_ids([add], known_mark=-1, next_mark=top - 4)
    assert caught.value.kind == "OPTIMIST_MALFORMED_ROW_TRACKING"
