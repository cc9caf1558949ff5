"""A log store and an arbiter for the scheduler, with a few files and entries.

Each call is one step.

*Assumes* nothing. *Provides* what the contracts of `LogStore` and `Arbiter` require, and the
mishaps that they allow: a write whose answer is lost returns `UNKNOWN`, or raises an error that
does not say whether it took effect; a write that was refused raises a retryable `StorageError`. A
listing shows one moment.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.paths import LOG_DIRECTORY
from optimist.core.plugins.arbiter import Arbiter, CommitEntry
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.testing.scheduler import Line, Operation, Raised, World

__all__ = [
    "LogState",
    "SimulatedArbiter",
    "SimulatedClock",
    "SimulatedLogStore",
    "SimulatedWorld",
]

_NOW_MS = 1_700_000_000_000
"""The current time, which never changes; files always have this time."""
_READS = frozenset({"read", "list", "get entry", "latest entry"})
_SILENT = frozenset({"put if absent", "create entry"})


@dataclass(frozen=True, slots=True)
class LogState:
    """The files by path, and the entries of an arbiter, both sorted by name."""

    files: tuple[tuple[str, bytes], ...] = ()
    entries: tuple[CommitEntry, ...] = ()

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, or None if it does not exist."""
        return next((data for known, data in self.files if known == path), None)

    def entry(self, file_name: str) -> CommitEntry | None:
        """Return the entry of a file, or None if there is none."""
        return next((entry for entry in self.entries if entry.file_name == file_name), None)

    def with_file(self, path: str, data: bytes | None) -> LogState:
        """Return the state in which the file has these bytes, or is gone for None."""
        rest = [item for item in self.files if item[0] != path]
        return replace(self, files=tuple(sorted(rest if data is None else [*rest, (path, data)])))

    def with_entry(self, entry: CommitEntry) -> LogState:
        """Return the state with this entry, which replaces one of the same file."""
        rest = [known for known in self.entries if known.file_name != entry.file_name]
        return replace(
            self, entries=tuple(sorted([*rest, entry], key=lambda known: known.file_name))
        )


class SimulatedWorld(World):
    """One table's log.

    Args:
        files: The files at the start, as paths and bytes.
        entries: The arbiter's entries at the start.
        has_late_listings: Whether a listing may lack the last file of a directory, as on stores
            that do not list a file as soon as it was written.
    """

    def __init__(
        self,
        files: Iterable[tuple[str, bytes]] = (),
        entries: Iterable[CommitEntry] = (),
        *,
        has_late_listings: bool = False,
    ) -> None:
        self._initial = LogState(tuple(sorted(files)), tuple(entries))
        self._has_late_listings = has_late_listings

    @property
    def initial(self) -> LogState:
        """The state at the start (see `World.initial`)."""
        return self._initial

    def apply(self, state: LogState, operation: Operation) -> tuple[LogState, Hashable]:
        """Apply an operation (see `World.apply`)."""
        kind, target, payload = operation.kind, operation.target, operation.payload
        if kind in _READS:
            return state, _answer_read(state, kind, target)
        if isinstance(payload, CommitEntry):
            return _apply_to_entry(state, kind, payload)
        if kind == "put if absent" and state.read(target) is not None:
            return state, PutOutcome.EXISTS
        assert payload is None or isinstance(payload, bytes)
        answer = PutOutcome.CREATED if kind == "put if absent" else None
        return state.with_file(target, payload), answer

    def is_read(self, operation: Operation) -> bool:
        """Tell whether an operation only reads (see `World.is_read`)."""
        return operation.kind in _READS

    def silence(self, operation: Operation) -> Hashable:
        """Return the result of a lost answer (see `World.silence`)."""
        return PutOutcome.UNKNOWN if operation.kind in _SILENT else self.refusal(operation)

    def refusal(self, operation: Operation) -> Hashable:
        """Return the result of a refusal (see `World.refusal`)."""
        fields = (("kind", "OPTIMIST_INJECTED_FAULT"), ("retryable", True))
        return Raised(StorageError, f"{operation} failed", fields)

    def stale(self, state: LogState, operation: Operation) -> tuple[Hashable] | None:
        """Return a listing without its last, new file, or None (see `World.stale`)."""
        if operation.kind != "list" or not self._has_late_listings:
            return None
        listed = _list_files(state, operation.target)
        is_new = bool(listed) and self._initial.read(listed[-1].path) is None
        return (listed[:-1],) if is_new else None

    def check_step(self, before: LogState, operation: Operation, after: LogState) -> None:
        """Check that no file of a log changes once readers may have seen it."""
        for path, data in before.files:
            if path.rpartition("/")[0].endswith(LOG_DIRECTORY):
                assert after.read(path) == data, f"{operation} changed a file that was there"


