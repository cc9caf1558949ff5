"""The commits that others overtook: what a history proves, against a model that counts pairs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from optimist.cli.work import overtaken_commits as overtaken
from optimist.cli.work.overtaken_commits import overtaken_commits
from optimist.core import DeltaLog
from optimist.core.statements.result_columns import HISTORY
from optimist.core.transaction.conflicts.operations import Operation

HOUR_US = 3_600_000_000


def history(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows[::-1], schema=HISTORY)


def test_a_transaction_that_others_overtake_is_shown(shell, table):
    log = DeltaLog.for_path(table)
    rows = log.to_arrow().slice(0, 1)
    slow = log.start_transaction()
    log.append(rows)
    log.sql("OPTIMIZE this")
    slow.commit([], Operation("MANUAL UPDATE", {}))
    told = shell.json("conflicts", table)
    (commit,) = told["commits"]
    newest = log.snapshot().version
    assert (commit["version"], commit["readVersion"]) == (newest, newest - 3)
    assert (commit["overtakenBy"], told["numOvertaken"]) == (2, 1)
    assert told["operations"] == [
        {"operation": commit["operation"], "overtakenBy": other, "times": 1}
        for other in ("WRITE", "OPTIMIZE")
    ]
    (hour,) = told["hours"]
    assert (hour["overtaken"], hour["hour"][13:]) == (1, ":00:00.000000Z")
    assert shell.json("conflicts", table, "-n", 1)["operations"] == []


def test_a_quiet_table_shows_nothing(shell, table):
    told = shell.json("conflicts", table)
    assert (told["firstVersion"], told["lastVersion"], told["numCommits"]) == (0, 3, 4)
    assert (told["numOvertaken"], told["operations"], told["hours"]) == (0, [], [])
    assert shell("conflicts", Path(table) / "none").status == 3


COMMITS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 12),
        st.sampled_from([None, "A", "B", "C"]),
        st.none() | st.integers(0, 3),
    ),
    max_size=12,
)


@given(COMMITS, st.integers(0, 3))
def test_any_history_is_counted_like_the_model(commits, first):
    rows = [
        {
            "version": first + i,
            "readVersion": read,
            "operation": operation,
            "timestamp": None if hour is None else hour * HOUR_US + 7,
        }
        for i, (read, operation, hour) in enumerate(commits)
    ]
    found = overtaken_commits(history(rows))
    late = [
        row
        for row in rows
        if row["readVersion"] is not None and -1 <= row["readVersion"] < row["version"] - 1
    ]
    assert [each["version"] for each in found.commits.to_pylist()] == [
        row["version"] for row in reversed(late)
    ]
    pairs = Counter(
        (row["operation"] or "unknown", other["operation"] or "unknown")
        for row in late
        for other in rows
        if row["readVersion"] < other["version"] < row["version"]
    )
    told = found.operations.to_pylist()
    assert {(x["operation"], x["overtakenBy"]): x["times"] for x in told} == pairs
    hours = {
        each["hour"] and each["hour"].timestamp(): each["overtaken"]
        for each in found.hours.to_pylist()
    }
    expected = Counter(
        None if row["timestamp"] is None else row["timestamp"] // HOUR_US * 3600 for row in late
    )
    assert hours == expected
    assert found.facts["numOvertaken"] == len(late)


def test_rare_operations_count_together(monkeypatch):
    monkeypatch.setattr(overtaken, "_MOST_KINDS", 1)
    rows = [{"version": i, "operation": name} for i, name in enumerate("AABC")]
    rows.append({"version": 4, "operation": "A", "readVersion": 0})
    rows[0]["timestamp"] = datetime(2026, 1, 1, tzinfo=timezone.utc)
    told = overtaken_commits(history(rows)).operations.to_pylist()
    assert {each["overtakenBy"]: each["times"] for each in told} == {"A": 1, "other operations": 2}
