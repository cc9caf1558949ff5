"""MERGE against a model that goes row by row, and what it records and prunes."""

from __future__ import annotations

import datetime as dt
import json

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from hand_made_tables import data_file, inline_vector, make_table
from hand_made_tables import field as hand_made_field
from merge_model import COLUMNS, Merge, SeveralMatchesError, changed
from optimist.core import DeltaLog
from optimist.core.errors import (
    UsageError,
)
from optimist.spark import DeltaTable, read
from optimist.spark.planes.planes import plane_of
from small_merges import FEED, VECTORS, metrics_of, numbers, target, upsert
from table_contents import read_locally, values

KINDS = ["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]
SEEDS = [(seed, None) for seed in range(1, 8)] + [
    (101, ["MATCHED"]),
    (102, ["NOT MATCHED"]),
    (103, ["NOT MATCHED BY SOURCE"]),
    (104, ["MATCHED", "NOT MATCHED"]),
    (107, KINDS),
    (108, KINDS),
]


@pytest.mark.sample(5)
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


@pytest.mark.again
@pytest.mark.parametrize("properties", [{}, {**VECTORS, **FEED}, FEED])
def test_a_row_may_match_several_of_which_at_most_one_changes_it(
    spark, table_path, plane, properties
):
    DeltaLog.for_path(table_path, properties).append(numbers(0, 6))
    rows = [(3, "old"), (3, "new"), (3, "none"), (4, "none"), (4, "none"), (5, "gone"), (5, "none")]
    source = spark.createDataFrame(rows, "id long, v string").alias("s")
    merge = target(spark, table_path).merge(source, "t.id = s.id")
    merge = merge.whenMatchedUpdateAll("s.v = 'new'").whenMatchedDelete("s.v = 'gone'")
    (told,) = merge.whenNotMatchedInsertAll().execute().collect()
    assert (told.num_updated_rows, told.num_deleted_rows, told.num_inserted_rows) == (1, 1, 0)
    wanted = [(0, "v0"), (1, "v1"), (2, "v2"), (3, "new"), (4, "v4")]
    assert sorted(tuple(row.values()) for row in read_locally(table_path).to_pylist()) == wanted
    with pytest.raises(UsageError) as caught:
        merge.whenMatchedUpdate("s.v = 'old'", {"v": "'x'"}).execute()
    assert caught.value.kind == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


def changes_of(path):
    """What the newest version changed."""
    log = DeltaLog.for_path(path, {})
    return log.changes(columns=[*COLUMNS, "_change_type"], starting_version=log.snapshot().version)


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


@pytest.mark.again
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


@pytest.mark.again
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


@pytest.mark.again
@pytest.mark.parametrize("more", [[], ["+10000-01-01"]])
def test_days_of_any_year_find_their_files(spark, table_path, conf, more):
    days = [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31)]
    for day in days:
        DeltaLog.for_path(table_path, {}).append(pa.table({"day": [day], "n": [0]}))
    conf("spark.optimist.spark.driverShortcut.maxBytes", "0")
    texts = ", ".join(f"DATE '{day}'" for day in (*days, *more))
    source = spark.sql(f"SELECT explode(array({texts})) AS day")
    merge = (
        DeltaTable.forPath(spark, table_path).alias("t").merge(source.alias("s"), "t.day = s.day")
    )
    told = merge.whenMatchedUpdate(set={"n": "n + 1"}).execute().first()
    assert told.num_updated_rows == 3
    assert {(row.day, row.n) for row in read(spark, table_path).collect()} == {(d, 1) for d in days}


@pytest.mark.again
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


@pytest.mark.again
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


@pytest.mark.again
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


@pytest.mark.again
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
