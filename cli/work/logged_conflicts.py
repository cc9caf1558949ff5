"""The conflicts that programs have logged: who lost to whom, of which table, and when.

Optimist's own errors name the table, the winner's version and both operations. Those of delta-spark
name the winner's operation, and those of deltalake only what kind of conflict it was. An error that
a log has several times counts once: within a record, and if it names its winner also beyond it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa

from optimist.cli.work.log_lines import LogLine, log_lines
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.secrets import without_secrets

__all__ = ["LoggedConflicts", "logged_conflicts"]

_Key = TypeVar("_Key")

_CODES = (
    *("DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ", "DELTA_CONCURRENT_DELETE_DELETE"),
    *("DELTA_CONCURRENT_TRANSACTION", "DELTA_CONCURRENT_WRITE", "DELTA_METADATA_CHANGED"),
    *("DELTA_PROTOCOL_CHANGED", "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"),
    "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL",
)
_CLASSES = {
    "ConcurrentAppendException": "DELTA_CONCURRENT_APPEND",
    "ConcurrentDeleteReadException": "DELTA_CONCURRENT_DELETE_READ",
    "ConcurrentDeleteDeleteException": "DELTA_CONCURRENT_DELETE_DELETE",
    "ConcurrentTransactionException": "DELTA_CONCURRENT_TRANSACTION",
    "ConcurrentWriteException": "DELTA_CONCURRENT_WRITE",
    "MetadataChangedException": "DELTA_METADATA_CHANGED",
    "ProtocolChangedException": "DELTA_PROTOCOL_CHANGED",
}
"""The exceptions of delta-spark, for logs that lack the code."""
_TEXTS = {
    "a concurrent transactions added new data": "DELTA_CONCURRENT_APPEND",
    "a concurrent transaction deleted data this operation read": "DELTA_CONCURRENT_DELETE_READ",
    "a concurrent transaction deleted the same data": "DELTA_CONCURRENT_DELETE_DELETE",
    "Metadata changed since last commit": "DELTA_METADATA_CHANGED",
    "Protocol changed since last commit": "DELTA_PROTOCOL_CHANGED",
    "Concurrent transaction failed": "DELTA_CONCURRENT_TRANSACTION",
    "Tried committing existing table version": "DELTA_CONCURRENT_WRITE",
}
"""What deltalake writes."""
_ATTEMPTS = r"Failed to commit transaction: [0-9]{1,9}(?=\s*$|[\"'])"
"""Other programs write that, too, and go on with the code of an error."""
_PATTERN = (
    rf"\[(?P<code>{'|'.join(_CODES)})(?:\.[A-Z_]{{1,60}})?\]"
    rf"|(?:\w\.)(?P<cls>{'|'.join(_CLASSES)})(?=:|\s*$)"
    rf"|(?P<text>{'|'.join(map(re.escape, _TEXTS))})"
    rf"|(?P<attempts>{_ATTEMPTS})"
)
_ERROR = re.compile(_PATTERN)
_COMMIT = "Conflicting commit: "
_WANTED = re.compile(rf"{_PATTERN}|{_COMMIT}".encode())
_WINNER, _LOSER = "The winner is version ", "; the loser is this "
_WRITTEN = re.compile(
    r"A concurrent transaction \((?P<winner>[^)]{1,300})\) has written version (?P<version>[0-9]+) "
    r"of "
)
_STARTED = re.compile(r"It started at version [0-9]+ of ")
_FRAME = re.compile(r"\s*at ")
_LINES_TO_THE_COMMIT = 20
"""How many lines after its error the winner of delta-spark's may stand."""
_MOST_SEEN = 10_000
"""How many errors are shown, and how many are known again."""
_MOST_SUMS = 1_000
_OTHERS = "others"
_DIGITS = 18

