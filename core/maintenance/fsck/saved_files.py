"""The record of one repair: copies of the files that it takes out of the log, and its steps.

They are in `_delta_log/_repairs/<time>-<id>/`. No engine reads them: a copy is named
`<name>.saved`, which is the name of no file of a log, whatever directory it is in. `steps.jsonl`
has one line a step. Its first line tells by which commit the log can be known again, and lines of
what the repair wrote tell how that can be known again (`left`). A file is copied before it is
removed, so each step can be undone (`undo.py`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
import shutil
import tempfile
from typing import BinaryIO, cast

import pyarrow as pa

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.timestamps import format_timestamp
from optimist.core.maintenance.fsck.findings import STEPS
from optimist.core.maintenance.fsck.second_look import status_now
from optimist.core.paths import join, name_of
from optimist.core.plugins.logstore import FileStatus, PutOutcome

__all__ = [
    "BEGIN",
    "RECORD_NAME",
    "REPAIRS_DIRECTORY",
    "STEPS_FILE",
    "SavedFiles",
    "digest_of",
    "saved_name",
]

REPAIRS_DIRECTORY = "_repairs"
"""The directory in the log that has a directory for each repair."""
RECORD_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
"""The name of a repair's directory."""
STEPS_FILE = "steps.jsonl"
BEGIN = "begin"
"""The step of the first line, whose file is a commit of the log."""
_IN_MEMORY_BYTES = 8 << 20


class SavedFiles:
    """The record of one repair. Nothing is written before its first step.

    Args:
        table: The table.
        last_commit: The path of the newest commit.

    Attributes:
        name: The name of the record.
    """

    def __init__(self, table: TableRef, last_commit: str) -> None:
        now = dt.datetime.fromtimestamp(table.clock.now_ms() / 1000, dt.timezone.utc)
        self.name = f"{now:%Y%m%dT%H%M%SZ}-{table.clock.new_uuid()[:8]}"
        self._table = table
        self._last_commit = last_commit
        self._directory = join(join(table.log_path, REPAIRS_DIRECTORY), self.name)
        self._steps: list[dict[str, str | None]] = []
        self._lines: list[str] = []

    def steps(self) -> pa.Table:
        """Return the steps that are done, rows of `STEPS`."""
        return pa.Table.from_pylist(self._steps, schema=STEPS)

    def note(
        self,
        step: str,
        path: str,
        saved_as: str | None = None,
        *,
        left: str | None = None,
        base: str | None = None,
    ) -> None:
        """Record a step that is done.

        Args:
            step: What was done.
            path: The file that it concerns.
            saved_as: The copy of that file.
            left: By which the file that the repair wrote can be known again.
            base: The file without which the version of that file can't be read without it.
        """
        self._prepare()
        time = format_timestamp(self._table.clock.now_ms())
        done = {"time": time, "step": step, "path": path, "savedAs": saved_as}
        self._steps.append(done)
        more = {key: text for key, text in (("left", left), ("base", base)) if text is not None}
        self._write({**done, **more})

    def save(self, status: FileStatus) -> str | None:
        """Copy a file, and return the path of the copy; None if the file is gone.

        Raises:
            StorageError: The file could not be copied. Nothing was removed.
        """
        self._prepare()
        path = join(self._directory, saved_name(name_of(status.path)))
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, prefix="optimist-") as spool:
            copy = cast(BinaryIO, spool)
            try:
                with self._table.store.open_read(status.path) as source:
                    shutil.copyfileobj(source, copy)
            except LogFileNotFoundError:
                return None
            size_bytes = copy.tell()
            if size_bytes != status.size_bytes:
                raise _not_saved(status, f"{size_bytes} of {status.size_bytes} bytes arrived")
            if self._table.store.put_file_if_absent(path, copy) is not PutOutcome.CREATED:
                raise _not_saved(status, "the store gave no clear answer")
        self.note("save", status.path, path)
        return path

    def remove(self, status: FileStatus, saved_as: str) -> None:
        """Remove a file that was saved, unless another has taken its place meanwhile."""
        now = status_now(self._table.store, status.path)
        if now is not None and now.is_same_file(status):
            self._table.store.delete(status.path)
            self.note("remove", status.path, saved_as)

    def _prepare(self) -> None:
        if not self._lines:
            self._table.data_paths.ensure_not_led_out(join(self._directory, STEPS_FILE))
            self._table.store.ensure_directory(self._directory)
            time = format_timestamp(self._table.clock.now_ms())
            left = digest_of(self._table.store.read_bytes(self._last_commit))
            self._write({"time": time, "step": BEGIN, "path": self._last_commit, "left": left})

    def _write(self, line: dict[str, str | None]) -> None:
        self._lines.append(f"{json.dumps(line)}\n")
        path = join(self._directory, STEPS_FILE)
        self._table.store.put_overwrite(path, "".join(self._lines).encode())


def saved_name(name: str) -> str:
    """Return the name of the copy of a file of the log."""
    return f"{name}.saved"


def digest_of(data: bytes) -> str:
    """Return what tells a small file of the log from any other."""
    return hashlib.sha256(data).hexdigest()


def _not_saved(status: FileStatus, reason: str) -> StorageError:
    return StorageError(
        f"The file {shown(status.path)} could not be copied before its repair: {reason}. It was "
        "not removed. Run the repair again.",
        kind="OPTIMIST_STORAGE_FAILED",
        path=status.path,
        retryable=True,
    )
