"""The workers of the suite's races: plain functions, so that other processes can run them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from optimist.core.logstore import LogStore, PutOutcome

__all__ = [
    "append_commits",
    "commit_path",
    "each_round",
    "payload_of",
    "put_each_round",
    "run_in_processes",
    "run_in_threads",
]

S = TypeVar("S")
T = TypeVar("T")

_TIMEOUT_S = 240
_PRELOADED = ("optimist.core", "optimist.locks", "optimist.logstores")


class _Barrier(Protocol):
    def wait(self, timeout: float | None = None) -> int: ...

    def abort(self) -> None: ...


_barrier_of_process: _Barrier | None = None


def commit_path(directory: str, version: int) -> str:
    """The path of a commit as a Delta log names it."""
    return f"{directory}/{version:020d}.json"


def payload_of(worker: int, number: int) -> bytes:
    """Bytes that tell who wrote them, and differ in length from worker to worker."""
    return f"{worker}:{number};".encode() * (50 + worker)


def put_each_round(
    store: LogStore, directory: str, rounds: int, *, worker: int, barrier: _Barrier | None = None
) -> list[PutOutcome]:
    """Put one file per round, all workers at once; the outcomes in order."""

    def put(number: int) -> PutOutcome:
        return store.put_if_absent(commit_path(directory, number), payload_of(worker, number))

    return each_round(put, rounds, barrier=barrier)


def each_round(
    step: Callable[[int], T], rounds: int, *, barrier: _Barrier | None = None
) -> list[T]:
    """Take one step per round, all workers at once; what they gave, in order.

    Without a barrier the one of this process is taken, see `run_in_processes`.
    """
    meeting = barrier or _barrier_of_process
    assert meeting is not None
    outcomes = []
    try:
        for number in range(rounds):
            meeting.wait(_TIMEOUT_S)
            outcomes.append(step(number))
    except BaseException:
        meeting.abort()  # or the others wait for a worker that is gone
        raise
    return outcomes


def append_commits(store: LogStore, directory: str, count: int, *, worker: int) -> list[int]:
    """Create so many commits, each at the next free version; the versions that were won."""
    versions: list[int] = []
    version = 0
    while len(versions) < count:
        payload = payload_of(worker, len(versions))
        outcome = store.put_if_absent(commit_path(directory, version), payload)
        assert outcome is not PutOutcome.UNKNOWN
        if outcome is PutOutcome.CREATED:
            versions.append(version)
        version += 1
    return versions


def run_in_threads(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run the jobs at the same time; their results in order, or the first error."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        futures = [pool.submit(job) for job in jobs]
        return [future.result(_TIMEOUT_S) for future in futures]


def run_in_processes(
    factory: Callable[[], S], job: Callable[..., T], arguments: Sequence[dict[str, Any]]
) -> list[T]:
    """Run `job(store, **arguments)` in a fresh process each, with a store built there.

    A store, an arbiter or a lease: whatever the factory builds. The processes have the environment
    that this one has now; importing an SDK takes longer than most races, so it is done once.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([name for name in sys.modules if name.startswith(_PRELOADED)])
    with ProcessPoolExecutor(
        max_workers=len(arguments),
        mp_context=context,
        initializer=_prepare,
        initargs=(context.Barrier(len(arguments)), dict(os.environ)),
    ) as pool:
        futures = [pool.submit(partial(_run_one, factory, job), each) for each in arguments]
        return [future.result(_TIMEOUT_S) for future in futures]


def _run_one(factory: Callable[[], S], job: Callable[..., T], arguments: dict[str, Any]) -> T:
    assert _barrier_of_process is not None
    store = factory()
    _barrier_of_process.wait(_TIMEOUT_S)  # one job per process: none starts before all are up
    return job(store, **arguments)


def _prepare(barrier: _Barrier, environment: Mapping[str, str]) -> None:
    global _barrier_of_process  # a pool hands a barrier to its processes no other way
    os.environ.clear()
    os.environ.update(environment)
    _barrier_of_process = barrier
