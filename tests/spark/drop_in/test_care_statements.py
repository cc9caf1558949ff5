"""RESTORE and VACUUM as SQL and as methods of `DeltaTable`, in a classic session."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ArgumentTypeError, TableError, TableNotFoundError, UsageError
from optimist.core.statements.result_columns import RESTORED, VACUUMED
from optimist.spark import DeltaTable, disable, enable, write
from optimist.spark.rows.local_rows import spark_columns

UNCHECKED = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture(scope="module")
def delta(spark):
    yield enable(spark)
    disable(spark)


@pytest.fixture
def table(delta, table_path):
    """Version 0 has the rows 0 to 3, version 1 the row 9 as well."""
    write(delta.range(4), table_path)
    write(delta.range(9, 10), table_path, mode="append")
    return f"delta.`{table_path}`"


def ids(delta, table: str) -> list[int]:
    return sorted(row.id for row in delta.sql(f"SELECT id FROM {table}").collect())


@pytest.mark.again
def test_a_table_is_restored_by_version_and_by_time(delta, table, table_path):
    told = delta.sql(f"RESTORE TABLE {table} TO VERSION AS OF 0")
    assert told.schema == spark_columns(RESTORED)
    row = told.collect()[0]
    assert (row.num_of_files_after_restore, row.num_removed_files, row.num_restored_files) == (
        row.num_of_files_after_restore,
        1,
        0,
    )
    assert ids(delta, table) == [0, 1, 2, 3]
    made = DeltaTable.forPath(delta, table_path).history().orderBy("version").collect()
    at = made[1].timestamp
    delta.sql(f"RESTORE {table} TO TIMESTAMP AS OF '{at}'")
    assert ids(delta, table) == [0, 1, 2, 3, 9]
    newest = DeltaTable.forPath(delta, table_path).history(1).collect()[0]
    assert newest.operationParameters == {"timestamp": str(at), "version": None}


def test_statistics_are_computed_anew_by_path_and_by_name(delta, table, table_path):
    made = DeltaTable.forPath(delta, table_path)
    none, one = ({"delta.dataSkippingNumIndexedCols": number} for number in "01")
    properties = DeltaLog.for_path(table_path).alter.set_properties
    delta.sql(f"CREATE TABLE analyzed USING delta LOCATION '{table_path}'")
    try:
        for name, wanted in ((table, none), ("analyzed", one)):
            properties(wanted)
            assert delta.sql(f"ANALYZE TABLE {name} COMPUTE DELTA STATISTICS").collect() == []
            newest = made.history(1).collect()[0]
            assert newest.operation == "COMPUTE STATS"
            assert newest.operationMetrics["numFilesChanged"] != "0"
            texts = DeltaLog.for_path(table_path).snapshot().files["stats"].to_pylist()
            assert all(('"minValues":{"id"' in text) == (wanted == one) for text in texts)
        delta.sql("ANALYZE TABLE analyzed COMPUTE DELTA STATISTICS")
        assert made.history(1).collect()[0].version == newest.version
    finally:
        delta.sql("DROP TABLE analyzed")
    assert ids(delta, table) == [0, 1, 2, 3, 9]


@pytest.mark.again
def test_a_table_is_restored_by_its_name(delta, table_path):
    delta.sql(f"CREATE TABLE cared_for (id BIGINT) USING delta LOCATION '{table_path}'")
    try:
        delta.sql("INSERT INTO cared_for VALUES (1), (2)")
        delta.sql("RESTORE TABLE cared_for TO VERSION AS OF 0").collect()
        assert ids(delta, "cared_for") == []
        DeltaTable.forName(delta, "cared_for").restoreToVersion(1)
        assert ids(delta, "cared_for") == [1, 2]
    finally:
        delta.sql("DROP TABLE cared_for")


@pytest.mark.again
def test_the_methods_answer_as_the_statement_does(delta, table, table_path):
    made = DeltaTable.forPath(delta, table_path)
    assert made.restoreToVersion(0).collect()[0].num_removed_files == 1
    at = made.history().orderBy("version").collect()[1].timestamp
    assert made.restoreToTimestamp(str(at)).collect()[0].num_restored_files == 1
    assert made.restoreToVersion(3).collect() == []
    assert made.restoreToVersion(3).schema == spark_columns(RESTORED)


def test_what_can_not_be_restored_is_refused(delta, table, table_path):
    made = DeltaTable.forPath(delta, table_path)
    with pytest.raises(TableError) as caught:
        delta.sql(f"RESTORE {table} TO VERSION AS OF 7")
    assert caught.value.kind == "DELTA_CANNOT_RESTORE_TABLE_VERSION"
    with pytest.raises(TableError) as caught:
        made.restoreToTimestamp("2001-01-01")
    assert caught.value.kind == "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"
    with pytest.raises(UsageError) as caught_text:
        made.restoreToTimestamp("soon")
    assert caught_text.value.kind == "DELTA_TIMESTAMP_INVALID"
    with pytest.raises(ArgumentTypeError):
        made.restoreToVersion("1")
    with pytest.raises(TableNotFoundError):
        delta.sql(f"RESTORE delta.`{table_path}/none` TO VERSION AS OF 0")


def test_dead_files_are_told_and_then_deleted(delta, table, table_path, conf):
    delta.sql(f"DELETE FROM {table} WHERE id = 9")
    with pytest.raises(UsageError) as caught:
        delta.sql(f"VACUUM {table} RETAIN 0 HOURS")
    assert caught.value.kind == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    conf(UNCHECKED, "false")
    told = delta.sql(f"VACUUM {table} RETAIN 0 HOURS DRY RUN")
    assert told.schema == spark_columns(VACUUMED)
    (dead,) = (row.path for row in told.collect())
    assert dead.startswith(f"file:{table_path}/")
    assert delta.sql(f"VACUUM '{table_path}' LITE").collect() == [(f"file:{table_path}",)]
    listed = f"SELECT '{dead}' AS path, 1L AS length, false AS isDir, 1L AS modificationTime"
    only = f"VACUUM {table} USING INVENTORY ({listed}) RETAIN 0 HOURS DRY RUN"
    assert delta.sql(only).collect() == [(dead,)]
    delta.sql(f"VACUUM {table} RETAIN 0 HOURS")
    assert not Path(dead.removeprefix("file:")).exists()
    assert ids(delta, table) == [0, 1, 2, 3]


def test_the_method_answers_nothing_and_checks_its_argument(delta, table, table_path, conf):
    made = DeltaTable.forPath(delta, table_path)
    made.delete("id = 9")
    with pytest.raises(ArgumentTypeError):
        made.vacuum("0")
    conf(UNCHECKED, "false")
    answer = made.vacuum(0)
    assert (answer.columns, answer.collect()) == ([], [])
    newest = made.history(2).collect()
    assert [row.operation for row in newest] == ["VACUUM END", "VACUUM START"]
    assert newest[0].operationMetrics["numDeletedFiles"] == "1"
    assert ids(delta, table) == [0, 1, 2, 3]


@pytest.mark.again
def test_an_inventory_may_be_a_table(delta, table, table_path, tmp_path, conf):
    conf(UNCHECKED, "false")
    stray = Path(table_path, "stray.parquet")
    stray.write_bytes(b"x")
    rows = delta.sql(
        f"SELECT '{stray}' AS path, 1L AS length, false AS isDir, 1L AS modificationTime"
    )
    write(rows, str(tmp_path / "inventory"))
    delta.sql(f"VACUUM {table} USING INVENTORY delta.`{tmp_path}/inventory` RETAIN 0 HOURS")
    assert not stray.exists()
