"""Odd names and odd values on both planes: Spark, the core and deltalake agree with each row."""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pytest

from odd_session import NAMES_TOLD, frame_of_rows, odd_rows, tell_names, wrong_answers
from odd_tables import spelled
from odd_values import COLUMNS, OddColumn
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.spark import read, write

NO_TEXT = (b"\x80", b"\xff", b"\xff\xff")


def in_partitions(name: str, column: OddColumn) -> OddColumn:
    values = tuple(v for v in column.values if v not in NO_TEXT and not _has_nul(v))
    return OddColumn(column.arrow_type, values, column.kind)


def _has_nul(value: object) -> bool:
    return (isinstance(value, str) and "\0" in value) or (
        isinstance(value, bytes) and b"\0" in value
    )


PARTITIONS = {name: in_partitions(name, column) for name, column in COLUMNS.items()}


def test_odd_names_are_names_like_any_other(spark, tmp_path, plane):
    assert tell_names(spark, str(tmp_path)) == NAMES_TOLD


def test_odd_values_come_back_and_are_found(spark, tmp_path, plane):
    path = str(tmp_path / "table")
    rows = odd_rows()
    write(frame_of_rows(spark, rows), path, maxRecordsPerFile=4)
    wanted = spelled(rows.to_pylist())
    assert spelled(read(spark, path).toArrow().to_pylist()) == wanted
    assert spelled(DeltaLog.for_path(path, {}).to_arrow().to_pylist()) == wanted
    assert spelled(deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()) == wanted
    assert wrong_answers(read(spark, path), rows, COLUMNS) == []


def test_odd_partitions_come_back_and_are_found_and_replaced(spark, tmp_path, plane):
    path = str(tmp_path / "table")
    rows = odd_rows(PARTITIONS)
    frame = frame_of_rows(spark, rows)
    write(frame, path, partitionBy=list(PARTITIONS))
    # Each row is a partition, and the same rows take its place.
    write(frame, path, mode="overwrite", partitionOverwriteMode="dynamic")
    as_read = pa.Table.from_pylist(
        [{n: None if v in ("", b"") else v for n, v in row.items()} for row in rows.to_pylist()],
        rows.schema,
    )
    wanted = spelled(as_read.to_pylist())
    assert spelled(read(spark, path).toArrow().to_pylist()) == wanted
    assert spelled(DeltaLog.for_path(path, {}).to_arrow().to_pylist()) == wanted
    assert wrong_answers(read(spark, path), as_read, PARTITIONS) == []


def test_floats_of_partitions_are_replaced_by_what_they_are(spark, tmp_path, plane):
    path = str(tmp_path / "table")
    frame = spark.sql("SELECT 1 AS id, CAST(1.1 AS FLOAT) AS p")
    write(frame, path, partitionBy="p")
    write(frame, path, mode="overwrite", partitionOverwriteMode="dynamic")
    write(frame, path, mode="overwrite", replaceWhere="p = 1.1F")
    assert read(spark, path).count() == 1


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_the_name_of_nulls_directory_is_a_value_like_any_other(spark, tmp_path, plane, kind):
    path = str(tmp_path / "table")
    texts = ["__HIVE_DEFAULT_PARTITION__", "%__HIVE_DEFAULT_PARTITION__", "%", None]
    frame = spark.createDataFrame(list(enumerate(texts)), "id int, p string").coalesce(1)
    write(frame.withColumn("p", frame.p.cast(kind)), path, partitionBy="p")
    rows = read(spark, path).selectExpr("id", "CAST(p AS STRING) AS p").collect()
    assert sorted((row.id, row.p) for row in rows) == list(enumerate(texts))


@pytest.mark.parametrize("value", ["X'ff'", "CAST(X'ff' AS STRING)"])
def test_what_is_no_text_is_refused_in_a_partition(spark, tmp_path, plane, value):
    path = str(tmp_path / "table")
    frame = spark.sql(f"SELECT 1 AS id, {value} AS p")
    with pytest.raises(SchemaError) as caught:
        write(frame, path, partitionBy="p")
    assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"
    assert not list(tmp_path.rglob("*.parquet"))
