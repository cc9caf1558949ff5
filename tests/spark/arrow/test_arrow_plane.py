"""What only the arrow plane does: Python data sources, pyarrow in the workers, errors across."""

from __future__ import annotations

import json
import pickle
from functools import partial, reduce
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import (
    ConfigError,
    OptimistError,
    StorageError,
    TableError,
    UsageError,
)
from optimist.core.log.file_table import add_files
from optimist.logstores import LocalLogStore
from optimist.spark import DeltaTable, read, write
from optimist.spark.arrow.source import ScanOptions
from optimist.spark.arrow.tasks import Grouping
from optimist.spark.arrow.writer import _may_have_leftovers
from optimist.spark.planes.planes import plane_of
from optimist.spark.planes.sources import table_sources
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.task_errors import error_of_task, portable_errors
from read_back import ids
from sixty_rows import ROWS, SCHEMA, ids_for_which, write_sixty_rows


@pytest.fixture(autouse=True)
def on_the_arrow_plane(conf):
    conf("spark.optimist.spark.plane", "arrow")


@pytest.fixture
def table(spark, copied):
    return copied("sixty rows", partial(write_sixty_rows, spark))


def remove_files(path, fragment):
    found = [item for item in Path(path).rglob("*.parquet") if fragment in str(item)]
    for item in found:
        item.unlink()
    assert found


CONDITIONS = [
    "id < 25",
    "x IS NULL",
    "p = 1",
    "p IN (0, 2) OR p IS NULL",
    "p = 1 OR x > 4",
    "x + p > 5",
    "x <=> null",
    "t.id > 50",
    "P = 2 AND ID < 40",
]


@pytest.fixture(scope="module")
def model(spark):
    return ids_for_which(spark, CONDITIONS)


@pytest.mark.sample(12)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_delete_and_update_agree_with_the_model(spark, table, model, condition, rows_of):
    hit = model[condition]
    target = DeltaTable.forPath(spark, table).alias("t")
    target.update(condition, {"s": sf.concat(sf.lit("u"), "s")})
    assert rows_of(read(spark, table)) == sorted(
        ((i, p, x, f"u{s}" if i in hit else s) for i, p, x, s in ROWS), key=repr
    )
    target.delete(condition)
    assert ids(read(spark, table)) == [row[0] for row in ROWS if row[0] not in hit]


# Reading


def test_partition_filters_leave_files_unread(spark, table):
    remove_files(table, "p=2")
    assert ids(read(spark, table).where("p = 1")) == [row[0] for row in ROWS if row[1] == 1]
    with pytest.raises(Exception, match="DELTA_FILE_NOT_FOUND_DETAILED"):
        read(spark, table).collect()


@pytest.mark.again
def test_statistics_leave_files_unread(spark, table_path, conf):
    write(spark.range(0, 10).coalesce(1), table_path)
    (first,) = Path(table_path).rglob("*.parquet")
    write(spark.range(10, 20).coalesce(1), table_path, mode="append")
    first.unlink()
    assert ids(read(spark, table_path).where("id > 12 AND id < 15")) == [13, 14]
    conf("spark.databricks.delta.stats.skipping", "false")
    with pytest.raises(Exception, match="DELTA_FILE_NOT_FOUND_DETAILED"):
        read(spark, table_path).where("id > 12").collect()


@pytest.mark.again
def test_a_frame_may_be_used_again_after_a_filter_was_pushed(spark, table):
    frame = read(spark, table)
    assert ids(frame.where("p = 1 AND id < 10")) == [1, 4, 7]
    assert frame.count() == 60
    assert ids(frame.where("p = 2 AND id < 10")) == [2, 5, 8]


@pytest.mark.again
def test_each_side_of_a_union_or_join_has_its_own_filters(spark, table):
    frame = read(spark, table)
    union = frame.where("p = 1 AND id < 10").union(frame.where("p = 2 AND id < 10"))
    assert ids(union) == [1, 2, 4, 5, 7, 8]
    many = [frame.where(f"p = {number % 2 + 1} AND id < 10").select("id") for number in range(7)]
    assert reduce(DataFrame.union, many).distinct().count() == 6
    low, high = frame.where("id < 30").alias("a"), frame.where("id >= 30").alias("b")
    assert low.join(high, sf.expr("a.x = b.x AND a.id = 3")).count() == 3
    frame.createOrReplaceTempView("rows_of_arrow")
    query = "SELECT id FROM rows_of_arrow WHERE p = 1 AND id IN (SELECT id FROM rows_of_arrow WHERE"
    assert ids(spark.sql(f"{query} x = 3)")) == [i for i, p, x, _ in ROWS if (p, x) == (1, 3)]
    spark.catalog.dropTempView("rows_of_arrow")


