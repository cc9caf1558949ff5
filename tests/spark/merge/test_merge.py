"""MERGE against a model that goes row by row, and what it records, refuses and prunes."""

from __future__ import annotations

import json
from dataclasses import replace

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from hand_made_tables import data_file, inline_vector, make_table
from hand_made_tables import field as hand_made_field
from merge_model import COLUMNS, Merge, SeveralMatchesError, changed
from optimist.core import DeltaLog
from optimist.core.errors import (
    ConcurrentAppendException,
    DeltaConcurrentModificationException,
    SchemaError,
    UsageError,
)
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaMergeBuilder, DeltaTable, read
from optimist.spark.planes.planes import plane_of
from table_contents import read_locally, values

VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
FEED = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
KINDS = ["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]
SEEDS = [(seed, None) for seed in range(1, 8)] + [
    (101, ["MATCHED"]),
    (102, ["NOT MATCHED"]),
    (103, ["NOT MATCHED BY SOURCE"]),
    (104, ["MATCHED", "NOT MATCHED"]),
    (107, KINDS),
    (108, KINDS),
]


def metrics_of(path):
    return DeltaLog.for_path(path, {}).history(1)[0].info.operation_metrics


@pytest.mark.sample(2)
@pytest.mark.parametrize(("seed", "kinds"), SEEDS)
def test_a_merge_leaves_the_rows_of_the_model(spark, table_path, every_plane, seed, kinds):
    merge = Merge.of(seed, kinds)
    has_vectors = (seed % 2 == 0) == (every_plane == "native")  # each seed with and without
    has_feed = seed % 3 != 0
    merge.write(table_path, {**(VECTORS if has_vectors else {}), **(FEED if has_feed else {})})
    try:
        rows, counts = merge.expected()
    except SeveralMatchesError:
        with pytest.raises(UsageError) as caught:
            merge.run(spark, table_path)
        assert caught.value.kind == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
        rows = merge.rows
    else:
        told = merge.run(spark, table_path)
        updated, deleted = changed(counts, "update"), changed(counts, "delete")
        inserted = changed(counts, "insert")
        assert told == {
            "num_affected_rows": updated + deleted + inserted,
            "num_updated_rows": updated,
            "num_deleted_rows": deleted,
            "num_inserted_rows": inserted,
        }
        if told["num_affected_rows"]:
            metrics = metrics_of(table_path)
            assert_metrics(metrics, merge, rows, counts)
            assert not has_vectors or metrics["numTargetRowsCopied"] == "0"
            assert not has_feed or values(changes_of(table_path)) == values(merge.recorded())
    assert values(read_locally(table_path)) == values(merge.table(rows))
    assert values(read_elsewhere(table_path)) == values(merge.table(rows))


def changes_of(path):
    """What the newest version changed."""
    log = DeltaLog.for_path(path, {})
    return log.changes(columns=[*COLUMNS, "_change_type"], starting_version=log.update().version)


def read_elsewhere(path):
    """By another engine, which knows deletion vectors."""
    engine = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    return pa.table(engine.execute("SELECT * FROM t").read_all())


def assert_metrics(metrics, merge, rows, counts):
    by_source = "NOT MATCHED BY SOURCE"
    expected = {
        "numSourceRows": len(merge.source),
        "numTargetRowsInserted": changed(counts, "insert"),
        "numTargetRowsUpdated": changed(counts, "update"),
        "numTargetRowsMatchedUpdated": counts["MATCHED", "update"],
        "numTargetRowsNotMatchedBySourceUpdated": counts[by_source, "update"],
        "numTargetRowsDeleted": changed(counts, "delete"),
        "numTargetRowsMatchedDeleted": counts["MATCHED", "delete"],
        "numTargetRowsNotMatchedBySourceDeleted": counts[by_source, "delete"],
    }
    assert {name: int(metrics[name]) for name in expected} == expected
    written = expected["numTargetRowsInserted"] + expected["numTargetRowsUpdated"]
    assert int(metrics["numOutputRows"]) == written + int(metrics["numTargetRowsCopied"])


def test_the_cases_reach_every_clause_and_a_row_that_matches_twice():
    seen, twice = set(), 0
    for seed, kinds in SEEDS:
        merge = Merge.of(seed, kinds)
        try:
            seen |= set(merge.expected()[1])
        except SeveralMatchesError:
            twice += 1
    assert len(seen) == 5
    assert 0 < twice < len(SEEDS) // 2
    assert {str(Merge.of(seed, kinds).key_type) for seed, kinds in SEEDS} >= {
        "double",
        "decimal128(38, 0)",
    }


# Small tables


def numbers(start, stop, **more):
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "v": [f"v{i}" for i in range(start, stop)], **more})


