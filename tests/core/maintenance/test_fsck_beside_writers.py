"""The check of a table while others write to it, clean up its log, or remove its files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from checked_tables import (
    LONG_AGO,
    HastyClock,
    LateClock,
    data_file,
    found,
    gap,
    hint_of_another_version,
    log_file,
    lost_newest_commit,
    make,
    missing_part,
    opened,
    rows,
)
from optimist.core import DeltaLog, col
from optimist.core.data.intents.intents import begin_intent
from optimist.core.log.names import checksum_name, classic_checkpoint_name, commit_name
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.maintenance.fsck.listed_log import ListedLog
from optimist.core.options.engine import EngineOptions
from optimist.core.runtime.clock import SystemClock
from optimist.logstores import LocalLogStore


def test_what_is_written_while_the_log_is_listed_is_no_damage(table):
    class LateStore(LocalLogStore):
        """A store whose first whole listing ends before the newest commit and checkpoint."""

        def list_from(self, path):
            is_whole = Path(path).name == "0."
            for status in super().list_from(path):
                late = status.name.startswith(f"{9:020}") and not status.name.endswith(".crc")
                if not (is_whole and late):
                    yield status

    opened(table).checkpoint()
    log = DeltaLog(str(table), LateStore(), clock=HastyClock())
    assert log.fsck().findings.to_pylist() == []


class BusyStore(LocalLogStore):
    """A store in which others do something at the first whole listing, before or after it."""

    def __init__(self, act: Callable[[], object], *, is_late: bool = True) -> None:
        super().__init__()
        self._act: Callable[[], object] | None = act
        self._is_late = is_late

    def list_from(self, path):
        act = self._act if Path(path).name == "0." else None
        if act is None:
            return super().list_from(path)
        self._act = None
        if not self._is_late:
            act()
        found = list(super().list_from(path))
        if self._is_late:
            act()
        return iter(found)


class PagedStore(BusyStore):
    """A store that can look for one file only by a listing."""

    finds_cheaply = False

    def find(self, path):
        raise NotImplementedError


def while_busy(path: Path, store: LocalLogStore, *, deep: bool = True) -> list[dict]:
    return DeltaLog(str(path), store, clock=LateClock()).fsck(deep=deep).findings.to_pylist()


@pytest.mark.parametrize("damage", [gap, lost_newest_commit, missing_part])
def test_a_store_that_only_lists_is_checked_like_any_other(table, damage):
    kind, _ = damage(table)
    findings = while_busy(table, PagedStore(lambda: None))
    assert [each["kind"] for each in findings] == [kind]


def test_a_commit_meanwhile_hides_no_file_that_may_not_be_opened(table):
    vector = {"storageType": "x", "pathOrInlineDv": "?", "sizeInBytes": 9, "cardinality": 1}
    add = {"partitionValues": {"p": "30"}, "size": 1, "modificationTime": 1, "dataChange": True}
    adds = (
        {"add": {**add, "path": "s3://elsewhere/x.parquet?sig=hush"}},
        {"add": {**add, "path": "p=30/other.parquet", "deletionVector": vector}},
    )
    lines = "".join(f"{json.dumps(each)}\n" for each in adds)
    log_file(table, commit_name(10)).write_text(lines)
    store = BusyStore(lambda: opened(table).append(rows(2000)))
    kinds = [each["kind"] for each in while_busy(table, store, deep=False)]
    assert kinds == ["foreign-path", "damaged-vector"]


def test_a_cleanup_meanwhile_is_no_damage(tmp_path):
    log = make(tmp_path / "t", checkpointPolicy="v2")
    log.checkpoint()
    log.append(rows(2000))
    log.checkpoint()
    logged = tmp_path / "t" / "_delta_log"
    newest = ListedLog.of(log.store, log.log_path).checkpoints[-1]
    needed = {sidecar.name for sidecar in newest.open(log.store).sidecars()}
    assert needed

    def clean_up() -> None:
        for each in logged.glob("0*"):
            is_old = each.name < f"{newest.version:020}" or ".checkpoint." in each.name
            if is_old and each.name != newest.files[0].name:
                each.unlink()
        for each in logged.glob("_sidecars/*"):
            if each.name not in needed:
                each.unlink()

    assert while_busy(tmp_path / "t", BusyStore(clean_up)) == []


def test_a_listing_that_a_cleanup_overtakes_shows_no_gap(table):
    class HalfListed(LocalLogStore):
        """A store whose first page comes before a cleanup, and whose second page after it."""

        def list_from(self, path):
            versions = range(5)
            for status in super().list_from(path):
                yield status
                if Path(path).name == "0." and status.name == commit_name(0):
                    for version in versions:
                        log_file(table, commit_name(version)).unlink(missing_ok=True)
                        log_file(table, checksum_name(version)).unlink(missing_ok=True)

    assert while_busy(table, HalfListed()) == []


def test_files_that_optimize_and_vacuum_remove_meanwhile_are_no_damage(table):
    conf = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
    }

    def rewrite() -> None:
        log = DeltaLog.for_path(str(table), conf)
        for start in (0, 30):
            log.delete(col("p") == start)
        log.delete(col("x") == 61)
        for file in table.rglob("*.parquet"):
            os.utime(file, LONG_AGO)
        log.vacuum(0)

    alive = len(list(table.glob("**/p=30/*.parquet")))
    findings = while_busy(table, BusyStore(rewrite))
    assert len(list(table.glob("**/p=30/*.parquet"))) < alive
    assert findings == []


@pytest.mark.parametrize("is_removed", [False, True])
def test_an_old_file_that_a_commit_names_meanwhile_is_no_orphan(table, is_removed):
    file = table / "p=30" / "moved-here.parquet"
    shutil.copy(data_file(table), file)
    os.utime(file, LONG_AGO)

    def commit() -> None:
        lines = log_file(table, commit_name(3)).read_text().splitlines()
        (add,) = (json.loads(line) for line in lines if '"add"' in line)
        add["add"]["path"] = "p=30/moved-here.parquet"
        log_file(table, commit_name(10)).write_text(json.dumps(add) + "\n")
        if is_removed:
            opened(table).delete(col("p") == 30)

    assert found(table, deep=False) == [("orphan", file.name)]
    assert while_busy(table, BusyStore(commit), deep=False) == []


def test_what_a_writer_has_not_finished_is_no_damage(table):
    name = f"{7:020}.checkpoint.{1:010}.{2:010}.parquet"
    shutil.copy(log_file(table, classic_checkpoint_name(6)), log_file(table, name))
    log_file(table, classic_checkpoint_name(8)).write_bytes(b"")
    assert while_busy(table, LocalLogStore()) != []
    hasty = DeltaLog(str(table), LocalLogStore(), clock=HastyClock())
    assert hasty.fsck().findings.to_pylist() == []
    for each in (name, classic_checkpoint_name(8)):
        log_file(table, each).unlink()
    log = opened(table)
    write_checkpoint(log.store, log.snapshot(5), options=EngineOptions(), clock=HastyClock())
    hint_of_another_version(table)
    assert [each["kind"] for each in while_busy(table, LocalLogStore())] == ["stale-hint"]
    assert hasty.fsck().findings.to_pylist() == []


def test_a_commit_that_was_being_written_is_no_damage(table):
    whole = log_file(table, commit_name(9)).read_text()

    class HalfWritten(LocalLogStore):
        is_whole = False

        def read_bytes(self, path):
            if Path(path).name != commit_name(10) or self.is_whole:
                return super().read_bytes(path)
            self.is_whole = True
            return b'{"add":'

    def write() -> None:
        log_file(table, commit_name(10)).write_text(whole.replace('txnId":"', 'txnId":"x'))

    class Store(BusyStore, HalfWritten):
        pass

    assert while_busy(table, Store(write, is_late=False), deep=False) == []


def test_a_file_that_a_living_writer_may_have_made_is_no_orphan(table):
    file = table / "p=30" / "of-a-slow-writer.parquet"
    file.write_bytes(b"x")
    log = opened(table)
    intent = begin_intent(log.table, None)
    week_ms = 8 * 24 * 3_600_000
    clock = type("Later", (HastyClock,), {"now_ms": lambda _: SystemClock().now_ms() + week_ms})
    later = DeltaLog(str(table), LocalLogStore(), clock=clock())
    assert later.fsck().findings.to_pylist() == []
    intent.end()
    assert [each["kind"] for each in later.fsck().findings.to_pylist()] == ["orphan"]
