"""The workers of the suite's races, as plain functions that other processes can run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from optimist.core.errors import LogFileNotFoundError
from optimist.core.plugins.logstore import LogStore, PutOutcome

__all__ = [
    "append_commits",
    "commit_path",
    "each_round",
    "payload_of",
    "put_each_round",
    "put_settled",
    "run_in_processes",
    "run_in_threads",
]

_Subject = TypeVar("_Subject")
_Result = TypeVar("_Result")

_TIMEOUT_S = 240
_PRELOADED = ("optimist.core", "optimist.locks", "optimist.logstores")


class _Barrier(Protocol):
    def wait(self, timeout: float | None = None) -> int: ...

    def abort(self) -> None: ...


_barrier_of_process: _Barrier | None = None


def commit_path(directory: str, version: int) -> str:
    """Return the path of a commit in a Delta log."""
    return f"{directory}/{version:020d}.json"


def payload_of(worker: int, number: int) -> bytes:
    """Return bytes that show who wrote them, with a different length for each worker."""
    return f"{worker}:{number};".encode() * (50 + worker)


def put_settled(store: LogStore, path: str, payload: bytes) -> PutOutcome:
    """Put a file if it is absent, and after a lost answer read the outcome from it.

    A server at full load may close a connection, so `UNKNOWN` is a valid answer and not a fault of
    the store. No two callers may put the same bytes, or the second would seem to have won.
    """
    outcome = store.put_if_absent(path, payload)
    while outcome is PutOutcome.UNKNOWN:
        try:
            is_ours = store.read_bytes(path) == payload
            outcome = PutOutcome.CREATED if is_ours else PutOutcome.EXISTS
        except LogFileNotFoundError:
            outcome = store.put_if_absent(path, payload)
    return outcome


def put_each_round(
    store: LogStore, directory: str, rounds: int, *, worker: int, barrier: _Barrier | None = None
) -> list[PutOutcome]:
    """Put one file per round, all workers at once, and return the outcomes in order."""

    def put(number: int) -> PutOutcome:
        return put_settled(store, commit_path(directory, number), payload_of(worker, number))

    return each_round(put, rounds, barrier=barrier)


def each_round(
    step: Callable[[int], _Result], rounds: int, *, barrier: _Barrier | None = None
) -> list[_Result]:
    """Take one step per round, all workers at once, and return the results in order.

    Without `barrier`, the barrier of this process is used; see `run_in_processes`.
    """
    meeting = barrier or _barrier_of_process
    assert meeting is not None
    outcomes = []
    try:
        for number in range(rounds):
            meeting.wait(_TIMEOUT_S)
            outcomes.append(step(number))
    except BaseException:
        meeting.abort()  # otherwise the others wait for a worker that is gone
        raise
    return outcomes


def append_commits(store: LogStore, directory: str, count: int, *, worker: int) -> list[int]:
    """Create `count` commits, each at the next free version, and return the versions won."""
    versions: list[int] = []
    version = 0
    while len(versions) < count:
        payload = payload_of(worker, len(versions))
        outcome = put_settled(store, commit_path(directory, version), payload)
        if outcome is PutOutcome.CREATED:
            versions.append(version)
        version += 1
    return versions


def run_in_threads(jobs: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Run the jobs in parallel, and return their results in order or raise the first error."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        futures = [pool.submit(job) for job in jobs]
        return [future.result(_TIMEOUT_S) for future in futures]


def run_in_processes(
    factory: Callable[[], _Subject],
    job: Callable[..., _Result],
    arguments: Sequence[dict[str, Any]],
) -> list[_Result]:
    """Run `job(subject, **arguments)` for each of the arguments, each in a new process.

    The factory builds the subject there: a store, an arbiter or a lease. The processes have the
    current environment of this one. They are forked from a server that has already imported the
    modules, since the import of an SDK takes longer than most races.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([name for name in sys.modules if name.startswith(_PRELOADED)])
    with ProcessPoolExecutor(
        max_workers=len(arguments),
        mp_context=context,
        initializer=_prepare_process,
        initargs=(context.Barrier(len(arguments)), dict(os.environ)),
    ) as pool:
        futures = [pool.submit(partial(_run_one, factory, job), each) for each in arguments]
        return [future.result(_TIMEOUT_S) for future in futures]


def _run_one(
    factory: Callable[[], _Subject], job: Callable[..., _Result], arguments: dict[str, Any]
) -> _Result:
    assert _barrier_of_process is not None
    store = factory()
    _barrier_of_process.wait(_TIMEOUT_S)  # one job per process: none starts before all are up
    return job(store, **arguments)


def _prepare_process(barrier: _Barrier, environment: Mapping[str, str]) -> None:
    global _barrier_of_process  # a pool can't pass a barrier to its processes in another way
    os.environ.clear()
    os.environ.update(environment)
    _barrier_of_process = barrier
