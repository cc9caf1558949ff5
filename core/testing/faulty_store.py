"""A LogStore that fails and pauses as planned, and counts its calls.

A plan is a list of `Fault` and `Pause`. Each waits for a call of one operation, with a given file
name if it has one, and takes effect before the call, in the middle of it, or after it:

| operation | before | during | after |
|---|---|---|---|
| `put_if_absent`, `put_overwrite` | nothing is written | half is written | written, no answer |
| `read_bytes`, `open_read` | nothing is read | the first half is given | no answer |
| `list_from` | nothing is listed | the first half is given | all is given, then the error |
| `delete`, `ensure_directory` | nothing is done | cannot be planned | done, no answer |

A fault with an error raises it. A fault without one makes `put_if_absent` answer `UNKNOWN`, returns
the first half of a file as if it were the whole, and makes every other call raise `injected_error`.
"""

from __future__ import annotations

import enum
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from optimist.core.errors import StorageError
from optimist.core.forking import ForkSafeLock
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome

__all__ = ["OPERATIONS", "Fault", "FaultyLogStore", "Pause", "When", "injected_error"]

OPERATIONS = (
    "delete",
    "ensure_directory",
    "list_from",
    "open_read",
    "put_if_absent",
    "put_overwrite",
    "read_bytes",
)
"""The operations that are counted and can fail.

`read` and `write` count as the operations that they call.
"""

_WITHOUT_MIDDLE = ("delete", "ensure_directory")


