"""Each command that changes a table: what it did is in the table, and what it says is true."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from optimist.cli import by_need
from optimist.core import DeltaLog

OLD_FILES = "spark.databricks.delta.retentionDurationCheck.enabled=false"
AT_ONCE = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled=false"


def test_checkpoint_writes_one(shell, table):
    assert shell.json("checkpoint", table)["version"] == 3
    snapshot = DeltaLog.for_path(table).snapshot()
    assert snapshot.segment.checkpoint_version == 3


def test_optimize_joins_files_and_says_so(shell, table):
    log = DeltaLog.for_path(table)
    log.append(pa.table({"month": pa.array([2], pa.int32()), "delay": [7], "tail": ["x"]}))
    before = log.to_arrow().to_pylist()
    done = shell.json("optimize", table, "--where", "month = 2", "--z-order-by", "delay,tail")
    assert (done["version"], done["filesAdded"], done["filesRemoved"]) == (5, 1, 2)
    assert sorted(map(str, log.to_arrow().to_pylist())) == sorted(map(str, before))
    assert shell.json("optimize", table)["version"] is None
    assert shell("optimize", table, "--full").status == 2


def dead_files(table: str) -> list[str]:
    log = DeltaLog.for_path(table)
    live = set(log.files()["path"].to_pylist())
    return [p for p in log.snapshot(2).files["path"].to_pylist() if p not in live]


def test_vacuum_deletes_nothing_unless_it_is_told_to(shell, table):
    how = ("--retain-hours", 0, "--conf", OLD_FILES, "--conf", AT_ONCE)
    found = shell.json("vacuum", table, *how)
    assert (found["dryRun"], found["files"]) == (True, len(found["paths"]))
    assert found["files"] >= 1
    assert DeltaLog.for_path(table).count(version=2) == 15
    ran = shell("vacuum", table, *how, "--delete")
    assert (ran.status, ran.errors.count("\n")) == (2, 1)
    assert shell.json("vacuum", table, *how)["files"] == found["files"], "nothing was deleted"
    done = shell.json("vacuum", table, *how, "--delete", "--yes")
    assert (done["dryRun"], done["files"], done["bytes"]) == (False, found["files"], found["bytes"])
    assert shell.json("vacuum", table, *how)["files"] == 0
    assert DeltaLog.for_path(table).count() == 13


@pytest.mark.parametrize(("answer", "is_deleted"), [(True, True), (False, False)])
def test_vacuum_asks_a_person(shell, table, monkeypatch, answer, is_deleted):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr(
        "optimist.cli.commands.doing.typer.confirm", lambda text, **_: asked.append(text) or answer
    )
    how = ("--retain-hours", 0, "--conf", OLD_FILES, "--conf", AT_ONCE)
    found = shell.json("vacuum", table, *how)
    assert shell("vacuum", table, *how, "--delete").status == (0 if is_deleted else 2)
    assert asked == [f"Delete {found['files']} files ({found['bytes']} bytes)?"]
    assert shell.json("vacuum", table, *how)["files"] == (0 if is_deleted else found["files"])


def test_vacuum_of_a_too_short_retention_is_refused(shell, table):
    ran = shell("vacuum", table, "--retain-hours", 0, "--conf", AT_ONCE)
    assert (ran.status, "RETENTION_PERIOD_TOO_SHORT" in ran.errors) == (2, True)


def test_restore_goes_back_and_can_be_undone(shell, table):
    done = shell.json("restore", table, "--version", 2)
    assert (done["version"], done["filesRestored"], done["filesRemoved"]) == (4, 1, 1)
    assert DeltaLog.for_path(table).count() == 15
    assert shell.json("restore", table, "--version", 3)["version"] == 5
    assert DeltaLog.for_path(table).count() == 13
    assert set(shell.json("restore", table, "--version", 5).values()) == {None}
    assert shell("restore", table).status == 2
    assert shell("restore", table, "--timestamp", "soon").status == 2


def test_alter_changes_the_table(shell, table):
    assert shell.json("alter", table, "ADD COLUMNS (note STRING)") == {"version": 4}
    assert DeltaLog.for_path(table).snapshot().schema.names[-1] == "note"
    ran = shell("alter", table, "ADD COLUMNS (note STRING)")
    assert (ran.status, DeltaLog.for_path(table).snapshot().version) == (2, 4)


def test_clone_copies_a_version(shell, table, tmp_path):
    target = tmp_path / "copy"
    done = shell.json("clone", table, target, "--version", 2)
    assert (done["version"], done["sourceFiles"], done["filesCopied"]) == (0, 3, 3)
    assert DeltaLog.for_path(str(target)).count() == 15
    assert shell("clone", table, target).status == 2
    again = shell.json("clone", table, target, "--mode", "create_if_not_exists")
    assert set(again.values()) == {None}
    shallow = shell.json("clone", table, tmp_path / "thin", "--shallow")
    assert shallow["filesCopied"] == 0


def test_convert_takes_parquet_where_it_is(shell, tmp_path):
    (tmp_path / "old" / "month=1").mkdir(parents=True)
    parquet.write_table(pa.table({"x": [1, 2]}), tmp_path / "old" / "month=1" / "a.parquet")
    place = tmp_path / "old"
    assert shell("convert", place).status == 2
    assert shell.json("convert", place, "--partition-by", "month INT") == {"version": 0}
    expected = [{"x": 1, "month": 1}, {"x": 2, "month": 1}]
    assert DeltaLog.for_path(str(place)).to_arrow().to_pylist() == expected
    assert shell.json("convert", place, "--partition-by", "month INT") == {"version": None}


def test_commit_status_finds_a_transaction(shell, table):
    info = DeltaLog.for_path(table).history(1)[0].info
    found = shell.json("commit-status", table, info.txn_id)
    assert found == {"txnId": info.txn_id, "state": "landed", "version": 3}
    other = shell.json("commit-status", table, "nix", "--version", 3, status=1)
    assert other["state"] == "not landed"
    assert shell.json("commit-status", table, "nix", "--version", 9, status=1)["version"] == 9


def test_a_bar_shows_only_in_a_terminal(capsys, monkeypatch):
    with by_need.progress_bar("work") as bar:
        bar.advance(1, 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with by_need.progress_bar("work") as bar:
        bar.advance(1, 2)
        bar.advance(2, 2)
    written = capsys.readouterr()
    assert written.out == ""
    assert "work" in written.err
