"""CLONE of directories of Parquet, of Parquet tables of the catalog, and of tables of Iceberg."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_tables import IcebergFolder
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError

HOW = ["SHALLOW", "DEEP"]
ROWS = "SELECT id, CAST(id AS STRING) AS s, CAST(id % 2 AS INT) AS p FROM range(10)"


@pytest.fixture
def place(tmp_path):
    return f"delta.`{tmp_path}/clone`"


def rows(delta, table: str) -> list[tuple[int, str, int]]:
    found = delta.sql(f"SELECT id, s, p FROM {table}").collect()
    return sorted(tuple(row) for row in found)


EXPECTED = [(number, str(number), number % 2) for number in range(10)]


def operation(delta, table: str) -> dict[str, str]:
    return delta.sql(f"DESCRIBE HISTORY {table}").collect()[0].operationParameters


@pytest.mark.again
@pytest.mark.parametrize("how", HOW)
def test_a_directory_is_cloned_as_delta_spark_clones_it(delta, tmp_path, place, how):
    delta.sql(ROWS).coalesce(2).write.parquet(f"{tmp_path}/files")
    source = f"parquet.`{tmp_path}/files`"
    told = delta.sql(f"CREATE TABLE {place} {how} CLONE {source} TBLPROPERTIES ('a' = 'b')")
    size = sum(file.stat().st_size for file in Path(tmp_path, "files").glob("*.parquet"))
    count = len(list(Path(tmp_path, "files").glob("*.parquet")))
    copied = (count, size) if how == "DEEP" else (0, 0)
    assert tuple(told.collect()[0]) == (size, count, 0, copied[0], 0, copied[1])
    assert rows(delta, place) == EXPECTED
    assert operation(delta, place) == {
        "source": f"parquet.`file:{tmp_path}/files`",
        "sourceVersion": "-1",
    }
    assert delta.sql(f"DESCRIBE DETAIL {place}").collect()[0].properties == {"a": "b"}
    delta.sql(f"INSERT INTO {place} VALUES (10, '10', 0)")
    assert rows(delta, place) == [*EXPECTED, (10, "10", 0)]
    assert delta.read.parquet(f"{tmp_path}/files").count() == 10
    assert not Path(tmp_path, "files", "_delta_log").exists()


@pytest.mark.again
@pytest.mark.parametrize("how", HOW)
def test_a_table_of_the_catalog_is_cloned_with_what_the_catalog_says(delta, tmp_path, place, how):
    delta.sql("DROP TABLE IF EXISTS files_of_parquet")
    delta.sql(
        "CREATE TABLE files_of_parquet USING Parquet PARTITIONED BY (p) COMMENT 'of files' "
        f"TBLPROPERTIES ('a' = 'b') LOCATION '{tmp_path}/files' AS {ROWS}"
    )
    try:
        delta.sql(f"CREATE TABLE {place} {how} CLONE files_of_parquet")
        assert rows(delta, place) == EXPECTED
        detail = delta.sql(f"DESCRIBE DETAIL {place}").collect()[0]
        assert (detail.partitionColumns, detail.properties) == (["p"], {"a": "b"})
        assert operation(delta, place)["source"] == "spark_catalog.default.files_of_parquet"
        provider = delta.sql("DESCRIBE EXTENDED files_of_parquet").where("col_name = 'Provider'")
        assert provider.collect()[0].data_type.lower() == "parquet"
        delta.sql("DROP TABLE IF EXISTS clone_of_files")
        delta.sql(f"CREATE TABLE clone_of_files {how} CLONE files_of_parquet")
        assert rows(delta, "clone_of_files") == EXPECTED
    finally:
        delta.sql("DROP TABLE IF EXISTS clone_of_files")
        delta.sql("DROP TABLE IF EXISTS files_of_parquet")


@pytest.mark.parametrize("how", HOW)
def test_a_table_of_iceberg_is_cloned(delta, tmp_path, place, how):
    folder = IcebergFolder(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", pa.int32())])
    table = folder.create("t", schema)
    table.append(pa.table({"id": [1, 2], "s": ["1", "2"], "p": [1, 0]}, schema=schema))
    path = table.location().removeprefix("file://")
    delta.sql(f"CREATE TABLE {place} {how} CLONE iceberg.`{path}`")
    assert rows(delta, place) == [EXPECTED[1], EXPECTED[2]]
    folder.close()


@pytest.mark.again
def test_executors_read_the_footers_and_copy_the_files(delta, tmp_path, place, monkeypatch):
    delta.sql(ROWS).repartition(5).write.parquet(f"{tmp_path}/files")
    monkeypatch.setattr("optimist.spark.commands.maintenance.convert._MANY_FILES", 1)
    monkeypatch.setattr("optimist.spark.commands.maintenance.convert._FILES_PER_TASK", 2)
    delta.conf.set("spark.optimist.spark.driverShortcut.maxBytes", "0")
    try:
        delta.sql(f"CREATE TABLE {place} DEEP CLONE parquet.`{tmp_path}/files`")
    finally:
        delta.conf.unset("spark.optimist.spark.driverShortcut.maxBytes")
    assert rows(delta, place) == EXPECTED
    assert DeltaLog.for_path(f"{tmp_path}/clone").count("id < 3") == 3


@pytest.mark.again
def test_what_can_not_be_cloned_is_told_and_nothing_is_written(delta, tmp_path, place):
    delta.sql(ROWS).write.partitionBy("p").parquet(f"{tmp_path}/parts")
    delta.sql(ROWS).write.parquet(f"{tmp_path}/files")
    delta.sql("DROP TABLE IF EXISTS files_of_csv")
    delta.sql(f"CREATE TABLE files_of_csv USING csv LOCATION '{tmp_path}/csv' AS {ROWS}")
    source = f"{place} SHALLOW CLONE parquet.`{tmp_path}"
    cases = {
        f"CREATE TABLE {source}/parts`": "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
        f"CREATE TABLE {source}/files` VERSION AS OF 0": "DELTA_CLONE_UNSUPPORTED_SOURCE",
        f"CREATE TABLE {source}/nothing`": "DELTA_EMPTY_DIRECTORY",
        f"CREATE TABLE {place} SHALLOW CLONE files_of_csv": "DELTA_CLONE_UNSUPPORTED_SOURCE",
        f"REPLACE TABLE {source}/files`": "DELTA_CANNOT_REPLACE_MISSING_TABLE",
        f"CREATE TABLE delta.`{tmp_path}/files` SHALLOW CLONE parquet.`{tmp_path}/files`": (
            "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
        ),
    }
    found = {}
    for text in cases:
        with pytest.raises(OptimistError) as caught:
            delta.sql(text)
        found[text] = caught.value.kind
    delta.sql("DROP TABLE files_of_csv")
    assert found == cases
    assert not (tmp_path / "clone").exists()


def made_with_partitions(delta, tmp_path, name: str) -> None:
    delta.sql(f"DROP TABLE IF EXISTS {name}")
    delta.sql(
        f"CREATE TABLE {name} (id BIGINT, p STRING) USING parquet PARTITIONED BY (p) "
        f"LOCATION '{tmp_path}/{name}'"
    )
    delta.sql(f"INSERT INTO {name} VALUES (1, 'a b/c%'), (2, NULL)")


STATEMENTS = ["CONVERT TO DELTA {name}", "CREATE TABLE {place} DEEP CLONE {name}"]
DIFFER = "OPTIMIST_CATALOG_PARTITIONS_DIFFER"


@pytest.mark.parametrize("statement", STATEMENTS)
def test_partitions_that_the_catalog_does_not_have_are_not_taken(delta, tmp_path, place, statement):
    made_with_partitions(delta, tmp_path, "parted")
    delta.range(40, 41).write.parquet(f"{tmp_path}/parted/p=unknown")
    text = statement.format(name="parted", place=place)
    try:
        with pytest.raises(OptimistError) as caught:
            delta.sql(text)
        assert caught.value.kind == DIFFER
        assert delta.sql("SELECT id FROM parted").count() == 2
        delta.sql("MSCK REPAIR TABLE parted")
        before = sorted(map(tuple, delta.sql("SELECT id, coalesce(p, '-') FROM parted").collect()))
        delta.sql(text)
        name = "parted" if "CONVERT" in text else place
        after = delta.sql(f"SELECT id, coalesce(p, '-') FROM {name}").collect()
        assert sorted(map(tuple, after)) == before
        assert len(before) == 3
    finally:
        delta.sql("DROP TABLE IF EXISTS parted")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_partitions_that_lie_elsewhere_are_refused(delta, tmp_path, place, statement):
    made_with_partitions(delta, tmp_path, "parted")
    delta.range(30, 31).write.parquet(f"{tmp_path}/elsewhere")
    delta.sql(f"ALTER TABLE parted ADD PARTITION (p='x') LOCATION '{tmp_path}/elsewhere'")
    try:
        with pytest.raises(OptimistError) as caught:
            delta.sql(statement.format(name="parted", place=place))
        assert caught.value.kind == DIFFER
        assert delta.sql("SELECT id FROM parted").count() == 3
        assert not Path(tmp_path, "parted", "_delta_log").exists()
    finally:
        delta.sql("DROP TABLE IF EXISTS parted")


@pytest.mark.again
def test_files_that_a_sink_has_not_committed_are_not_taken(delta, tmp_path, place):
    delta.sql(ROWS).write.parquet(f"{tmp_path}/in")
    stream = delta.readStream.schema("id LONG, s STRING, p INT").parquet(f"{tmp_path}/in")
    writer = stream.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{tmp_path}/ck")
    writer.start(f"{tmp_path}/su nk").awaitTermination()
    stray = next(Path(tmp_path, "su nk").glob("*.parquet"))
    stray.with_name("part-stray.parquet").write_bytes(stray.read_bytes())
    delta.sql(f"CREATE TABLE {place} DEEP CLONE parquet.`{tmp_path}/su nk`")
    assert rows(delta, place) == EXPECTED
    delta.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/su nk`")
    assert rows(delta, f"delta.`{tmp_path}/su nk`") == EXPECTED


def test_a_name_may_have_the_session_catalog_and_no_other(delta, tmp_path, place):
    made_with_partitions(delta, tmp_path, "parted")
    try:
        delta.sql(f"CREATE TABLE {place} DEEP CLONE spark_catalog.default.parted")
        assert delta.sql(f"SELECT id FROM {place}").count() == 2
        with pytest.raises(OptimistError) as caught:
            delta.sql(f"CREATE TABLE delta.`{tmp_path}/no` DEEP CLONE other.default.parted")
        assert caught.value.kind == "DELTA_CLONE_UNSUPPORTED_SOURCE"
    finally:
        delta.sql("DROP TABLE IF EXISTS parted")
