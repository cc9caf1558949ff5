"""Random blocks with vectors in files, raced with other writers, VACUUM, kills and lost answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random  # noqa: TID251 - a race is its seed
from typing import TypeAlias

import pyarrow as pa
import pytest

from local_tables import opened
from optimist.core import DeltaLog
from optimist.core.data.vectors import vector_writer
from optimist.core.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    TableError,
)
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.table.table_transaction import TableTransaction
from optimist.logstores import LocalLogStore

__all__ = ["BlockRace", "vectors_in_files"]

_ROWS = 12
_FAR = 1_000
_QUIET = {  # a VACUUM that makes no commit, and so waits for no lock
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.logging.enabled": "false",
}

_FAULTS = ["lost", "repeats", "before", "after", "kill"]

Change: TypeAlias = Callable[[frozenset[int]], frozenset[int]]


@contextmanager
def vectors_in_files():
    """Have even the smallest vector stand in a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_writer, "_INLINE_BYTES", 0)
        yield


class _Struck(BaseException):
    """An interrupt."""


class _Store(LocalLogStore):
    """Does something at one of its requests for a commit: before it, or after it."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None
        self.loses_answer = False
        self.repeats = False

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        if not path.endswith(".json"):
            return super().put_if_absent(path, data)
        self.before()
        outcome = super().put_if_absent(path, data)
        self.after()
        if self.repeats:
            outcome = super().put_if_absent(path, data)
        if self.loses_answer:
            self.loses_answer = False
            return PutOutcome.UNKNOWN
        return outcome


class BlockRace:
    """One block, its rivals, and what the table may hold afterwards.

    Args:
        path: Where the table is.
        seed: Decides all.
        kills: Whether the block may run in a process that is killed.
    """

    def __init__(self, path: Path, seed: int, *, kills: bool = False) -> None:
        self.random = Random(seed)
        tracks = {"enableRowTracking": "true"} if self.random.random() < 0.5 else {}
        log = opened(path, has_vectors=True, **tracks)
        for first in range(0, 3 * _ROWS, _ROWS):
            log.append(_rows(range(first, first + _ROWS)))
        self.store = _Store()
        self.path = str(path)
        self.log = DeltaLog(self.path, self.store)
        self.rival = DeltaLog.for_path(self.path, _QUIET)
        self.base = frozenset(range(3 * _ROWS))
        self.ours: list[Change] = []
        self.theirs: list[Change] = []
        self._new = 10_000
        self._touched: set[int] = set()
        self._kills = kills
        self.has_landed: bool | None = None

    def run(self) -> None:
        """Run the block against its rivals, and hold the table against the model."""
        fault = self._plan_fault()
        if fault == "kill":
            self._run_and_be_killed()
        else:
            with suppress(DeltaConcurrentModificationException, CommitOutcomeUnknownError, _Struck):
                self._run_block()
        self.ensure_right()
        self.rival.vacuum(0)  # what versions name must stay
        self.ensure_right()
        self.rival.optimize()
        self.rival.vacuum(0)
        self.ensure_right()

    def ensure_right(self) -> None:
        """Read the table anew: each commit is in it whole or not at all, in one of the orders."""
        found = DeltaLog(self.path, LocalLogStore()).to_arrow()["id"]
        rows = sorted(found.to_pylist())
        without = _after(self.base, self.theirs)
        orders = [_after(without, self.ours), _after(_after(self.base, self.ours), self.theirs)]
        allowed = [sorted(each) for each in orders]
        if self.has_landed is not True:
            allowed.append(sorted(without))
        if self.has_landed is False:
            allowed = [sorted(without)]
        assert rows in allowed

    def _plan_fault(self) -> str:
        fault = self.random.choice([*["none"] * 5, *_FAULTS])
        self.store.loses_answer = fault == "lost"
        self.store.repeats = fault == "repeats"
        strike = self._exit if fault == "kill" and self._kills else self._strike
        hook = "before" if self.random.random() < 0.5 else "after"
        if fault in ("before", "after", "kill"):
            setattr(self.store, hook if fault == "kill" else fault, strike)
        elif self.random.random() < 0.5:
            self.store.before = lambda: self.rival.vacuum(0)
        return fault if self._kills or fault != "kill" else "before"

    def _strike(self) -> None:
        raise _Struck

    def _exit(self) -> None:
        os._exit(9)

    def _run_and_be_killed(self) -> None:
        """The rivals' part is the parent's, before the child begins and after it was killed."""
        steps = self._steps()
        self.ours += [change for _, change in steps]
        if (child := os.fork()) == 0:
            with suppress(BaseException), self.log.transaction() as txn:
                for do, _ in steps:
                    do(txn)
            os._exit(0)
        os.waitpid(child, 0)
        self._rival_acts()

    def _run_block(self) -> None:
        block = self.log.transaction()
        steps = self._steps()
        self.ours += [change for _, change in steps]
        try:
            with block as txn:
                for do, _ in steps:
                    do(txn)
                    if self.random.random() < 0.6:
                        self._rival_acts()
            self.has_landed = True
        except DeltaConcurrentModificationException:
            self.has_landed = False
            raise
        except TableError as error:  # VACUUM took files of the version that the block began at
            self.has_landed = False
            assert error.kind == "DELTA_FILE_NOT_FOUND_DETAILED"

    def _steps(self) -> list[tuple[Callable[[TableTransaction], object], Change]]:
        """Operations of the block with what they change; they know the rows of those before."""
        steps = []
        known = set(self.base)
        for number in range(self.random.randint(2, 4)):
            kinds = (
                ["append", "update"] if number == 0 else ["append", "delete", "delete", "update"]
            )
            kind = self.random.choice(kinds)
            if kind == "append":
                ids = self._new_ids(_ROWS)
                known |= set(ids)
                steps.append((_appends(ids), _adding(ids)))
                continue
            chosen = self._chosen(known)
            self._touched |= set(chosen)
            if kind == "delete":
                known -= set(chosen)
                steps.append((_deletes(chosen), _removing(chosen)))
            else:
                far = self._new = self._new + _FAR * 100
                known = (known - set(chosen)) | {each + far for each in chosen}
                steps.append((_updates(chosen, far), _moving(chosen, far)))
        return steps

    def _chosen(self, known: set[int]) -> list[int]:
        """Some rows of the table and some of the block's own: their vectors share a file."""
        parts = [sorted(known & self.base), sorted(known - self.base)]
        wanted = [min(len(part), self.random.randint(1, 4)) for part in parts]
        return [each for part, n in zip(parts, wanted, strict=True) for each in self._some(part, n)]

    def _some(self, rows: list[int], count: int) -> list[int]:
        return self.random.sample(rows, count)

    def _rival_acts(self) -> None:
        kind = self.random.choice(["delete", "delete", "delete", "optimize", "vacuum", "append"])
        if kind == "delete":
            collides = self.random.random() < 0.1
            chosen = self._some(sorted(self.base if collides else self.base - self._touched), 3)
            self.rival.delete(_among(chosen))
            self.theirs.append(_removing(chosen))
        elif kind == "append":
            ids = self._new_ids(2)
            self.rival.append(_rows(ids))
            self.theirs.append(_adding(ids))
        elif kind == "optimize":
            self.rival.optimize()
        else:
            self.rival.vacuum(0)

    def _new_ids(self, count: int) -> range:
        first = self._new = self._new + _FAR * 100
        return range(first, first + count)


def _rows(ids: Sequence[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def _among(ids: Sequence[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def _after(rows: frozenset[int], changes: Sequence[Change]) -> frozenset[int]:
    for change in changes:
        rows = change(rows)
    return rows


def _appends(ids: Sequence[int]) -> Callable[[TableTransaction], object]:
    return lambda txn: txn.append(_rows(ids))


def _deletes(ids: Sequence[int]) -> Callable[[TableTransaction], object]:
    return lambda txn: txn.delete(_among(ids))


def _updates(ids: Sequence[int], far: int) -> Callable[[TableTransaction], object]:
    return lambda txn: txn.update(set={"id": f"id + {far}"}, predicate=_among(ids))


def _adding(ids: Sequence[int]) -> Change:
    return lambda rows: rows | set(ids)


def _removing(ids: Sequence[int]) -> Change:
    return lambda rows: rows - set(ids)


def _moving(ids: Sequence[int], far: int) -> Change:
    return lambda rows: (rows - set(ids)) | {each + far for each in rows & set(ids)}
