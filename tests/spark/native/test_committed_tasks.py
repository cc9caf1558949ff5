"""The files of a write are those of the tasks that Spark counts, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimist.core.errors import StorageError
from optimist.spark import read, write
from optimist.spark.native import writer as native_writer
from tasks_again import Story, play, with_attempts


@pytest.fixture(autouse=True)
def on_the_native_plane(conf):
    conf("spark.optimist.spark.plane", "native")


@pytest.mark.again
def test_table_below_a_directory_named_temporary_gets_its_rows(spark, tmp_path):
    path = str(tmp_path / "_temporary" / "table")
    write(spark.range(30), path)
    write(spark.range(30, 50).selectExpr("id"), path, mode="append")
    assert read(spark, path).count() == 50


@pytest.mark.parametrize("partitions", [[], ["p"]])
def test_rows_that_spark_counted_and_no_file_has_are_missed(
    spark, tmp_path, monkeypatch, partitions
):
    path = str(tmp_path / "table")
    monkeypatch.setattr(native_writer, "_is_data_file", lambda *_: False)
    with pytest.raises(StorageError) as caught:
        write(spark.range(30).selectExpr("id", "id % 2 AS p"), path, partitionBy=partitions)
    assert caught.value.kind == "OPTIMIST_DATA_FILE_DIFFERS"
    assert "30 rows" in str(caught.value)
    assert not list(Path(path).rglob("*.json"))


def test_tasks_of_a_failed_job_leave_no_files_among_those_of_the_write(
    spark, tmp_path, monkeypatch, conf
):
    """By version 2 of the committer they do, and beside the files of a second run they count."""
    conf("mapreduce.fileoutputcommitter.algorithm.version", "2")
    save, left = native_writer.save_counted, []

    def watched(rows, writer, directory):
        try:
            return save(rows, writer, directory)
        finally:
            left.extend(Path(directory.removeprefix("file:")).rglob("part-*"))

    monkeypatch.setattr(native_writer, "save_counted", watched)
    # The third task begins once one of the two cores is done with another.
    failing = "if(id < 20, id, raise_error('the third task fails')) AS id"
    with pytest.raises(Exception, match="the third task fails"):
        write(spark.range(0, 30, 1, 3).selectExpr(failing), str(tmp_path / "table"))
    assert left == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "story",
    [
        Story("native", "2", (1, 0, 0), False, None, ("p",)),
        Story("native", "2", (0, 0, 0), False, 1, ()),
        pytest.param(Story("arrow", "1", (1, 0, 0), True, None, ()), marks=pytest.mark.again),
    ],
)
def test_rows_are_those_of_the_source_where_tasks_run_again_or_are_interrupted(
    spark, tmp_path, conf, monkeypatch, story
):
    with with_attempts(spark):
        play(spark, tmp_path, story, conf, monkeypatch)