@pytest.fixture
def table(table_path):
    """Ten rows in each of three files."""
    log = DeltaLog.for_path(table_path, {})
    for start in (0, 10, 20):
        log.append(numbers(start, start + 10))
    return table_path


@pytest.fixture
def source(spark):
    """A row of the second file, and one that is new."""
    rows = pa.table({"id": pa.array([13, 99], pa.int64()), "v": ["a", "b"]})
    return spark.createDataFrame(rows).alias("s")


def target(spark, path):
    return DeltaTable.forPath(spark, path).alias("t")


def upsert(spark, path, source):
    builder = target(spark, path).merge(source, "t.id = s.id")
    return builder.whenMatchedUpdateAll().whenNotMatchedInsertAll()


def test_the_history_tells_the_clauses_and_other_engines_read_the_rows(spark, table, source, plane):
    builder = target(spark, table).merge(source, "t.id = s.id")
    builder = builder.whenMatchedDelete("s.v = 'x'").whenMatchedUpdate(set={"v": "s.v"})
    builder = builder.whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("id = 5")
    frame = builder.execute()
    assert frame.columns == [
        "num_affected_rows",
        "num_updated_rows",
        "num_deleted_rows",
        "num_inserted_rows",
    ]
    assert tuple(frame.collect()[0]) == (3, 1, 1, 1)
    info = DeltaLog.for_path(table, {}).history(1)[0].info
    assert (info.operation, info.is_blind_append) == ("MERGE", False)
    assert {key: json.loads(text) for key, text in info.operation_parameters.items()} == {
        "predicate": ["t.id = s.id"],
        "matchedPredicates": [
            {"predicate": "s.v = 'x'", "actionType": "delete"},
            {"actionType": "update"},
        ],
        "notMatchedPredicates": [{"actionType": "insert"}],
        "notMatchedBySourcePredicates": [{"predicate": "id = 5", "actionType": "delete"}],
    }
    rows = deltalake.DeltaTable(table).to_pyarrow_table().to_pylist()
    changes = {13: "a", 99: "b"}
    expected = {i: changes.get(i, f"v{i}") for i in [*range(30), 99] if i != 5}
    assert {row["id"]: row["v"] for row in rows} == expected


