"""Conflicts in the logs of programs: of each engine, in each form of a log, and in hostile ones."""

from __future__ import annotations

import io
import json
import logging
import sys
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from optimist.cli.work import logged_conflicts as logged
from optimist.cli.work.logged_conflicts import logged_conflicts
from optimist.core import DeltaLog, NewColumn, Operation
from optimist.core.errors import (
    ConcurrentAppendException,
    Conflict,
    DeltaConcurrentModificationException,
    MaxCommitAttemptsExceededError,
)
from optimist.core.errors.kinds import CLASS_OF_KIND
from optimist.core.transaction.conflicts.messages import _WHAT, explain

COMMIT = {
    "timestamp": 1709258840126,
    "operation": "OPTIMIZE",
    "operationParameters": {"predicate": [], "zOrderBy": []},
    "readVersion": 274,
    "engineInfo": "Apache-Spark/4.0.0 Delta-Lake/4.0.0",
    "txnId": "c9291a12-77ec-4976-a6b2-6927fc295d60",
}
DELTA_SPARK = f"""\
26/11/28 22:10:00 INFO TaskSetManager: Finished task 0.0 in stage 7.0
26/11/28 22:10:01 ERROR MicroBatchExecution: Query [id = 1, runId = 2] terminated with error
io.delta.exceptions.ConcurrentDeleteDeleteException: [DELTA_CONCURRENT_DELETE_DELETE] \
ConcurrentDeleteDeleteException: This transaction attempted to delete one or more files that were \
deleted (for example p=1/part-0.parquet) by a concurrent update. Please try the operation again.
Conflicting commit: {json.dumps(COMMIT)}
Refer to https://docs.delta.io/latest/concurrency-control.html for more details.
\tat org.apache.spark.sql.delta.DeltaErrorsBase.concurrentDeleteDeleteException(x.scala:1)
\tat io.delta.exceptions.ConcurrentDeleteDeleteException.<init>(x.scala:1)
Caused by: io.delta.exceptions.ConcurrentDeleteDeleteException: \
[DELTA_CONCURRENT_DELETE_DELETE] ConcurrentDeleteDeleteException: This transaction attempted
\t... 34 more
26/11/28 22:10:02 WARN Retry: will try again after ConcurrentAppendException
26/11/28 23:59:59 ERROR Job: io.delta.exceptions.MetadataChangedException: The metadata of the \
Delta table has been changed by a concurrent update. Please try the operation again.
"""
WINNER = Conflict("concurrent append", 13, "UPDATE", "Apache-Spark/4.1.1 Optimist/0.1.0")


def text_of(conflict: Conflict, table: str = "/data/flights", loser: str = "DELETE") -> str:
    kind = "DELTA_CONCURRENT_APPEND"
    error = ConcurrentAppendException(explain(conflict, table, loser), kind=kind, conflict=conflict)
    return str(error)


@pytest.fixture
def found(tmp_path, shell):
    """Writes a log, and returns the answer of the command about it."""

    def find(content: str | bytes, name: str = "app.log") -> dict:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return shell.json("conflicts", "--log", path)

    return find


def test_a_conflict_that_a_program_logs_is_told_with_who_lost_to_whom(tmp_path, shell):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"x": [1, 2]}))
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    program = logging.Logger("jobs")
    program.addHandler(handler)
    slow = log.start_transaction()
    log.alter.add_columns([NewColumn("y", "long")])
    try:
        slow.commit([], Operation("MANUAL UPDATE", {}))
    except DeltaConcurrentModificationException as error:
        program.exception("failed: %s", error)
    (tmp_path / "app.log").write_text(stream.getvalue())
    assert stream.getvalue().count("DELTA_METADATA_CHANGED") == 2
    told = shell.json("conflicts", tmp_path / "t", "--log", tmp_path / "app.log")
    (error,) = told["errors"]
    assert (error["table"], error["kind"]) == (str(tmp_path / "t"), "DELTA_METADATA_CHANGED")
    assert (error["operation"], error["winningOperation"]) == ("MANUAL UPDATE", "ADD COLUMNS")
    assert (error["winningVersion"], error["line"]) == (1, 1)
    assert error["winningEngine"].startswith("Optimist/")
    assert told["losses"] == [
        {
            "table": str(tmp_path / "t"),
            "operation": "MANUAL UPDATE",
            "winningOperation": "ADD COLUMNS",
            "kind": "DELTA_METADATA_CHANGED",
            "times": 1,
        }
    ]
    (hour,) = told["lossHours"]
    assert (hour["times"], hour["hour"][13:]) == (1, ":00:00.000000Z")
    assert (told["numLoggedConflicts"], told["numCommits"]) == (1, 2)