class When(enum.Enum):
    """The moment of a call at which a planned item takes effect."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Fault:
    """One planned failure.

    Attributes:
        operation: One of `OPERATIONS`.
        when: Before, during or after the call.
        error: The error to raise; a `BaseException` simulates the death of the process. For None
            see the module.
        name: The file name of calls that count; empty for all calls.
        on_call: The number of the first call that fails, counted from 1 since the fault was
            planned.
        times: The number of consecutive calls that fail.
    """

    operation: str
    when: When
    error: BaseException | None = None
    name: str = ""
    on_call: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        _ensure_plannable(self.operation, self.when, allow_middle=True)


@dataclass(frozen=True, slots=True)
class Pause:
    """A planned pause, which calls an action with the path, in the calling thread.

    An action that waits for an event stops the call there. An action that writes through another
    store creates an interleaving. The attributes are as in `Fault`; `when` is before or after.
    """

    operation: str
    when: When
    action: Callable[[str], object]
    name: str = ""
    on_call: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        _ensure_plannable(self.operation, self.when, allow_middle=False)


class FaultyLogStore(LogStore):
    """A wrapper around any store.

    Without a plan it only counts.

    Args:
        inner: The store that does the work.
        plan: Faults and pauses; the method `plan` adds more.
    """

    def __init__(self, inner: LogStore, *plan: Fault | Pause) -> None:
        super().__init__(inner.options)
        self.inner = inner
        self._lock = ForkSafeLock()
        self._armed: list[_Armed] = []
        self._calls: list[tuple[str, str]] = []
        self.plan(*plan)

    @property
    def calls(self) -> tuple[tuple[str, str], ...]:
        """Every call as (operation, path), in order."""
        with self._lock:
            return tuple(self._calls)

    @property
    def counts(self) -> Counter[str]:
        """The number of calls of each operation, as a measure of the requests to a real store."""
        return Counter(operation for operation, _ in self.calls)

    @property
    def pending(self) -> tuple[Fault | Pause, ...]:
        """The planned items that are not used up. A test must end with none."""
        with self._lock:
            return tuple(each.item for each in self._armed if each.is_pending)

    def plan(self, *items: Fault | Pause) -> None:
        """Add items to the plan.

        Calls are counted from now on.
        """
        with self._lock:
            self._armed.extend(_Armed(item) for item in items)

    def clear(self) -> None:
        """Forget the plan and the calls."""
        with self._lock:
            self._armed.clear()
            self._calls.clear()

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create a file, or fail as planned (see `LogStore.put_if_absent`)."""
        call = self._begin_call("put_if_absent", path)
        if call.strikes(When.BEFORE):
            return PutOutcome.UNKNOWN
        if call.has_fault(When.DURING):
            self.inner.put_if_absent(path, data[: len(data) // 2])
            call.strikes(When.DURING)
            return PutOutcome.UNKNOWN
        outcome = self.inner.put_if_absent(path, data)
        return PutOutcome.UNKNOWN if call.strikes(When.AFTER) else outcome

    def put_overwrite(self, path: str, data: bytes) -> None:
        """Write a file, or fail as planned (see `LogStore.put_overwrite`)."""
        call = self._begin_call("put_overwrite", path)
        call.fail(When.BEFORE)
        if call.has_fault(When.DURING):
            self.inner.put_overwrite(path, data[: len(data) // 2])
            call.fail(When.DURING)
        self.inner.put_overwrite(path, data)
        call.fail(When.AFTER)

    def is_as_created(self, listed: FileStatus) -> bool:
        """Ask the inner store (see `LogStore.is_as_created`)."""
        return self.inner.is_as_created(listed)

    def read_bytes(self, path: str) -> bytes:
        """Read a file, or fail as planned (see `LogStore.read_bytes`)."""
        return self._read_file("read_bytes", path)

    def open_read(self, path: str) -> BinaryIO:
        """Open a file, or fail as planned (see `LogStore.open_read`)."""
        return io.BytesIO(self._read_file("open_read", path))

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """List files at once, so that the listing can fail later (see `LogStore.list_from`)."""
        call = self._begin_call("list_from", path)
        call.fail(When.BEFORE)
        found = list(self.inner.list_from(path))
        if call.has_fault(When.DURING):
            return _then_fail(found[: len(found) // 2], call, When.DURING)
        if call.has_fault(When.AFTER):
            return _then_fail(found, call, When.AFTER)
        call.fail(When.AFTER)
        return iter(found)

    def delete(self, path: str) -> None:
        """Delete a file, or fail as planned (see `LogStore.delete`)."""
        call = self._begin_call("delete", path)
        call.fail(When.BEFORE)
        self.inner.delete(path)
        call.fail(When.AFTER)

    def ensure_directory(self, path: str) -> None:
        """Make a directory, or fail as planned (see `LogStore.ensure_directory`)."""
        call = self._begin_call("ensure_directory", path)
        call.fail(When.BEFORE)
        self.inner.ensure_directory(path)
        call.fail(When.AFTER)

    def is_partial_write_visible(self, path: str) -> bool:
        """Ask the inner store."""
        return self.inner.is_partial_write_visible(path)

    def resolve_path(self, path: str) -> str:
        """Ask the inner store."""
        return self.inner.resolve_path(path)

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """Ask the inner store."""
        return self.inner.list_below(directory)

    def delete_data_files(self, paths: Sequence[str]) -> None:
        """Delete files, each with a call of `delete` (see `LogStore.delete_data_files`)."""
        for path in paths:
            self.delete(path)

    def list_names(self, directory: str) -> Iterator[str]:
        """Ask the inner store."""
        return self.inner.list_names(directory)

    def data_origin(self, path: str) -> DataOrigin:
        """Ask the inner store (see `LogStore.data_origin`)."""
        return self.inner.data_origin(path)

    def data_access(self, path: str) -> DataAccess | None:
        """Ask the inner store (see `LogStore.data_access`)."""
        return self.inner.data_access(path)

    def abort_uploads(self, directory: str) -> None:
        """Ask the inner store (see `LogStore.abort_uploads`)."""
        self.inner.abort_uploads(directory)

    def describe(self) -> Mapping[str, str]:
        """Describe the inner store, under this store's name."""
        inner = self.inner.describe()
        return {**inner, **super().describe(), "wraps": inner["store"]}

    def _read_file(self, operation: str, path: str) -> bytes:
        call = self._begin_call(operation, path)
        call.fail(When.BEFORE)
        data = self.inner.read_bytes(path)
        if call.has_fault(When.DURING):
            call.strikes(When.DURING)
            return data[: len(data) // 2]
        call.fail(When.AFTER)
        return data

    def _begin_call(self, operation: str, path: str) -> _Call:
        name = path.rpartition("/")[2]
        with self._lock:
            self._calls.append((operation, path))
            active = [each.item for each in self._armed if each.counts_and_strikes(operation, name)]
        return _Call(path, tuple(active))


def injected_error(path: str = "") -> StorageError:
    """Return the error of a planned failure, of the kind `OPTIMIST_INJECTED_FAULT`."""
    return StorageError(
        f"A failure of {path} that the test planned.",
        kind="OPTIMIST_INJECTED_FAULT",
        path=path,
        retryable=False,
    )


class _Armed:
    """A planned item, with the number of its calls so far."""

    __slots__ = ("item", "seen")

    def __init__(self, item: Fault | Pause) -> None:
        self.item = item
        self.seen = 0

    @property
    def is_pending(self) -> bool:
        return self.seen < self.item.on_call + self.item.times - 1

    def counts_and_strikes(self, operation: str, name: str) -> bool:
        if operation != self.item.operation or self.item.name not in ("", name):
            return False
        self.seen += 1
        return self.item.on_call <= self.seen < self.item.on_call + self.item.times


@dataclass(frozen=True, slots=True)
class _Call:
    """One call and the planned items that apply to it."""

    path: str
    active: tuple[Fault | Pause, ...]

    def has_fault(self, when: When) -> bool:
        return any(isinstance(item, Fault) and item.when is when for item in self.active)

    def strikes(self, when: When) -> bool:
        """Run the planned pauses, raise the planned errors, and tell whether a fault remains."""
        here = [item for item in self.active if item.when is when]
        for item in here:
            if isinstance(item, Pause):
                item.action(self.path)
        for item in here:
            if isinstance(item, Fault) and item.error is not None:
                raise item.error
        return self.has_fault(when)

    def fail(self, when: When) -> None:
        if self.strikes(when):
            raise injected_error(self.path)


def _then_fail(found: list[FileStatus], call: _Call, when: When) -> Iterator[FileStatus]:
    yield from found
    call.fail(when)


def _ensure_plannable(operation: str, when: When, *, allow_middle: bool) -> None:
    if operation not in OPERATIONS:
        raise ValueError(f"{operation} is not one of {', '.join(OPERATIONS)}")
    if when is When.DURING and (not allow_middle or operation in _WITHOUT_MIDDLE):
        raise ValueError(f"nothing can be planned in the middle of {operation}")
