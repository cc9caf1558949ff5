"""OPTIMIZE that arranges rows: Z-order, and clustered tables (spec 10.14)."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pytest

from optimist.core import Column, DeltaLog
from optimist.core.errors import UsageError
from optimist.core.local.compaction import LocalBins
from optimist.core.log.file_table import add_files, files_table
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.maintenance.optimize.cubes import Cubes, cube_tags
from optimist.core.maintenance.optimize.optimize import optimize
from optimist.core.protocol.actions import AddFile

SMALL = {"spark.databricks.delta.optimize.maxFileSize": "4000"}
DEFAULTS = "spark.databricks.delta.properties.defaults."


def rows(first: int, count: int = 500) -> pa.Table:
    rng = np.random.default_rng(first)
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "x": pa.array(rng.integers(0, 1000, count), pa.int64()),
            "s": pa.array([{"y": f"{value:04d}"} for value in rng.integers(0, 1000, count)]),
            "p": pa.array([first % 2] * count, pa.int64()),
        }
    )


def made(path: Path, options: dict[str, str] | None = None, *, commits: int = 6) -> DeltaLog:
    log = DeltaLog.for_path(str(path / "t"), {**SMALL, **(options or {})})
    for number in range(commits):
        log.append(rows(501 * number), partition_by=["p"])
    return log


def clustered(path: Path, *columns: str, options: dict[str, str] | None = None) -> DeltaLog:
    log = DeltaLog.for_path(str(path / "t"), {**SMALL, **(options or {})})
    fields = [Column("id", "bigint"), Column("x", "bigint"), Column("s", "struct<y:string>")]
    log.create([*fields, Column("p", "bigint")], cluster_by=columns or ("x", "s.y"))
    for number in range(4):
        log.append(rows(501 * number))
    return log


def content(log: DeltaLog) -> list[dict]:
    return sorted(log.to_arrow().to_pylist(), key=lambda row: row["id"])


def among(ids: range) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def bounds(log: DeltaLog) -> list[tuple[int, int]]:
    stats = [json.loads(text) for text in log.snapshot().files["stats"].to_pylist()]
    return [(each["minValues"]["x"], each["maxValues"]["x"]) for each in stats]


def test_z_order_arranges_each_partition_by_its_columns(tmp_path):
    log = made(tmp_path)
    before = content(log)
    done = log.optimize(z_order_by=["X", "s.y"])
    assert (done.num_partitions, done.num_bins, done.removed.num_files) == (2, 2, 6)
    assert done.added.num_files == 4 and done.is_z_ordered
    assert content(log) == before
    found = deltalake.DeltaTable(log.table_path).to_pyarrow_table()["id"].to_pylist()
    assert sorted(found) == [row["id"] for row in before]
    hit = [sum(low <= x <= high for low, high in bounds(log)) for x in range(0, 1000, 50)]
    assert max(hit) <= len(bounds(log)) * 0.8
    newest = log.history(1)[0].info
    assert newest.operation_parameters["zOrderBy"] == '["X","s.y"]'
    again = log.optimize(z_order_by=["x", "s.y"])  # as in delta-spark: it is no matter of course
    assert again.removed.num_files == done.added.num_files


def test_z_order_of_some_partitions_leaves_the_others(tmp_path):
    log = made(tmp_path)
    kept = set(log.snapshot().scan("p = 0").files["path"].to_pylist())
    log.optimize("p = 1", z_order_by=["x"])
    assert set(log.snapshot().scan("p = 0").files["path"].to_pylist()) == kept


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["p"], "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        (["nope"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        (["s.z"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        (["s"], "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
        (["x", "id"], "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
    ],
)
def test_columns_that_would_help_no_query_are_refused(tmp_path, columns, kind):
    log = made(tmp_path, {f"{DEFAULTS}dataSkippingStatsColumns": "x,s.y"}, commits=1)
    with pytest.raises(UsageError) as caught:
        log.optimize(z_order_by=columns)
    assert caught.value.kind == kind
    assert log.snapshot().version == 0


def test_columns_without_statistics_are_taken_if_the_check_is_off(tmp_path):
    options = {
        f"{DEFAULTS}dataSkippingStatsColumns": "x",
        "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
    }
    log = made(tmp_path, options)
    before = content(log)
    assert log.optimize(z_order_by=["id"]).version is not None
    assert content(log) == before


@pytest.mark.parametrize("feature", ["enableDeletionVectors", "enableRowTracking"])
def test_rows_keep_what_they_have(tmp_path, feature):
    log = made(tmp_path, {f"{DEFAULTS}{feature}": "true"})
    log.delete("x < 100")
    wanted = ["id", "x", "s", "p"]
    if feature == "enableRowTracking":
        wanted += ["_metadata.row_id", "_metadata.row_commit_version"]
    before = sorted(log.to_arrow(columns=wanted).to_pylist(), key=lambda row: row["id"])
    log.optimize(z_order_by=["x"])
    after = sorted(log.to_arrow(columns=wanted).to_pylist(), key=lambda row: row["id"])
    assert after == before
    assert log.snapshot().files["deletionVector"].null_count == log.snapshot().num_files


def tags(log: DeltaLog) -> list[dict[str, str]]:
    return [dict(add.tags or {}) for add in add_files(log.snapshot().files)]


def test_a_clustered_table_is_arranged_and_tagged_as_delta_spark_does(tmp_path):
    log = clustered(tmp_path)
    before = content(log)
    done = log.optimize()
    assert (done.removed.num_files, done.num_bins) == (4, 1)
    assert (done.cubes.num_cubes, done.cubes.others.num_files) == (0, 4)
    assert content(log) == before
    adds = add_files(log.snapshot().files)
    assert len(adds) > 2
    assert {add.clustering_provider for add in adds} == {"liquid"}
    found = tags(log)
    assert {each["ZCUBE_ZORDER_BY"] for each in found} == {'["x","s.y"]'}
    (cube,) = {each["ZCUBE_ID"] for each in found}
    assert str(uuid.UUID(cube)) == cube
    parameters = log.history(1)[0].info.operation_parameters
    assert (parameters["clusterBy"], parameters["isFull"]) == ('["x","s.y"]', False)
    assert len(deltalake.DeltaTable(log.table_path).to_pyarrow_table()) == len(before)
    assert log.optimize().version is None  # one cube, and nothing new


def test_what_came_since_is_arranged_with_small_cubes(tmp_path):
    log = clustered(tmp_path)
    log.optimize()
    first = {each["ZCUBE_ID"] for each in tags(log)}
    log.append(rows(9_000))
    before = content(log)
    done = log.optimize()
    assert done.cubes.num_cubes == 1 and done.cubes.others.num_files == 1
    assert content(log) == before
    assert first.isdisjoint(each["ZCUBE_ID"] for each in tags(log))


def test_a_cube_that_is_large_enough_is_left_alone(tmp_path):
    key = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
    log = clustered(tmp_path, options={key: "1000"})
    log.optimize()
    first = set(log.snapshot().files["path"].to_pylist())
    log.append(rows(9_000))
    assert log.optimize().removed.num_files == 1
    assert first < set(log.snapshot().files["path"].to_pylist())


def test_other_clustering_columns_need_full(tmp_path):
    log = clustered(tmp_path)
    log.optimize()
    log.alter.cluster_by(["id"])
    assert log.optimize().version is None
    before = content(log)
    assert log.optimize(full=True).version is not None
    assert {each["ZCUBE_ZORDER_BY"] for each in tags(log)} == {'["id"]'}
    assert content(log) == before
    assert log.optimize(full=True).version is None


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"z_order_by": ["x"]}, "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        ({"predicate": "x > 3"}, "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    ],
)
def test_a_clustered_table_has_an_order_of_its_own(tmp_path, arguments, kind):
    log = clustered(tmp_path)
    with pytest.raises(UsageError) as caught:
        log.optimize(**arguments)
    assert caught.value.kind == kind


def test_full_is_for_clustered_tables(tmp_path):
    log = made(tmp_path, commits=2)
    with pytest.raises(UsageError) as caught:
        log.optimize(full=True)
    assert caught.value.kind == "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"
    larger = {"spark.databricks.delta.optimize.maxFileSize": "100000"}
    log = clustered(tmp_path / "c", options=larger)
    log.alter.cluster_by([])
    assert log.optimize().removed.num_files == 4  # compacted, like any other table
    assert tags(log)[0] == {}


def test_an_optimize_counts_as_before_a_change_of_the_clustering_meanwhile(tmp_path):
    log = clustered(tmp_path)
    before = content(log)
    other = DeltaLog.for_path(log.table_path)

    def write(txn, bins, pending, order):
        written = LocalBins()(txn, bins, pending, order)
        other.alter.cluster_by(["id"])
        return written

    optimize(lambda: log.start_transaction(log.snapshot()), write, Rearrangement())
    assert [commit.info.operation for commit in log.history(2)] == ["OPTIMIZE", "CLUSTER BY"]
    assert content(log) == before
    assert {each["ZCUBE_ZORDER_BY"] for each in tags(log)} == {'["x","s.y"]'}
    assert log.optimize().version is None and log.optimize(full=True).version is not None


@pytest.mark.parametrize("tracks", [True, False])
@pytest.mark.parametrize("make", [made, clustered])
def test_rows_deleted_meanwhile_by_vectors_are_deleted_in_the_arranged_files(
    tmp_path, make, tracks
):
    told = {"enableDeletionVectors": "true", "enableRowTracking": str(tracks).lower()}
    log = make(tmp_path, options={DEFAULTS + name: value for name, value in told.items()})
    other = DeltaLog.for_path(log.table_path)
    other.delete(among(range(0, 3_010, 11)))
    columns = list(log.snapshot().schema.names)
    if tracks:
        columns += ["_metadata.row_id", "_metadata.row_commit_version"]
    before = log.to_arrow(columns=columns).to_pylist()
    begun = []

    def write(txn, bins, pending, order):
        written = LocalBins()(txn, bins, pending, order)
        other.delete(among(range(0, 3_010, 7)))
        return written

    def begin():
        begun.append(log.start_transaction(log.snapshot()))
        if len(begun) == 2:
            other.delete("x >= 300 AND x <= 420")  # the second attempt meets another commit, too
        return begun[-1]

    wanted = Rearrangement(z_order_by=(("x",), ("s", "y")) if make is made else ())
    done = optimize(begin, write, wanted)
    left = [row for row in before if row["id"] % 7 and not 300 <= row["x"] <= 420]
    found = log.to_arrow(columns=columns).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == sorted(left, key=lambda row: row["id"])
    assert len(begun) == 3
    assert done.added.num_files > 2
    assert log.snapshot().num_files == done.added.num_files


@pytest.mark.parametrize("by_vectors", [True, False])
def test_rows_deleted_meanwhile_stay_deleted(tmp_path, by_vectors):
    log = made(tmp_path, {f"{DEFAULTS}enableDeletionVectors": str(by_vectors).lower()})
    other = DeltaLog.for_path(log.table_path)
    done = []

    def write(txn, bins, pending, order):
        written = LocalBins()(txn, bins, pending, order)
        if not done:
            done.append(other.delete("id < 100"))
        return written

    wanted = Rearrangement(z_order_by=(("x",),))
    optimize(lambda: log.start_transaction(log.snapshot()), write, wanted)
    assert min(row["id"] for row in content(log)) == 100
    assert len(content(log)) == 2_900
    root = Path(log.table_path)
    named = {
        add.path
        for version in range(log.snapshot().version + 1)
        for add in add_files(log.snapshot(version).files)
    }
    assert {str(path.relative_to(root)) for path in root.rglob("*.parquet")} == named


def file(path: str, size: int, cube: str | None = None, by: str = "x", **more) -> AddFile:
    tags = None if cube is None else dict(cube_tags(cube, [(by,)]))
    provider = None if cube is None else "liquid"
    given = {"tags": tags, "clustering_provider": provider, **more}
    return AddFile(path, {}, size, 1, True, **given)


def chosen(*files: AddFile, full: bool = False) -> list[str]:
    cubes = Cubes.of(files_table(files), [("x",)])
    return cubes.worth_clustering(stable_bytes=100, is_full=full)["path"].to_pylist()


def test_which_files_of_a_clustered_table_are_taken():
    large = [file("a", 60, "1"), file("b", 40, "1")]
    small = [file("c", 99, "2")]
    loose = [file("d", 500), file("e", 1, clustering_provider="liquid")]
    other = [file("f", 5, "3", by="y"), file("g", 5, clustering_provider="theirs")]
    assert chosen(*large) == chosen(*small) == chosen(*large, *small, *other) == []
    assert chosen(*large, *small, *loose, *other) == ["c", "d", "e"]
    assert chosen(*small, file("h", 99, "4")) == ["c", "h"]
    assert chosen(*large, *small, *loose, *other, full=True) == ["c", "d", "e", "f", "g"]
    assert chosen(*large, *small, full=True) == []
    odd = file("i", 5, tags={"ZCUBE_ID": "9", "ZCUBE_ZORDER_BY": "[not json"})
    assert chosen(odd) == [] and chosen(odd, full=True) == ["i"]
    empty = file("k", 5, "5", stats='{"numRecords":0}')
    assert chosen(empty, file("l", 5)) == ["k", "l"]
    half = file("j", 5, tags={"ZCUBE_ID": "9"})
    assert chosen(half) == ["j"]
