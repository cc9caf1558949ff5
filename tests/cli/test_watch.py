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

from optimist.cli.answers.live_commits import show_commits
from optimist.cli.work.watched_commits import Look, watch_commits
from optimist.cli.work.watched_streams import WatchedStream
from optimist.core import DeltaLog, Operation
from optimist.core.errors import StorageError, TableError, TableNotFoundError
from optimist.core.streams.offset import StreamOffset
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


def shown_in_a_terminal(table: str, *more: str) -> str:
    main, end = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    program = [*OPTIMIST, "watch", table, "--from", "0", "-n", "4", *more]
    process = subprocess.Popen(program, stdout=end, stderr=end, env=env)
    os.close(end)
    written = b""
    while part := _read(main):
        written += part
    os.close(main)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


def test_a_terminal_shows_a_table_of_80_columns(table):
    plain = shown_in_a_terminal(table)
    assert re.search(r"3  \d\d-\d\d \d\d:\d\d  DELETE  +Optimis", plain)
    assert "version 3  files 3" in plain
    assert max(map(len, plain.splitlines())) <= 80


# Streams that read the table


def checkpoint(path: Path, log: DeltaLog, batch: int, version: int) -> None:
    """Write what Spark writes when a batch is done."""
    for name in ("offsets", "commits"):
        (path / name).mkdir(parents=True, exist_ok=True)
    offset = StreamOffset.before(log.metadata.id, version).to_json()
    (path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offset}")
    (path / "commits" / str(batch)).write_text("v1\n{}")


def test_the_lag_of_a_stream_is_shown_whenever_it_changes(tmp_path):
    log, place = watched(tmp_path / "t"), tmp_path / "checkpoint"
    log.append(pa.table({"a": [1, 2, 3]}))
    log.append(pa.table({"a": [4, 5]}))
    checkpoint(place, log, 0, 1)
    looks = watch_commits(log, None, 60, [WatchedStream(log, DeltaLog.for_path(place))])
    (told,) = next(looks).streams
    names = ("batch", "version", "versionsBehind", "filesBehind", "rowsBehind", "problem")
    assert [told[name] for name in names] == [0, 1, 1, 1, 2, None]
    assert told["bytesBehind"] == log.files()["size"].to_pylist()[1]
    checkpoint(place, log, 1, 2)
    (told,) = next(looks).streams
    assert [told[name] for name in names] == [1, 2, 0, 0, 0, None]
    assert (told["behindSince"], told["secondsBehind"]) == (None, 0)
    shutil.rmtree(place)
    (told,) = next(looks).streams
    assert "Check the path" in told["problem"]
    assert {told[name] for name in names if name != "problem"} == {None}
    with pytest.raises(TableNotFoundError):
        next(watch_commits(log, None, 1, [WatchedStream(log, DeltaLog.for_path(place))]))


def test_the_time_behind_is_since_the_first_commit_that_was_not_read(tmp_path):
    log, place = watched(tmp_path / "t"), tmp_path / "checkpoint"
    log.append(pa.table({"a": [1]}))
    log.append(pa.table({"a": [2]}))
    for version, second in ((0, 1_000), (1, 2_000)):
        path = tmp_path / "t" / "_delta_log" / f"{version:020}.json"
        os.utime(path, (1_690_000_000 + second, 1_690_000_000 + second))
    checkpoint(place, log, 0, 1)
    log = watched(tmp_path / "t")
    (told,) = WatchedStream(log, DeltaLog.for_path(place)).look(log.snapshot())
    assert told["behindSince"] == "2023-07-22 05:00:00.000Z"
    assert told["secondsBehind"] == log.clock.now_ms() // 1000 - 1_690_002_000


def test_a_stream_may_be_ahead_of_the_look_at_the_table(tmp_path):
    log = watched(tmp_path / "t")
    log.append(pa.table({"a": [1]}))
    before = log.snapshot()
    log.append(pa.table({"a": [2]}))
    checkpoint(tmp_path / "c", log, 0, 2)
    (told,) = WatchedStream(log, DeltaLog.for_path(tmp_path / "c")).look(before)
    assert (told["versionsBehind"], told["problem"]) == (0, None)
    checkpoint(tmp_path / "c", log, 1, 3)
    with pytest.raises(TableError, match="set back"):
        WatchedStream(log, DeltaLog.for_path(tmp_path / "c")).look(before)


def test_a_pipe_gets_a_line_for_each_change_of_a_stream(shell, table, tmp_path):
    log = DeltaLog.for_path(table)
    checkpoint(tmp_path / "c\x1b", log, 7, 1)
    (tmp_path / "position").write_text(StreamOffset.before(log.metadata.id, 4).to_json())
    streams = ("--stream", tmp_path / "c\x1b", "--stream", tmp_path / "position")
    ran = shell("watch", table, "--from", 3, "-n", 1, *streams)
    heading, commit, names, first, second = (line.split("\t") for line in ran.output.splitlines())
    assert (heading[0], commit[0], names[:2]) == ("version", "3", ["", "stream"])
    assert first[0] == second[0] == ""
    assert (first[names.index("batch")], first[names.index("versionsBehind")]) == ("7", "3")
    assert second[names.index("versionsBehind")] == "0"
    assert "\x1b" not in ran.output
    ran = shell("watch", table, "--from", 3, "-n", 1, *streams, "--output", "json")
    commit, *told = map(json.loads, ran.output.splitlines())
    for line in (commit, *told):
        jsonschema.validate(line, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert [each["source"] for each in told] == [0, None]
    assert told[0]["secondsBehind"] >= 0
    ran = shell("watch", table, "--stream", tmp_path / "positio")
    assert (ran.status, ran.output) == (3, "version" + ran.output[7:])
    assert "Nearby there is" in ran.errors


def test_a_line_of_a_stream_comes_only_with_news(capsys):
    stream = dict.fromkeys(SCHEMA["oneOf"][1]["properties"])
    looks = [
        Look([], {}, [], [{**stream, "version": version, "secondsBehind": seconds}])
        for version, seconds in ((1, 1), (1, 2), (2, 3), (2, 4))
    ]
    show_commits(looks, "t", as_json=True, limit=None)
    told = [json.loads(line)["secondsBehind"] for line in capsys.readouterr().out.splitlines()]
    assert told == [1, 3]


def test_a_terminal_shows_streams_in_80_columns(table, tmp_path):
    log = DeltaLog.for_path(table)
    checkpoint(tmp_path / "c", log, 1_234_567, 1)
    plain = shown_in_a_terminal(table, "--stream", str(tmp_path / "c"))
    assert re.search(r"…  +1,234,567  +1  .*  +3  ", plain), plain
    assert max(map(len, plain.splitlines())) <= 80


def _read(end: int) -> bytes:
    try:
        return os.read(end, 65536)
    except OSError:  # the other end is closed
        return b""
