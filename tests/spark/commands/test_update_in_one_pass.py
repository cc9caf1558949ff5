"""UPDATE by vectors computes the new values in the pass that finds the rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from numbered_rows import row_ids
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.spark import DeltaTable, read

DEFAULTS = "spark.databricks.delta.properties.defaults."
KEYS = ("enableDeletionVectors", "enableChangeDataFeed", "enableRowTracking")
IN_SPARK = "spark.optimist.spark.driverShortcut.maxBytes"
LARGE_BYTES = 300 << 20


@pytest.fixture
def table(spark, table_path, conf):
    """Twenty rows in two files of each of two partitions; changes and rows are tracked."""
    conf(IN_SPARK, "0")
    log = DeltaLog.for_path(table_path, {f"{DEFAULTS}{key}": "true" for key in KEYS})
    for start in (0, 10):
        rows = spark.range(start, start + 10).selectExpr("id", "id % 2 AS p", "concat('n', id) s")
        log.append(rows.toArrow(), partition_by=["p"])
    return DeltaTable.forPath(spark, table_path)


def stretch(path):
    """Give each data file a hole between its rows and its footer, which makes it large."""
    for file in Path(path).rglob("*.parquet"):
        content = file.read_bytes()
        length = int.from_bytes(content[-8:-4], "little") + 8
        with file.open("r+b") as stretched:
            stretched.truncate(len(content) - length)
            stretched.seek(LARGE_BYTES)
            stretched.write(content[-length:])
        size_bytes = file.stat().st_size
        for commit in Path(path, "_delta_log").glob("*.json"):
            lines = [json.loads(line) for line in commit.read_text().splitlines()]
            for action in lines:
                if action.get("add", {}).get("path", "").endswith(file.name):
                    action["add"]["size"] = size_bytes
            commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for checksum in Path(path, "_delta_log").glob("*.crc"):
        checksum.unlink()


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_rows_changes_and_ids_are_right(spark, table, table_path):
    log = DeltaLog.for_path(table_path)
    before = row_ids(log)
    table.update("id % 10 = 3 AND s LIKE 'n%'", {"s": "concat(s, '!', uuid())", "p": "p + 1"})
    rows = {row.id: row for row in read(spark, table_path).collect()}
    assert len(rows) == 20
    assert {i: row.p for i, row in rows.items()} == {
        i: 2 if i % 10 == 3 else i % 2 for i in range(20)
    }
    assert {i: row.s.partition("!")[0] for i, row in rows.items()} == {
        i: f"n{i}" for i in range(20)
    }
    assert row_ids(log) == before
    feed = log.changes(starting_version=2).to_pylist()
    told = sorted((row["_change_type"], row["id"], row["s"]) for row in feed)
    assert told == sorted(
        (kind, i, rows[i].s if "post" in kind else f"n{i}")
        for kind in ("update_preimage", "update_postimage")
        for i in (3, 13)
    )


@pytest.mark.again
@pytest.mark.parametrize("plane", ["native"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_large_files_which_are_read_in_two_passes_are_updated_as_well(spark, table, table_path):
    large = f"{table_path}-large"
    shutil.copytree(table_path, large)
    stretch(large)
    DeltaTable.forPath(spark, large).update("id % 10 = 3", {"s": "'new'"})
    rows = DeltaLog.for_path(large).to_arrow("s = 'new'").to_pylist()
    assert sorted(row["id"] for row in rows) == [3, 13]


@pytest.mark.parametrize("plane", ["native"], indirect=True)
@pytest.mark.usefixtures("plane")
def test_nothing_is_left_where_no_row_matches_or_one_breaks_a_rule(table, table_path):
    files = sorted(Path(table_path).rglob("*.parquet"))
    table.update("id % 10 = 3 AND s LIKE '%x%'", {"s": "'new'"})
    log = DeltaLog.for_path(table_path)
    log.alter.add_constraint("positive", "id >= 0")
    with pytest.raises(SchemaError, match="positive"):
        table.update("id % 10 = 3", {"id": "-id"})
    assert sorted(Path(table_path).rglob("*.parquet")) == files
    assert sorted(row_ids(log)) == list(range(20))
