"""MERGE and the schema: its evolution, defaults, constraints, changes recorded."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import (
    SchemaError,
)
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read
from small_merges import FEED, VECTORS, metrics_of, numbers, target, upsert


def test_new_columns_and_fields_of_the_source_become_the_tables(spark, table_path, plane):
    places = pa.array([{"lat": 1.5}, {"lat": 2.5}, None])
    DeltaLog.for_path(table_path, {}).append(numbers(0, 3, place=places))
    new = spark.sql(
        "SELECT * FROM VALUES (1L, 'x', named_struct('lat', 9.0D, 'lon', 8.0D), 5), "
        "(7L, 'y', NULL, 6) AS rows(id, v, place, extra)"
    ).alias("s")
    upsert(spark, table_path, new).withSchemaEvolution().execute()
    rows = read(spark, table_path).orderBy("id").toArrow().to_pylist()
    assert rows == [
        {"id": 0, "v": "v0", "place": {"lat": 1.5, "lon": None}, "extra": None},
        {"id": 1, "v": "x", "place": {"lat": 9.0, "lon": 8.0}, "extra": 5},
        {"id": 2, "v": "v2", "place": None, "extra": None},
        {"id": 7, "v": "y", "place": None, "extra": 6},
    ]
    upsert(spark, table_path, new.drop("place", "v")).withSchemaEvolution().execute()
    assert read(spark, table_path).where("id = 1").collect()[0].v == "x"


def narrowed(value, paths):
    """Of a row or a struct, the parts to which a path of names leads."""
    found = {}
    for name, part in value.items():
        below = [path[1:] for path in paths if path[0] == name]
        if [] in below:
            found[name] = part
        elif below and (inner := narrowed(part, below)):
            found[name] = inner
    return found


def widened(old, new, *, takes_new):
    """A row or a struct with the fields that another has more; its values, or nulls for them."""
    merged = {}
    for name in [*old, *(name for name in new if name not in old)]:
        one, other = old.get(name), new.get(name)
        if isinstance(one or other, dict) and (takes_new or name in old):
            merged[name] = widened(one or {}, other or {}, takes_new=takes_new)
        else:
            merged[name] = other if takes_new and name in new else one
    return merged


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "assigned", [["n.b.q", "n.c"], ["N.c", "n.a"], ["t.n.b"], ["n.d", "m.x.y"], ["t.n", "z"]]
)
def test_fields_that_clauses_assign_become_the_tables_and_no_others(
    spark, table_path, plane, assigned
):
    old = {"id": 1, "n": {"a": 1, "b": {"p": 1}}}
    new = {
        "id": 1,
        "n": {"a": 10, "c": "new", "d": 5, "b": {"p": 3, "q": 4}},
        "m": {"w": 1, "x": {"y": 2, "z": 3}},
        "z": 7,
    }
    DeltaLog.for_path(table_path, {}).append(pa.Table.from_pylist([old, {**old, "id": 2}]))
    source = spark.createDataFrame(pa.Table.from_pylist([new])).alias("s")
    merge = DeltaTable.forPath(spark, table_path).alias("t").merge(source, "t.id = s.id")
    names = [name.removeprefix("t.") for name in assigned]
    values = {name: f"s.{own}" for name, own in zip(assigned, names, strict=True)}
    merge.whenMatchedUpdate(set=values).withSchemaEvolution().execute()
    brought = narrowed(new, [name.lower().split(".") for name in names])
    assert read(spark, table_path).orderBy("id").toArrow().to_pylist() == [
        widened(old, brought, takes_new=True),
        widened({**old, "id": 2}, brought, takes_new=False),
    ]


@pytest.mark.parametrize("alias", ["t", "n"])
def test_fields_that_the_source_lacks_keep_the_tables_values(spark, table_path, plane, alias):
    inner = pa.struct({"p": pa.int64(), "q": pa.int64()})
    table = pa.schema({"id": pa.int64(), "n": pa.struct({"a": pa.int64(), "b": inner})})
    whole = {"a": 1, "b": {"p": 2, "q": 3}}
    rows = [whole, None, {"a": 1, "b": None}, whole]
    old = [{"id": at, "n": n} for at, n in enumerate(rows)]
    DeltaLog.for_path(table_path, FEED).append(pa.Table.from_pylist(old, table))
    lacking = pa.struct({"c": pa.int64(), "b": pa.struct({"q": pa.int64()})})
    given = [{"c": 9, "b": {"q": 8}}, None, {"c": 9, "b": None}, None, {"c": 9, "b": {"q": 8}}]
    new = pa.table({"id": range(5), "n": pa.array(given, lacking)})
    merge = DeltaTable.forPath(spark, table_path).alias(alias)
    merge = merge.merge(spark.createDataFrame(new).alias("s"), f"{alias}.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().withSchemaEvolution().execute()
    found = read(spark, table_path).orderBy("id").toArrow()
    assert found["n"].to_pylist() == [
        {"a": 1, "b": {"p": 2, "q": 8}, "c": 9},
        None,
        {"a": 1, "b": None, "c": 9},
        {"a": 1, "b": {"p": 2, "q": None}, "c": None},
        {"a": None, "b": {"p": None, "q": 8}, "c": 9},
    ]


@pytest.mark.again
@pytest.mark.parametrize("name", ["t.n.c", "n.nix", "t.z", "nix.c"])
def test_a_field_that_the_source_does_not_have_by_that_name_is_not_made(spark, table_path, name):
    DeltaLog.for_path(table_path, {}).append(pa.table({"id": [1], "n": [{"a": 1}]}))
    source = spark.sql("SELECT 1L AS id, named_struct('c', 1) AS n, 2 AS z").alias("s")
    merge = DeltaTable.forPath(spark, table_path).alias("t").merge(source, "t.id = s.id")
    with pytest.raises(SchemaError) as caught:
        merge.whenMatchedUpdate(set={name: "1"}).withSchemaEvolution().execute()
    assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"
    merge = DeltaTable.forPath(spark, table_path).alias("t").merge(source, "t.id = s.id")
    with pytest.raises(SchemaError):
        merge.whenNotMatchedBySourceUpdate(set={"z": "1"}).withSchemaEvolution().execute()


@pytest.mark.again
def test_constraints_defaults_and_generated_columns_hold(spark, table_path, plane):
    def column(name, kind, **metadata):
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    fields = [
        column("id", "long"),
        column("n", "integer", CURRENT_DEFAULT="42"),
        column("twice", "long", **{"delta.generationExpression": "id * 2"}),
    ]
    txn = DeltaLog.for_path(table_path, {}).start_transaction()
    properties = {
        "delta.feature.allowColumnDefaults": "supported",
        "delta.constraints.small": "n < 100",
    }
    schema = json.dumps({"type": "struct", "fields": fields})
    txn.update_metadata(Metadata(id="one", schema_string=schema, configuration=properties))
    txn.commit([], Operation("CREATE TABLE"))
    rows = spark.createDataFrame(
        pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([7, 8], pa.int64())})
    ).alias("s")
    insert = target(spark, table_path).merge(rows, "t.id = s.id")
    insert.whenNotMatchedInsert(values={"id": "id"}).execute()
    change = target(spark, table_path).merge(rows, "t.id = s.id")
    change.whenMatchedUpdate("s.id = 1", {"id": "t.id + 10", "n": "s.n"}).execute()
    assert {tuple(row) for row in read(spark, table_path).collect()} == {(11, 7, 22), (2, 42, 4)}
    with pytest.raises(SchemaError) as caught:
        change.whenMatchedUpdate(set={"n": "100"}).execute()
    assert caught.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


@pytest.mark.parametrize("vectors", [{}, VECTORS])
def test_a_row_that_matches_several_is_recorded_once_and_a_deleted_one_need_not_obey_rules(
    spark, table_path, plane, vectors
):
    log = DeltaLog.for_path(table_path, {**vectors, **FEED})
    log.append(pa.table({"id": [1, 1, 2, 3], "v": ["a", "b", "bad", "c"]}), partition_by=["v"])
    txn = log.start_transaction()
    rules = {**txn.metadata.configuration, "delta.constraints.good": "v <> 'bad'"}
    txn.update_metadata(replace(txn.metadata, configuration=rules))
    txn.commit((), Operation("SET TBLPROPERTIES"))
    source = spark.createDataFrame(
        [(1, "x"), (1, "y"), (2, "z"), (9, "new")], "id long, t string"
    ).alias("s")
    command = target(spark, table_path).merge(source.coalesce(1), "t.id = s.id")
    command = command.whenMatchedDelete().whenNotMatchedBySourceUpdate(set={"v": "uuid()"})
    command.whenNotMatchedInsert(values={"id": "id", "v": "uuid()"}).execute()
    kept = dict(sorted(read(spark, table_path).collect()))
    columns = ["_change_type", "id", "v"]
    found = log.changes(columns=columns, starting_version=log.snapshot().version)
    assert sorted(map(tuple, (row.values() for row in found.select(columns).to_pylist()))) == [
        ("delete", 1, "a"),
        ("delete", 1, "b"),
        ("delete", 2, "bad"),
        ("insert", 9, kept[9]),
        ("update_postimage", 3, kept[3]),
        ("update_preimage", 3, "c"),
    ]
    metrics = metrics_of(table_path)
    assert (metrics["numOutputRows"], metrics["numTargetRowsInserted"]) == ("2", "1")
    assert int(metrics["numTargetChangeFilesAdded"]) == 6


def test_files_of_changes_are_left_out_where_vectors_and_adds_tell(spark, table_path, source):
    log = DeltaLog.for_path(table_path, {**VECTORS, **FEED})
    log.append(numbers(10, 20))
    insert = target(spark, table_path).merge(source, "t.id = s.id").whenNotMatchedInsertAll()
    insert.whenMatchedDelete().execute()
    assert metrics_of(table_path)["numTargetChangeFilesAdded"] == "0"
    found = log.changes(columns=["_change_type"], starting_version=1)
    assert set(found["_change_type"].to_pylist()) == {"insert", "delete"}
