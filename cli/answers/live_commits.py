"""Shows commits as they come: a table in a terminal, else one line for each."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from optimist.cli.answers.plain_tables import fact_text
from optimist.cli.failures import tell
from optimist.core.errors.size_text import bytes_text
from optimist.core.imports import import_by_need

__all__ = ["CommitLook", "show_commits"]

_COLUMNS = (
    *("version", "timestamp", "operation", "engineInfo", "addedFiles", "addedBytes", "addedRows"),
    *("removedFiles", "removedBytes", "overtakenBy"),
)
_STREAM_COLUMNS = (
    *("stream", "source", "batch", "version", "versionsBehind", "filesBehind", "bytesBehind"),
    *("rowsBehind", "behindSince", "problem"),
)
_LINES_BESIDES = 12
_MOST_APPLICATIONS = 5
_MINUTES = slice(len("2026-"), len("2026-11-28 22:10"))


class CommitLook(Protocol):
    """What one look at a table shows (see `watched_commits.Look`)."""

    @property
    def commits(self) -> Iterable[Mapping[str, object]]:
        """The facts of each new commit."""

    @property
    def table(self) -> Mapping[str, int]:
        """The table now."""

    @property
    def applications(self) -> Iterable[Mapping[str, object]]:
        """The streams that write to it."""

    @property
    def streams(self) -> Iterable[Mapping[str, object]]:
        """How far streams lag behind it."""

    @property
    def error(self) -> str | None:
        """Why the store could not be reached."""


def show_commits(
    looks: Iterable[CommitLook], name: str, *, as_json: bool, limit: int | None
) -> None:
    """Show commits until somebody stops it, or so many are shown.

    Args:
        looks: What each look at the table shows.
        name: The table, for the heading.
        as_json: Whether each commit is a line of JSON.
        limit: The number of commits after which it ends; None never ends.
    """
    is_live = not as_json and sys.stdout.isatty()
    left = limit
    with _screen(name) if is_live else _lines(as_json) as shown:
        for look in looks:
            commits = list(look.commits)[:left]
            shown(look, commits)
            left = None if left is None else left - len(commits)
            if left == 0:
                return


@contextmanager
def _lines(as_json: bool) -> Iterator[Any]:
    if not as_json:
        sys.stdout.write("\t".join(_COLUMNS) + "\n")

    told_error: list[str | None] = [None]
    told_streams: list[Mapping[str, object]] = []

    def write(look: CommitLook, commits: list[Mapping[str, object]]) -> None:
        if look.error and look.error != told_error[0]:
            tell(look.error)
        told_error[0] = look.error
        for commit in commits:
            told = {**commit, **look.table, "applications": list(look.applications)}
            plain = "\t".join(fact_text(commit[name]) for name in _COLUMNS)
            sys.stdout.write((json.dumps(told) if as_json else plain) + "\n")
        streams = list(look.streams)
        if streams and not told_streams and not as_json:
            sys.stdout.write("\t".join(("", *_STREAM_COLUMNS)) + "\n")
        now = [{**each, "secondsBehind": None} for each in streams]
        for each, kept in zip(streams, now, strict=True):
            if kept not in told_streams:
                plain = "\t".join(("", *(fact_text(each[name]) for name in _STREAM_COLUMNS)))
                sys.stdout.write((json.dumps(each) if as_json else plain) + "\n")
        told_streams[:] = now
        sys.stdout.flush()

    yield write


@contextmanager
def _screen(name: str) -> Iterator[Any]:
    console = import_by_need("rich.console").Console(file=sys.stdout, highlight=False)
    live = import_by_need("rich.live").Live
    newest: deque[Mapping[str, object]] = deque(maxlen=max(5, console.height - _LINES_BESIDES))
    with live(console=console, auto_refresh=False) as screen:

        def show(look: CommitLook, commits: list[Mapping[str, object]]) -> None:
            newest.extendleft(commits)
            room = max(5, console.height - _LINES_BESIDES - len(list(look.streams)))
            screen.update(_picture(name, look, list(newest)[:room]), refresh=True)

        yield show


def _picture(name: str, look: CommitLook, newest: Iterable[Mapping[str, object]]) -> Any:
    text = import_by_need("rich.text").Text
    table = _table(_HEADINGS, map(_cells, newest), ("time", *_SHORTENED))
    now = look.table
    facts = f"version {now['tableVersion']:,}  files {now['tableFiles']:,}  "
    head = (
        text(fact_text(name), style="bold", no_wrap=True, overflow="ellipsis"),
        text(facts + bytes_text(now["tableBytes"])),
    )
    applications = [
        text(
            f"{fact_text(each['appId'])}: batch {each['version']}, {fact_text(each['lastUpdated'])}"
        )
        for each in list(look.applications)[:_MOST_APPLICATIONS]
    ]
    streams = list(look.streams)
    lags = [text(""), _table(_STREAM_HEADINGS, map(_lag_cells, streams), ("stream",))]
    problems = [look.error, *(each["problem"] for each in streams)]
    errors = [text(fact_text(each), style="red") for each in problems if each]
    parts = (*head, *errors, text(""), table, *(lags if streams else ()), text(""), *applications)
    return import_by_need("rich.console").Group(*parts)


def _table(
    headings: tuple[str, ...], rows: Iterable[tuple[str, ...]], texts: tuple[str, ...]
) -> Any:
    """Return rows as a table that fits the terminal. Numbers stand at the right."""
    text = import_by_need("rich.text").Text
    table = import_by_need("rich.table").Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        # Only columns that may wrap are made narrower, and their cells are cut in place of that.
        may_shrink = heading in _SHORTENED
        justify = "left" if heading in texts else "right"
        least = _LEAST_WIDTH if may_shrink else None
        table.add_column(text(heading), justify=justify, no_wrap=not may_shrink, min_width=least)
    for row in rows:
        table.add_row(*(text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    return table


_LEAST_WIDTH = 8
_LONG_S = 180
_SHORTENED = ("operation", "writer", "stream")
_HEADINGS = ("version", "time", "operation", "writer", "files", "bytes", "rows", "overtaken")


def _cells(commit: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a commit as cells: what it adds and what it removes."""
    rows = commit["addedRows"]
    return (
        f"{commit['version']:,}",
        str(commit["timestamp"])[_MINUTES],
        fact_text(commit["operation"]),
        fact_text(commit["engineInfo"]),
        _files(commit["addedFiles"], commit["removedFiles"]),
        _net_bytes(commit["addedBytes"], commit["removedBytes"]),
        "?" if rows is None else f"{rows:,}" if rows else "",
        f"{commit['overtakenBy']:,}" if commit["overtakenBy"] else "",
    )


_STREAM_HEADINGS = ("stream", "batch", "version", "behind", "versions", "files", "bytes", "rows")


def _lag_cells(stream: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a stream as cells: where it is, and how much it lags behind."""
    seconds, more = stream["secondsBehind"], "" if stream["isWhole"] in (None, True) else "+"
    size = stream["bytesBehind"]
    return (
        fact_text(stream["stream"]),
        _count(stream["batch"]),
        _count(stream["version"]),
        "?" if seconds is None else _minutes(seconds),
        _count(stream["versionsBehind"]),
        _count(stream["filesBehind"]) + more,
        "?" if size is None else bytes_text(size) + more,
        _count(stream["rowsBehind"]) + more,
    )


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _minutes(seconds: int) -> str:
    return f"{seconds:,} s" if seconds < _LONG_S else f"{seconds // 60:,} min"


def _files(added: int, removed: int) -> str:
    parts = ((sign, count) for sign, count in (("+", added), ("-", removed)) if count)
    return " ".join(f"{sign}{count:,}" for sign, count in parts)


def _net_bytes(added: int | None, removed: int | None) -> str:
    if added is None or removed is None:
        return "?"
    change = added - removed
    return f"{'+' if change > 0 else ''}{bytes_text(change)}" if change else ""
