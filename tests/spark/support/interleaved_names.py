"""Two clients over the same few names: what they do, and what may be afterwards.

The steps of one client happen while the other one is within a single step of its own. Whatever
succeeded must have happened in some order, whole; whatever failed must have left everything as it
was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

NAMES = ("a", "b", "c")
FAILED = "failed"
DONE = "done"


@dataclass(frozen=True)
class Table:
    """A table of the catalog.

    Attributes:
        rows: The ids of its rows.
        is_managed: Whether its files go with its name.
        is_other: Whether it is of another format, without rows.
    """

    rows: tuple[int, ...] = ()
    is_managed: bool = True
    is_other: bool = False


@dataclass(frozen=True)
class Step:
    """One statement or call: what it is, of which name, with which other name, with which row."""

    what: str
    name: str
    other: str
    row: int


def _replaced(old: Table | None, row: int) -> Table:
    return replace(old or Table(), rows=(row,))


def _added(old: Table, row: int) -> Table:
    return replace(old, rows=tuple(sorted((*old.rows, row))))


_MADE = ("create", "as", "at", "create or replace at", "save", "to create", "clone")
_FAR = ("at", "create or replace at")
_FAILING = ("fail", "fail at", "fail or replace")
_NEEDS_TABLE = {
    "replace it": _replaced,
    "to replace": _replaced,
    "insert": _added,
    "insert into": _added,
    "to append": _added,
    "insert overwrite": _replaced,
    "to overwrite": _replaced,
    "to overwrite parts": _replaced,
}
_EITHER = {
    "if new": lambda old, row: old or Table((row,)),
    "if new at": lambda old, row: old or Table((row,), is_managed=False),
    "save if new": lambda old, row: old or Table((row,)),
    "clone if new": lambda old, row: old or Table((row,)),
    "create or replace": _replaced,
    "to create or replace": _replaced,
    "save overwrite": _replaced,
    "clone or replace": _replaced,
    "save append": lambda old, row: _added(old or Table(), row),
}


def after(step: Step, state: dict[str, Table]) -> tuple[dict[str, Table], object] | None:
    """The tables after a step that succeeds, and what it answers; None if it can't succeed."""
    old, row = state.get(step.name), step.row
    if step.what == "another":
        return None if old else ({**state, step.name: Table(is_other=True)}, DONE)
    if old is not None and old.is_other and step.what not in ("drop", "rename"):
        return (state, DONE) if "if new" in step.what else None
    if step.what in _MADE:
        rows = () if step.what == "create" else (row,)
        return None if old else ({**state, step.name: Table(rows, step.what not in _FAR)}, DONE)
    if step.what in _EITHER:
        return {**state, step.name: _EITHER[step.what](old, row)}, DONE
    left = {name: table for name, table in state.items() if name != step.name}
    if step.what == "drop":  # of a name whose table is not made yet, too
        return left, DONE
    if old is None or step.what in _FAILING:
        return None
    if step.what == "read":
        return state, old.rows
    if step.what == "rename":
        return None if step.other in state else ({**left, step.other: old}, DONE)
    return {**state, step.name: _NEEDS_TABLE[step.what](old, row)}, DONE


def may_be(
    begun: dict[str, Table], outer: tuple[Step, object], inner: Sequence[tuple[Step, object]]
) -> Iterator[dict[str, Table]]:
    """All that may be there once the steps with these answers have ended."""
    for at in range(len(inner) + 1):
        state = begun
        for step, answer in (*inner[:at], outer, *inner[at:]):
            if str(answer).startswith(FAILED):
                continue
            made = after(step, state)
            if made is None or made[1] != answer:
                break
            state = made[0]
        else:
            yield state


def is_one_of(found: dict[str, Table | str], states: Iterable[dict[str, Table]]) -> bool:
    """Compare what is there with what may be.

    A table that was dropped while it was made may have its name again with a location, so that its
    files do not go with it.
    """
    return all(isinstance(table, Table) for table in found.values()) and any(
        found.keys() == state.keys()
        and all(
            (table.rows, table.is_other) == (state[name].rows, state[name].is_other)
            for name, table in found.items()
        )
        and all(state[name].is_managed or not table.is_managed for name, table in found.items())
        for state in states
    )
