"""All that can be done with a table without Spark, and what of it an honest engine may answer."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa

from canaries import SECRET
from hostile_records import ensure_lease_is_sane
from log_mutations import Mutated
from optimist.core import DeltaLog
from optimist.core.data.file_parts import balanced_groups, file_parts, parts_of
from optimist.core.errors import OptimistError
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.arbiter import Arbiter
from optimist.core.plugins.lease import Lease
from optimist.core.plugins.logstore import LogStore
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore, MemoryLogStore
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore

__all__ = ["Trial", "lay_out"]

_WRITTEN_S = 1_800_000_050
_NOW_MS = 1_800_000_100_000
_LARGEST = (1 << 63) - 1
_LONGEST_ERROR = 4000
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_MANY = 2000


@dataclass
class Trial:
    """One table, and what it answered.

    Attributes:
        path: The table.
        options: The engine's.
        row: What is appended.
        expected: How many rows there are, where nothing was changed that could change that.
        arbiter: Who gives out the versions, where somebody does.
        lease: What is taken, kept and given back beside it.
        faults: What no table may bring about.
        answers: What was read, by what was done; of what was refused the kind of the error.
    """

    path: str
    options: dict[str, str]
    row: pa.Table | None
    expected: int | None = None
    arbiter: Arbiter | None = None
    lease: Lease | None = None
    faults: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Everything, in the order in which a user might do it."""
        log = self.open()
        with _told() as told:
            for name, action in _READING.items():
                self._attempt(name, lambda action=action: action(log))
            self._attempt("checkpoint", log.checkpoint)
            fresh = self.open()
            self._attempt("count after the checkpoint", fresh.count)
            if self.row is not None:
                self._attempt("append", lambda: fresh.append(self.row))
            last = self.open()
            self._attempt("count after the append", last.count)
            self._attempt("rows after the append", lambda: last.to_arrow().num_rows)
            if self.lease is not None:
                self._attempt("lease", lambda: ensure_lease_is_sane(self.lease))
        self.compare()
        self._listen(told)
        if self.arbiter is not None:
            self._listen(_texts_below(Path(self.path)))

    def open(self) -> DeltaLog:
        """The table by a handle that remembers nothing."""
        clock = _Clock(now_ms=_NOW_MS)
        is_local = self.path.startswith("/")
        store: LogStore = LocalLogStore(clock=clock) if is_local else MemoryLogStore(clock=clock)
        if self.arbiter is not None:
            store = ExternalArbiterLogStore(store=store, arbiter=self.arbiter, clock=clock)
        return DeltaLog(self.path, store, EngineOptions.from_options(self.options), clock=clock)

    def compare(self) -> None:
        """A checkpoint and an append change nothing but what they say."""
        for name in ("count", "rows"):
            found = self.answers.get(name, self.expected)
            if self.expected is not None and found != self.expected:
                self.faults.append(f"{name}: {found} instead of {self.expected}")
        before, after = self.answers.get("count"), self.answers.get("count after the checkpoint")
        possible = {before}
        if self.answers.get("statistics are kept") is False:
            possible.add(self.answers.get("rows"))  # what the log claimed is gone; rows are read
        if "checkpoint" in self.answers and before is not None and after not in possible:
            refused = self.refused.get("count after the checkpoint")
            self.faults.append(f"count was {before}, and {after or refused} after the checkpoint")
        if after is not None and after in possible:
            before = after
        if "append" not in self.answers or self.answers["append"] is None or before is None:
            return
        after = self.answers.get("count after the append")
        if after != before + 1:
            refused = self.refused.get("count after the append")
            self.faults.append(f"count was {before}, and {after or refused} after the append")

    def _attempt(self, name: str, action: Callable[[], Any]) -> None:
        if "open" in self.refused and name in _ONCE_OPEN:
            return
        try:
            answer = action()
        except OptimistError as error:
            self.refused[name] = error.kind
            self._listen([str(error), repr(dict(error.fields))])
            text = str(error)
            if len(text) > _LONGEST_ERROR:
                self.faults.append(f"{name}: {error.kind} has {len(text)} characters")
            if control := _CONTROL.search(text):
                self.faults.append(f"{name}: {error.kind} tells {control.group()!r} as it is")
        except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
            self.faults.append(
                f"{name}: {type(error).__name__}\n{_shortened(traceback.format_exc())}"
            )
        else:
            self.answers[name] = answer
            self._ensure_sane(name, answer)

    def _ensure_sane(self, name: str, answer: Any) -> None:
        numbers = {"it": answer} if name in _NUMBERS else {}
        if name == "detail":
            numbers = {"num_files": answer.num_files, "size": answer.size_in_bytes}
        for what, number in numbers.items():
            if not 0 <= number <= _LARGEST:
                self.faults.append(f"{name}: {what} is {number}")

    def _listen(self, told: list[str]) -> None:
        self.faults += [f"the secret is told: {text[:300]}" for text in told if SECRET in text]


