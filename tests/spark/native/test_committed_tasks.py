"""The files of a write are those of the tasks that Spark counts, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimist.core.errors import StorageError
from optimist.spark import read, write
from optimist.spark.native import writer as native_writer


@pytest.fixture(autouse=True)
def on_the_native_plane(conf):
    conf("spark.optimist.spark.plane", "native")


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
