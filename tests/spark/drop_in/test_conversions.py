"""CONVERT TO DELTA as SQL and as `DeltaTable.convertToDelta`, of paths and of names."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable
from optimist.spark.commands.maintenance import convert


@pytest.fixture
def files(delta, tmp_path):
    """A directory that Spark wrote, partitioned by odd texts and by nulls."""
    rows = delta.sql(
        "SELECT id, if(id < 3, 'a b', if(id < 5, 'x%y/z=1', NULL)) p, CAST(id % 2 AS INT) q,"
        " named_struct('n', id, 't', TIMESTAMP '2020-01-01 12:00:00') s FROM range(8)"
    )
    rows.write.partitionBy("p", "q").parquet(str(tmp_path / "files"))
    return str(tmp_path / "files")


PARTITIONS = "p STRING, q INT"


@pytest.mark.again
def test_a_directory_is_converted_and_reads_as_before(delta, files):
    before = delta.read.parquet(files).orderBy("id").collect()
    told = delta.sql(f"CONVERT TO DELTA parquet.`{files}` PARTITIONED BY ({PARTITIONS})")
    assert (told.columns, told.collect()) == ([], [])
    table = f"delta.`{files}`"
    assert delta.sql(f"SELECT * FROM {table} ORDER BY id").collect() == before
    assert delta.sql(f"SELECT id FROM {table} WHERE p = 'x%y/z=1' AND q = 1").collect() == [(3,)]
    assert delta.sql(f"SELECT count(*) FROM {table} WHERE p IS NULL").collect() == [(3,)]
    delta.sql(f"CONVERT TO DELTA parquet.`{files}`")  # nothing is done
    delta.sql(f"UPDATE {table} SET q = 9 WHERE id = 3")
    delta.sql(f"DELETE FROM {table} WHERE s.n = 7")
    assert delta.sql(f"SELECT sum(q), count(*) FROM {table}").collect() == [(11, 7)]
    assert [row.operation for row in delta.sql(f"DESCRIBE HISTORY {table}").collect()] == [
        "DELETE",
        "UPDATE",
        "CONVERT",
    ]


@pytest.mark.parametrize(
    "partitions",
    [
        PARTITIONS,
        StructType([StructField("p", StringType()), StructField("q", IntegerType())]),
    ],
)
def test_the_method_converts_as_the_statement_does(delta, files, partitions):
    made = DeltaTable.convertToDelta(delta, f"parquet.`{files}`", partitions)
    assert made.toDF().count() == 8
    assert made.detail().collect()[0].partitionColumns == ["p", "q"]
    assert DeltaTable.convertToDelta(delta, f"parquet.`{files}`").toDF().count() == 8


@pytest.mark.again
def test_executors_read_the_footers_of_many_files(delta, files, monkeypatch):
    monkeypatch.setattr(convert, "_MANY_FILES", 1)
    monkeypatch.setattr(convert, "_FILES_PER_TASK", 2)
    delta.sql(f"CONVERT TO DELTA parquet.`{files}` PARTITIONED BY ({PARTITIONS})")
    snapshot = DeltaLog.for_path(files).snapshot()
    assert snapshot.files["stats"].null_count == 0
    assert delta.sql(f"SELECT count(*) FROM delta.`{files}` WHERE s.n >= 6").collect() == [(2,)]


def test_an_error_of_an_executor_is_the_one_of_the_driver(delta, files, monkeypatch, tmp_path):
    monkeypatch.setattr(convert, "_MANY_FILES", 1)
    (tmp_path / "files" / "p=a" / "q=1").mkdir(parents=True)
    (tmp_path / "files" / "p=a" / "q=1" / "x.txt").write_text("no Parquet")
    with pytest.raises(OptimistError) as caught:
        delta.sql(f"CONVERT TO DELTA parquet.`{files}` PARTITIONED BY ({PARTITIONS})")
    assert caught.value.kind == "OPTIMIST_UNREADABLE_DATA_FILE"
    assert not DeltaLog.for_path(files).table_exists()


@pytest.fixture
def parquet_table(delta):
    delta.sql("DROP TABLE IF EXISTS converted")
    delta.sql(
        "CREATE TABLE converted (id BIGINT COMMENT 'the id', d DATE, v INT) USING parquet "
        "PARTITIONED BY (d) TBLPROPERTIES ('foo' = 'bar') COMMENT 'cc'"
    )
    delta.sql("INSERT INTO converted VALUES (1, 2, DATE '2020-01-02'), (2, 3, NULL)")
    yield "converted"
    delta.sql("DROP TABLE IF EXISTS converted")


def test_a_name_of_the_catalog_becomes_one_of_a_delta_table(delta, parquet_table):
    before = delta.table(parquet_table).orderBy("id").collect()
    with pytest.raises(OptimistError) as caught:
        delta.sql(f"CONVERT TO DELTA {parquet_table} PARTITIONED BY (d STRING)")
    assert caught.value.kind == "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"
    delta.sql(f"CONVERT TO DELTA {parquet_table}")
    assert delta.table(parquet_table).orderBy("id").collect() == before
    detail = delta.sql(f"DESCRIBE DETAIL {parquet_table}").collect()[0]
    assert (detail.format, detail.description) == ("delta", "cc")
    assert detail.properties == {"foo": "bar"}
    assert detail.partitionColumns == ["d"]
    told = delta.sql(f"DESCRIBE EXTENDED {parquet_table}").collect()
    assert {row.data_type for row in told if row.col_name == "Type"} == {"MANAGED"}
    assert {row.comment for row in told if row.col_name == "id"} == {"the id"}
    delta.sql(f"INSERT INTO {parquet_table} VALUES (3, 4, DATE '2021-01-01')")
    delta.sql(f"DELETE FROM {parquet_table} WHERE d IS NULL")
    assert [row.id for row in delta.table(parquet_table).orderBy("id").collect()] == [1, 3]
    delta.sql(f"CONVERT TO DELTA {parquet_table}")
    assert DeltaTable.convertToDelta(delta, parquet_table).history().count() == 3


def test_a_conversion_that_was_stopped_before_the_catalog_goes_on(
    delta, parquet_table, monkeypatch
):
    from optimist.spark.drop_in.classic import converted_tables

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(converted_tables, "become_delta", stopped)
        with pytest.raises(BaseException):  # noqa: B017 - the interrupt, as Spark tells it
            delta.sql(f"CONVERT TO DELTA {parquet_table}")
    delta.sql(f"CONVERT TO DELTA {parquet_table}")
    assert delta.sql(f"DESCRIBE DETAIL {parquet_table}").collect()[0].format == "delta"
    assert delta.sql(f"DESCRIBE HISTORY {parquet_table}").count() == 1


def test_what_can_not_be_converted_is_refused(delta, files, tmp_path):
    delta.range(1).createOrReplaceTempView("only_a_view")
    delta.sql("DROP TABLE IF EXISTS of_json")
    delta.sql("CREATE TABLE of_json (id BIGINT) USING json")
    cases = {
        f"json.`{files}`": "DELTA_CONVERT_NON_PARQUET_TABLE",
        f"iceberg.`{files}`": "DELTA_EMPTY_DIRECTORY",
        "of_json": "DELTA_CONVERT_NON_PARQUET_TABLE",
        "only_a_view": "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
        f"parquet.`{tmp_path}/nothing`": "DELTA_EMPTY_DIRECTORY",
        f"parquet.`{files}`": "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
    }
    found = {}
    for name in cases:
        with pytest.raises(OptimistError) as caught:
            delta.sql(f"CONVERT TO DELTA {name}")
        found[name] = caught.value.kind
    assert found == cases
    delta.sql("DROP TABLE of_json")
    delta.catalog.dropTempView("only_a_view")
    assert not DeltaLog.for_path(files).table_exists()


def test_the_driver_reads_the_footers_where_the_executors_can_not(delta, files, monkeypatch):
    class Lost(convert._FooterTask):
        def __call__(self, batches):
            raise ModuleNotFoundError("No module named 'optimist'", name="optimist")

    monkeypatch.setattr(convert, "_MANY_FILES", 1)
    monkeypatch.setattr(convert, "_FooterTask", Lost)
    delta.sql(f"CONVERT TO DELTA parquet.`{files}` PARTITIONED BY ({PARTITIONS})")
    assert delta.sql(f"SELECT count(*) FROM delta.`{files}`").collect() == [(8,)]
