"""`watch`: each commit once and in order, as lines, as JSON and in a terminal, until Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest

from optimist.cli.work.watched_commits import watch_commits
from optimist.core import DeltaLog, Operation
from optimist.core.errors import StorageError, TableNotFoundError
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore

SCHEMA = json.loads((Path(__file__).parents[2] / "cli" / "schemas" / "watch.json").read_text())


OPTIMIST = [sys.executable, "-m", "optimist.cli"]


def watched(path: Path) -> DeltaLog:
    return DeltaLog(str(path), LocalLogStore(), clock=ManualClock())


def test_each_commit_is_shown_once_with_what_it_did(tmp_path):
    log = watched(tmp_path / "t")
    log.append(pa.table({"a": [1, 2, 3]}))
    looks = watch_commits(log, None, 5)
    (first,) = next(looks).commits
    assert (first["version"], first["addedRows"], first["operation"]) == (0, 3, "WRITE")
    assert next(looks).commits == []
    slow = log.start_transaction()
    log.append(pa.table({"a": [4]}), txn=("job", 7))
    log.delete("a = 1")
    slow.commit([], Operation("MANUAL UPDATE", {}))
    look = next(looks)
    told = [(each["version"], each["addedRows"], each["removedFiles"]) for each in look.commits]
    assert told == [(1, 1, 0), (2, 2, 1), (3, 0, 0)]
    assert [each["overtakenBy"] for each in look.commits] == [0, 0, 2]
    newest = log.snapshot()
    assert look.table == {
        "tableVersion": 3,
        "tableFiles": newest.num_files,
        "tableBytes": newest.size_in_bytes,
    }
    assert [(each["appId"], each["version"]) for each in look.applications] == [("job", 7)]


def test_many_commits_come_in_parts_and_without_a_wait(tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.cli.work.watched_commits._MOST_AT_ONCE", 2)
    log = watched(tmp_path / "t")
    for number in range(5):
        log.append(pa.table({"a": [number]}))
    begun_s, looks = log.clock.monotonic_s(), watch_commits(log, 0, 7)
    shown = [[each["version"] for each in next(looks).commits] for _ in range(3)]
    assert (shown, log.clock.monotonic_s()) == ([[0, 1], [2, 3], [4]], begun_s)
    assert next(looks).commits == []
    assert log.clock.monotonic_s() == begun_s + 7


def test_it_begins_where_it_is_told(tmp_path):
    log = watched(tmp_path / "t")
    for number in range(4):
        log.append(pa.table({"a": [number]}))
    for first, shown in ((0, [0, 1, 2, 3]), (2, [2, 3]), (99, [])):
        commits = next(watch_commits(log, first, 1)).commits
        assert [each["version"] for each in commits] == shown


def test_a_store_that_fails_for_a_while_ends_nothing(tmp_path, monkeypatch):
    log = watched(tmp_path / "t")
    log.append(pa.table({"a": [1]}))
    looks = watch_commits(log, None, 1)
    before = next(looks)
    snapshot = log.snapshot

    def fail() -> None:
        raise StorageError("no answer", kind="OPTIMIST_STORAGE_ERROR", retryable=True)

    monkeypatch.setattr(log, "snapshot", fail)
    look = next(looks)
    assert (look.commits, look.table, "no answer" in look.error) == ((), before.table, True)
    monkeypatch.setattr(log, "snapshot", snapshot)
    log.append(pa.table({"a": [2]}))
    assert [each["version"] for each in next(looks).commits] == [1]


def test_a_table_made_anew_is_watched_from_its_newest_version(tmp_path):
    log = watched(tmp_path / "t")
    for number in range(3):
        log.append(pa.table({"a": [number]}))
    looks = watch_commits(log, None, 1)
    next(looks)
    shutil.rmtree(tmp_path / "t")
    watched(tmp_path / "t").append(pa.table({"b": [1]}))
    assert [each["version"] for each in next(looks).commits] == [0]
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        next(looks)


def test_a_pipe_gets_a_line_for_each_commit(shell, table):
    lines = shell("watch", table, "--from", 1, "-n", 3).output.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["version", "1", "2", "3"]
    assert {len(line.split("\t")) for line in lines} == {10}
    ran = shell("watch", table, "--from", 0, "-n", 4, "--output", "json")
    told = list(map(json.loads, ran.output.splitlines()))
    for line in told:
        jsonschema.validate(line, SCHEMA, cls=jsonschema.Draft202012Validator)
    history = shell.json("history", table)["commits"][::-1]
    for name in ("version", "operation", "engineInfo", "readVersion"):
        assert [each[name] for each in told] == [each[name] for each in history]
    assert shell("watch", Path(table) / "none").status == 3
    for wrong in (0, "nan", "inf", 1e300):
        assert shell("watch", table, "--interval", wrong).status == 2


def test_ctrl_c_ends_it_well(table):
    program = [*OPTIMIST, "watch", table, "--interval", "60"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    assert process.stdout.readline().startswith(b"3\t")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")


def test_a_terminal_shows_a_table_of_80_columns(table):
    main, end = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    program = [*OPTIMIST, "watch", table, "--from", "0", "-n", "4"]
    process = subprocess.Popen(program, stdout=end, stderr=end, env=env)
    os.close(end)
    written = b""
    while part := _read(main):
        written += part
    os.close(main)
    assert process.wait() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())
    assert re.search(r"3  \d\d-\d\d \d\d:\d\d  DELETE  +Optimis", plain)
    assert "version 3  files 3" in plain
    assert max(map(len, plain.splitlines())) <= 80


def _read(end: int) -> bytes:
    try:
        return os.read(end, 65536)
    except OSError:  # the other end is closed
        return b""