def test_a_spark_driver_s_log_with_stack_traces(found):
    told = found(DELTA_SPARK)
    metadata, delete = told["errors"]
    assert delete == {
        "time": "2026-11-28T22:10:01.000000Z",
        "log": delete["log"],
        "line": 3,
        "kind": "DELTA_CONCURRENT_DELETE_DELETE",
        "table": None,
        "operation": None,
        "winningOperation": "OPTIMIZE",
        "winningVersion": None,
        "winningEngine": COMMIT["engineInfo"],
        "what": delete["what"],
    }
    assert delete["what"].endswith("by a concurrent update")
    assert (metadata["kind"], metadata["line"]) == ("DELTA_METADATA_CHANGED", 11)
    assert [each["hour"] for each in told["lossHours"]] == [
        "2026-11-28T23:00:00.000000Z",
        "2026-11-28T22:00:00.000000Z",
    ]


def test_an_error_of_deltalake_as_it_is(tmp_path, found):
    DeltaLog.for_path(str(tmp_path / "t")).append(pa.table({"x": [1, 2, 3]}))
    first, second = DeltaTable(tmp_path / "t"), DeltaTable(tmp_path / "t")
    first.delete("x = 1")
    with pytest.raises(Exception, match=r".") as raised:
        second.delete("x = 2")
    name = f"{type(raised.value).__module__}.{type(raised.value).__name__}"
    trace = (
        'Traceback (most recent call last):\n  File "job.py", line 7, in <module>\n    delete()\n'
    )
    once = f"ERROR:root:failed: {raised.value}\n{trace}{name}: {raised.value}\n"
    told = found(once * 3)
    assert told["numLoggedConflicts"] == 3, raised.value
    assert {each["kind"] for each in told["errors"]} <= {
        "DELTA_CONCURRENT_DELETE_DELETE",
        "DELTA_CONCURRENT_DELETE_READ",
        "DELTA_CONCURRENT_APPEND",
    }


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Failed to commit transaction: 15", "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"),
        ("Metadata changed since last commit.", "DELTA_METADATA_CHANGED"),
        ("delta.exceptions.ConcurrentTransactionException: x", "DELTA_CONCURRENT_TRANSACTION"),
        ("[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] Conflict", "DELTA_CONCURRENT_APPEND"),
        ("io.delta.exceptions.ConcurrentWriteException", "DELTA_CONCURRENT_WRITE"),
        ("Failed to commit transaction: the disk is full", None),
        ("Failed to commit transaction: 1062 duplicate entry", None),
        ("retried after ConcurrentAppendException", None),
        ("\tat io.delta.exceptions.ConcurrentAppendException: x", None),
        ("DELTA_CONCURRENT_APPEND", None),
    ],
)
@pytest.mark.sample(1)
def test_which_texts_are_conflicts(found, text, kind):
    told = found(f"2026-01-01 00:00:00 ERROR {text}\n" if text[0] != "\t" else f"{text}\n")
    assert [each["kind"] for each in told["errors"]] == ([] if kind is None else [kind])


