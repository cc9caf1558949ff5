"""The undo of a repair, by the record that the repair left beside the table (docs/fsck.md).

Each step is undone only if what lies there is still what the repair left. Whatever else is there is
the work of others and stays; the answer says so.

1. The record is read. Only names of files are taken from it, and only those of files in this log
   that a repair may touch: whoever can write the record must not choose a file elsewhere.
2. The commit that was the newest at the time of the repair is compared. If it is another one, or
   gone, this is another log, or one that was cleaned up since, and nothing is done.
3. Commits of the repair are undone, the newest first, by a commit that makes the table what it was
   before, if no other commit has changed it since.
4. The hint that the repair wrote is removed, and then the checkpoint, if the table can be read
   without it.
5. Each copy is put back where no file is, the hint last: it must not name what is not there yet.

A run that is killed is ended by the next one, which takes a file with the bytes of its copy for
one that is back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, StorageError, TableError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.last_checkpoint import LastCheckpoint
from optimist.core.log.limits import LogLimits, ensure_readable_size
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    LogFileKind,
    parse_log_file_name,
)
from optimist.core.log.timestamps import format_timestamp
from optimist.core.maintenance.fsck.findings import UNDONE_STEPS, UndoneRepair
from optimist.core.maintenance.fsck.saved_files import (
    BEGIN,
    RECORD_NAME,
    REPAIRS_DIRECTORY,
    STEPS_FILE,
    digest_of,
    saved_name,
)
from optimist.core.maintenance.fsck.second_look import is_there, status_now
from optimist.core.maintenance.fsck.undone_commits import UndoCommits, UndoneCommit
from optimist.core.paths import join, name_of
from optimist.core.plugins.logstore import PutOutcome

__all__ = ["undo_repair"]

_COMMIT = re.compile(r"commit (\d{1,19}): (FSCK|COMPUTE STATS)")
_PIECE_BYTES = 1 << 20


def undo_repair(table: TableRef, record: str, commits: UndoCommits) -> UndoneRepair:
    """Undo a repair, and return what was done and what was left.

    Args:
        table: The table.
        record: The name of the record, or a path that ends with it.
        commits: Undoes commits.

    Raises:
        UsageError: That is no name of a record, or the table has no such record.
        TableError: The log is not the one that was repaired, or the record is damaged. Nothing was
            done.
        StorageError: The store failed. The undo can be run again.
    """
    name = record.rstrip("/").removesuffix(f"/{STEPS_FILE}").rpartition("/")[2]
    directory = join(table.log_path, REPAIRS_DIRECTORY, name)
    if not RECORD_NAME.fullmatch(name):
        raise _no_record(table, record)
    table.data_paths.ensure_not_led_out(join(directory, STEPS_FILE))
    lines = _read_record(table, join(directory, STEPS_FILE), record)
    _ensure_same_log(table, lines)
    commits.ensure_writable()
    undo = _Undo(table, directory)
    for version, operation in _commits_of(lines):
        undo.note_commit(commits.undo(version, operation))
    undo.take_away(lines)
    undo.put_back(lines)
    return UndoneRepair(name, undo.num_left, undo.steps())


def _read_record(table: TableRef, path: str, record: str) -> list[Mapping[str, Any]]:
    status = status_now(table.store, path)
    if status is None:
        raise _no_record(table, record)
    ensure_readable_size(status, LogLimits.of(table.options))
    try:
        text = table.store.read_bytes(path).decode("utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        named = [(str(line["step"]), name_of(str(line["path"]))) for line in lines]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(path, "it has not the steps of a repair") from None
    for step, name in named:
        if step in ("save", "checkpoint") and not _may_be_put_back(name):
            raise _damaged(path, f"a repair does not touch {shown(name)}")
    return lines


def _may_be_put_back(name: str) -> bool:
    parsed = parse_log_file_name(name)
    return name == LAST_CHECKPOINT or (parsed is not None and parsed.kind is not LogFileKind.COMMIT)


def _ensure_same_log(table: TableRef, lines: list[Mapping[str, Any]]) -> None:
    """Compare the newest commit at the time of the repair."""
    begin = next((line for line in lines if line["step"] == BEGIN), None)
    path = join(table.log_path, name_of(str(begin["path"]))) if begin else ""
    status = status_now(table.store, path) if begin else None
    if begin is not None and status is not None:
        ensure_readable_size(status, LogLimits.of(table.options))
        if digest_of(table.store.read_bytes(path)) == begin.get("left"):
            return
    raise TableError(
        f"The log of {shown(table.table_path)} is not the one that was repaired, or it was cleaned "
        "up since: it has no longer the commit that was the newest then. Nothing was done. Copy "
        "what you need back by hand.",
        kind="OPTIMIST_REPAIR_NOT_UNDOABLE",
        path=table.table_path,
    )


def _commits_of(lines: list[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    for line in reversed(lines):
        found = _COMMIT.fullmatch(str(line["step"]))
        if found is not None:
            yield int(found[1]), found[2]


class _Undo:
    """The undo of the steps of one record that concern files of the log."""

    def __init__(self, table: TableRef, directory: str) -> None:
        self.num_left = 0
        self._table = table
        self._store = table.store
        self._directory = directory
        self._steps: list[dict[str, str | None]] = []

    def steps(self) -> pa.Table:
        """Return the steps, rows of `UNDONE_STEPS`."""
        return pa.Table.from_pylist(self._steps, schema=UNDONE_STEPS)

    def note_commit(self, done: UndoneCommit | None) -> None:
        """Note what became of a commit; None if it was undone before."""
        if done is None:
            return
        if done.version is None:
            self._leave(f"commit {done.undone}", self._table.table_path, done.reason)
        else:
            step = f"commit {done.version}: RESTORE to version {done.undone - 1}"
            self._note(step, self._table.table_path)

    def take_away(self, lines: list[Mapping[str, Any]]) -> None:
        """Remove the hint and the checkpoint that the repair wrote (step 4)."""
        for line in reversed(lines):
            left = line.get("left")
            if not isinstance(left, str):
                continue
            if line["step"] == "hint":
                self._remove_hint(left, has_checkpoint=self._has_checkpoint(lines))
            elif line["step"] == "checkpoint":
                path = join(self._table.log_path, name_of(str(line["path"])))
                self._remove_checkpoint(path, left, line.get("base"))

    def put_back(self, lines: list[Mapping[str, Any]]) -> None:
        """Put the copies back (step 5)."""
        names = [name_of(str(line["path"])) for line in lines[::-1] if line["step"] == "save"]
        for name in sorted(names, key=lambda name: name == LAST_CHECKPOINT):
            path = join(self._table.log_path, name)
            copy = join(self._directory, saved_name(name))
            for each in (path, copy):
                self._table.data_paths.ensure_not_led_out(each)
            self._put_back(path, copy)

    def _put_back(self, path: str, copy: str) -> None:
        if not is_there(self._store, copy):
            self._leave("put back", path, "its copy is gone")
            return
        outcome = PutOutcome.EXISTS
        if not is_there(self._store, path):
            with self._store.open_read(copy) as file:
                outcome = self._store.put_file_if_absent(path, file)
        if outcome is PutOutcome.CREATED:
            self._note("put back", path)
        elif not self._is_copy(path, copy):
            if outcome is PutOutcome.UNKNOWN:
                raise _not_back(path)
            self._leave("put back", path, "another file is there")
        elif outcome is PutOutcome.UNKNOWN:
            self._note("put back", path)

    def _has_checkpoint(self, lines: list[Mapping[str, Any]]) -> bool:
        """Return whether a checkpoint that the repair wrote is still there."""
        for line in lines:
            if line["step"] == "checkpoint":
                path = join(self._table.log_path, name_of(str(line["path"])))
                status = status_now(self._store, path)
                if status is not None and status.identity == line.get("left"):
                    return True
        return False

    def _remove_hint(self, left: str, *, has_checkpoint: bool) -> None:
        path = join(self._table.log_path, LAST_CHECKPOINT)
        copy = join(self._directory, saved_name(LAST_CHECKPOINT))
        try:
            data = self._store.read_bytes(path)
        except LogFileNotFoundError:
            return
        is_back = self._is_copy(path, copy)
        # The same hint may have been there before, but it must not name a checkpoint that is gone.
        if digest_of(data) == left and (has_checkpoint or not is_back):
            self._store.delete(path)
            self._note("remove", path)
        elif not is_back and not is_there(self._store, copy):
            self._leave("remove", path, "another writer has written it since")

    def _remove_checkpoint(self, path: str, left: str, base: object) -> None:
        status = status_now(self._store, path)
        if status is None:
            return
        if status.identity != left:
            if not self._is_copy(path, join(self._directory, saved_name(name_of(path)))):
                self._leave("remove", path, "another file is there")
            return
        reason = self._need_of(path, base)
        if reason is not None:
            self._leave("remove", path, reason)
            return
        self._store.delete(path)
        self._note("remove", path)

    def _need_of(self, path: str, base: object) -> str | None:
        """Return why a true checkpoint must stay, if it must.

        A cleanup removes the base before the commits that follow it, so while it is there, they
        are.
        """
        if not isinstance(base, str) or not is_there(
            self._store, join(self._table.log_path, name_of(base))
        ):
            return "the files that stood for its version were cleaned up, so it is needed"
        name = parse_log_file_name(name_of(path))
        try:
            text = self._store.read_bytes(join(self._table.log_path, LAST_CHECKPOINT)).decode()
            is_named = name is not None and LastCheckpoint.from_json(text).version == name.version
        except (LogFileNotFoundError, ValueError):
            return None
        return "another writer's _last_checkpoint names it" if is_named else None

    def _is_copy(self, path: str, copy: str) -> bool:
        """Return whether a file has the bytes of a copy."""
        one, other = (status_now(self._store, each) for each in (path, copy))
        if one is None or other is None or one.size_bytes != other.size_bytes:
            return False
        try:
            with self._store.open_read(path) as file, self._store.open_read(copy) as saved:
                return _has_same_bytes(file, saved)
        except LogFileNotFoundError:
            return False

    def _note(self, step: str, path: str, reason: str | None = None) -> None:
        time = format_timestamp(self._table.clock.now_ms())
        self._steps.append({"time": time, "step": step, "path": path, "leftBecause": reason})

    def _leave(self, step: str, path: str, reason: str) -> None:
        self.num_left += 1
        self._note(step, path, reason)


def _has_same_bytes(one: BinaryIO, other: BinaryIO) -> bool:
    while True:
        piece = one.read(_PIECE_BYTES)
        if piece != other.read(len(piece) or 1):
            return False
        if not piece:
            return True


def _no_record(table: TableRef, record: str) -> UsageError:
    directory = join(table.log_path, REPAIRS_DIRECTORY)
    return UsageError(
        f"There is no record {shown(record)} of a repair of {shown(table.table_path)}. Nothing was "
        f"done. Give the name of a directory in {shown(directory)}, which the answer of the repair "
        "has as its record.",
        kind="OPTIMIST_INVALID_ARGUMENT",
        argument="record",
    )


def _damaged(path: str, reason: str) -> TableError:
    return TableError(
        f"The record {shown(path)} is damaged: {reason}. Nothing was done. Copy what you need back "
        "by hand.",
        kind="OPTIMIST_REPAIR_NOT_UNDOABLE",
        path=path,
    )


def _not_back(path: str) -> StorageError:
    return StorageError(
        f"It is unknown whether {shown(path)} is back: the store gave no clear answer. Run the "
        "undo again.",
        kind="OPTIMIST_WRITE_OUTCOME_UNKNOWN",
        path=path,
        retryable=True,
    )
