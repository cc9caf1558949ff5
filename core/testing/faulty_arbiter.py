"""An Arbiter that fails as planned, and counts its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from optimist.core.forking import ForkSafeLock
from optimist.core.plugins.arbiter import Arbiter, CommitEntry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing.faulty_store import When, injected_error

__all__ = ["ARBITER_OPERATIONS", "ArbiterFault", "FaultyArbiter"]

_Result = TypeVar("_Result")

ARBITER_OPERATIONS = ("complete", "create", "get", "latest")


@dataclass(frozen=True, slots=True)
class ArbiterFault:
    """One planned failure.

    Attributes:
        operation: One of `ARBITER_OPERATIONS`.
        when: Before the call, so that nothing is done, or after it, so that only the answer is
            lost.
        error: The error to raise; a `BaseException` simulates the death of the process. With None,
            `create` answers `UNKNOWN`, and every other operation raises `injected_error`.
        on_call: The number of the first call that fails, counted from 1 since the fault was
            planned.
        times: The number of consecutive calls that fail.
    """

    operation: str
    when: When
    error: BaseException | None = None
    on_call: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        if self.operation not in ARBITER_OPERATIONS or self.when is When.DURING:
            raise ValueError(f"{self.operation} can't be planned to fail {self.when.value}")


class FaultyArbiter(Arbiter):
    """A wrapper around any arbiter.

    Without a plan it only counts.

    Args:
        inner: The arbiter that does the work.
        plan: Faults; the method `plan` adds more.
    """

    def __init__(self, inner: Arbiter, *plan: ArbiterFault) -> None:
        super().__init__(inner.options)
        self.inner = inner
        self.entry_ttl_s = inner.entry_ttl_s
        self._lock = ForkSafeLock()
        self._armed: list[tuple[ArbiterFault, int]] = []
        self._calls: list[str] = []
        self.plan(*plan)

    @property
    def calls(self) -> tuple[str, ...]:
        """The operations called, in order."""
        with self._lock:
            return tuple(self._calls)

    def plan(self, *faults: ArbiterFault) -> None:
        """Add faults to the plan.

        Calls are counted from now on.
        """
        with self._lock:
            self._armed += [(fault, self._calls.count(fault.operation)) for fault in faults]

    def create(self, entry: CommitEntry) -> PutOutcome:
        """Create an entry, or fail as planned (see `Arbiter.create`)."""
        faults = self._begin_call("create")
        if _raise_planned(faults, When.BEFORE):
            return PutOutcome.UNKNOWN
        outcome = self.inner.create(entry)
        return PutOutcome.UNKNOWN if _raise_planned(faults, When.AFTER) else outcome

    def get(self, table_path: str, file_name: str) -> CommitEntry | None:
        """Return an entry, or fail as planned (see `Arbiter.get`)."""
        return self._call_inner("get", lambda: self.inner.get(table_path, file_name))

    def latest(self, table_path: str) -> CommitEntry | None:
        """Return the latest entry, or fail as planned (see `Arbiter.latest`)."""
        return self._call_inner("latest", lambda: self.inner.latest(table_path))

    def complete(self, entry: CommitEntry) -> None:
        """Complete an entry, or fail as planned (see `Arbiter.complete`)."""
        self._call_inner("complete", lambda: self.inner.complete(entry))

    def describe(self) -> Mapping[str, str]:
        """Describe the inner arbiter, under this one's name."""
        inner = self.inner.describe()
        return {**inner, **super().describe(), "wraps": inner["arbiter"]}

    def _call_inner(self, operation: str, call: Callable[[], _Result]) -> _Result:
        faults = self._begin_call(operation)
        if _raise_planned(faults, When.BEFORE):
            raise injected_error(operation)
        answer = call()
        if _raise_planned(faults, When.AFTER):
            raise injected_error(operation)
        return answer

    def _begin_call(self, operation: str) -> list[ArbiterFault]:
        with self._lock:
            self._calls.append(operation)
            number = self._calls.count(operation)
            return [
                fault
                for fault, seen in self._armed
                if fault.operation == operation
                and fault.on_call <= number - seen < fault.on_call + fault.times
            ]


def _raise_planned(faults: list[ArbiterFault], when: When) -> bool:
    here = [fault for fault in faults if fault.when is when]
    for fault in here:
        if fault.error is not None:
            raise fault.error
    return bool(here)