def test_the_other_messages_of_optimist(found):
    attempts = str(
        MaxCommitAttemptsExceededError(
            "This commit has failed as it has been tried 3 times but did not succeed. It started "
            "at version 7 of /data/a, b, and after 9 ms it failed at version 9 with 1 actions.",
            kind="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        )
    )
    written = (
        "[DELTA_CONCURRENT_WRITE] A concurrent transaction (WRITE) has written version 5 of "
        "/data/t, and CLONE can't be rebased onto it. Nothing of this transaction was committed."
    )
    second, first = found(f"{attempts}\n{written}\n")["errors"]
    assert (first["table"], first["kind"]) == ("/data/a, b", "DELTA_MAX_COMMIT_RETRIES_EXCEEDED")
    names = ("table", "operation", "winningOperation", "winningVersion")
    assert [second[name] for name in names] == ["/data/t", "CLONE", "WRITE", 5]


LOSSES = st.builds(
    Conflict,
    check=st.sampled_from(sorted(_WHAT)),
    winning_version=st.integers(0, 10**17),
    winning_operation=st.sampled_from([None, "WRITE", "CREATE TABLE AS SELECT", "MERGE"]),
    winning_engine=st.sampled_from([None, "Apache-Spark/4.1.1 Optimist/0.1.0", "kernel-1.2"]),
    paths=st.sampled_from([(), ("p=1/a.parquet",)]),
    num_paths=st.sampled_from([0, 1, 9]),
    partition=st.sampled_from([None, "[a=1, b=The winner is]", "[d=2026-01-01 00:00:00]"]),
    predicate=st.sampled_from([None, "x = '; the loser is this Y. '"]),
)


@given(
    LOSSES,
    st.sampled_from(["/data/t", "s3://b/a, by b/t. x/ü", "/t; the loser"]),
    st.sampled_from(["DELETE", "WRITE", ""]),
    st.sampled_from(["plain", "json", "spark json"]),
)
def test_any_message_of_a_conflict_is_read_as_it_was_meant(
    tmp_path_factory, conflict, table, loser, form
):
    text = text_of(conflict, table, loser)
    lines = {
        "plain": f"2026-11-28T01:02:03.5+02:00 [ERROR] {text}",
        "json": json.dumps({"level": "ERROR", "ts": 1795820523.5, "error": {"message": text}}),
        "spark json": json.dumps(
            {
                "ts": "2026-11-27T23:02:03.500Z",
                "msg": "failed",
                "exception": {
                    "class": "io.delta.exceptions.ConcurrentAppendException",
                    "msg": text,
                    "stacktrace": [{"class": "x", "line": 1}],
                },
            }
        ),
    }
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_text(f"first\n{lines[form]}\n")
    (error,) = logged_conflicts([str(path)]).errors.to_pylist()
    assert error["time"] == datetime(2026, 11, 27, 23, 2, 3, 500_000, timezone.utc)
    assert (error["table"], error["line"]) == (table, 2)
    assert error["operation"] == (loser or "commit")
    assert error["winningVersion"] == conflict.winning_version
    expected = conflict.winning_operation or "an operation that left no commitInfo"
    assert (error["winningOperation"], error["winningEngine"]) == (
        expected,
        conflict.winning_engine,
    )


def test_an_error_that_is_told_twice_counts_once_and_two_errors_count_twice(found):
    text, other = text_of(WINNER), text_of(WINNER, loser="MERGE")
    lines = [
        f"2026-01-01 00:00:00 ERROR task failed: {text}",
        "Traceback (most recent call last):",
        f"optimist.core.errors.ConcurrentAppendException: {text}",
        f"2026-01-01 00:00:09 ERROR job failed: {text}",
        f"2026-01-01 00:00:10 ERROR {text}. retried: {other}",
        "2026-01-01 00:00:11 ERROR Metadata changed since last commit.",
        "2026-01-01 00:00:12 ERROR Metadata changed since last commit.",
    ]
    told = found("\n".join(lines))
    assert [each["line"] for each in told["errors"]] == [7, 6, 5, 1]
    assert [each["operation"] for each in told["losses"]] == [None, "DELETE", "MERGE"]
    assert [each["times"] for each in told["losses"]] == [2, 1, 1]


def test_docker_s_log_of_json_has_each_line_apart(found):
    lines = DELTA_SPARK.splitlines(keepends=True)
    docker = (json.dumps({"log": each, "stream": "stderr", "time": TIME}) for each in lines)
    told = found("".join(f"{line}\n" for line in docker))
    kinds = [each["kind"] for each in told["errors"]]
    assert kinds[-1] == "DELTA_CONCURRENT_DELETE_DELETE"
    assert told["errors"][-1]["winningOperation"] == "OPTIMIZE"
    assert {each["time"] for each in told["errors"]} == {TIME.replace("Z", "000Z")}


TIME = "2026-11-28T22:10:01.123Z"


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("2026-11-28 22:10:00,123 ERROR ", "2026-11-28T22:10:00.123000Z"),
        ("[2026-11-28 22:10:00] ", "2026-11-28T22:10:00.000000Z"),
        ("\x1b[31mERROR\x1b[0m 2026-11-28T22:10:00Z ", "2026-11-28T22:10:00.000000Z"),
        ("web-1  | 2026-11-28T22:10:00.123456789-0330 ", "2026-11-29T01:40:00.123456Z"),
        ("2026/11/28 22:10:00 ", "2026-11-28T22:10:00.000000Z"),
        ("26/11/28 22:10:00 WARN ", "2026-11-28T22:10:00.000000Z"),
        ("2026-02-30 22:10:00 ", None),
        ("0001-01-01 00:00:00+14:00 ", None),
        ("yesterday: ", None),
    ],
)
@pytest.mark.sample(1)
def test_the_times_of_log_lines(found, line, time):
    (error,) = found(f"{line}{text_of(WINNER)}\n")["errors"]
    assert error["time"] == time


