"""Commands over data files that are gone or damaged."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from grown_tables import ID, NAME, GrownTable, numbers
from optimist.core.errors import TableError
from optimist.spark import DeltaTable, write


def test_a_data_file_that_is_gone_is_one_clear_error_of_a_command(spark, tmp_path):
    table = GrownTable(tmp_path / "holes", [ID, NAME], enableDeletionVectors="true")
    table.add("a", numbers(0, 10), deleted={1})
    table.add("b", numbers(10, 10))
    (table.root / "b.parquet").unlink()
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, table.path).delete("id = 11")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert caught.value.fields["path"].endswith("/b.parquet")


def test_a_file_of_a_partition_with_an_odd_name_is_told_as_the_tables(spark, tmp_path, conf):
    conf("spark.optimist.spark.driverShortcut.maxBytes", "0")
    path = str(tmp_path / "odd %41 name")
    write(spark.range(2).selectExpr("id", "concat('a b%=', id) AS p"), path, partitionBy="p")
    for file in Path(path).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, path).delete("id = 1")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"


def test_a_missing_file_of_a_source_is_not_told_as_the_tables(spark, tmp_path):
    path, source = str(tmp_path / "table"), str(tmp_path / "source")
    write(spark.range(3), path)
    spark.range(3).coalesce(1).write.parquet(source)
    rows = spark.read.parquet(source)
    for file in Path(source).glob("*.parquet"):
        file.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as caught:
        write(rows, path, mode="append")
    assert not isinstance(caught.value, TableError)


@pytest.mark.again
def test_a_command_loses_no_rows_of_a_file_that_a_session_would_ignore(spark, tmp_path, conf):
    path = str(tmp_path / "damaged")
    write(spark.range(10).coalesce(1).selectExpr("id", "concat('v', id) AS v"), path)
    (file,) = Path(path).rglob("*.parquet")
    chunk = pq.read_metadata(file).row_group(0).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(file.read_bytes())
    content[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    file.write_bytes(content)
    conf("spark.sql.files.ignoreCorruptFiles", "true")
    conf("spark.optimist.spark.driverShortcut.maxBytes", "0")
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(Exception, match=r"[Pp]arquet"):
        table.delete("id = 3")
    assert table.history(1).first().version == 0
