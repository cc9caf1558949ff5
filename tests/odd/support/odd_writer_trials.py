"""Tables of writers with odd habits are read, changed and read again, by ours and by deltalake.

What they are to hold is kept row by row, in plain Python.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import deltalake
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from odd_writers import HABITS, SCHEMA, UTC, Habit, OddWriter, Row
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError, ProtocolError
from optimist.core.log_upkeep.cleanup import LogCleaner
from optimist.core.options.engine import EngineOptions
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore

__all__ = ["TRIALS", "Trial", "play"]

Step: TypeAlias = tuple[str, Any]
FLOATS = (0.699999988079071, 0.10000000149011612, -0.0, 1.5, 3.4028234663852886e38)
"""Doubles that are floats, whose shortest texts are other doubles."""
TIMES = tuple(dt.datetime(2020, 1, 1, 0, 0, 0, us, UTC) for us in (0, 1500, 1999, 999999))
AFTER = TIMES[0].replace(microsecond=1000)
VALUES = st.fixed_dictionaries(
    {
        "p": st.sampled_from([None, "a", "b c", "ä%", "x=y/z"]),
        "n": st.sampled_from([None, -7, 0, 7]),
        "x": st.sampled_from([None, *FLOATS]),
        "s": st.sampled_from(
            [None, "", "a", "long text é", "\uffff\uffff\uffff\uffff\uffff", "😀😀😀😀😀"]
        ),
        "t": st.sampled_from([None, *TIMES]),
    }
)
FILES = st.lists(VALUES, min_size=1, max_size=3)
CONDITIONS: dict[str, Callable[[Row], Any]] = {
    "x < 0.7D": lambda r: r["x"] is not None and r["x"] < 0.7,
    "x > 0.1D": lambda r: r["x"] is not None and r["x"] > 0.1,
    "x = 0": lambda r: r["x"] is not None and r["x"] == 0,
    "n IS NULL": lambda r: r["n"] is None,
    "n > 0": lambda r: r["n"] is not None and r["n"] > 0,
    "n IS NOT NULL": lambda r: r["n"] is not None,
    "p IS NULL": lambda r: r["p"] is None,
    "p = 'x=y/z'": lambda r: r["p"] == "x=y/z",
    "p > 'a'": lambda r: r["p"] is not None and r["p"] > "a",
    "s > 'long'": lambda r: r["s"] is not None and r["s"] > "long",
    "s = 'long text é'": lambda r: r["s"] == "long text é",
    "t > timestamp'2020-01-01 00:00:00.001Z'": lambda r: r["t"] and r["t"] > AFTER,
    "t = timestamp'2020-01-01 00:00:00.0015Z'": lambda r: r["t"] == TIMES[1],
    "id < 2": lambda r: r["id"] < 2,
}  # fmt: skip
STEPS = st.one_of(
    st.tuples(st.sampled_from(["write", "append", "merge"]), FILES),
    st.tuples(st.sampled_from(["delete", "update"]), st.sampled_from([*CONDITIONS])),
    st.tuples(st.sampled_from(["checkpoint", "clean up", "violate", "reopen"]), st.none()),
)


class Trial:
    """One table, and its rows by their ids in plain Python."""

    def __init__(self, path: Path, habits: list[Habit], *, is_partitioned: bool) -> None:
        self.path, self.habits = path, habits
        self.writer = OddWriter(path, habits, is_partitioned=is_partitioned)
        self.rows: dict[int, Row] = {}
        self.next_id = 0
        self.clock = ManualClock(now_ms=1_900_000_000_000)
        self.log = self.opened()
        self.may_refuse = {kind for habit in habits for kind in habit.may_refuse}
        self.peer_reads = True

    def opened(self) -> DeltaLog:
        store = LocalLogStore(clock=self.clock)
        return DeltaLog(str(self.path), store, EngineOptions(), clock=self.clock)

    def numbered(self, rows: list[Row]) -> dict[int, Row]:
        first, self.next_id = self.next_id, self.next_id + len(rows)
        return {first + at: {"id": first + at, **row} for at, row in enumerate(rows)}

    def take(self, kind: str, given: Any) -> None:
        """Take one step; a refusal that a habit explains leaves the table as it was."""
        after = dict(self.rows)
        try:
            getattr(self, f"_{kind.replace(' ', '_')}")(given, after)
        except OptimistError as error:
            if error.kind not in self.may_refuse:
                raise
            after = self.rows
        self.rows = after

    def _write(self, rows: list[Row], after: dict[int, Row]) -> None:
        new = self.numbered(rows)
        self.writer.write([*new.values()])
        after |= new

    def _append(self, rows: list[Row], after: dict[int, Row]) -> None:
        new = self.numbered(rows)
        self.log.append(pa.Table.from_pylist([*new.values()], schema=SCHEMA))
        after |= new

    def _merge(self, rows: list[Row], after: dict[int, Row]) -> None:
        """Every other id is there already."""
        new = {i: row for i, row in self.numbered(rows).items() if i % 2 == 0}
        new |= {i: {**row, "id": i} for i, row in zip([*self.rows][::2], rows, strict=False)}
        source = pa.Table.from_pylist([*new.values()], schema=SCHEMA)
        merge = self.log.merge(source, ["id"])
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        after |= new

    def _delete(self, condition: str, after: dict[int, Row]) -> None:
        self.log.delete(condition)
        for i, row in self.rows.items():
            if CONDITIONS[condition](row):
                del after[i]

    def _update(self, condition: str, after: dict[int, Row]) -> None:
        self.log.update(set={"n": "id", "s": "'changed'"}, predicate=condition)
        for i, row in self.rows.items():
            if CONDITIONS[condition](row):
                after[i] = {**row, "n": i, "s": "changed"}

    def _checkpoint(self, _: None, after: dict[int, Row]) -> None:
        self.log.checkpoint()

    def _clean_up(self, _: None, after: dict[int, Row]) -> None:
        """As if a year had passed: what is needed no more goes."""
        later = ManualClock(now_ms=2_000_000_000_000)
        LogCleaner().clean_up(
            self.log.store, self.log.snapshot(), options=EngineOptions(), clock=later
        )

    def _violate(self, _: None, after: dict[int, Row]) -> None:
        """Rows against one of two constraints whose names differ by case."""
        if "checks by case" not in map(repr, self.habits):
            return
        for n in (60, -60):
            row = {**dict.fromkeys(SCHEMA.names), "id": 10**6, "n": n}
            with pytest.raises(OptimistError) as caught:
                self.log.append(pa.Table.from_pylist([row], schema=SCHEMA))
            if caught.value.kind != "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES":
                raise caught.value

    def _reopen(self, _: None, after: dict[int, Row]) -> None:
        self.log = self.opened()

    def ensure_right(self) -> None:
        """Both handles and the peer see the rows, and every condition finds its own."""
        wanted = sorted(map(comparable, self.rows.values()))
        fresh = self.opened()
        for log in (self.log, fresh):
            assert sorted(map(comparable, log.to_arrow().to_pylist())) == wanted
        assert fresh.count() == len(wanted)
        assert fresh.count("n > 0") == sum((row["n"] or 0) > 0 for row in self.rows.values())
        for condition, judge in CONDITIONS.items():
            ids = sorted(i for i, row in self.rows.items() if judge(row))
            assert sorted(fresh.to_arrow(condition)["id"].to_pylist()) == ids, condition
        if self.peer_reads:
            assert self.rows_of_peer() == wanted

    def judge_peer(self) -> None:
        """Ask of the peer only what it could do before ours took part, whatever held it back."""
        wanted = sorted(map(comparable, self.rows.values()))
        try:
            self.peer_reads = self.peer_reads and self.rows_of_peer() == wanted
        except Exception:  # noqa: BLE001 - its errors are of many classes
            self.peer_reads = False

    def rows_of_peer(self) -> list[str]:
        """The rows as deltalake reads them."""
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(self.path)))
        found = pa.RecordBatchReader.from_stream(query.execute("SELECT * FROM t")).read_all()
        rows = found.select(SCHEMA.names).cast(SCHEMA).to_pylist()
        return sorted(map(comparable, rows))


def comparable(row: Row) -> str:
    moment = row["t"] and row["t"].astimezone(UTC).isoformat()
    return repr([*(row[name] for name in SCHEMA.names if name != "t"), moment])


TRIALS = st.fixed_dictionaries(
    {
        "habits": st.lists(st.sampled_from(HABITS), max_size=6, unique=True),
        "files": st.lists(FILES, min_size=1, max_size=3),
        "steps": st.lists(STEPS, max_size=4),
        "is_partitioned": st.booleans(),
    }
)


def play(
    path: Path,
    *,
    habits: list[Habit],
    files: list[list[Row]],
    steps: list[Step],
    is_partitioned: bool,
) -> None:
    """Write a table, take the steps, and look at all that it says after each."""
    trial = Trial(path, habits, is_partitioned=is_partitioned)
    for rows in files:
        trial.take("write", rows)
    trial.writer.checkpoint()
    trial.judge_peer()
    try:
        trial.opened().to_arrow()
    except ProtocolError as error:
        if error.kind not in {habit.is_refused_as for habit in habits}:
            raise
        return
    trial.ensure_right()
    for kind, details in steps:
        trial.take(kind, details)
        if kind == "write":
            trial.judge_peer()
        trial.ensure_right()