def test_frames_of_one_version_share_a_cache(spark, table):
    read(spark, table).cache().count()
    again = read(spark, table)
    assert again.storageLevel.useMemory
    remove_files(table, ".parquet")
    assert again.count() == 60
    again.unpersist()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "condition",
    [
        "s LIKE 'n1%'",
        "s = 'n07' OR x = 3",
        "NOT (x = 3)",
        "x IN (1, 2, null)",
        "d < DATE '2024-01-20'",
        "ts >= TIMESTAMP '2024-01-01 12:00:00'",
        "st.a > 50",
        "dec > 1.5",
        "f = double('NaN')",
        "x + 1 > 5",
        "false",
    ],
)
def test_pushed_filters_never_lose_a_row(spark, tmp_path, condition, conf):
    conf("spark.sql.session.timeZone", "America/New_York")
    path = str(tmp_path / "typed")
    frame = spark.createDataFrame(ROWS, SCHEMA).selectExpr(
        "*",
        "date_add(DATE '2024-01-01', CAST(id AS INT)) AS d",
        "timestamp_seconds(1704067200 + id * 3600) AS ts",
        "named_struct('a', id * 2) AS st",
        "CAST(id / 10 AS DECIMAL(10, 2)) AS dec",
        "if(id = 3, double('NaN'), id / 2) AS f",
    )
    write(frame.repartition(4, "id"), path)
    assert ids(read(spark, path).where(condition)) == ids(frame.where(condition))


@pytest.mark.again
def test_large_files_are_read_by_several_tasks_each_row_once(spark, table_path, conf):
    rows = pa.table({"id": range(4000), "s": [f"text {i}" for i in range(4000)]})
    open_log(spark, table_path).append(rows)
    (path,) = Path(table_path).rglob("*.parquet")
    pq.write_table(rows, path, row_group_size=100)  # the same rows, in many row groups
    conf("spark.sql.files.maxPartitionBytes", "2k")
    conf("spark.sql.files.openCostInBytes", "1k")
    frame = read(spark, table_path)
    assert frame.rdd.getNumPartitions() > 2
    assert ids(frame) == list(range(4000))


def test_columns_that_came_later_and_void_columns_are_null(spark, table):
    wider = spark.sql("SELECT 100L AS id, 1 AS p, 1 AS x, 's' AS s, null AS v, 5 AS late")
    write(wider, table, mode="append", mergeSchema=True)
    frame = read(spark, table)
    assert frame.columns == ["id", "p", "x", "s", "v", "late"]
    assert frame.where("late IS NULL AND v IS NULL").count() == 60
    DeltaTable.forPath(spark, table).update("id = 100", {"late": "6"})
    assert read(spark, table).where("late = 6").count() == 1


def test_the_version_of_a_frame_stays_and_time_travel_is_known(spark, table):
    frame, first = read(spark, table), read(spark, table, versionAsOf=0)
    DeltaTable.forPath(spark, table).delete("id >= 5")
    assert (frame.count(), first.count(), read(spark, table).count()) == (60, 30, 5)
    (source,) = table_sources(first.where("p = 1"))
    assert (source.version, source.is_time_travel) == (0, True)
    (source,) = table_sources(frame)
    assert (source.version, source.is_time_travel) == (1, False)


def test_a_table_that_was_made_anew_is_not_read_as_the_old_one(spark, table, tmp_path):
    frame = read(spark, table)
    Path(table).rename(tmp_path / "old")
    write(spark.createDataFrame(ROWS, SCHEMA), table)
    write(spark.createDataFrame(ROWS, SCHEMA), table, mode="append")
    with pytest.raises(Exception, match="DELTA_FILE_NOT_FOUND_DETAILED"):
        frame.where("x = 4").collect()


def test_options_of_a_scan_survive_being_text():
    scan = ScanOptions(
        path="/t",
        version=7,
        table_id="a",
        log_identity="b",
        zone="UTC",
        grouping=Grouping(1, 2, 3),
        is_time_travel=True,
    )
    folded = {key.lower(): value for key, value in scan.to_options().items()}
    assert ScanOptions.from_options(folded) == scan


# Writing


def test_text_sizes_of_spark_are_understood(spark, conf):
    conf("spark.sql.files.maxPartitionBytes", "2m")
    assert Grouping.of(spark, is_connect=False).max_bytes == 2 << 20


@pytest.mark.again
def test_each_task_writes_one_file_per_partition(spark, table_path, log_of):
    frame = spark.range(0, 1000, 1, 3).selectExpr("id", "id % 4 AS p")
    write(frame, table_path, partitionBy="p")
    adds = add_files(log_of(table_path).snapshot().files)
    assert len(adds) == 12
    assert sum(json.loads(add.stats)["numRecords"] for add in adds) == 1000


