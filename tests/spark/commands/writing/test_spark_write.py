"""Writing DataFrames to tables: modes, options, files, and what other engines read."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from optimist.core.errors import (
    ConcurrentAppendException,
    ConfigError,
    SchemaError,
    StorageError,
    UsageError,
)
from optimist.core.log.file_table import add_files
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.writing.write_options import WRITE_OPTIONS
from read_back import data_directories, ids

UTC = dt.timezone.utc


@pytest.mark.usefixtures("plane")
def test_a_first_write_makes_a_table_that_deltalake_reads(numbers, table_path):
    result = write(numbers, table_path, partitionBy=["p"])
    assert result.version == 0
    rows = deltalake.DeltaTable(table_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == [{"id": i, "p": i % 4, "name": f"n{i}"} for i in range(20)]
    assert deltalake.DeltaTable(table_path).metadata().partition_columns == ["p"]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_writers_of_both_engines_take_turns_on_one_table(spark, numbers, table_path):
    write(numbers, table_path, partitionBy="p")
    more = pa.table({"id": [100], "p": pa.array([9], pa.int32()), "name": ["x"]})
    deltalake.write_deltalake(table_path, more, mode="append")
    write(
        numbers.where("id = 3").withColumn("id", sf.lit(101).cast("long")),
        table_path,
        mode="append",
    )
    expected = [*range(20), 100, 101]
    assert ids(read(spark, table_path)) == expected
    table = deltalake.DeltaTable(table_path).to_pyarrow_table()
    assert sorted(table["id"].to_pylist()) == expected


@pytest.mark.usefixtures("plane")
def test_a_partition_too_long_for_the_name_of_a_directory_is_told(numbers, table_path):
    rows = numbers.withColumn("p", sf.repeat("name", 100))
    with pytest.raises(StorageError) as caught:
        write(rows, table_path, partitionBy="p")
    assert caught.value.kind == "OPTIMIST_INVALID_PATH"
    assert caught.value.fields["column"] == "p"
    assert not list(Path(table_path).rglob("*.parquet"))


@pytest.mark.parametrize("mode", ["error", "errorifexists", "ERROR"])
def test_mode_error_refuses_a_table_that_exists(numbers, table, mode):
    with pytest.raises(UsageError) as caught:
        write(numbers, table, mode=mode)
    assert caught.value.kind == "DELTA_PATH_EXISTS"


def test_mode_ignore_leaves_a_table_that_exists_alone(spark, numbers, table):
    assert write(numbers, table, mode="ignore") is None
    assert read(spark, table).count() == 20


def test_mode_ignore_makes_a_table_that_does_not_exist(spark, numbers, table_path):
    assert write(numbers, table_path, mode="ignore").version == 0


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_mode_append_adds_and_is_blind(spark, numbers, table, log_of):
    assert write(numbers, table, mode="append").version == 1
    assert read(spark, table).count() == 40
    info = log_of(table).history(1)[0].info
    assert (info.operation, info.is_blind_append) == ("WRITE", True)
    assert info.operation_parameters["mode"] == "Append"


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_mode_overwrite_replaces_all_rows_and_keeps_the_older_version(spark, numbers, table):
    write(numbers.where("id < 3"), table, mode="overwrite")
    assert ids(read(spark, table)) == [0, 1, 2]
    assert read(spark, table, versionAsOf=0).count() == 20


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_overwriting_a_table_with_rows_read_from_it_works(spark, table):
    write(read(spark, table).where("id >= 15"), table, mode="overwrite")
    assert ids(read(spark, table)) == [15, 16, 17, 18, 19]


def test_an_unknown_mode_is_refused(numbers, table_path):
    with pytest.raises(UsageError, match="append, overwrite") as caught:
        write(numbers, table_path, mode="upsert")
    assert caught.value.kind == "OPTIMIST_UNKNOWN_MODE"


def test_an_unknown_option_is_refused_and_the_known_ones_are_named(numbers, table_path):
    with pytest.raises(UsageError) as caught:
        write(numbers, table_path, mergeScheme=True)
    assert caught.value.fields["known"] == tuple(WRITE_OPTIONS)
    assert not Path(table_path).exists()


def test_a_value_that_does_not_parse_is_refused(numbers, table_path):
    with pytest.raises(UsageError, match="mergeSchema"):
        write(numbers, table_path, mergeSchema="perhaps")


def test_options_are_taken_in_any_case(spark, numbers, table):
    write(numbers.withColumn("x", sf.lit(1)), table, mode="append", MERGESCHEMA="true")
    assert read(spark, table).columns == ["id", "p", "name", "x"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (
            {"replaceWhere": "p = 1", "partitionOverwriteMode": "dynamic"},
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        (
            {"overwriteSchema": True, "partitionOverwriteMode": "dynamic"},
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        ({"txnAppId": "a"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
    ],
)
def test_options_that_exclude_each_other_are_refused(numbers, table, options, kind):
    with pytest.raises(UsageError) as caught:
        write(numbers, table, **{"mode": "overwrite", **options})
    assert caught.value.kind == kind


def test_user_metadata_stands_in_the_history(numbers, table_path, log_of):
    write(numbers, table_path, userMetadata="nightly load")
    assert log_of(table_path).history()[0].info.user_metadata == "nightly load"


@pytest.mark.again
def test_a_replayed_write_is_skipped_and_a_newer_one_is_not(spark, numbers, table):
    options = {"mode": "append", "txnAppId": "job", "txnVersion": 5}
    assert write(numbers.limit(1), table, **options).version == 1
    assert write(numbers.limit(1), table, **options) is None
    assert write(numbers.limit(1), table, **(options | {"mode": "error"})) is None  # a replay
    assert write(numbers.limit(1), table, **(options | {"txnVersion": "4"})) is None
    assert write(numbers.limit(1), table, **(options | {"txnVersion": 6})).version == 2
    assert read(spark, table).count() == 22


@pytest.mark.again
def test_the_conf_names_the_replay_where_the_call_does_not(spark, numbers, table, conf):
    conf("spark.databricks.delta.write.txnAppId", "job")
    conf("spark.databricks.delta.write.txnVersion", "1")
    assert write(numbers, table, mode="append").version == 1
    assert write(numbers, table, mode="append") is None
    DeltaTable.forPath(spark, table).delete("id = 1")
    assert read(spark, table).count() == 40


def test_a_conf_in_the_session_reaches_the_engine(numbers, table_path, conf, log_of):
    conf("spark.databricks.delta.commitInfo.userMetadata", "from the conf")
    write(numbers, table_path)
    assert log_of(table_path).history()[0].info.user_metadata == "from the conf"


def test_the_last_commit_version_is_left_in_the_session(spark, numbers, table):
    write(numbers, table, mode="append")
    assert spark.conf.get("spark.databricks.delta.lastCommitVersionInSession") == "1"


def test_an_unknown_conf_of_ours_is_refused(numbers, table_path, conf):
    conf("spark.optimist.conflict.granularty", "file")
    with pytest.raises(ConfigError, match="granularty"):
        write(numbers, table_path)


def test_session_settings_do_not_change_the_files_nor_the_files_the_session(
    spark, numbers, table_path, conf
):
    conf("spark.sql.parquet.outputTimestampType", "INT96")
    write(numbers.withColumn("t", sf.timestamp_seconds("id")), table_path)
    (path,) = deltalake.DeltaTable(table_path).file_uris()[:1]
    assert pq.read_schema(path.removeprefix("file://")).field("t").type == pa.timestamp("us", "UTC")
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"
    assert not list(Path(table_path).rglob("_SUCCESS"))


@pytest.mark.usefixtures("plane")
def test_statistics_come_from_the_footers(spark, table_path, log_of):
    frame = spark.range(5).selectExpr(
        "id", "CAST(if(id = 2, null, id) AS INT) AS n", "repeat('x', 40) AS s"
    )
    write(frame.coalesce(1), table_path)
    (add,) = add_files(log_of(table_path).snapshot().files)
    stats = json.loads(add.stats)
    assert stats["numRecords"] == 5
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (0, 4)
    assert stats["nullCount"] == {"id": 0, "n": 1, "s": 0}
    assert stats["minValues"]["s"] == "x" * 32


@pytest.mark.usefixtures("plane")
def test_files_lie_in_a_directory_of_their_own_that_vacuum_can_see(table, log_of):
    (directory,) = data_directories(table)
    assert not directory.startswith(("_", "."))
    paths = log_of(table).snapshot().files["path"].to_pylist()
    assert all(path.startswith(f"{directory}/p=") for path in paths)


@pytest.mark.usefixtures("plane")
def test_an_append_without_rows_adds_no_files(spark, numbers, table):
    before = data_directories(table)
    write(numbers.where("id > 100"), table, mode="append")
    assert read(spark, table).count() == 20
    assert data_directories(table) == before


@pytest.mark.usefixtures("plane")
def test_a_first_write_without_rows_makes_an_empty_table(spark, numbers, table_path):
    write(numbers.where("id > 100"), table_path, partitionBy="p")
    frame = read(spark, table_path)
    assert (frame.count(), frame.columns) == (0, ["id", "p", "name"])


@pytest.mark.usefixtures("plane")
def test_max_records_per_file_and_compression_are_honoured(spark, numbers, table_path, log_of):
    write(numbers.coalesce(1), table_path, maxRecordsPerFile=6, compression="zstd")
    adds = add_files(log_of(table_path).snapshot().files)
    assert sorted(json.loads(add.stats)["numRecords"] for add in adds) == [2, 6, 6, 6]
    footer = pq.read_metadata(Path(table_path) / adds[0].path)
    assert footer.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.again
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize(("version", "page"), [("1.0.0", b"\x15\x00"), ("2.12.0", b"\x15\x06")])
def test_the_table_says_which_data_pages_its_files_have(
    spark, numbers, table_path, log_of, version, page
):
    write(numbers.where("id < 3").select("id").coalesce(1), table_path)
    changes = {"delta.parquet.format.version": version, "delta.parquet.compression.codec": "gzip"}
    log_of(table_path).alter.set_properties(changes)
    write(numbers.select("id").coalesce(1), table_path, mode="overwrite")
    (add,) = add_files(log_of(table_path).snapshot().files)
    file = Path(table_path) / add.path
    column = pq.read_metadata(file).row_group(0).column(0)
    # Thrift's compact form of a page's header: field 1 is its kind.
    assert file.read_bytes()[column.data_page_offset :][:2] == page
    assert column.compression == "GZIP"
    assert ids(read(spark, table_path)) == ids(numbers)
    assert deltalake.DeltaTable(table_path).to_pyarrow_table().num_rows == numbers.count()


PARTITION_VALUES = {
    "boolean": (["true", "false"], ["true", "false"]),
    "tinyint": (["-128"], ["-128"]),
    "smallint": (["7"], ["7"]),
    "int": (["-1"], ["-1"]),
    "bigint": (["9223372036854775807"], ["9223372036854775807"]),
    "decimal(12,10)": (["0", "1.5"], ["0.0000000000", "1.5000000000"]),
    "string": (["'a b'", "'ä/%20=:'", "''"], ["a b", "ä/%20=:", None]),
    "date": (["'1500-01-01'", "'2024-02-29'"], ["1500-01-01", "2024-02-29"]),
    "timestamp_ntz": (["'2024-03-31 02:30:00.5'"], ["2024-03-31 02:30:00.5"]),
    "double": (["1.5D", "double('NaN')"], ["1.5", "NaN"]),
}


@pytest.mark.sample(6)
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("name", sorted(PARTITION_VALUES))
def test_partition_values_of_every_type_are_written_as_the_protocol_spells_them(
    spark, table_path, name, log_of
):
    given, expected = PARTITION_VALUES[name]
    rows = " UNION ALL ".join(
        f"SELECT {number} AS id, CAST({text} AS {name}) AS p"
        for number, text in enumerate([*given, "null"])
    )
    frame = spark.sql(rows)
    write(frame, table_path, partitionBy="p")
    adds = add_files(log_of(table_path).snapshot().files)
    assert {add.partition_values["p"] for add in adds} == {*expected, None}
    read_back = read(spark, table_path)
    empty_is_null = sf.when(sf.col("p").cast("string") != "", sf.col("p"))
    wanted = frame.select("id", empty_is_null.alias("p"))
    assert read_back.exceptAll(wanted).count() == 0
    assert wanted.exceptAll(read_back).count() == 0


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_both_hours_of_a_clock_change_are_partitions_of_their_own(spark, table_path, conf, log_of):
    conf("spark.sql.session.timeZone", "Europe/Paris")
    # 00:30 and 01:30 UTC are both 02:30 in Paris on that day.
    seconds = [int(dt.datetime(2024, 10, 27, hour, 30, tzinfo=UTC).timestamp()) for hour in (0, 1)]
    frame = spark.createDataFrame([(s,) for s in seconds], "s long")
    write(frame.select("s", sf.timestamp_seconds("s").alias("t")), table_path, partitionBy="t")
    adds = add_files(log_of(table_path).snapshot().files)
    assert sorted(add.partition_values["t"] for add in adds) == [
        "2024-10-27T00:30:00.000000Z",
        "2024-10-27T01:30:00.000000Z",
    ]
    rows = read(spark, table_path).selectExpr("s", "unix_seconds(t) AS u").collect()
    assert sorted((row.s, row.u) for row in rows) == [(s, s) for s in seconds]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_odd_partition_values_are_read_by_deltalake(spark, table_path):
    values = ["a b", "x=y/z", "100%", "ünï", "q'\"q", "#?*:"]
    frame = spark.createDataFrame(list(enumerate(values)), "id long, p string")
    write(frame, table_path, partitionBy="p")
    table = deltalake.DeltaTable(table_path).to_pyarrow_table().sort_by("id")
    assert table["p"].to_pylist() == values


# Reads of the table that is written to


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_append_from_the_table_itself_is_not_blind(spark, table, log_of):
    write(read(spark, table).selectExpr("id + 100 AS id", "p", "name"), table, mode="append")
    assert log_of(table).history(1)[0].info.is_blind_append is False
    assert read(spark, table).count() == 40


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_overwrite_from_a_version_that_others_moved_past_is_a_conflict(spark, numbers, table):
    stale = read(spark, table)
    write(numbers.limit(1).withColumn("id", sf.lit(77).cast("long")), table, mode="append")
    with pytest.raises(ConcurrentAppendException):
        write(stale.where("id < 5"), table, mode="overwrite")
    assert 77 in ids(read(spark, table))


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_overwrite_from_a_version_asked_for_restores_it(spark, numbers, table):
    write(numbers, table, mode="append")
    write(read(spark, table, versionAsOf=0), table, mode="overwrite")
    assert read(spark, table).count() == 20


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_reads_inside_subqueries_of_the_data_count_as_reads(spark, table, log_of):
    read(spark, table).createOrReplaceTempView("itself")
    frame = spark.sql(
        "SELECT max_id AS id, 1 AS p, 'x' AS name FROM (SELECT 5L AS max_id) "
        "WHERE max_id < (SELECT max(id) FROM itself)"
    )
    write(frame, table, mode="append")
    spark.catalog.dropTempView("itself")
    assert log_of(table).history(1)[0].info.is_blind_append is False


@pytest.mark.again
def test_reading_another_table_leaves_an_append_blind(spark, numbers, table, tmp_path, log_of):
    other = str(tmp_path / "other")
    write(read(spark, table), other)
    write(read(spark, other), table, mode="append")
    assert log_of(table).history(1)[0].info.is_blind_append is True


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_a_failing_query_leaves_neither_files_nor_a_version(spark, table):
    before = data_directories(table)
    bad = spark.range(3).selectExpr(
        "id", "CAST(if(id = 2, raise_error('boom'), 1) AS INT) AS p", "'x' AS name"
    )
    with pytest.raises(Exception, match="boom"):
        write(bad, table, mode="append")
    assert data_directories(table) == before
    assert read(spark, table).count() == 20


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_every_type_goes_in_and_comes_out(spark, table_path):
    frame = spark.sql(
        "SELECT CAST(1 AS TINYINT) b, CAST(2 AS SMALLINT) s, 3 i, 4L l, "
        "CAST(1.5 AS FLOAT) f, 2.5D d, "
        "CAST(1.25 AS DECIMAL(10,2)) dec, 'x' t, X'0102' bin, true bool, DATE '1500-01-01' day, "
        "TIMESTAMP '2024-01-01 12:00:00.123456' ts, TIMESTAMP_NTZ '2024-01-01 12:00:00.5' ntz, "
        "array(1, null) arr, map('k', 1.5D) m, named_struct('x', 1, 'y', array('z')) st"
    )
    write(frame, table_path)
    assert read(spark, table_path).collect() == frame.collect()
    assert read(spark, table_path).dtypes == frame.dtypes
    row = deltalake.DeltaTable(table_path).to_pyarrow_table().to_pylist()[0]
    assert (row["dec"], row["ts"]) == (
        Decimal("1.25"),
        dt.datetime(2024, 1, 1, 12, 0, 0, 123456, UTC),
    )


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_a_path_with_blanks_percent_signs_and_a_scheme_is_one_table(spark, numbers, tmp_path):
    path = str(tmp_path / "a b%20ü")
    write(numbers, f"file://{path}", partitionBy="p")
    write(read(spark, path), path, mode="append")
    DeltaTable.forPath(spark, f"file:{path}/").delete("id = 3")
    assert read(spark, path).count() == 38


# What Spark prints


@pytest.fixture
def spoken(spark):
    """What Spark's loggers say from now on, as a function."""
    log4j = spark._jvm.org.apache.logging.log4j
    heard = spark._jvm.java.io.StringWriter()
    make = log4j.core.appender.WriterAppender.createAppender
    appender = make(None, None, heard, "heard", False, True)
    appender.start()
    root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    root.addAppender(appender, None, None)
    spark.sparkContext.setLogLevel("ERROR")
    yield heard.toString
    spark.sparkContext.setLogLevel("OFF")
    root.removeAppender("heard")


@pytest.mark.again
def test_a_refused_write_is_not_told_again_with_the_stack_of_the_driver(
    spark, numbers, table, spoken
):
    logger = "org.apache.spark.sql.execution.datasources.FileFormatWriter"
    for _ in range(2):
        with pytest.raises(SchemaError):
            write(numbers, table, mode="overwrite", replaceWhere="p = 1")
    assert "TaskSetManager" in spoken() or "aborting job" in spoken()
    assert "Aborting job" not in spoken()
    # And nothing of it stays.
    context = spark._jvm.org.apache.logging.log4j.LogManager.getContext(False)
    assert context.getConfiguration().getLoggerConfig(logger).getName() != logger
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.range(2).selectExpr("CAST(concat('a', id) AS INT) AS i").write.parquet(f"{table}-x")
    assert "Aborting job" in spoken()
