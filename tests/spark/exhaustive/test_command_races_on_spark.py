"""Every two commands at once on Spark: the table holds what they make of it one after the other.

Both have done their work before either commits, and one that meets a true conflict runs again.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import row_histories
from exhaustive_cases import CASES
from optimist.core.errors import DeltaConcurrentModificationException
from optimist.core.testing.logstore_races import run_in_threads
from optimist.core.transaction.log_committer import LogCommitter
from optimist.spark import DeltaTable, write
from row_histories import FILES, Command, after, as_table, ensure_serial, make, rows_of, within

IN_DRIVER = "spark.optimist.spark.driverShortcut.maxBytes"
ATTEMPTS = 20
IS_FULL = CASES > 100_000
STRIDE = 1 if IS_FULL else 29
"""Every how many races one is run."""


def appends(rows):
    return Command(f"append {rows}", partial(put, rows, mode="append"), lambda old: {**old, **rows})


def overwrites(rows):
    return Command(f"overwrite {rows}", partial(put, rows, mode="overwrite"), lambda old: rows)


def replaces(low, high, rows):
    return Command(
        f"replace[{low},{high})",
        partial(put, rows, mode="overwrite", replaceWhere=within(low, high)),
        lambda old: {**without(old, low, high), **rows},
    )


def put(rows, spark, path, **options):
    return write(spark.createDataFrame(as_table(rows)), path, **options)


def without(rows, low, high):
    return {i: v for i, v in rows.items() if not low <= v < high}


def deletes(low, high):
    return Command(
        f"delete[{low},{high})",
        lambda spark, path: DeltaTable.forPath(spark, path).delete(within(low, high)),
        lambda old: without(old, low, high),
    )


def updates(low, high, step):
    values = {"v": f"v + {step}"}
    return Command(
        f"update[{low},{high})+{step}",
        lambda spark, path: DeltaTable.forPath(spark, path).update(within(low, high), values),
        lambda old: {i: v + step if low <= v < high else v for i, v in old.items()},
    )


def upserts(rows):
    def run(spark, path):
        source = spark.createDataFrame(as_table(rows)).alias("s")
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return Command(f"upsert {rows}", run, lambda old: {**old, **rows})


ONE = [
    appends({500: 2}),
    overwrites({1: 2, 70: 3}),
    replaces(0, 3, {71: 1}),
    deletes(0, 3),
    updates(1, 4, 100),
    upserts({2: 50, 60: 1}),
]
OTHER = [
    appends({501: 3}),
    overwrites({2: 4, 80: 2}),
    replaces(2, 5, {81: 3}),
    deletes(2, 5),
    updates(3, 6, -3),
    upserts({3: 2, 60: 9}),
]
RACES = list(itertools.product(ONE, OTHER, [True, False], [True, False], [True, False]))


def until_it_lands(command, spark, path):
    for _ in range(ATTEMPTS):
        try:
            return command.run(spark, path)
        except DeltaConcurrentModificationException:
            continue
    raise AssertionError(f"{command} lost {ATTEMPTS} races")


@pytest.fixture
def race(monkeypatch):
    """Run commands at once: each has done its work before any of them tries to commit."""

    def run(spark, path, commands):
        barrier, here = threading.Barrier(len(commands)), threading.local()
        land = LogCommitter._land

        def met(committer, ours, request):
            if not getattr(here, "has_met", False):
                here.has_met = True
                barrier.wait(timeout=120)
            return land(committer, ours, request)

        monkeypatch.setattr(LogCommitter, "_land", met)
        run_in_threads([partial(until_it_lands, command, spark, path) for command in commands])

    return run


def ensure_feed_leads_to_the_rows(log):
    """What the commands have changed, commit by commit, makes the table of the first rows."""
    rows = dict(after([]))
    names = ["id", "v", "_change_type", "_commit_version"]
    changes = log.changes(columns=names, starting_version=FILES).to_pylist()
    for _, found in itertools.groupby(
        sorted(changes, key=lambda row: row["_commit_version"]), lambda row: row["_commit_version"]
    ):
        found = list(found)
        for row in found:
            if row["_change_type"] in ("delete", "update_preimage"):
                assert rows.pop(row["id"]) == row["v"]
        for row in found:
            if row["_change_type"] in ("insert", "update_postimage"):
                assert row["id"] not in rows
                rows[row["id"]] = row["v"]
    assert rows == rows_of(log.to_arrow())


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("one", "other", "vectors", "feed", "in_driver"), RACES[::STRIDE], ids=str)
def test_two_commands_of_threads(spark, conf, race, tmp_path, one, other, vectors, feed, in_driver):
    conf(IN_DRIVER, str(1 << 30) if in_driver else "0")
    log = make(
        tmp_path / "t",
        enableDeletionVectors=str(vectors).lower(),
        enableChangeDataFeed=str(feed).lower(),
    )
    race(spark, log.table_path, [one, other])
    assert log.snapshot().version == FILES + 1
    ensure_serial(log, [one, other], in_order=False)
    if feed:
        ensure_feed_leads_to_the_rows(log)


SCRIPT = """
import sys
sys.path[:0] = sys.argv[1:3]
from pyspark.sql import SparkSession
from test_command_races_on_spark import IN_DRIVER, ONE, OTHER, until_it_lands
path, side, number = sys.argv[3], sys.argv[4], int(sys.argv[5])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set(IN_DRIVER, "0")
spark.range(1).collect()
print("ready", flush=True)
sys.stdin.readline()
until_it_lands({"one": ONE, "other": OTHER}[side][number], spark, path)
"""


@pytest.mark.skipif(not IS_FULL, reason="two more JVMs; only with CASES=1000000")
@pytest.mark.timeout(600)
def test_two_commands_of_processes(tmp_path):
    log, merge, update = make(tmp_path / "t"), 5, 4
    folders = [str(Path(row_histories.__file__).parent), str(Path(__file__).parent)]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *folders, log.table_path, side, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for side, number in (("one", merge), ("other", update))
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        process.communicate(timeout=300)
    assert [process.returncode for process in started] == [0, 0]
    ensure_serial(log, [ONE[merge], OTHER[update]], in_order=False)