_NUMBERS = frozenset(
    {"open", "count", "count of matching", "count after the checkpoint", "count after the append"}
)
_ONCE_OPEN = frozenset(
    {
        "files",
        "files that match",
        "count of matching",
        "matching rows",
        "some rows",
        "rows of a partition",
        "history",
        "detail",
        "plan",
        "tombstones",
        "transaction",
        "statistics are kept",
        "checkpoint",
        "count after the checkpoint",
        "rows after the append",
    }
)
"""What begins with the newest version, as the others do: without one, it is refused as they are."""


def _read(log: DeltaLog) -> int:
    return _harmless(log.to_arrow()).num_rows


def _harmless(rows: pa.Table) -> pa.Table:
    """The rows, which really are what their types say."""
    rows.validate(full=True)
    return rows


def _versions(log: DeltaLog) -> list[int]:
    found = []
    for version in (0, 1, 2):
        try:
            found.append(log.snapshot(version=version).num_files)
        except OptimistError:
            found.append(-1)
    return found


def _plan(log: DeltaLog) -> int:
    parts = file_parts(log.table.data_paths, log.files())
    groups = balanced_groups(parts, max_bytes=128 << 20, num_groups=2, open_cost=4 << 20)
    return sum(len(parts_of(group)) for group in itertools.islice(groups, _MANY))


def _changes(log: DeltaLog) -> int:
    return _harmless(log.changes(starting_version=0)).num_rows


_READING: dict[str, Callable[[DeltaLog], Any]] = {
    "open": lambda log: log.snapshot().version,
    "files": lambda log: log.files().num_rows,
    "files that match": lambda log: log.files("id > 2 AND s < 's7' AND p = 'a'").num_rows,
    "count": lambda log: log.count(),
    "rows": _read,
    "count of matching": lambda log: log.count("id >= 5"),
    "matching rows": lambda log: _harmless(log.to_arrow("id < 9 AND f > 1", ["s", "id"])).num_rows,
    "some rows": lambda log: log.to_arrow(limit=2).num_rows,
    "rows of a partition": lambda log: log.to_arrow("p = 'a'", ["p"]).num_rows,
    "history": lambda log: len(log.history()),
    "detail": lambda log: log.detail(),
    "changes": _changes,
    "versions": _versions,
    "at a time": lambda log: log.snapshot(timestamp=_WRITTEN_S * 1000 + 1).num_files,
    "at a text's time": lambda log: log.snapshot(timestamp="2027-01-15 08:00:50").num_files,
    "plan": _plan,
    "tombstones": lambda log: log.snapshot().tombstones.num_rows,
    "transaction": lambda log: log.start_transaction().txn_version("app"),
    "resolve": lambda log: log.resolve_commit("seed-2").version,
    "statistics are kept": lambda log: log.snapshot().properties.checkpoint_write_stats_as_json,
}


def lay_out(table: Mutated, path: str) -> None:
    """Write the files of a table to where it is to be, a folder or `memory:`."""
    if not path.startswith("/"):
        _into_memory(table, path)
        return
    root = Path(path)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for name, data in table.files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        os.utime(target, (_WRITTEN_S, _WRITTEN_S))
    for name, kind in table.special.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _make_special(target, kind)


def _make_special(target: Path, kind: str) -> None:
    if kind == "directory":
        target.mkdir()
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(kind.partition(":")[2])


def _into_memory(table: Mutated, path: str) -> None:
    """The log for the store, and everything for the driver that reads the data."""
    MemoryLogStore.clear()
    driver = fsspec.filesystem("memory")
    driver.store.clear()
    driver.pseudo_dirs[:] = [""]
    store = MemoryLogStore(clock=ManualClock(now_ms=_WRITTEN_S * 1000))
    for name, data in table.files.items():
        store.put_overwrite(f"{path}/{name}", data)
        driver.pipe_file(f"{path}/{name}", data)


def _texts_below(folder: Path) -> list[str]:
    """All files: whoever reads the table reads these."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [f"{path}: {path.read_text(errors='replace')}" for path in files]


class _Clock(ManualClock):
    """Its UUIDs are none that the seeds' clock gave."""

    def new_uuid(self) -> str:
        return super().new_uuid().replace("4000", "4fff")


class _Listening(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@contextmanager
def _told() -> Iterator[list[str]]:
    """What is logged within this."""
    handler, logger = _Listening(), logging.getLogger()
    logger.addHandler(handler)
    try:
        yield handler.told
    finally:
        logger.removeHandler(handler)


def _shortened(text: str) -> str:
    lines = [line if len(line) < 300 else f"{line[:300]}..." for line in text.splitlines()]
    return "\n".join(lines[-40:])
