"""UPDATE without Spark, against a model that goes through the rows one by one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import compress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_rows import assignments, conditions, counted, is_true, rows_strategy, updated
from local_tables import (
    PROPERTIES,
    Fate,
    changes_since,
    counted_changes,
    live_rows,
    make,
    metrics_of,
    opened,
    sixty_rows,
)
from optimist.core import DeltaLog
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    SchemaError,
    UsageError,
)
from optimist.core.protocol.actions import Metadata
from optimist.core.schema.types import (
    DECLARED_TYPE,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
)
from optimist.core.transaction.conflicts.operations import Operation

STEP = st.tuples(st.none() | conditions(), assignments())


@given(st.lists(rows_strategy(), min_size=1, max_size=3), st.lists(STEP, max_size=3), PROPERTIES)
@pytest.mark.parametrize("fate", list(Fate))
def test_update_after_update_gives_the_rows_of_the_model(
    tmp_path_factory, fate, files, steps, properties
):
    log = make(tmp_path_factory.mktemp("model") / "t", fate, files, **properties)
    model = live_rows(log)
    for condition, items in steps:
        hit = [is_true(condition, row) for row in model]
        sql = None if condition is None else condition.sql
        values = {item.column: item.given for item in items}
        old, before = list(compress(model, hit)), log.snapshot().version
        try:
            changed = [updated(row, items) for row in old]
        except OverflowError:
            with pytest.raises(SchemaError) as caught:
                log.update(set=values, predicate=sql)
            assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"
            continue
        done = log.update(set=values, predicate=sql)
        model = [row for row in model if not is_true(condition, row)] + changed
        assert done.num_updated == len(changed)
        assert counted(live_rows(log)) == counted(model), (sql, values)
        if properties:
            pairs = [("update_preimage", row) for row in old]
            pairs += [("update_postimage", row) for row in changed]
            assert changes_since(log, before) == counted_changes(pairs), (sql, values)
    assert log.count() == len(model)


@pytest.mark.parametrize("has_vectors", [True, False])
def test_only_matching_rows_change(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)
    done = log.update(set={"s": "concat('u', s)", "p": 9}, predicate="id < 25")
    assert (done.num_updated, done.num_copied) == (25, 0 if has_vectors else 15)
    names = ("numRemovedFiles", "numAddedFiles", "numDeletionVectorsAdded", "numUpdatedRows")
    assert metrics_of(log, *names) == ((1, 1, 1, 25) if has_vectors else (2, 1, 0, 25))
    rows = {row["id"]: (row["p"], row["s"]) for row in live_rows(log)}
    assert rows == {i: (9, f"un{i}") if i < 25 else (i % 3, f"n{i}") for i in range(60)}
    info = log.history(1)[0].info
    assert (info.operation, info.operation_parameters) == ("UPDATE", {"predicate": '["id < 25"]'})


def test_all_rows_are_updated_without_a_predicate(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    assert log.update(set={"p": "id"}).num_updated == 60
    assert all(row["p"] == row["id"] for row in live_rows(log))
    assert metrics_of(log, "numRemovedFiles", "numDeletionVectorsAdded") == (3, 0)
    assert log.update(set={"p": 1}, predicate="id = 100").commit is None


def test_values_of_every_type_are_stored(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    at = dt.datetime(2026, 3, 29, 2, 30, tzinfo=dt.timezone.utc)
    values = {
        "b": (True, pa.bool_()),
        "i8": (5, pa.int8()),
        "f": (1.1, pa.float32()),
        "day": (dt.date(2026, 11, 23), pa.date32()),
        "at": (at, pa.timestamp("us", "UTC")),
        "local": (dt.datetime(2026, 3, 29, 2, 30), pa.timestamp("us")),
        "raw": (b"\x00\xff", pa.binary()),
        "l": (pa.scalar([1, None], pa.list_(pa.int64())), pa.list_(pa.int64())),
    }
    log.append(pa.table({name: pa.nulls(1, kind) for name, (_, kind) in values.items()}))
    log.update(set={name: value for name, (value, _) in values.items()})
    (row,) = live_rows(log)
    assert row == {
        name: pa.scalar(getattr(value, "as_py", lambda value=value: value)(), kind).as_py()
        for name, (value, kind) in values.items()
    }
    at = "TIMESTAMP '2024-01-01 00:00:00'"
    log.update(set={"day": "'2024-2-29'", "at": at, "b": "'true'"})
    (row,) = live_rows(log)
    assert (row["day"], row["at"].isoformat()) == (
        dt.date(2024, 2, 29),
        "2024-01-01T00:00:00+00:00",
    )


REFUSED = [
    "id / 2",
    "`x` + 1.5",
    "now()",
    "(SELECT 1)",
    "1.00005",
    "try_cast(s AS TIMESTAMP)",
]


@pytest.mark.parametrize("value", REFUSED)
def test_a_value_that_only_spark_knows_is_refused(tmp_path, value):
    log = opened(tmp_path / "t", has_vectors=False)
    log.append(pa.table({"id": [1], "x": [1.5], "s": ["5"], "d": [Decimal("1.0000")]}))
    for column in ("id", "d"):
        with pytest.raises(UsageError, match="Nothing was written") as caught:
            log.update(set={column: value})
        assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert log.snapshot().version == 0


def test_a_text_is_read_as_a_number_a_date_or_a_boolean(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    types = {"n": pa.int8(), "x": pa.float64(), "d": pa.decimal128(5, 2), "day": pa.date32()}
    log.create(pa.schema({"s": pa.string(), **types, "b": pa.bool_()}))
    log.append(pa.table({"s": [" 12 ", None]}))
    log.update(set={"n": "s", "x": "s", "d": "'1.005'", "day": "'2024-2-29'", "b": "'yes'"})
    same = {"d": Decimal("1.01"), "day": dt.date(2024, 2, 29), "b": True}
    first, second = log.to_arrow().to_pylist()
    assert first == {"s": " 12 ", "n": 12, "x": 12.0, **same}
    assert second == {"s": None, "n": None, "x": None, **same}


@pytest.mark.parametrize("value", ["upper(s)", "'x'", "'it''s'", "concat(s, 'it''s')", "'99999'"])
def test_a_text_that_is_no_value_of_the_column_is_an_error(tmp_path, value):
    log = opened(tmp_path / "t", has_vectors=False)
    log.append(pa.table({"id": pa.array([1], pa.int8()), "s": ["y"]}))
    with pytest.raises(SchemaError) as caught:
        log.update(set={"id": value})
    assert caught.value.kind == "CAST_INVALID_INPUT"
    assert log.snapshot().version == 0


def test_integers_in_structs_and_arrays_fit_or_are_an_error(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    small = pa.struct({"d": pa.int16(), "e": pa.list_(pa.int8())})
    large = pa.struct({"d": pa.int64(), "e": pa.list_(pa.int64())})
    log.create(pa.schema({"id": pa.int64(), "c": small}))
    new = pa.table({"id": [1, 2], "c": pa.array([{"d": -5, "e": [1, None]}, None], large)})
    log.merge(new, ["id"]).when_not_matched_insert_all().execute()
    assert log.to_arrow().to_pylist() == new.to_pylist()
    for bad in ({"d": 2**15, "e": None}, {"d": 1, "e": [128]}):
        new = pa.table({"id": [1], "c": pa.array([bad], large)})
        with pytest.raises(SchemaError) as caught:
            log.merge(new, ["id"]).when_matched_update_all().execute()
        assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"


@pytest.mark.parametrize("value", [False, True, "false"])
def test_a_boolean_is_no_number(tmp_path, value):
    log = opened(tmp_path / "t", has_vectors=False)
    log.append(pa.table({"x": [1.5], "i": [1]}))
    for column in ("x", "i"):
        with pytest.raises(UsageError) as caught:
            log.update(set={column: value})
        assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"


def test_bad_targets_are_refused(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=False)
    for values, kind in [
        ({}, "OPTIMIST_EMPTY_UPDATE"),
        ({"nowhere": 1}, "DELTA_COLUMN_NOT_FOUND"),
        ({"id": 1, "ID": 2}, "DELTA_CONFLICT_SET_COLUMN"),
        ({"p": 2**31}, "OPTIMIST_VALUE_DOES_NOT_FIT"),
    ]:
        with pytest.raises((UsageError, SchemaError)) as caught:
            log.update(set=values, predicate="id = 1")
        assert caught.value.kind == kind
    assert log.snapshot().version == 2


def test_rules_of_the_table_hold(tmp_path):
    log = opened(tmp_path / "t", has_vectors=False)
    text = StructField("c", PrimitiveType("string"), metadata={DECLARED_TYPE: "varchar(3)"})
    schema = StructType((StructField("id", PrimitiveType("long"), nullable=False), text))
    txn = log.start_transaction()
    txn.table.ensure_log_directory()
    txn.update_metadata(Metadata(id="t", schema_string=schema_to_json(schema)))
    txn.commit([], Operation("CREATE TABLE"))
    log.append(pa.table({"id": [1, 2], "c": ["a", "b"]}))
    before = sorted((tmp_path / "t").rglob("*.parquet"))
    for values, kind in [
        ({"id": None}, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        ({"c": "'abcd'"}, "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"),
    ]:
        with pytest.raises(SchemaError) as caught:
            log.update(set=values, predicate="id = 1")
        assert caught.value.kind == kind
    assert log.update(set={"c": "'abc '"}, predicate="id = 1").num_updated == 1
    assert sorted((tmp_path / "t").glob("*.parquet")) == before


def test_a_commit_that_adds_matching_rows_is_a_conflict(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)

    def intrude(done):
        if done.step == "search":
            log.append(pa.table({"id": [7], "p": pa.array([0], pa.int32()), "s": ["new"]}))

    with pytest.raises(DeltaConcurrentModificationException):
        log.update(set={"p": 5}, predicate="id < 10", progress=intrude)
    assert log.count("p = 5") == 0


def test_a_name_that_no_column_has_changes_nothing(tmp_path):
    """The first name of a path is a column's, and is not passed over where it is none."""
    log = DeltaLog.for_path(str(tmp_path))
    person = pa.array([{"city": "Y"}], pa.struct([("city", pa.string())]))
    log.append(pa.table({"city": ["X"], "adress": person}))
    for call in (
        lambda: log.delete("address.city = 'X'"),
        lambda: log.update(set={"address.city": "'Z'"}),
        lambda: log.delete("adres.city = 'X'"),
        lambda: log.delete("t.city = 'X'"),
        lambda: log.count("t.city = 'X'"),
    ):
        with pytest.raises(SchemaError) as caught:
            call()
        assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"
        assert set(caught.value.fields["near"]) & {"adress.city", "city"}
    with pytest.raises(UsageError):
        log.update(set={"city": "address.city"})
    assert log.snapshot().version == 0
    assert log.delete("adress.city = 'X'").num_deleted == 0