def test_nothing_of_a_log_reaches_the_terminal_as_it_is(tmp_path, shell):
    path = tmp_path / "x\x1b[31m.log"
    hostile = Conflict("concurrent append", 1, "WRITE\x1b]0;x\x07", "e\u202e", predicate="\x9b31m")
    secret = "s3://bucket/t?X-Amz-Signature=geheim-7f3a&AWSAccessKeyId=x"
    texts = [
        f"[DELTA_CONCURRENT_APPEND] \x1b]0;title\x07 The winner is version 1 of {secret}, "
        "A\x1b[2J\u202eB by \x9bC; the loser is this \x00D. ",
        text_of(hostile),
        "[DELTA_CONCURRENT_APPEND] x\nConflicting commit: " + json.dumps({"operation": "\x1b[2J"}),
    ]
    lines = [*texts, *(json.dumps({"m": each}) for each in texts)]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + b"\xff\xfe\x9b\n")
    for form in ("json", "table"):
        ran = shell("conflicts", "--log", path, "--output", form)
        assert (ran.status, ran.errors) == (0, "")
        assert ran.output.count("DELTA_CONCURRENT_APPEND") >= 4
        assert not [each for each in ran.output if not each.isprintable() and each not in "\n\t"]
        assert "geheim" not in ran.output


@given(
    st.lists(
        st.binary(max_size=60)
        | st.sampled_from(
            [
                *(
                    each.encode()
                    for each in (text_of(WINNER), "Conflicting commit: {", "{", "[" * 99)
                ),
                b"[DELTA_CONCURRENT_APPEND]",
                b"The winner is version ",
                b" of , by ; the loser is this ",
                b'{"a": "[DELTA_CONCURRENT_WRITE]',
                b"2026-01-01 00:00:00",
                b"\n",
            ]
        ),
        max_size=12,
    )
)
def test_any_bytes_are_a_log(tmp_path_factory, parts):
    path = tmp_path_factory.getbasetemp() / "bytes.log"
    path.write_bytes(b"".join(parts))
    found = logged_conflicts([str(path)])
    assert found.facts["numLoggedConflicts"] == found.errors.num_rows
    assert sum(found.losses.column("times").to_pylist()) == found.errors.num_rows
    assert sum(found.loss_hours.column("times").to_pylist()) == found.errors.num_rows


def test_an_endless_line_and_a_deep_one_cost_little(found, monkeypatch):
    monkeypatch.setattr("optimist.cli.work.log_lines._LONGEST", 10_000)
    text = text_of(WINNER).encode()
    endless = b"x" * 50_000 + b"[DELTA_CONCURRENT_APPEND]\n"
    exact = b"y" * 9_999 + b"\n"
    deep = b'{"a": ' + b"[" * 5_000 + b'"[DELTA_CONCURRENT_APPEND]"\n'
    told = found(endless + exact + text + b"\n" + deep)
    assert [each["line"] for each in told["errors"]] == [4, 3]


def test_very_many_errors_keep_sums_and_the_last_ones(found, monkeypatch):
    monkeypatch.setattr(logged, "_MOST_SUMS", 3)
    monkeypatch.setattr(logged, "_MOST_SEEN", 4)
    lines = [
        f"20{number:02}-01-01 00:00:00 {text_of(WINNER, table=f'/t{number}')}"
        for number in range(10)
    ]
    told = found("\n".join([*lines, *lines]))
    assert told["numLoggedConflicts"] == 20
    assert [each["table"] for each in told["errors"]] == ["/t9", "/t8", "/t7", "/t6"]
    assert [each["table"] for each in told["losses"]] == ["others", "/t0", "/t1", "/t2"]
    assert sum(each["times"] for each in told["lossHours"]) == 20


def test_several_logs_and_the_standard_input(tmp_path, shell, monkeypatch):
    (tmp_path / "a.log").write_text(text_of(WINNER))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text_of(WINNER).encode())))
    told = shell.json("conflicts", "--log", tmp_path / "a.log", "--log", "-")
    assert [each["log"] for each in told["errors"]] == ["-", str(tmp_path / "a.log")]
    assert [each["times"] for each in told["losses"]] == [2]


def test_what_is_asked_wrongly(tmp_path, shell, table, monkeypatch):
    for wrong in ([], ["-n", 3], ["--log", tmp_path], ["--log", tmp_path / "none"], ["--log", ""]):
        ran = shell("conflicts", *wrong)
        assert (ran.status, ran.output, "Nothing was done" in ran.errors) == (2, "", True)
    monkeypatch.setattr(sys, "stdin", None)
    assert "descriptor" in shell("conflicts", "--log", "-").errors
    (tmp_path / "empty.log").write_text("")
    ran = shell("conflicts", "--log", tmp_path / "empty.log")
    assert (ran.status, ran.output.splitlines()[0]) == (0, "numLoggedConflicts\t0")
    assert "losses" not in shell("conflicts", table).output


def test_the_kinds_that_logs_are_searched_for_are_those_of_lost_commits():
    lost = (DeltaConcurrentModificationException, MaxCommitAttemptsExceededError)
    kinds = {kind for kind, cls in CLASS_OF_KIND.items() if issubclass(cls, lost)}
    assert kinds == set(logged._CODES)