@pytest.mark.parametrize("plane", ["native"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_only_the_files_that_the_keys_can_be_in_are_looked_at(spark, table, source, monkeypatch):
    looked_at = []
    real = type(plane_of(spark, DeltaLog.for_path(table, {}).table)).placed_rows

    def counted(self, view, files, *arguments, **options):
        looked_at.append(files.num_rows)
        return real(self, view, files, *arguments, **options)

    monkeypatch.setattr(f"{real.__module__}.NativePlane.placed_rows", counted)
    upsert(spark, table, source).execute()
    metrics = metrics_of(table)
    assert looked_at == [1]
    assert (metrics["numTargetFilesRemoved"], metrics["numTargetRowsCopied"]) == ("1", "9")


@pytest.mark.parametrize("key", [13, 1000])
def test_where_no_row_changes_no_file_is_rewritten(spark, table, source, plane, key):
    rows = source.where(f"id = {key} OR id = 99")
    builder = target(spark, table).merge(rows, "t.id = s.id").whenNotMatchedInsertAll()
    if key == 1000:
        builder = builder.whenMatchedUpdateAll()
    assert builder.execute().collect()[0].num_inserted_rows == 1
    metrics = metrics_of(table)
    assert (metrics["numTargetFilesRemoved"], metrics["numTargetFilesAdded"]) == ("0", "1")


@pytest.mark.parametrize("plane", ["arrow"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_a_source_without_rows_changes_nothing(spark, table_path):
    DeltaLog.for_path(table_path, VECTORS).append(numbers(0, 3))
    source = spark.createDataFrame(numbers(0, 0)).alias("s")
    assert tuple(upsert(spark, table_path, source).execute().collect()[0]) == (0, 0, 0, 0)
    assert read_locally(table_path).num_rows == 3


def test_a_row_that_matches_and_gets_no_clause_is_not_new(spark, table):
    rows = pa.table({"id": pa.array([1, 13, 99], pa.int64()), "v": ["a", "b", "c"]})
    source = spark.createDataFrame(rows).alias("s")
    for taken in (1, -1):
        builder = target(spark, table).merge(source, "t.id = s.id")
        builder = builder.whenMatchedUpdate(f"s.id = {taken}", {"v": "s.v"})
        builder.whenNotMatchedInsertAll().execute()
        found = {row.id: row.v for row in read(spark, table).collect()}
        assert found == {i: {1: "a", 99: "c"}.get(i, f"v{i}") for i in [*range(30), 99]}
        assert read(spark, table).count() == 31


def test_columns_of_frames_say_which_side_they_are_of(spark, table, source, plane):
    rows = DeltaTable.forPath(spark, table)
    before, new = rows.toDF(), source.where("rand() < 2")
    builder = rows.merge(new, before["id"] == source["id"])
    builder = builder.whenMatchedUpdate(
        source["v"] != before["v"], {"v": sf.concat(before["v"], new["v"])}
    ).whenNotMatchedBySourceUpdate(before["id"] == 4, {"v": sf.upper(before["v"])})
    builder.whenNotMatchedInsert(values={"id": source["id"], "v": sf.lit("in")}).execute()
    found = {row.id: row.v for row in read(spark, table).where("id IN (4, 13, 99)").collect()}
    assert found == {4: "V4", 13: "v13a", 99: "in"}


def test_rows_that_a_deletion_vector_has_deleted_are_not_there(spark, tmp_path, plane):
    root = tmp_path / "vectors"
    vector = inline_vector([1, 3])
    fields = [hand_made_field("id", "long"), hand_made_field("v", "string")]
    adds = [
        data_file(root, "a.parquet", numbers(0, 5), vector=vector),
        data_file(root, "b.parquet", numbers(5, 8)),
    ]
    make_table(root, fields, adds, features=("deletionVectors",))
    rows = pa.table({"id": pa.array([1, 2, 6], pa.int64()), "v": ["x", "x", "x"]})
    source = spark.createDataFrame(rows).alias("s")
    upsert(spark, str(root), source).execute()
    assert dict(read_locally(str(root)).sort_by("id").to_pydict()) == {
        "id": [0, 1, 2, 4, 5, 6, 7],
        "v": ["v0", "x", "x", "v4", "v5", "x", "v7"],
    }
    metrics = metrics_of(str(root))
    assert metrics["numTargetDeletionVectorsRemoved"] == "1"
    assert (metrics["numTargetRowsCopied"], metrics["numTargetRowsInserted"]) == ("4", "1")


def test_values_are_computed_for_the_rows_of_their_clause_alone(spark, table, plane):
    rows = pa.table({"id": pa.array([1, 99], pa.int64()), "n": pa.array([0, 5], pa.int64())})
    builder = target(spark, table).merge(spark.createDataFrame(rows).alias("s"), "t.id = s.id")
    builder = builder.whenMatchedDelete("t.id < 0").whenNotMatchedInsert(
        "10 DIV n > 0", {"id": "10 DIV n", "v": "'new'"}
    )
    builder.whenNotMatchedBySourceUpdate(
        "100 DIV (id - 1) > 40", {"v": "100 DIV (id - 1)"}
    ).execute()
    found = {(row.id, row.v) for row in read(spark, table).where("NOT v LIKE 'v%'").collect()}
    assert found == {(2, "new"), (2, "100"), (3, "50")}
    builder = target(spark, table).merge(spark.createDataFrame(rows).alias("s"), "t.id = s.id")
    insert = builder.whenNotMatchedInsert("10 DIV n > 0", {"id": "10 DIV n", "v": "'alone'"})
    assert insert.execute().collect()[0].num_inserted_rows == 1


def test_a_source_that_is_another_each_time_is_read_once_and_given_back(spark, table, plane):
    stored = spark.sparkContext._jsc.sc().getPersistentRDDs
    before = stored().size()
    ids = "CAST(rand() * 1000000 AS BIGINT) + 100 AS id"
    new = (
        spark.range(50)
        .selectExpr(ids, "uuid() AS v")
        .unionByName(read(spark, table).where("id < 3"))
    )
    counts = upsert(spark, table, new.alias("s")).execute().collect()[0]
    assert (counts.num_updated_rows, counts.num_inserted_rows) == (3, 50)
    assert read(spark, table).count() == 80
    assert stored().size() == before


# Errors


def unconditional(builder):
    return builder.whenMatchedUpdateAll().whenMatchedDelete()


MISUSES = [
    (lambda b: b, "DELTA_MERGE_MISSING_WHEN"),
    (unconditional, "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
    (
        lambda b: b.whenNotMatchedInsertAll().whenNotMatchedInsertAll("id = 1"),
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    (
        lambda b: b.whenNotMatchedBySourceDelete().whenNotMatchedBySourceDelete(),
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
    ),
    (
        lambda b: b.whenMatchedDelete("rand() > 0.5"),
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    ),
    (lambda b: b.whenNotMatchedInsertAll("id IN (SELECT 1)"), "DELTA_UNSUPPORTED_SUBQUERY"),
    (lambda b: b.whenMatchedUpdate(set={}), "OPTIMIST_EMPTY_UPDATE"),
    (lambda b: b.whenMatchedUpdate(set={"nope": "1"}), "DELTA_COLUMN_NOT_FOUND"),
    (lambda b: b.whenMatchedUpdate(set={"v": "1", "V": "2"}), "DELTA_CONFLICT_SET_COLUMN"),
    (
        lambda b: b.whenNotMatchedInsert(values={"v": "1", "V": "2"}),
        "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
    ),
    (
        lambda b: b.whenNotMatchedInsert(values={"v.x": "1"}),
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
    ),
]


@pytest.mark.parametrize(("clauses", "kind"), MISUSES, ids=[kind for _, kind in MISUSES])
def test_misuses_are_refused_by_deltas_names(spark, table, source, clauses, kind):
    with pytest.raises(UsageError) as caught:
        clauses(target(spark, table).merge(source, "t.id = s.id")).execute()
    assert caught.value.kind == kind
    assert DeltaLog.for_path(table, {}).update().version == 2


def test_what_spark_can_not_resolve_is_refused(spark, table, source):
    rows = target(spark, table)
    for condition in ("t.id = s.nope", "id = 1", "t.id + s.id"):
        with pytest.raises(AnalysisException):
            rows.merge(source, condition).whenMatchedDelete().execute()
    builder = rows.merge(source, "t.id = s.id")
    for wrong in (
        builder.whenNotMatchedInsertAll("t.id = 1"),
        builder.whenNotMatchedBySourceDelete("s.id = 1"),
        builder.whenMatchedUpdate(set={"v": "v"}),
    ):
        with pytest.raises(AnalysisException):
            wrong.execute()
    with pytest.raises(UsageError) as caught:
        rows.merge(source, "t.id = s.id AND rand() > 0").whenMatchedDelete().execute()
    assert caught.value.kind == "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"


def test_a_source_without_a_column_of_the_table_can_not_give_all(spark, table, source):
    builder = target(spark, table).merge(source.drop("v"), "t.id = s.id")
    for wrong in (builder.whenMatchedUpdateAll(), builder.whenNotMatchedInsertAll()):
        with pytest.raises(SchemaError) as caught:
            wrong.execute()
        assert caught.value.kind == "DELTA_MERGE_UNRESOLVED_EXPRESSION"


def test_arguments_are_refused_in_the_words_of_delta(spark, table, source):
    rows = target(spark, table)
    builder = rows.merge(source, "t.id = s.id")
    assert isinstance(builder, DeltaMergeBuilder)
    for call, error, words in (
        (lambda: rows.merge(None, "true"), ValueError, "'source' in merge cannot be None"),
        (lambda: rows.merge("s", "true"), TypeError, "Type of 'source' in merge must be DataFrame"),
        (lambda: rows.merge(source, None), ValueError, "'condition' in merge cannot be None"),
        (lambda: rows.merge(source, 3), TypeError, "must be a Spark SQL Column or a string"),
        (builder.whenMatchedUpdate, ValueError, "'set' in whenMatchedUpdate cannot be None"),
        (
            builder.whenNotMatchedInsert,
            ValueError,
            "'values' in whenNotMatchedInsert cannot be None",
        ),
        (
            lambda: builder.whenNotMatchedBySourceUpdate(set=["v"]),
            TypeError,
            "'set' in whenNotMatchedBySourceUpdate must be a dict",
        ),
        (lambda: builder.whenMatchedDelete(1), TypeError, "'condition' must be a Spark SQL Column"),
    ):
        with pytest.raises(error, match=words):
            call()


# Schema


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


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "assigned", [["n.b.q", "n.c"], ["N.c", "n.a"], ["n.b"], ["n.d", "m.x.y"], ["n", "z"]]
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
    values = {name: f"s.{name}" for name in assigned}
    merge.whenMatchedUpdate(set=values).withSchemaEvolution().execute()
    brought = narrowed(new, [name.lower().split(".") for name in assigned])
    assert read(spark, table_path).orderBy("id").toArrow().to_pylist() == [
        widened(old, brought, takes_new=True),
        widened({**old, "id": 2}, brought, takes_new=False),
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
    found = log.changes(columns=columns, starting_version=log.update().version)
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


# Conflicts


def only_insert(spark, path, source):
    return target(spark, path).merge(source, "t.id = s.id").whenNotMatchedInsertAll()


@pytest.mark.usefixtures("every_plane")
@pytest.mark.parametrize("merge", [upsert, only_insert])
def test_a_merge_conflicts_with_rows_that_have_its_keys_and_no_others(
    spark, table, source, meeting, merge
):
    log = DeltaLog.for_path(table, {})
    meeting(lambda: log.append(numbers(500, 510)))
    merge(spark, table, source).execute()
    assert log.update().version == 4
    late = source.withColumn("id", sf.col("id") + 500).alias("s")
    meeting(lambda: log.append(numbers(599, 600)))
    with pytest.raises(ConcurrentAppendException):
        merge(spark, table, late).execute()
    assert log.update().version == 5


@pytest.mark.usefixtures("every_plane")
def test_a_merge_by_source_depends_on_every_row(spark, table, source, meeting):
    log = DeltaLog.for_path(table, {})
    meeting(lambda: log.append(numbers(500, 510)))
    builder = target(spark, table).merge(source, "t.id = s.id")
    with pytest.raises(ConcurrentAppendException):
        builder.whenNotMatchedBySourceDelete("t.id = 3").execute()


@pytest.mark.usefixtures("every_plane")
def test_rows_made_of_the_tables_own_depend_on_those(spark, table, meeting):
    made = read(spark, table).where("id < 2").selectExpr("id + 1000 AS id", "v").alias("s")
    meeting(lambda: DeltaTable.forPath(spark, table).delete("id = 1"))
    with pytest.raises(DeltaConcurrentModificationException):
        upsert(spark, table, made).execute()
    assert read(spark, table).where("id > 1000").count() == 0


def test_a_merge_of_a_table_with_itself_depends_on_what_it_read(spark, table):
    stale = read(spark, table).where("id < 2").selectExpr("id", "'old' AS v").alias("s")
    target(spark, table).update("id = 29", {"v": "'new'"})
    with pytest.raises(ConcurrentAppendException):
        upsert(spark, table, stale).execute()
    pinned = read(spark, table, versionAsOf=0).where("id < 2").selectExpr("id", "'old' AS v")
    upsert(spark, table, pinned.alias("s")).execute()
    newest = read(spark, table).where("v = 'old'").selectExpr("id + 100 AS id", "v").alias("s")
    upsert(spark, table, newest).execute()
    assert sorted(row.id for row in read(spark, table).where("v = 'old'").collect()) == [
        *(0, 1, 100, 101),
    ]
