"""Defaults, generated columns and identities without Spark: exact, or refused by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import Column, DeltaLog, Identity
from optimist.core.errors import MetadataChangedException, SchemaError, UsageError
from optimist.core.local.write import write
from optimist.core.local.write_request import LocalWrite

DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
DATES = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))


@pytest.fixture
def make(tmp_path):
    numbers = iter(range(1000))

    def made(*columns, **more):
        log = DeltaLog.for_path(str(tmp_path / f"t{next(numbers)}"), {})
        log.create(columns, properties=DEFAULTS, **more)
        return log

    return made


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """A table with columns that are computed from a number and a date."""
    log = DeltaLog.for_path(str(tmp_path_factory.mktemp("computed") / "t"), {})
    log.create(
        [
            Column("i", "int"),
            Column("d", "date"),
            Column("twice", "bigint", generated_as="CAST(i AS BIGINT) * 2"),
            Column("sign", "string", generated_as="CASE WHEN i < 0 THEN 'minus' ELSE 'plus' END"),
            Column("y", "int", generated_as="year(d)"),
            Column("m", "int", generated_as="MONTH(d)"),
            Column("day", "int", generated_as="day(d)"),
            Column("n", "bigint", identity=Identity(0, 3)),
            Column("after", "bigint", generated_as="n + 1"),
            Column("c", "decimal(38,2)", default="1.5"),
        ],
        properties=DEFAULTS,
    )
    return log


def computed(i, d, n):
    sign = "minus" if i is not None and i < 0 else "plus"
    return {
        "i": i,
        "d": d,
        "twice": None if i is None else i * 2,
        "sign": sign,
        "y": d and d.year,
        "m": d and d.month,
        "day": d and d.day,
        "n": n,
        "after": n + 1,
        "c": Decimal("1.50"),
    }


@given(st.lists(st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | DATES)))
def test_rows_get_the_values_that_a_model_gives_them(dated, rows):
    before = dated.snapshot().schema.find("n").metadata.get("delta.identity.highWaterMark", -3)
    data = pa.table(
        {
            "D": pa.array([d for _, d in rows], pa.date32()),
            "i": pa.array([i for i, _ in rows], pa.int32()),
        }
    )
    result = dated.append(data)
    files = [row["path"] for row in dated.files().to_pylist()] if rows else []
    wanted = [computed(i, d, before + 3 * (at + 1)) for at, (i, d) in enumerate(rows)]
    found = dated.to_arrow(f"n > {before}").to_pylist() if files else []
    assert sorted(found, key=lambda row: row["n"]) == wanted
    assert result is not None


def test_a_column_that_is_not_null_may_have_a_default(make):
    log = make(Column("a", "int"), Column("b", "string", nullable=False, default="'x'"))
    log.append(pa.table({"a": pa.array([1, 2], pa.int32())}))
    log.append(pa.table({"a": pa.array([3], pa.int32()), "b": ["y"]}))
    assert sorted(log.to_arrow()["b"].to_pylist()) == ["x", "x", "y"]


def test_a_partition_column_may_be_generated(make):
    log = make(Column("d", "date"), Column("y", "int", generated_as="year(d)"), partition_by=["y"])
    log.append(pa.table({"d": [dt.date(1999, 12, 31), None]}))
    values = log.files()["partitionValues"].to_pylist()
    assert sorted(str(dict(item)["y"]) for item in values) == ["1999", "None"]


@pytest.mark.parametrize(
    ("sql", "data_type", "good", "bad"),
    [
        ("a + 1", "int", 2, 3),
        ("a + 1", "int", 2, None),
        ("CASE WHEN a > 5 THEN a END", "int", None, 0),
        ("concat('n', CAST(a AS STRING))", "string", "n1", "n2"),
    ],
)
def test_values_that_are_brought_must_be_those_that_are_computed(make, sql, data_type, good, bad):
    log = make(Column("a", "int"), Column("b", data_type, generated_as=sql))
    kind = pa.int32() if data_type == "int" else pa.string()

    def append(value):
        log.append(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([value], kind)}))

    append(good)
    with pytest.raises(SchemaError) as caught:
        append(bad)
    assert caught.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert log.snapshot().version == 1


def test_what_does_not_fit_is_an_error(make):
    log = make(Column("a", "int"), Column("b", "int", generated_as="a * 2"))
    with pytest.raises(SchemaError) as caught:
        log.append(pa.table({"a": pa.array([2**30], pa.int32())}))
    assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"


@pytest.mark.parametrize(
    "column",
    [
        Column("b", "string", generated_as="soundex(s)"),
        Column("b", "date", generated_as="CAST(t AS DATE)"),
        Column("b", "int", generated_as="year(t)"),
        Column("b", "string", generated_as="concat(p, 'x')"),
        Column("b", "timestamp", default="TIMESTAMP '2020-01-01 00:00:00'"),
        Column("b", "date", default="current_date()"),
    ],
)
def test_what_only_spark_knows_is_refused(make, column):
    plain = [Column("s", "string"), Column("t", "timestamp"), Column("p", "char(3)")]
    log = make(*plain, column)
    with pytest.raises(UsageError) as caught:
        log.append(pa.table({"s": ["a"]}))
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert log.snapshot().version == 0


# MERGE


@pytest.fixture(params=["true", "false"])
def numbered(request, make, tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "merged"), {})
    vectors = {"delta.enableDeletionVectors": request.param}
    log.create(
        [
            Column("n", "bigint", identity=Identity(1, 2)),
            Column("id", "bigint"),
            Column("city", "string", default="'Rome'"),
        ],
        properties={**DEFAULTS, **vectors},
    )
    log.append(pa.table({"id": [1, 2, 3]}))
    return log


def rows_of(log):
    return sorted((row["id"], row["n"], row["city"]) for row in log.to_arrow().to_pylist())


def test_a_merge_gives_out_numbers_and_defaults_to_new_rows(numbered):
    source = pa.table({"id": [2, 9, 8], "city": ["Oslo", "Bonn", "Kiel"]})
    merge = numbered.merge(source, ["id"])
    merge = merge.when_matched_update_all().when_not_matched_insert({"id": "s.id"})
    assert merge.execute().num_inserted == 2
    found = rows_of(numbered)
    assert [(key, city) for key, _, city in found] == [
        (1, "Rome"),
        (2, "Oslo"),
        (3, "Rome"),
        (8, "Rome"),
        (9, "Rome"),
    ]
    assert sorted(number for _, number, _ in found) == [1, 3, 5, 7, 9]
    numbered.append(pa.table({"id": [10]}))
    assert max(number for _, number, _ in rows_of(numbered)) == 11


def test_insert_all_takes_the_columns_of_a_source_without_numbers(numbered):
    source = pa.table({"id": [3, 4], "city": ["a", "b"]})
    numbered.merge(source, ["id"]).when_not_matched_insert_all().execute()
    assert rows_of(numbered)[-1] == (4, 7, "b")


def test_a_merge_that_inserts_nothing_gives_out_nothing(numbered):
    before = numbered.metadata
    numbered.merge(pa.table({"id": [1]}), ["id"]).when_not_matched_insert({"id": "s.id"}).execute()
    assert numbered.metadata == before


def test_numbers_that_are_always_given_out_can_not_be_brought(numbered):
    source = pa.table({"id": [4], "n": [100], "city": ["x"]})
    for begin in ("when_not_matched_insert_all", "when_matched_update_all"):
        merge = getattr(numbered.merge(source, ["id"]), begin)()
        with pytest.raises(UsageError) as caught:
            merge.execute()
        assert caught.value.kind.startswith("DELTA_IDENTITY_COLUMNS_")


def test_of_two_commits_that_give_out_the_same_numbers_the_later_fails(numbered):
    stale = numbered.start_transaction()
    source = pa.table({"id": [4]})
    numbered.merge(source, ["id"]).when_not_matched_insert({"id": "s.id"}).execute()
    with pytest.raises(MetadataChangedException):
        write(stale, pa.table({"id": [5]}).to_reader(), LocalWrite())
    assert sorted(number for _, number, _ in rows_of(numbered)) == [1, 3, 5, 7]


def test_inserts_with_and_without_numbers_are_left_to_spark(make):
    log = make(Column("n", "bigint", identity=Identity(always=False)), Column("id", "bigint"))
    log.append(pa.table({"id": [1]}))
    merge = log.merge(pa.table({"id": [2, 3]}), ["id"])
    merge = merge.when_not_matched_insert({"id": "s.id", "n": "50"}, "s.id = 2")
    with pytest.raises(UsageError) as caught:
        merge.when_not_matched_insert({"id": "s.id"}).execute()
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    log.merge(pa.table({"id": [2]}), ["id"]).when_not_matched_insert(
        {"id": "s.id", "n": "50"}
    ).execute()
    assert sorted(log.to_arrow()["n"].to_pylist()) == [1, 50]
