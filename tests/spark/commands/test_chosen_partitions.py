"""Commands change the partitions that a condition names, and no others: a sample of each kind.

All kinds with all commands are in `exhaustive/test_every_chosen_partition.py`.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from chosen_partitions import COMMANDS, PartitionedTable
from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.spark import DeltaTable, read, write

SAMPLE = (
    "year(d) = 2021 OR c = 'A'",
    "upper(s) = 'A'",
    "i + 1 = 2 AND NOT (hour(t) = 5)",
    "c = 'A' OR length(s) = 2",
)


@pytest.fixture(scope="module")
def table(enabled, tmp_path_factory):
    made = PartitionedTable(enabled, tmp_path_factory.mktemp("chosen")).build()
    yield made
    made.close()


@pytest.mark.again
@pytest.mark.parametrize(("command", "condition"), list(zip(COMMANDS, SAMPLE, strict=True)))
def test_a_command_changes_what_its_condition_names(table, command, condition):
    (wanted,) = table.matching([condition])
    assert 0 < len(wanted) < 6
    assert table.changed(command, condition) == (wanted, True)


def test_what_spark_can_t_resolve_rewrites_nothing(spark, table):
    path = str(table.path / "original")
    version = DeltaLog.for_path(path).snapshot().version
    for condition, error in (
        ("nosuch(i) = 1", AnalysisException),
        ("nosuch = 1", UsageError),
        ("id = 1", UsageError),
        ("i > 0 AND rand() < 2", UsageError),
    ):
        with pytest.raises(error):
            DeltaTable.forPath(spark, path).optimize().where(condition).executeCompaction()
    assert DeltaLog.for_path(path).snapshot().version == version


@pytest.mark.again
def test_a_dynamic_overwrite_of_a_char_partition_replaces_that_one(enabled, table_path):
    spark, name = enabled, f"delta.`{table_path}`"
    spark.sql(f"CREATE TABLE {name} (id INT, c CHAR(3)) USING delta PARTITIONED BY (c)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'A'), (2, 'B')")
    rows = spark.sql("SELECT 9 AS id, 'A  ' AS c")
    write(rows, table_path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert sorted(row.id for row in read(spark, table_path).collect()) == [2, 9]


@pytest.mark.sample(2)
@pytest.mark.parametrize("condition", ["p = 'a'", "p IN ('a ', 'zz')", "length(p) = 2", "p < 'b'"])
@pytest.mark.parametrize("padding", ["true", "false"])
def test_values_of_a_char_partition_may_lack_their_padding(
    enabled, table_path, conf, condition, padding
):
    conf("spark.sql.readSideCharPadding", padding)
    columns = "id BIGINT, p CHAR(2)"
    enabled.sql(f"CREATE TABLE delta.`{table_path}` ({columns}) USING delta PARTITIONED BY (p)")
    log = DeltaLog.for_path(table_path)
    log.append(pa.table({"id": pa.array([1, 2], pa.int64()), "p": ["a ", "bc"]}))
    (commit,) = Path(table_path, "_delta_log").glob("*1.json")
    commit.write_text(commit.read_text().replace('"a "', '"a"'))  # as other engines write it
    seen = [row.id for row in enabled.table(f"delta.`{table_path}`").where(condition).collect()]
    DeltaTable.forPath(enabled, table_path).delete(condition)
    left = [row.id for row in enabled.table(f"delta.`{table_path}`").collect()]
    assert sorted(seen + left) == [1, 2]
    assert seen or padding == "false"


@pytest.mark.again
def test_a_dynamic_overwrite_reads_times_without_a_zone_in_that_of_the_session(
    spark, table_path, conf
):
    log = DeltaLog.for_path(table_path)
    day = pa.array([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)], pa.timestamp("us", "UTC"))
    log.append(pa.table({"id": pa.array([1, 2], pa.int64()), "t": day}), partition_by=["t"])
    (commit,) = Path(table_path, "_delta_log").glob("*.json")
    commit.write_text(commit.read_text().replace('T00:00:00.000000Z"}', ' 00:00:00"}'))
    conf("spark.sql.session.timeZone", "America/New_York")
    rows = spark.sql("SELECT 9L AS id, TIMESTAMP'2024-01-02 00:00:00' AS t")
    write(rows, table_path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert sorted(row.id for row in read(spark, table_path).collect()) == [1, 9]
    # In UTC that is where the second file seems to be.
    rows = spark.sql("SELECT 8L AS id, TIMESTAMP'2024-01-01 19:00:00' AS t")
    write(rows, table_path, mode="overwrite", partitionOverwriteMode="dynamic")
    assert sorted(row.id for row in read(spark, table_path).collect()) == [1, 8, 9]
