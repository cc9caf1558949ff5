"""Generated columns in UPDATE and MERGE without Spark: computed again, or checked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from local_tables import DEFAULTS, live_rows
from optimist.core import Column, DeltaLog, Identity
from optimist.core.errors import SchemaError, UsageError


def row(id_, a, s):
    g = None if a is None else a * 2 + id_
    return {"id": id_, "a": a, "s": s, "g": g, "kind": "none" if a is None else f"k{a % 3}"}


ROWS = [row(id_, None if id_ % 7 == 0 else id_ % 5, f"s{id_}") for id_ in range(20)]


@pytest.fixture(params=[True, False], ids=["vectors", "copies"])
def log(request, tmp_path):
    given = {"enableDeletionVectors": str(request.param).lower(), "enableRowTracking": "true"}
    options = {f"{DEFAULTS}{name}": value for name, value in given.items()}
    log = DeltaLog.for_path(str(tmp_path / "t"), options)
    columns = [
        Column("id", "bigint"),
        Column("a", "int"),
        Column("s", "string"),
        Column("g", "bigint", generated_as="a * 2 + id"),
        Column(
            "kind", "string", generated_as="coalesce(concat('k', CAST(a % 3 AS STRING)), 'none')"
        ),
    ]
    properties = {"delta.enableChangeDataFeed": "true"}
    log.create(columns, partition_by=["kind"], properties=properties)
    for first in range(0, 20, 7):
        log.append(rows_of(ROWS[first : first + 7]))
    return log


def rows_of(rows):
    fields = [("id", pa.int64()), ("a", pa.int32()), ("s", pa.string())]
    return pa.Table.from_pylist(
        [{name: each[name] for name, _ in fields} for each in rows], pa.schema(fields)
    )


def by_id(log):
    return sorted(live_rows(log), key=lambda each: (each["id"], each["a"] or 0))


def test_an_update_computes_them_again_and_moves_rows_to_their_partitions(log):
    expected = [row(r["id"], r["a"] and r["a"] + 1, r["s"]) if r["id"] > 9 else r for r in ROWS]
    version = log.snapshot().version
    log.update(set={"a": "if(a = 0, 0, a + 1)"}, predicate="id > 9")
    assert by_id(log) == expected
    changes = log.changes(starting_version=version + 1).to_pylist()
    after = [each for each in changes if each["_change_type"] == "update_postimage"]
    assert sorted((each["id"], each["g"], each["kind"]) for each in after) == [
        (each["id"], each["g"], each["kind"]) for each in expected if each["id"] > 9
    ]
    log.update(set={"s": "'x'"})
    assert by_id(log) == [{**each, "s": "x"} for each in expected]


def test_a_merge_computes_them_for_updated_and_inserted_rows(log):
    new = [row(id_, id_ * 3 if id_ % 2 else None, "new") for id_ in range(15, 25)]
    merge = log.merge(rows_of(new), ["id"]).when_matched_update_all("s.id < 18")
    merge = merge.when_matched_update({"a": "t.a + 100"}).when_not_matched_insert_all("s.id <> 22")
    merge = merge.when_not_matched_insert({"id": "s.id + 100"})
    merge.when_not_matched_by_source_update({"id": "t.id + 1000"}, "t.id < 3").execute()
    expected = {r["id"]: r for r in ROWS}
    for each in new:
        old = expected.get(each["id"])
        if old is None:
            inserted = each if each["id"] != 22 else row(122, None, None)
            expected[inserted["id"]] = inserted
        elif each["id"] < 18:
            expected[each["id"]] = each
        else:
            expected[each["id"]] = row(each["id"], old["a"] and old["a"] + 100, old["s"])
    for id_ in range(3):
        old = expected.pop(id_)
        expected[id_ + 1000] = row(id_ + 1000, old["a"], old["s"])
    assert by_id(log) == [expected[id_] for id_ in sorted(expected)]


def test_values_that_are_brought_must_be_those_of_the_expressions(log):
    wrong = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    new = rows_of(ROWS[3:5]).append_column("g", pa.array([ROWS[3]["g"], 5]))
    merge, other = log.merge(new, ["id"]), log.merge(rows_of([row(99, 1, "x")]), ["id"])
    for refused in (
        lambda: log.update(set={"g": "7"}, predicate="id = 3"),
        lambda: merge.when_matched_update({"g": "s.g"}).execute(),
        lambda: other.when_not_matched_insert({"id": "id", "a": "a", "g": "1"}).execute(),
    ):
        with pytest.raises(SchemaError) as caught:
            refused()
        assert caught.value.kind == wrong
    assert by_id(log) == ROWS
    log.update(set={"g": "id + 2 * a", "s": "'y'"}, predicate="id = 3")
    assert merge.when_matched_update({"g": "s.g"}, "s.id = 3").execute().num_updated == 1
    assert by_id(log)[3] == {**ROWS[3], "s": "y"}


def test_what_only_spark_computes_is_refused_before_anything_is_written(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    hashed = Column("h", "string", generated_as="soundex(s)")
    log.create([Column("id", "bigint"), Column("s", "string"), hashed])
    new = pa.table({"id": [1], "s": ["x"]})
    merge = log.merge(new, ["id"])
    for command in (
        lambda: log.update(set={"s": "'x'"}),
        lambda: merge.when_matched_update_all().execute(),
        lambda: merge.when_not_matched_insert_all().execute(),
    ):
        with pytest.raises(UsageError) as caught:
            command()
        assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    numbered = DeltaLog.for_path(str(tmp_path / "n"), {})
    number = Column("n", "bigint", identity=Identity())
    numbered.create([Column("id", "bigint"), number, Column("g", "bigint", generated_as="n + 1")])
    with pytest.raises(UsageError) as caught:
        numbered.merge(new, ["id"]).when_not_matched_insert({"id": "id"}).execute()
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert numbered.snapshot().version == 0
    numbered.append(pa.table({"id": [1]}))
    numbered.merge(new, ["id"]).when_matched_update({"id": "s.id + 1"}).execute()
    assert numbered.to_arrow().to_pylist() == [{"id": 2, "n": 1, "g": 2}]


@pytest.mark.parametrize("sql", ["year(ts[0])", "coalesce(parts, parts).t IS NULL"])
def test_a_time_inside_another_value_is_left_to_spark_whose_session_has_the_zone(tmp_path, sql):
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    computed = Column("y", "int" if sql.startswith("year") else "boolean", generated_as=sql)
    log.create([Column("ts", "array<timestamp>"), Column("parts", "struct<t:timestamp>"), computed])
    zoned = pa.timestamp("us", "UTC")
    rows = pa.table(
        {
            "ts": pa.array([[0]], pa.list_(zoned)),
            "parts": pa.array([{"t": 0}], pa.struct([("t", zoned)])),
        }
    )
    with pytest.raises(UsageError) as caught:
        log.append(rows)
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert log.snapshot().version == 0
