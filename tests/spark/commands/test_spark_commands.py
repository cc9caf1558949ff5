"""DELETE and UPDATE against a model in memory, and what they record."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from pathlib import Path

import deltalake
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from optimist.core.errors import (
    ConcurrentAppendException,
    DeltaConcurrentModificationException,
    TableError,
    UsageError,
)
from optimist.core.predicates.tree import Opaque
from optimist.core.table.newest_snapshot import NewestSnapshot
from optimist.spark import DeltaTable, read, write
from optimist.spark.conditions.condition import resolve_condition
from optimist.spark.native.frame import scan_frame
from sixty_rows import ROWS, SCHEMA, ids_for_which, write_sixty_rows


@pytest.fixture
def table(spark, copied):
    return copied("sixty rows", partial(write_sixty_rows, spark))


CONDITIONS = [
    "id = 17",
    "id < 25",
    "x = 3",
    "x <> 3",
    "x IS NULL",
    "p = 1",
    "p = '1'",
    "p IS NULL",
    "p IN (0, 2) OR p IS NULL",
    "p = 1 AND x > 4",
    "p = 1 OR x > 4",
    "s LIKE 'n0%'",
    "x + p > 5",
    "length(s) = 3",
    "cast(p AS string) = '2'",
    "false",
    "true",
    "CAST(null AS BOOLEAN)",
    "NOT (x = 1)",
    "x <=> null",
    "t.id > 50",
    "P = 2 AND ID < 40",
]


@pytest.fixture(scope="module")
def model(spark):
    return ids_for_which(spark, CONDITIONS)


@pytest.mark.sample(3)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_delete_leaves_the_rows_of_the_model(spark, table, model, condition, rows_of):
    gone = model[condition]
    assert DeltaTable.forPath(spark, table).alias("t").delete(condition) is None
    expected = sorted((row for row in ROWS if row[0] not in gone), key=repr)
    assert rows_of(read(spark, table)) == expected


@pytest.mark.sample(3)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_update_changes_the_rows_of_the_model(spark, table, model, condition, rows_of):
    hit = model[condition]
    target = DeltaTable.forPath(spark, table).alias("t")
    target.update(condition, {"x": "coalesce(x, 0) + 100", "s": sf.concat(sf.lit("u"), "s")})
    expected = [
        (i, p, (x or 0) + 100, "u" + s) if i in hit else (i, p, x, s) for i, p, x, s in ROWS
    ]
    assert rows_of(read(spark, table)) == sorted(expected, key=repr)


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_other_engines_read_what_is_left(spark, table):
    DeltaTable.forPath(spark, table).delete("id >= 10")
    DeltaTable.forPath(spark, table).update("id = 3", {"p": "7"})
    rows = deltalake.DeltaTable(table).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["p"]) for row in rows] == [
        (i, 7 if i == 3 else p) for i, p, _, _ in ROWS if i < 10
    ]


def test_delete_without_a_condition_removes_all_files_and_reads_none(spark, table, log_of):
    DeltaTable.forPath(spark, table).delete()
    assert read(spark, table).count() == 0
    info = log_of(table).history(1)[0].info
    assert info.operation_metrics["numAddedFiles"] == "0"
    assert info.operation_metrics["numDeletedRows"] == "60"


@pytest.mark.parametrize(
    "command",
    [lambda target: target.delete("p = 99"), lambda target: target.update("p = 99", {"s": "'x'"})],
    ids=["delete", "update"],
)
def test_a_command_looks_for_the_newest_version_once(spark, table, monkeypatch, command):
    target = DeltaTable.forPath(spark, table)
    refresh, looks = NewestSnapshot.refresh, []

    def counted(newest):
        looks.append(newest)
        return refresh(newest)

    monkeypatch.setattr(NewestSnapshot, "refresh", counted)
    assert command(target) is None
    assert len(looks) == 1


@pytest.mark.usefixtures("plane")
def test_delete_of_a_partition_writes_no_file(spark, table, log_of):
    DeltaTable.forPath(spark, table).delete("p = 1")
    metrics = log_of(table).history(1)[0].info.operation_metrics
    assert (metrics["numAddedFiles"], metrics["numRemovedFiles"]) == ("0", "2")


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_delete_rewrites_only_files_with_matching_rows(spark, table, log_of):
    DeltaTable.forPath(spark, table).delete("id = 30 OR id = 31")
    info = log_of(table).history(1)[0].info
    metrics = info.operation_metrics
    assert (metrics["numRemovedFiles"], metrics["numDeletedRows"]) == ("2", "2")
    assert int(metrics["numCopiedRows"]) == sum(
        1 for i, p, _, _ in ROWS if i > 31 and p in (ROWS[30][1], ROWS[31][1])
    )
    assert info.operation_parameters == {"predicate": '["id = 30 OR id = 31"]'}


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_update_metrics_tell_changed_and_copied_rows(spark, table, log_of):
    DeltaTable.forPath(spark, table).update(sf.col("id") == 30, {"s": sf.lit("z")})
    info = log_of(table).history(1)[0].info
    metrics = info.operation_metrics
    assert (metrics["numUpdatedRows"], metrics["numRemovedFiles"]) == ("1", "1")
    assert (info.operation, info.is_blind_append) == ("UPDATE", False)


@pytest.mark.usefixtures("plane")
def test_a_delete_that_matches_nothing_makes_no_version(spark, table, log_of):
    DeltaTable.forPath(spark, table).delete("id = 1000")
    assert log_of(table).snapshot().version == 1


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_update_that_moves_rows_to_another_partition(spark, table, rows_of):
    DeltaTable.forPath(spark, table).update("p = 1", {"p": "5"})
    assert read(spark, table).where("p = 1").count() == 0
    assert read(spark, table).where("p = 5").count() == sum(1 for row in ROWS if row[1] == 1)


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_values_of_an_update_see_the_row_as_it_was(spark, table):
    DeltaTable.forPath(spark, table).update("id = 11", {"id": "x", "x": "cast(id AS int)"})
    assert read(spark, table).where("id = 1 AND x = 11").count() == 1


@pytest.mark.usefixtures("plane")
def test_update_without_a_condition_changes_every_row(spark, table):
    DeltaTable.forPath(spark, table).update(set={"s": "'all'"})
    assert read(spark, table).where("s = 'all'").count() == 60


@pytest.mark.parametrize("condition", ["rand() > 0.5", "id IN (SELECT 1 WHERE rand() > 0.5)"])
def test_conditions_that_can_not_be_tracked_are_refused(spark, table, condition):
    table = DeltaTable.forPath(spark, table)
    for change in (table.delete, lambda text: table.update(text, {"x": "1"})):
        with pytest.raises(UsageError):
            change(condition)


@pytest.mark.again
@pytest.mark.parametrize("condition", ["nope = 1", "id >", "id + 1"])
def test_conditions_that_do_not_resolve_are_refused(spark, table, condition):
    with pytest.raises(AnalysisException):
        DeltaTable.forPath(spark, table).delete(condition)
    assert read(spark, table).count() == 60


@pytest.mark.parametrize(
    ("assignments", "kind"),
    [
        ({"nope": "1"}, "DELTA_COLUMN_NOT_FOUND"),
        ({"x": "1", "X": "2"}, "DELTA_CONFLICT_SET_COLUMN"),
        ({}, "OPTIMIST_EMPTY_UPDATE"),
    ],
)
def test_assignments_that_make_no_sense_are_refused(spark, table, assignments, kind):
    with pytest.raises(UsageError) as caught:
        DeltaTable.forPath(spark, table).update("id = 1", assignments)
    assert caught.value.kind == kind


@pytest.mark.again
def test_a_value_that_does_not_fit_the_column_changes_nothing(spark, table):
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        DeltaTable.forPath(spark, table).update("id = 1", {"x": "s"})
    assert read(spark, table).count() == 60


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_conditions_on_times_match_in_the_zone_of_the_session(spark, table_path, conf):
    conf("spark.sql.session.timeZone", "America/New_York")
    frame = spark.sql("SELECT id, timestamp_seconds(1720000000 + id * 3600) AS t FROM range(48)")
    write(frame.repartition(4, "id"), table_path)
    day = "t >= '2024-07-04 00:00:00' AND t < '2024-07-05'"
    expected = {row.id for row in frame.where(f"NOT ({day})").collect()}
    DeltaTable.forPath(spark, table_path).delete(day)
    assert {row.id for row in read(spark, table_path).collect()} == expected


# Conflicts


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_a_delete_conflicts_with_rows_that_came_in_the_meantime(spark, table, meeting, tmp_path):
    late = spark.createDataFrame([(5, 0, 1, "late")], SCHEMA)
    meeting(lambda: write(late, table, mode="append"))
    files = {path.parent.parent.name for path in (tmp_path / "table").rglob("*.parquet")}
    with pytest.raises(ConcurrentAppendException) as caught:
        DeltaTable.forPath(spark, table).delete("id < 9")
    assert caught.value.conflict.winning_version == 2
    left = {path.parent.parent.name for path in (tmp_path / "table").rglob("*.parquet")}
    assert len(left - files) == 1  # the winner's; the loser has cleaned up
    DeltaTable.forPath(spark, table).delete("id < 9")
    assert read(spark, table).where("id < 9").count() == 0


@pytest.mark.again
def test_a_delete_goes_together_with_rows_that_it_can_not_match(spark, table, meeting):
    late = spark.createDataFrame([(500, 0, 1, "late")], SCHEMA)
    meeting(lambda: write(late, table, mode="append"))
    DeltaTable.forPath(spark, table).delete("id < 9")
    assert read(spark, table).count() == 52


@pytest.mark.again
def test_two_updates_of_one_file_conflict_and_the_second_run_wins(spark, table, meeting):
    meeting(lambda: DeltaTable.forPath(spark, table).update("id = 1", {"x": "111"}))
    with pytest.raises(DeltaConcurrentModificationException):
        DeltaTable.forPath(spark, table).update("id = 4", {"x": "444"})
    DeltaTable.forPath(spark, table).update("id = 4", {"x": "444"})
    rows = read(spark, table).where("id IN (1, 4)").collect()
    assert sorted(row.x for row in rows) == [111, 444]


def test_updates_of_different_partitions_go_together(spark, table, meeting):
    meeting(lambda: DeltaTable.forPath(spark, table).update("p = 2 AND id = 2", {"x": "111"}))
    DeltaTable.forPath(spark, table).update("p = 1 AND id = 4", {"x": "444"})
    rows = read(spark, table).where("id IN (2, 4)").collect()
    assert sorted(row.x for row in rows) == [111, 444]


@pytest.mark.again
def test_jobs_in_threads_of_one_session_do_not_disturb_each_other(spark, table):
    errors = []

    def change(partition):
        try:
            DeltaTable.forPath(spark, table).update(f"p = {partition}", {"s": f"'p{partition}'"})
        except Exception as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    threads = [threading.Thread(target=change, args=(partition,)) for partition in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert read(spark, table).where("s = concat('p', p)").count() == sum(
        1 for row in ROWS if row[1] is not None
    )


# How conditions are tracked


def resolved(spark, path, condition, log_of):
    snapshot = log_of(path).snapshot()
    return resolve_condition(
        read(spark, path), condition, schema=snapshot.schema, partition_columns=("p",)
    )


def test_a_column_is_tracked_by_what_spark_analysed(spark, table, log_of):
    condition = resolved(spark, table, (sf.col("p") == 1) & (sf.col("x") > 2), log_of)
    assert condition.predicate.is_exact
    assert condition.predicate.columns() == {("p",), ("x",)}
    assert not condition.is_partition_only


def test_a_condition_that_is_not_understood_is_tracked_as_opaque(spark, table, log_of):
    condition = resolved(spark, table, "exists(array(x), e -> e = 1)", log_of)
    assert not condition.predicate.is_exact


def test_instants_as_partition_values_are_opaque_outside_utc(spark, table_path, log_of, conf):
    now = "current_timestamp()"
    write(spark.sql(f"SELECT {now} AS p, {now} AS t"), table_path, partitionBy="p")
    in_utc = resolved(spark, table_path, "t > '2024-01-01' AND p > '2024-01-01'", log_of)
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    elsewhere = resolved(spark, table_path, "t > '2024-01-01' AND p > '2024-01-01'", log_of)
    assert in_utc.predicate.is_exact
    by_time, by_partition = elsewhere.predicate.conjuncts()
    assert str(by_time) == "t > TIMESTAMP '2023-12-31 15:00:00Z'"
    assert type(by_partition) is Opaque


ODD_COMPARISONS = [
    "num = 5",
    "num > 10",
    "num = '05'",
    "num < '1'",
    "i = '7'",
    "i = ' 7 '",
    "i = 7.0",
    "i < 7.5",
    "i = CAST(7 AS DECIMAL(20, 4))",
    "f = 0.1",
    "f > 0.1",
    "f = CAST(0.1 AS FLOAT)",
    "f = double('NaN')",
    "f > 1e30",
    "d = '2024-01-05'",
    "d = '2024-1-5'",
    "d > '2024-01-05 12:00:00'",
    "d = TIMESTAMP '2024-01-05 00:00:00'",
    "d >= TIMESTAMP '2024-01-05 10:00:00'",
    "ts = DATE '2024-01-05'",
    "ts > '2024-01-05'",
    "ts BETWEEN '2024-01-03' AND '2024-01-04 23:59:59.999999'",
    "dec = 1.50",
    "dec > 1.499999",
    "dec = '1.5'",
    "b",
    "NOT b",
    "b = 'true'",
    "num LIKE '1_'",
    "num IN (5, '7')",
    "i IN ('5', 7)",
    "year(d) = 2024 AND i > 3",
    "num = i",
    "i IS DISTINCT FROM 5",
    "coalesce(i, 0) = 0",
]


@pytest.fixture(scope="module")
def odd_table(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("odd") / "table")
    frame = spark.sql(
        "SELECT CAST(id AS INT) AS i, CAST(id AS STRING) AS num, CAST(id / 10 AS FLOAT) AS f, "
        "date_add(DATE '2024-01-01', CAST(id AS INT)) AS d, "
        "timestampadd(HOUR, id * 6, TIMESTAMP '2024-01-01 00:00:00') AS ts, "
        "CAST(id / 4 AS DECIMAL(10, 2)) AS dec, id % 2 = 0 AS b FROM range(40)"
    )
    nan = frame.limit(1).withColumn("f", sf.lit(float("nan")).cast("float"))
    write(frame.union(nan).repartitionByRange(20, "i"), path)
    return path


@pytest.mark.sample(6)
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("condition", ODD_COMPARISONS)
def test_no_file_with_a_matching_row_is_left_out_of_the_candidates(
    spark, odd_table, condition, ansi, conf, log_of
):
    conf("spark.sql.ansi.enabled", ansi)
    snapshot = log_of(odd_table).snapshot()
    frame = read(spark, odd_table)
    predicate = resolve_condition(
        frame, condition, schema=snapshot.schema, partition_columns=()
    ).predicate
    candidates = scan_frame(spark, snapshot, snapshot.scan(predicate).files)
    expected = frame.where(condition).collect()
    found = candidates.where(condition).collect()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_rows_that_the_statistics_do_not_know_are_neither_doubled_nor_lost(spark, tmp_path):
    write(spark.range(10).coalesce(1), str(tmp_path / "written"))
    table_path = shutil.copytree(tmp_path / "written", tmp_path / "copy")
    commit = Path(table_path, "_delta_log", f"{0:020}.json")
    text = commit.read_text()
    assert text.count('\\"numRecords\\":10') == 1
    commit.write_text(text.replace('\\"numRecords\\":10', '\\"numRecords\\":3'))
    files = sorted(Path(table_path).rglob("*.parquet"))
    table = DeltaTable.forPath(spark, str(table_path))
    for command in (
        lambda: table.delete("id = 4"),
        lambda: table.update("id = 4", {"id": "id"}),
    ):
        with pytest.raises(TableError) as caught:
            command()
        assert caught.value.kind == "DELTA_NUM_RECORDS_MISMATCH"
    assert table.history().count() == 1
    assert sorted(Path(table_path).rglob("*.parquet")) == files