def test_what_another_attempt_of_a_task_has_left_is_removed(spark, table_path, monkeypatch):
    monkeypatch.setattr("optimist.spark.arrow.writer._may_have_leftovers", lambda *_: True)
    aborted = []
    monkeypatch.setattr(
        LocalLogStore, "abort_uploads", lambda self, path: aborted.append(leave_behind(path))
    )

    def leave_behind(directory):
        Path(directory, "part-00000-of-another-attempt.parquet").write_bytes(b"half a file")
        return directory

    write(spark.range(10).coalesce(1), table_path)
    assert len(aborted) == 1
    assert len(list(Path(table_path).rglob("*.parquet"))) == 1
    assert read(spark, table_path).count() == 10


def test_a_codec_that_arrow_does_not_write_is_refused(spark, table_path):
    with pytest.raises(UsageError) as caught:
        write(spark.range(3), table_path, compression="lzo")
    assert caught.value.kind == "DELTA_ILLEGAL_OPTION"
    assert not list(Path(table_path).rglob("*.parquet"))


# Errors


def test_a_missing_data_file_keeps_its_error_class_in_commands(spark, table):
    remove_files(table, "p=1")
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, table).update("x = 4", {"x": "5"})
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert "p=1" in str(caught.value.fields["path"])


@pytest.mark.again
def test_a_data_file_that_is_no_parquet_is_told(spark, table):
    next(iter(Path(table).rglob("*.parquet"))).write_bytes(b"PAR1 no footer here PAR1")
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, table).delete("x = 4")
    assert caught.value.kind == "OPTIMIST_UNREADABLE_DATA_FILE"


def test_errors_of_workers_come_out_as_they_were_raised():
    with pytest.raises(RuntimeError) as text, portable_errors():
        raise StorageError("The disk is full.", kind="DISK", path="/t", retryable=False)
    with pytest.raises(StorageError) as caught, original_errors():
        raise ValueError(f"Traceback: {text.value} and more")
    assert (caught.value.kind, caught.value.fields["path"]) == ("DISK", "/t")
    assert str(caught.value) == "[DISK] The disk is full."


def test_errors_without_a_token_or_with_half_of_one_stay_what_they_are():
    assert error_of_task(["nothing"]) is None
    assert error_of_task(["optimist-task-error:AAAA;"]) is None
    with pytest.raises(ValueError, match="plain"), original_errors():
        raise ValueError("plain")


@pytest.mark.parametrize("package", ["optimist", "pyarrow"])
def test_workers_without_a_package_are_told_in_plain_words(package):
    text = f"in optimist/core/data.py\nModuleNotFoundError: No module named '{package}'"
    error = error_of_task([text])
    assert isinstance(error, ConfigError)
    assert (error.kind, error.fields["package"]) == ("OPTIMIST_MISSING_PACKAGE", package)
    assert error_of_task(["in udf.py\nModuleNotFoundError: No module named 'pyarrow'"]) is None


def test_planes_and_their_parts_show_no_options(spark, table, conf):
    conf("fs.s3a.secret.key", "hush")
    log = open_log(spark, table)
    frame = read(spark, table)
    assert "hush" not in repr(plane_of(spark, log.table)) + frame._jdf.queryExecution().toString()


def test_an_error_is_the_same_after_its_way_through_pickle():
    error = OptimistError("m", kind="K", path="/t")
    assert pickle.loads(pickle.dumps(error)).fields == error.fields


@pytest.mark.parametrize(
    ("attempts", "runs", "expected"),
    [
        ([0, 0, 0], [7, 8, 8], False),
        ([0, 1], [7, 8], True),
        ([0, 0], [7, 9], True),
        ([], [], False),
    ],
)
def test_a_stage_that_was_tried_again_leaves_a_gap_between_its_tasks(
    spark, attempts, runs, expected
):
    answers = pa.table(
        {"attempt": pa.array(attempts, pa.int32()), "run": pa.array(runs, pa.int64())}
    )
    assert _may_have_leftovers(spark.range(1), answers) is expected


@pytest.mark.again
def test_a_write_that_ran_once_looks_for_no_leftovers(spark, table_path, monkeypatch):
    aborted = []
    monkeypatch.setattr(LocalLogStore, "abort_uploads", lambda self, path: aborted.append(path))
    write(spark.range(10).repartition(3, "id"), table_path)
    assert aborted == []


@pytest.mark.parametrize("value", ["true", "TRUE", " True "])
def test_speculation_is_on_in_any_case(value):
    rows = SimpleNamespace(sparkSession=SimpleNamespace(conf={"spark.speculation": value}))
    answers = pa.table({"run": [1], "attempt": [0]})
    assert _may_have_leftovers(rows, answers)