_ERRORS = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("log", pa.string()),
        ("line", pa.int64()),
        ("kind", pa.string()),
        ("table", pa.string()),
        ("operation", pa.string()),
        ("winningOperation", pa.string()),
        ("winningVersion", pa.int64()),
        ("winningEngine", pa.string()),
        ("what", pa.string()),
    ]
)
_LOSSES = pa.schema(
    [
        ("table", pa.string()),
        ("operation", pa.string()),
        ("winningOperation", pa.string()),
        ("kind", pa.string()),
        ("times", pa.int64()),
    ]
)
_HOURS = pa.schema(
    [("hour", pa.timestamp("us", "UTC")), ("table", pa.string()), ("times", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class LoggedConflicts:
    """The conflicts in some logs.

    Attributes:
        facts: How many there are: `numLoggedConflicts`.
        losses: How many times which operation of which table lost to which one, the most frequent
            first: `table`, `operation`, `winningOperation`, `kind`, `times`. Null is unknown.
        loss_hours: How many there are of each table and hour, the newest hour first: `hour`,
            `table`, `times`.
        errors: The errors, the newest first as the logs have them: `time`, `log`, `line`, `kind`,
            `table`, `operation`, `winningOperation`, `winningVersion`, `winningEngine`, `what`.
    """

    facts: Mapping[str, object]
    losses: pa.Table
    loss_hours: pa.Table
    errors: pa.Table


@dataclass(frozen=True, slots=True)
class _Loss:
    """One error of a conflict."""

    line: LogLine
    log: str
    kind: str
    what: str
    table: str | None = None
    operation: str | None = None
    winner: str | None = None
    version: int | None = None
    engine: str | None = None
    winner_id: str | None = None

    @property
    def names_winner(self) -> bool:
        return self.version is not None or self.winner_id is not None

    @property
    def sides(self) -> tuple[object, ...]:
        """What tells this error from those of others."""
        return self.table, self.operation, self.version, self.winner_id

    def is_as(self, other: _Loss) -> bool:
        """Return whether both are the same error, told twice in one record."""
        if (self.log, self.line.record, self.kind) != (other.log, other.line.record, other.kind):
            return False
        both = self.names_winner and other.names_winner
        return not both or self.sides == other.sides


@dataclass(slots=True)
class _Sums:
    """What is known of the logs so far. It does not grow with them."""

    count: int = 0
    shown: deque[_Loss] = field(default_factory=lambda: deque(maxlen=_MOST_SEEN))
    losses: Counter[tuple[str | None, ...]] = field(default_factory=Counter)
    hours: Counter[tuple[datetime | None, str | None]] = field(default_factory=Counter)
    _open: _Loss | None = None
    _seen: OrderedDict[object, None] = field(default_factory=OrderedDict)

    def note(self, found: _Loss) -> None:
        """Note an error, which may be the last one told again."""
        before = self._open
        if before is not None and before.is_as(found):
            if not before.names_winner and (found.names_winner or not before.what):
                self._open = replace(found, line=before.line)
            return
        self.close()
        self._open = found

    def note_commit(self, line: LogLine, log: str, text: str) -> None:
        """Note the winner of the last error, as delta-spark tells it on a line of its own."""
        found = self._open
        if found is None or found.names_winner or found.log != log:
            return
        if line.number - found.line.number <= _LINES_TO_THE_COMMIT:
            self._open = _with_commit(found, text)

    def close(self) -> None:
        """Count the last error, unless the log had it before."""
        found, self._open = self._open, None
        if found is None:
            return
        if found.names_winner:
            key = (found.log, found.kind, found.what, *found.sides)
            if key in self._seen:
                return
            self._seen[key] = None
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
        self.count += 1
        self.shown.append(found)
        time = found.line.time
        hour = None if time is None else time.replace(minute=0, second=0, microsecond=0)
        loss = (found.table, found.operation, found.winner, found.kind)
        self.losses[_one_of(loss, self.losses, (_OTHERS, None, None, _OTHERS))] += 1
        self.hours[_one_of((hour, found.table), self.hours, (None, _OTHERS))] += 1


def logged_conflicts(paths: Iterable[str]) -> LoggedConflicts:
    """Find the conflicts that logs tell of.

    Args:
        paths: The files on this machine's disks; `-` is the standard input.

    Raises:
        UsageError: A file can't be read (kind `OPTIMIST_INVALID_ARGUMENT`).
    """
    sums = _Sums()
    for path in paths:
        name = without_secrets(path)
        with _opened(path) as stream:
            for line in log_lines(stream, _WANTED):
                _note_line(sums, name, line)
        sums.close()
    losses = [(*names, times) for names, times in sums.losses.most_common()]
    hours = sorted(sums.hours.items(), key=lambda each: (each[0][0] is not None, *each[0][:1]))
    return LoggedConflicts(
        {"numLoggedConflicts": sums.count},
        _table(losses, _LOSSES),
        _table([(*names, times) for names, times in reversed(hours)], _HOURS),
        _table([_row(each) for each in reversed(sums.shown)], _ERRORS),
    )


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        if path == "-" and sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as stream:
            yield stream
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(
            f"The log {quoted(path)} can't be read: {reason}. Nothing was done. Name a file on "
            "this machine's disks, or - for the standard input.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="--log",
        ) from None


def _note_line(sums: _Sums, log: str, line: LogLine) -> None:
    """Note the errors of a line. A frame of a stack trace has none."""
    if _FRAME.match(line.text):
        return
    found = list(_ERROR.finditer(line.text))
    codes = [each for each in found if each["code"]]
    found = codes or found  # the exception's name stands before its code
    ends = (*(each.start() for each in found[1:]), len(line.text))
    for each, end in zip(found, ends, strict=False):
        sums.note(_loss_of(line, log, each, line.text[each.start() : end]))
    if _COMMIT in line.text:
        sums.note_commit(line, log, line.text.partition(_COMMIT)[2])


def _loss_of(line: LogLine, log: str, found: re.Match[str], text: str) -> _Loss:
    """Return the error that a text begins with."""
    kind = found["code"] or _CLASSES.get(found["cls"] or "") or _TEXTS.get(found["text"] or "")
    message = text if found["code"] is None and found["cls"] is None else text[len(found[0]) :]
    message = message.lstrip(": ").strip()
    loss = _Loss(line, log, kind or "DELTA_MAX_COMMIT_RETRIES_EXCEEDED", _sentence(message))
    written, started = _WRITTEN.search(message), _STARTED.search(message)
    if _WINNER in message:
        return _with_winner(loss, message.partition(_WINNER)[2])
    if written is not None:
        table, _, rest = message[written.end() :].partition(", and ")
        operation = rest.partition(" can't be rebased")[0]
        return replace(
            loss,
            table=_shown(table),
            operation=_shown(operation),
            winner=_shown(written["winner"]),
            version=_number(written["version"]),
        )
    if started is not None:
        return replace(loss, table=_shown(message[started.end() :].partition(", and after ")[0]))
    if _COMMIT in message:
        return _with_commit(loss, message.partition(_COMMIT)[2])
    return loss


def _with_winner(loss: _Loss, text: str) -> _Loss:
    """Return an error of Optimist's with what it says of table, winner and loser."""
    version, _, rest = text.partition(" of ")
    told, _, after = rest.partition(_LOSER)
    table, _, winner = told.rpartition(", ")
    operation, _, engine = winner.partition(" by ")
    return replace(
        loss,
        table=_shown(table),
        operation=_shown(after.partition(". ")[0]),
        winner=_shown(operation),
        version=_number(version),
        engine=_shown(engine),
    )


def _with_commit(loss: _Loss, text: str) -> _Loss:
    """Return an error of delta-spark's with what it says of the winner."""
    try:
        commit, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return loss
    if not isinstance(commit, dict):
        return loss
    operation, engine, version = (commit.get(key) for key in ("operation", "engineInfo", "version"))
    return replace(
        loss,
        winner=_shown(operation) if isinstance(operation, str) else None,
        engine=_shown(engine) if isinstance(engine, str) else None,
        version=_number(str(version)) if type(version) is int else None,
        winner_id=shown(str(commit.get("txnId") or commit.get("timestamp"))),
    )


def _sentence(message: str) -> str:
    return shown(message.partition(". ")[0])


def _shown(text: str) -> str | None:
    return shown(text.strip()) or None


def _number(text: str) -> int | None:
    is_version = text.isascii() and text.isdigit() and len(text) <= _DIGITS
    return int(text) if is_version else None


def _one_of(key: _Key, sums: Counter[_Key], others: _Key) -> _Key:
    """Return the key, or the one for all others if there are too many."""
    return key if key in sums or len(sums) < _MOST_SUMS else others


def _row(loss: _Loss) -> tuple[object, ...]:
    return (
        *(loss.line.time, loss.log, loss.line.number, loss.kind, loss.table, loss.operation),
        *(loss.winner, loss.version, loss.engine, loss.what),
    )


def _table(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, each.type) for values, each in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
