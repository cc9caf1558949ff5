"""RESTORE as SQL and as methods of `DeltaTable`, in a classic session."""

from __future__ import annotations

import pytest

from optimist.core.errors import ArgumentTypeError, TableError, TableNotFoundError, UsageError
from optimist.spark import DeltaTable, disable, enable, write
from optimist.spark.commands.restore import RESTORE_SCHEMA


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


def test_a_table_is_restored_by_version_and_by_time(delta, table, table_path):
    told = delta.sql(f"RESTORE TABLE {table} TO VERSION AS OF 0")
    assert told.schema == RESTORE_SCHEMA
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


def test_a_table_is_restored_by_its_name(delta):
    delta.sql("DROP TABLE IF EXISTS cared_for")
    delta.range(3).write.format("delta").saveAsTable("cared_for")
    delta.range(5).write.format("delta").mode("append").saveAsTable("cared_for")
    delta.sql("RESTORE TABLE cared_for TO VERSION AS OF 0").collect()
    assert ids(delta, "cared_for") == [0, 1, 2]
    DeltaTable.forName(delta, "cared_for").restoreToVersion(1)
    assert len(ids(delta, "cared_for")) == 8


def test_the_methods_answer_as_the_statement_does(delta, table, table_path):
    made = DeltaTable.forPath(delta, table_path)
    assert made.restoreToVersion(0).collect()[0].num_removed_files == 1
    at = made.history().orderBy("version").collect()[1].timestamp
    assert made.restoreToTimestamp(str(at)).collect()[0].num_restored_files == 1
    assert made.restoreToVersion(3).collect() == []
    assert made.restoreToVersion(3).schema == RESTORE_SCHEMA


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