@pytest.mark.parametrize(
    ("values", "is_in_place"),
    [({"p": 9}, True), ({"p": "p + 1", "id": "id * 2"}, True), ({"p": 9, "s": "upper(s)"}, False)],
)
def test_rows_stay_in_their_places_unless_texts_change(tmp_path, values, is_in_place):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    ids = [*range(50), None]
    rows = {"id": ids, "p": [n % 3 for n in range(51)], "s": [f"s{n}" for n in range(51)]}
    log.write(pa.table(rows))
    before = log.to_arrow()
    done = log.update(set=values, predicate="id >= 10 AND id % 10 = 0")
    assert (done.num_updated, done.num_copied) == (4, 47)
    after = log.to_arrow()
    if is_in_place:
        hit = [n is not None and n >= 10 and n % 10 == 0 for n in ids]
        assert after["s"].to_pylist() == before["s"].to_pylist()
        assert list(compress(after["p"].to_pylist(), [not each for each in hit])) == list(
            compress(before["p"].to_pylist(), [not each for each in hit])
        )
        wanted = [9] * 4 if values["p"] == 9 else [n % 3 + 1 for n in (10, 20, 30, 40)]
        assert list(compress(after["p"].to_pylist(), hit)) == wanted
    else:
        assert after["s"].to_pylist()[-4:] == ["S10", "S20", "S30", "S40"]


def test_rows_of_a_change_feed_are_told_apart_where_numbers_change(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create([("id", "bigint"), ("p", "bigint")], properties={"delta.enableChangeDataFeed": True})
    log.write(pa.table({"id": range(6), "p": range(6)}))
    before = log.snapshot().version
    log.update(set={"p": 70}, predicate="id = 2")
    found = log.changes(starting_version=before + 1).to_pylist()
    assert sorted((row["_change_type"], row["id"], row["p"]) for row in found) == [
        ("update_postimage", 2, 70),
        ("update_preimage", 2, 2),
    ]


def test_a_zero_becomes_a_negative_one(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.write(pa.table({"id": range(3), "d": [0.0, 0.0, 1.0]}))
    log.update(set={"d": "-0.0D"}, predicate="id = 1")
    assert [str(each) for each in log.to_arrow()["d"].to_pylist()] == ["0.0", "-0.0", "1.0"]
