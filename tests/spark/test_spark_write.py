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
    UsageError,
)
from optimist.core.log.file_table import add_files
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.write_options import KNOWN_OPTIONS

UTC = dt.timezone.utc


@pytest.fixture
def numbers(spark):
    rows = spark.range(20).coalesce(1)
    return rows.selectExpr("id", "CAST(id % 4 AS INT) AS p", "concat('n', id) AS name")


@pytest.fixture
def table(numbers, table_path):
    write(numbers, table_path, partitionBy="p")
    return table_path


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


def data_directories(path):
    return {entry.name for entry in Path(path).iterdir() if entry.name != "_delta_log"}


@pytest.mark.usefixtures("plane")
def test_a_first_write_makes_a_table_that_deltalake_reads(numbers, table_path):
    result = write(numbers, table_path, partitionBy=["p"])
    assert result.version == 0
    rows = deltalake.DeltaTable(table_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == [{"id": i, "p": i % 4, "name": f"n{i}"} for i in range(20)]
    assert deltalake.DeltaTable(table_path).metadata().partition_columns == ["p"]


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


@pytest.mark.usefixtures("plane")
def test_mode_append_adds_and_is_blind(spark, numbers, table, log_of):
    assert write(numbers, table, mode="append").version == 1
    assert read(spark, table).count() == 40
    info = log_of(table).history(1)[0].info
    assert (info.operation, info.is_blind_append) == ("WRITE", True)
    assert info.operation_parameters["mode"] == "Append"


@pytest.mark.usefixtures("plane")
def test_mode_overwrite_replaces_all_rows_and_keeps_the_older_version(spark, numbers, table):
    write(numbers.where("id < 3"), table, mode="overwrite")
    assert ids(read(spark, table)) == [0, 1, 2]
    assert read(spark, table, versionAsOf=0).count() == 20


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
    assert caught.value.fields["known"] == KNOWN_OPTIONS
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
        ({"replaceWhere": "p = 1", "mode": "append"}, "DELTA_REPLACE_WHERE_IN_APPEND"),
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


def test_a_replayed_write_is_skipped_and_a_newer_one_is_not(spark, numbers, table):
    options = {"mode": "append", "txnAppId": "job", "txnVersion": 5}
    assert write(numbers.limit(1), table, **options).version == 1
    assert write(numbers.limit(1), table, **options) is None
    assert write(numbers.limit(1), table, **(options | {"txnVersion": "4"})) is None
    assert write(numbers.limit(1), table, **(options | {"txnVersion": 6})).version == 2
    assert read(spark, table).count() == 22


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
    (add,) = add_files(log_of(table_path).update().files)
    stats = json.loads(add.stats)
    assert stats["numRecords"] == 5
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (0, 4)
    assert stats["nullCount"] == {"id": 0, "n": 1, "s": 0}
    assert stats["minValues"]["s"] == "x" * 32


@pytest.mark.usefixtures("plane")
def test_files_lie_in_a_directory_of_their_own_that_vacuum_can_see(table, log_of):
    (directory,) = data_directories(table)
    assert not directory.startswith(("_", "."))
    paths = log_of(table).update().files["path"].to_pylist()
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
    adds = add_files(log_of(table_path).update().files)
    assert sorted(json.loads(add.stats)["numRecords"] for add in adds) == [2, 6, 6, 6]
    footer = pq.read_metadata(Path(table_path) / adds[0].path)
    assert footer.row_group(0).column(0).compression == "ZSTD"


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
    adds = add_files(log_of(table_path).update().files)
    assert {add.partition_values["p"] for add in adds} == {*expected, None}
    read_back = read(spark, table_path)
    empty_is_null = sf.when(sf.col("p").cast("string") != "", sf.col("p"))
    wanted = frame.select("id", empty_is_null.alias("p"))
    assert read_back.exceptAll(wanted).count() == 0
    assert wanted.exceptAll(read_back).count() == 0


@pytest.mark.usefixtures("plane")
def test_both_hours_of_a_clock_change_are_partitions_of_their_own(spark, table_path, conf, log_of):
    conf("spark.sql.session.timeZone", "Europe/Paris")
    # 00:30 and 01:30 UTC are both 02:30 in Paris on that day.
    seconds = [int(dt.datetime(2024, 10, 27, hour, 30, tzinfo=UTC).timestamp()) for hour in (0, 1)]
    frame = spark.createDataFrame([(s,) for s in seconds], "s long")
    write(frame.select("s", sf.timestamp_seconds("s").alias("t")), table_path, partitionBy="t")
    adds = add_files(log_of(table_path).update().files)
    assert sorted(add.partition_values["t"] for add in adds) == [
        "2024-10-27T00:30:00.000000Z",
        "2024-10-27T01:30:00.000000Z",
    ]
    rows = read(spark, table_path).selectExpr("s", "unix_seconds(t) AS u").collect()
    assert sorted((row.s, row.u) for row in rows) == [(s, s) for s in seconds]


@pytest.mark.usefixtures("plane")
def test_odd_partition_values_are_read_by_deltalake(spark, table_path):
    values = ["a b", "x=y/z", "100%", "ünï", "q'\"q", "#?*:"]
    frame = spark.createDataFrame(list(enumerate(values)), "id long, p string")
    write(frame, table_path, partitionBy="p")
    table = deltalake.DeltaTable(table_path).to_pyarrow_table().sort_by("id")
    assert table["p"].to_pylist() == values


# Schema enforcement and evolution


def test_a_new_column_is_refused_by_name(numbers, table):
    with pytest.raises(SchemaError, match="extra") as caught:
        write(numbers.withColumn("extra", sf.lit(1)), table, mode="append")
    assert caught.value.kind == "DELTA_METADATA_MISMATCH"
    assert caught.value.fields["columns"] == ("extra",)


def test_a_column_of_another_type_is_refused_by_name(numbers, table):
    with pytest.raises(SchemaError, match="name") as caught:
        write(numbers.withColumn("name", sf.lit(1.5)), table, mode="append")
    assert caught.value.kind == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert caught.value.fields["column"] == "name"


def test_a_refused_write_leaves_nothing_behind(numbers, table, log_of):
    before = data_directories(table)
    with pytest.raises(SchemaError):
        write(numbers.withColumn("extra", sf.lit(1)), table, mode="append")
    assert data_directories(table) == before
    assert log_of(table).update().version == 0


def test_a_column_type_that_no_table_holds_is_refused_by_name(spark, table_path):
    frame = spark.sql("SELECT 1 AS id, INTERVAL '1' DAY AS pause")
    with pytest.raises(SchemaError, match="pause"):
        write(frame, table_path)
    assert not Path(table_path).exists()


@pytest.mark.usefixtures("plane")
def test_merge_schema_adds_the_column_at_the_end(spark, numbers, table):
    write(
        numbers.where("id = 1").withColumn("x", sf.lit("new")),
        table,
        mode="append",
        mergeSchema=True,
    )
    rows = read(spark, table).where("id = 1").select("id", "p", "name", "x").collect()
    assert sorted(rows, key=repr) == sorted([(1, 1, "n1", None), (1, 1, "n1", "new")], key=repr)
    assert read(spark, table).columns == ["id", "p", "name", "x"]


def test_the_conf_for_merging_schemas_counts_and_the_option_wins(numbers, table, conf):
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    wider = numbers.withColumn("x", sf.lit(1))
    with pytest.raises(SchemaError):
        write(wider, table, mode="append", mergeSchema=False)
    assert write(wider, table, mode="append").version == 1


def test_overwrite_schema_replaces_columns_and_partitioning(spark, numbers, table):
    frame = numbers.selectExpr("CAST(id AS STRING) AS id", "p AS q")
    write(frame, table, mode="overwrite", overwriteSchema=True, partitionBy="q")
    assert dict(read(spark, table).dtypes) == {"id": "string", "q": "int"}
    assert DeltaTable.forPath(spark, table).detail().first().partitionColumns == ["q"]
    assert read(spark, table, versionAsOf=0).columns == ["id", "p", "name"]


def test_columns_are_matched_in_any_case_and_order(spark, numbers, table):
    write(numbers.selectExpr("name AS NAME", "p AS P", "id + 100 AS Id"), table, mode="append")
    assert read(spark, table).columns == ["id", "p", "name"]
    assert ids(read(spark, table).where("p = 3")) == [3, 7, 11, 15, 19, 103, 107, 111, 115, 119]


def test_missing_columns_become_null(spark, numbers, table):
    write(numbers.selectExpr("id + 100 AS id", "p").limit(1), table, mode="append")
    assert read(spark, table).where("id >= 100 AND name IS NULL").count() == 1


def test_narrower_integers_are_widened_to_the_column(spark, numbers, table):
    write(
        numbers.limit(1).selectExpr("id", "CAST(p AS TINYINT) AS p", "name"), table, mode="append"
    )
    assert dict(read(spark, table).dtypes)["p"] == "int"


def test_a_null_literal_fits_every_column(spark, numbers, table):
    write(numbers.limit(1).withColumn("name", sf.lit(None)), table, mode="append")
    assert read(spark, table).where("name IS NULL").count() == 1


@pytest.mark.usefixtures("plane")
def test_fields_of_structs_are_matched_by_name_at_every_depth(spark, table_path):
    first = spark.sql(
        "SELECT 1 AS id, named_struct('a', 1, 'b', named_struct('x', 'u', 'y', 2)) AS s"
    )
    write(first, table_path)
    second = spark.sql(
        "SELECT named_struct('B', named_struct('Y', 20, 'X', 'v'), 'a', 10) AS S, 2 AS id"
    )
    write(second, table_path, mode="append")
    write(spark.sql("SELECT 3 AS id, named_struct('a', 5) AS s"), table_path, mode="append")
    rows = read(spark, table_path).orderBy("id").select("s.a", "s.b.x", "s.b.y").collect()
    assert [tuple(row) for row in rows] == [(1, "u", 2), (10, "v", 20), (5, None, None)]


@pytest.mark.usefixtures("plane")
def test_structs_inside_arrays_and_maps_are_matched_by_name(spark, table_path):
    write(
        spark.sql(
            "SELECT array(named_struct('a', 1, 'b', 'x')) AS l, "
            "map('k', named_struct('c', 1, 'd', 2)) AS m"
        ),
        table_path,
    )
    write(
        spark.sql(
            "SELECT array(named_struct('b', 'y', 'a', 3)) AS l, "
            "map('k', named_struct('d', 4, 'c', 3)) AS m"
        ),
        table_path,
        mode="append",
    )
    rows = read(spark, table_path).selectExpr("l[0].a", "l[0].b", "m['k'].c", "m['k'].d").collect()
    assert sorted(tuple(row) for row in rows) == [(1, "x", 1, 2), (3, "y", 3, 4)]


def test_another_partitioning_is_refused(numbers, table):
    with pytest.raises(SchemaError) as caught:
        write(numbers, table, mode="append", partitionBy="name")
    assert caught.value.kind == "DELTA_METADATA_MISMATCH"


@pytest.mark.usefixtures("plane")
def test_partitioning_by_every_column_is_refused(spark, table_path):
    with pytest.raises(SchemaError):
        write(spark.range(3), table_path, partitionBy="id")


def test_partitioning_by_a_column_that_does_not_exist_is_refused(numbers, table_path):
    with pytest.raises(SchemaError, match="month"):
        write(numbers, table_path, partitionBy="month")


# replaceWhere and dynamic overwrite


@pytest.mark.usefixtures("plane")
def test_replace_where_on_a_partition_replaces_only_it(spark, numbers, table, log_of):
    rows = numbers.where("id = 1").withColumn("id", sf.lit(1000).cast("long"))
    write(rows, table, mode="overwrite", replaceWhere="p = 1")
    assert ids(read(spark, table)) == [*(i for i in range(20) if i % 4 != 1), 1000]
    parameters = log_of(table).history(1)[0].info.operation_parameters
    assert parameters["predicate"] == "p = 1"


@pytest.mark.usefixtures("plane")
def test_replace_where_refuses_rows_that_it_would_not_replace(spark, numbers, table):
    before = data_directories(table)
    with pytest.raises(SchemaError) as caught:
        write(numbers.where("p = 2"), table, mode="overwrite", replaceWhere="p = 1")
    assert caught.value.kind == "DELTA_REPLACE_WHERE_MISMATCH"
    assert read(spark, table).count() == 20
    assert data_directories(table) == before


@pytest.mark.usefixtures("plane")
def test_replace_where_on_data_columns_replaces_matching_rows_in_one_commit(
    spark, numbers, table, log_of
):
    rows = numbers.where("id = 15").withColumn("name", sf.lit("new"))
    result = write(rows, table, mode="overwrite", replaceWhere="id >= 10 AND p = 3")
    assert ids(read(spark, table)) == [i for i in range(20) if i not in (11, 19)]
    assert read(spark, table).where("name = 'new'").count() == 1
    assert result.version == 1
    metrics = log_of(table).history(1)[0].info.operation_metrics
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("3", "2")


def test_replace_where_that_does_not_resolve_is_refused(numbers, table):
    with pytest.raises(Exception, match="month"):
        write(numbers, table, mode="overwrite", replaceWhere="month = 1")


def test_dynamic_overwrite_replaces_the_partitions_that_are_written(spark, numbers, table):
    rows = numbers.where("id IN (1, 2)")
    write(rows, table, mode="overwrite", partitionOverwriteMode="dynamic")
    assert ids(read(spark, table)) == sorted([1, 2, *(i for i in range(20) if i % 4 in (0, 3))])


@pytest.mark.usefixtures("plane")
def test_dynamic_overwrite_with_the_null_partition_replaces_it(spark, table_path):
    frame = spark.createDataFrame([(1, None), (2, "a"), (3, "b")], "id long, p string")
    write(frame, table_path, partitionBy="p")
    changed = spark.createDataFrame([(10, ""), (20, "a")], "id long, p string")
    write(changed, table_path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert ids(read(spark, table_path)) == [3, 10, 20]


def test_dynamic_overwrite_of_a_table_without_partitions_replaces_all(spark, table_path):
    write(spark.range(5), table_path)
    write(spark.range(1), table_path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert ids(read(spark, table_path)) == [0]


# Reads of the table that is written to


@pytest.mark.usefixtures("plane")
def test_an_append_from_the_table_itself_is_not_blind(spark, table, log_of):
    write(read(spark, table).selectExpr("id + 100 AS id", "p", "name"), table, mode="append")
    assert log_of(table).history(1)[0].info.is_blind_append is False
    assert read(spark, table).count() == 40


@pytest.mark.usefixtures("plane")
def test_an_overwrite_from_a_version_that_others_moved_past_is_a_conflict(spark, numbers, table):
    stale = read(spark, table)
    write(numbers.limit(1).withColumn("id", sf.lit(77).cast("long")), table, mode="append")
    with pytest.raises(ConcurrentAppendException):
        write(stale.where("id < 5"), table, mode="overwrite")
    assert 77 in ids(read(spark, table))


@pytest.mark.usefixtures("plane")
def test_an_overwrite_from_a_version_asked_for_restores_it(spark, numbers, table):
    write(numbers, table, mode="append")
    write(read(spark, table, versionAsOf=0), table, mode="overwrite")
    assert read(spark, table).count() == 20


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


def test_reading_another_table_leaves_an_append_blind(spark, numbers, table, tmp_path, log_of):
    other = str(tmp_path / "other")
    write(read(spark, table), other)
    write(read(spark, other), table, mode="append")
    assert log_of(table).history(1)[0].info.is_blind_append is True


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


@pytest.mark.usefixtures("plane")
def test_a_path_with_blanks_percent_signs_and_a_scheme_is_one_table(spark, numbers, tmp_path):
    path = str(tmp_path / "a b%20ü")
    write(numbers, f"file://{path}", partitionBy="p")
    write(read(spark, path), path, mode="append")
    DeltaTable.forPath(spark, f"file:{path}/").delete("id = 3")
    assert read(spark, path).count() == 38