class SimulatedLogStore(LogStore):
    """The files of a `SimulatedWorld`, for one worker."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file in one step (see `LogStore.put_if_absent`)."""
        outcome = self._line.ask(Operation("put if absent", path, data))
        assert isinstance(outcome, PutOutcome)
        return outcome

    def put_overwrite(self, path: str, data: bytes) -> None:
        """Write a file in one step (see `LogStore.put_overwrite`)."""
        self._line.ask(Operation("put", path, data))

    def read_bytes(self, path: str) -> bytes:
        """Read a file in one step (see `LogStore.read_bytes`)."""
        data = self._line.ask(Operation("read", path))
        assert isinstance(data, bytes)
        return data

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """List files in one step, when it is called (see `LogStore.list_from`)."""
        return iter(self._line.ask(Operation("list", path)))

    def delete(self, path: str) -> None:
        """Delete a file in one step (see `LogStore.delete`)."""
        self._line.ask(Operation("delete", path))

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """Return False: a file appears whole."""
        return False


class SimulatedArbiter(Arbiter):
    """The entries of a `SimulatedWorld`, for one worker."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def create(self, entry: CommitEntry) -> PutOutcome:
        """Create an entry in one step (see `Arbiter.create`)."""
        outcome = self._line.ask(Operation("create entry", entry.file_name, entry))
        assert isinstance(outcome, PutOutcome)
        return outcome

    def get(self, table_path: str, file_name: str) -> CommitEntry | None:  # noqa: ARG002 - one table
        """Return an entry in one step (see `Arbiter.get`)."""
        return _as_entry(self._line.ask(Operation("get entry", file_name)))

    def latest(self, table_path: str) -> CommitEntry | None:
        """Return the latest entry in one step (see `Arbiter.latest`)."""
        return _as_entry(self._line.ask(Operation("latest entry", table_path)))

    def complete(self, entry: CommitEntry) -> None:
        """Complete an entry in one step (see `Arbiter.complete`)."""
        self._line.ask(Operation("complete entry", entry.file_name, entry))


class SimulatedClock:
    """A clock that does not move and counts up names, so that a worker depends on answers only.

    Args:
        owner: A part of its names, so that they differ from those of other workers.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._named = 0

    def now_ms(self) -> int:
        """Return the fixed time (see `Clock.now_ms`)."""
        return _NOW_MS

    def monotonic_s(self) -> float:
        """Return 0 (see `Clock.monotonic_s`)."""
        return 0.0

    def sleep(self, duration_s: float) -> None:
        """Return at once, since the scheduler decides what happens meanwhile.

        See `Clock.sleep`.
        """

    def uniform(self, low: float, high: float) -> float:  # noqa: ARG002 - the contract's
        """Return the lower bound (see `Clock.uniform`)."""
        return low

    def new_uuid(self) -> str:
        """Return the next name (see `Clock.new_uuid`)."""
        self._named += 1
        return f"{self._owner}-{self._named}"


def _answer_read(state: LogState, kind: str, target: str) -> Hashable:
    if kind == "list":
        return _list_files(state, target)
    if kind == "get entry":
        return state.entry(target)
    if kind == "latest entry":
        return state.entries[-1] if state.entries else None
    data = state.read(target)
    if data is not None:
        return data
    fields = (("kind", "OPTIMIST_FILE_NOT_FOUND"), ("path", target), ("retryable", False))
    return Raised(LogFileNotFoundError, f"{target} does not exist.", fields)


def _list_files(state: LogState, path: str) -> tuple[FileStatus, ...]:
    directory = path.rpartition("/")[0]
    return tuple(
        FileStatus(known, len(data), _NOW_MS)
        for known, data in state.files
        if known >= path and known.rpartition("/")[0] == directory
    )


def _apply_to_entry(state: LogState, kind: str, entry: CommitEntry) -> tuple[LogState, Hashable]:
    known = state.entry(entry.file_name)
    if kind == "put entry":  # not part of the contract; for arbiters that are wrong on purpose
        return state.with_entry(entry), None
    if kind == "create entry":
        if known is None:
            return state.with_entry(entry), PutOutcome.CREATED
        is_ours = known.temp_path == entry.temp_path
        return state, PutOutcome.CREATED if is_ours else PutOutcome.EXISTS
    if known is None or known.temp_path != entry.temp_path:
        return state, None
    return state.with_entry(entry), None


def _as_entry(answer: Any) -> CommitEntry | None:
    assert answer is None or isinstance(answer, CommitEntry)
    return answer
