"""Every command on tables whose path is relative, or spelled in an odd way."""

from __future__ import annotations

import os

import deltalake
import pytest

from optimist.core.errors import UsageError
from optimist.spark import DeltaTable, read, write
from read_back import ids

SPELLINGS = ["~/t", "./a//t", "{here}/x/../t", "file:{here}/.//link/"]


@pytest.mark.sample(12)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_command_takes_every_spelling_of_a_local_path(
    spark, plane, tmp_path, monkeypatch, spelling
):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, here / "x", here / "target", elsewhere):
        folder.mkdir()
    (here / "link").symlink_to(here / "target")
    monkeypatch.chdir(here)
    path = spelling.format(here=here)
    rows = spark.range(6).selectExpr("id", "CAST(id % 2 AS INT) AS p", "id AS v").coalesce(1)
    write(rows, path, partitionBy="p")
    real = os.path.realpath(path.removeprefix("file:"))
    table = DeltaTable.forPath(spark, path)
    lazy = read(spark, path)
    monkeypatch.chdir(elsewhere)  # what was opened stays where it was

    assert ids(lazy) == [0, 1, 2, 3, 4, 5]
    table.delete("id = 0")
    table.delete("p = 1 AND id < 2")
    table.update("id = 2", {"v": "20"})
    monkeypatch.chdir(here)
    assert DeltaTable.isDeltaTable(spark, path)
    DeltaTable.forName(spark, f"delta.`{path}`").update("id = 3", {"v": "v + 27"})
    write(
        read(spark, path).where("id = 3").selectExpr("id + 10 AS id", "p", "v"), path, mode="append"
    )
    write(rows.where("id = 4"), path, mode="overwrite", replaceWhere="id = 4")
    assert sorted(map(tuple, read(spark, path).select("id", "v").collect())) == [
        (2, 20),
        (3, 30),
        (4, 4),
        (5, 5),
        (13, 30),
    ]
    assert table.detail().first().location.endswith(real)
    assert deltalake.DeltaTable(real).to_pyarrow_table().num_rows == 5
    assert list(elsewhere.iterdir()) == []


def test_a_change_feed_is_read_by_a_relative_path(spark, conf, plane, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    conf("spark.databricks.delta.properties.defaults.enableChangeDataFeed", "true")
    write(spark.range(3), "a//t")
    changes = read(spark, "./a/t", readChangeFeed=True, startingVersion=0)
    assert ids(changes) == [0, 1, 2]


def test_an_empty_path_is_refused_by_every_command(spark, plane):
    for call in (
        lambda: write(spark.range(1), ""),
        lambda: read(spark, ""),
        lambda: DeltaTable.forPath(spark, ""),
        lambda: DeltaTable.isDeltaTable(spark, " "),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_NO_TABLE_PATH"
