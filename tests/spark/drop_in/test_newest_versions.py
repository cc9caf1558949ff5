"""Frames follow their table, as Delta's do: each query reads the newest version of each table."""

from __future__ import annotations

import pytest

from optimist.core.errors import TableError
from optimist.spark import DeltaTable, read, write
from read_back import add_row


@pytest.mark.again
def test_frames_follow_and_those_of_a_chosen_version_do_not(enabled, path, plane, rows_of):
    reader = enabled.read.format("delta")
    following = [
        reader.load(path),
        enabled.table(f"delta.`{path}`"),
        enabled.sql(f"SELECT id FROM delta.`{path}`").alias("a"),
        DeltaTable.forPath(enabled, path).toDF(),
    ]
    following.append(following[0].where("id >= 2").union(following[1].where("id < 2")))
    fixed = [
        enabled.read.format("delta").option("versionAsOf", 0).load(path),
        enabled.read.format("delta").load(f"{path}@v0"),
        enabled.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 0"),
        read(enabled, path),
    ]
    add_row(enabled, path)
    assert [rows_of(frame) for frame in following] == [[(0,), (1,), (100,), (2,)]] * 5
    assert [rows_of(frame) for frame in fixed] == [[(0,), (1,), (2,)]] * 4
    DeltaTable.forPath(enabled, path).delete("id = 1")
    assert [frame.count() for frame in following] == [3] * 5
    assert [frame.count() for frame in fixed] == [3] * 4
    assert following[0].where("id = 100").first().id == 100


@pytest.mark.again
def test_a_query_sees_one_version_of_a_table(enabled, path, plane, rows_of):
    old = enabled.read.format("delta").load(path)
    add_row(enabled, path)
    new = enabled.read.format("delta").load(path)
    old.createOrReplaceTempView("old_rows")
    add_row(enabled, path)
    assert old.join(new, "id", "left_anti").count() == new.join(old, "id", "left_anti").count() == 0
    text = f"SELECT count(*) FROM old_rows WHERE id IN (SELECT id FROM delta.`{path}`)"
    assert enabled.sql(text).collect() == [(5,)]
    assert old.alias("a").join(old.alias("b"), "id").count() == 7
    enabled.catalog.dropTempView("old_rows")


@pytest.mark.again
def test_metadata_and_columns_are_those_that_were_asked_for(enabled, path, plane):
    plain = enabled.read.format("delta").load(path)
    frame = plain.selectExpr("id", "_metadata.file_name AS name")
    wider = enabled.range(200, 202).selectExpr("id AS more", "id")
    write(wider, path, mode="append", mergeSchema=True)
    vectors = "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    enabled.sql(f"ALTER TABLE delta.`{path}` {vectors}")
    DeltaTable.forPath(enabled, path).delete("id = 200")
    assert plain.columns == ["id"]
    assert sorted(row.id for row in plain.collect()) == [0, 1, 2, 201]
    assert all(row.name.endswith(".parquet") for row in frame.collect())
    assert {row.id for row in frame.collect()} == {0, 1, 2, 201}


@pytest.mark.again
def test_a_frame_whose_columns_are_gone_says_so(enabled, path):
    frame = enabled.read.format("delta").load(path)
    rows = enabled.range(1).selectExpr("CAST(id AS STRING) AS id")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", True).save(path)
    with pytest.raises(TableError) as caught:
        frame.count()
    assert caught.value.kind == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert enabled.read.format("delta").load(path).collect() == [("0",)]


def test_a_frame_takes_no_other_column_for_its_own(enabled, path):
    enabled.range(1).selectExpr("1 AS a", "2 AS b").write.format("delta").option(
        "delta.columnMapping.mode", "name"
    ).save(f"{path}-mapped")
    frame = enabled.read.format("delta").load(f"{path}-mapped")
    change = DeltaTable.forPath(enabled, f"{path}-mapped").alter.rename_column
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        change(old, new)
    with pytest.raises(TableError) as caught:
        frame.count()
    assert caught.value.kind == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


@pytest.mark.again
def test_a_command_reads_one_version_of_its_rows(enabled, path, meeting):
    """A write whose rows come from a frame that was made before the table's last version."""
    frame = enabled.read.format("delta").load(path)
    add_row(enabled, path)
    target = f"{path}-copy"
    meeting(lambda: add_row(enabled, path))
    frame.write.format("delta").save(target)
    assert read(enabled, target).count() == 4
    source = frame.selectExpr("id", "id * 10 AS v")
    own = DeltaTable.forPath(enabled, path)
    merge = own.alias("t").merge(source.alias("s"), "t.id = s.id AND s.id < 3")
    merge.whenMatchedDelete().execute()
    assert sorted(row.id for row in frame.collect()) == [100, 100]
    assert frame.count() == 2
    frame.selectExpr("id + 1 AS id").write.format("delta").mode("overwrite").save(path)
    assert sorted(row.id for row in frame.select("id").collect()) == [101, 101]
