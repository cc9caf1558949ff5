"""Workers and invariants of a log, for the scheduler: writers, readers and conditions.

The invariants, at every moment of every schedule:

| name | what |
|---|---|
| dense | the versions in the store are 0, 1, 2, ... |
| one owner | a file of the log never changes once it is there; no transaction is in two versions |
| acknowledged is in | a writer that was told version N has its transaction in that version |
| refused is out | a writer that was told that nothing was committed is nowhere in the log |
| unknown is at most once | any other (crashed, or told that it is unknown) is there once at most |
| prefix | what a reader saw is the beginning of the log |
| complete means there | the file of a complete entry is there |
| not blocked | at the end, a newcomer can read the log and commit to it |
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache

from optimist.core.errors import (
    NOTHING_COMMITTED,
    CommitOutcomeUnknownError,
    StorageError,
)
from optimist.core.log.names import commit_path, parse_log_file_name
from optimist.core.log.segment import commit_version, list_commits_after
from optimist.core.options.engine import EngineOptions
from optimist.core.paths import LOG_DIRECTORY
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.protocol.actions import CommitInfo, actions_from_bytes, actions_to_bytes
from optimist.core.protocol.group_tags import transactions_of
from optimist.core.runtime.clock import Clock
from optimist.core.testing.scheduler import Line, Moment, Worker, World, run_alone
from optimist.core.testing.simulated_store import LogState, SimulatedClock
from optimist.core.transaction.outcome import VersionFile, create_version_file

__all__ = [
    "LogInvariants",
    "Seen",
    "Told",
    "Wrote",
    "appender",
    "commit_bytes",
    "numbered_writer",
    "reader",
    "telling",
]

OpenStore = Callable[[Line, Clock], LogStore]
"""Makes one worker's instance of the store under test."""

_POLICY = EngineOptions().retry_policy


class Told(enum.Enum):
    """The answer that a writer got about its commit."""

    COMMITTED = "committed"
    REFUSED = "nothing committed"
    UNKNOWN = "outcome unknown"


@dataclass(frozen=True, slots=True)
class Wrote:
    """The outcome of a writer, with the version that it was told if it committed."""

    txn_id: str
    told: Told
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of a reader: the versions that it listed, and the bytes of the newest one."""

    versions: tuple[int, ...] = ()
    newest: bytes = b""


@lru_cache(maxsize=1000)
def commit_bytes(txn_id: str) -> bytes:
    """Return the bytes of a commit without actions, by the transaction of this id."""
    return actions_to_bytes((CommitInfo(txn_id=txn_id),))


def telling(txn_id: str, commit: Callable[[], int | None]) -> Wrote:
    """Run a commit, which returns its version or None if it lost, and turn errors into values."""
    try:
        version = commit()
    except CommitOutcomeUnknownError:
        return Wrote(txn_id, Told.UNKNOWN)
    except NOTHING_COMMITTED:
        return Wrote(txn_id, Told.REFUSED)
    if version is None:
        return Wrote(txn_id, Told.REFUSED)
    return Wrote(txn_id, Told.COMMITTED, version)


def appender(
    name: str, table: str, open_store: OpenStore, *, known: int = 0, may_fail: bool = True
) -> Worker:
    """Make a minimal writer, which creates a version as the engine does and lists after a loss.

    Args:
        name: The worker's name, and its transaction's id.
        table: The table's path.
        open_store: Opens the table's store.
        known: The newest version that it knows at the start; -2 makes it list first.
        may_fail: See `Worker`.
    """
    log_path = f"{table}/{LOG_DIRECTORY}"

    def run(line: Line) -> Wrote:
        clock = SimulatedClock(name)
        store = open_store(line, clock)

        def commit() -> int | None:
            newest = known if known >= -1 else _newest_version(store, log_path, -1)
            for _ in range(_MAX_ROUNDS):
                version = newest + 1
                if _create_version(store, log_path, version, name, clock) is PutOutcome.CREATED:
                    return version
                newest = _newest_version(store, log_path, newest)
            return None

        return telling(name, commit)

    return Worker(name, run, may_fail)


def numbered_writer(name: str, table: str, open_store: OpenStore, version: int) -> Worker:
    """Make a writer that was given its version's number beforehand and tries no other."""

    def run(line: Line) -> Wrote:
        clock = SimulatedClock(name)
        store, log_path = open_store(line, clock), f"{table}/{LOG_DIRECTORY}"

        def commit() -> int | None:
            created = _create_version(store, log_path, version, name, clock) is PutOutcome.CREATED
            return version if created else None

        return telling(name, commit)

    return Worker(name, run)


def reader(
    name: str, table: str, open_store: OpenStore, *, passes: int = 1, may_fail: bool = True
) -> Worker:
    """Make a reader, which lists the log and reads its newest file.

    Through a store with an arbiter it also recovers commits. A pass in which the store fails is
    skipped. A later pass never sees less than an earlier one. The reader does not read older files:
    the invariants check on the world itself that they never change.
    """
    log_path = f"{table}/{LOG_DIRECTORY}"

    def run(line: Line) -> Seen:
        store = open_store(line, SimulatedClock(name))
        seen = Seen()
        for _ in range(passes):
            try:
                listed = list_commits_after(store, log_path, -1)
                newest = store.read_bytes(listed[-1].path) if listed else b""
            except StorageError as error:
                assert error.kind in _FAILURES, error
                continue
            versions = tuple(commit_version(status) for status in listed)
            assert versions[: len(seen.versions)] == seen.versions, "a reader saw the log shrink"
            seen = Seen(versions, newest)
        return seen

    return Worker(name, run, may_fail)


class LogInvariants:
    """The invariants of one table's log, to be called with a moment.

    Args:
        table: The table's path.
        world: The world on which the newcomers of `not blocked` are run.
        newcomers: Workers that run one after another on every final state, without mishaps. The
            writers among them must be told that they committed. Without newcomers, `not blocked` is
            not checked.
    """

    def __init__(self, table: str, world: World, *newcomers: Worker) -> None:
        self._log_path = f"{table}/{LOG_DIRECTORY}"
        self._world = world
        self._newcomers = newcomers

    def __call__(self, moment: Moment) -> None:
        """Raise `AssertionError` for the first invariant that does not hold."""
        self._check_log(moment.state, tuple(moment.outcomes.values()))
        if moment.is_final and self._newcomers:
            state, outcomes = moment.state, list(moment.outcomes.values())
            for newcomer in self._newcomers:
                state, outcome = run_alone(self._world, state, newcomer)
                assert isinstance(state, LogState)
                if isinstance(outcome, Wrote):
                    assert outcome.told is Told.COMMITTED, f"blocked: {newcomer.name} is {outcome}"
                outcomes.append(outcome)
            self._check_log(state, tuple(outcomes))

    def _check_log(self, state: LogState, outcomes: tuple[Hashable, ...]) -> None:
        log = _log_of(state, self._log_path)
        versions = [version for version, _ in log]
        assert versions == list(range(len(log))), f"not dense: the versions are {versions}"
        owners = [_transactions_in(data) for _, data in log]
        for txn_id in frozenset().union(*owners):
            found = _versions_of(owners, txn_id)
            assert len(found) == 1, f"doubled: {txn_id} is there as {found}"
        for entry in state.entries:
            is_there = state.read(f"{self._log_path}/{entry.file_name}") is not None
            assert is_there or not entry.complete, f"{entry.file_name} is complete, and not there"
        for outcome in outcomes:
            for each in outcome if isinstance(outcome, tuple) else (outcome,):
                _check_outcome(each, owners, log)


_MAX_ROUNDS = 6
_FAILURES = frozenset({"OPTIMIST_INJECTED_FAULT", "OPTIMIST_STORE_NO_ANSWER"})


def _check_outcome(
    outcome: Hashable, owners: list[frozenset[str]], log: tuple[tuple[int, bytes], ...]
) -> None:
    if isinstance(outcome, Seen):
        seen = log[: len(outcome.versions)]
        is_prefix = tuple(version for version, _ in seen) == outcome.versions
        assert is_prefix, f"a reader saw the versions {outcome.versions}, which are not a prefix"
        is_same = not outcome.newest or seen[-1][1] == outcome.newest
        assert is_same, "a reader read another file than is there"
    if not isinstance(outcome, Wrote):
        return
    txn_id, found = outcome.txn_id, _versions_of(owners, outcome.txn_id)
    if outcome.told is Told.COMMITTED:
        assert found == [outcome.version], f"lost: {txn_id} is told {outcome.version}, is {found}"
    if outcome.told is Told.REFUSED:
        assert not found, f"lied: {txn_id} is told that nothing is committed, and is {found}"


def _versions_of(owners: list[frozenset[str]], txn_id: str) -> list[int]:
    return [version for version, owner in enumerate(owners) if txn_id in owner]


@lru_cache(maxsize=10_000)
def _transactions_in(data: bytes) -> frozenset[str]:
    infos = (each for each in actions_from_bytes(data, "") if isinstance(each, CommitInfo))
    return frozenset().union(*map(transactions_of, infos))


@lru_cache(maxsize=100_000)
def _log_of(state: LogState, log_path: str) -> tuple[tuple[int, bytes], ...]:
    found = []
    for path, data in state.files:
        directory, _, name = path.rpartition("/")
        parsed = parse_log_file_name(name)
        if directory == log_path and parsed is not None:
            found.append((parsed.version, data))
    return tuple(found)


def _create_version(
    store: LogStore, log_path: str, version: int, txn_id: str, clock: Clock
) -> PutOutcome:
    file = VersionFile(
        commit_path(log_path, version),
        commit_bytes(txn_id),
        version=version,
        txn_id=txn_id,
        has_commit_info=True,
    )
    return create_version_file(store, file, _POLICY, clock)


def _newest_version(store: LogStore, log_path: str, known: int) -> int:
    listed = list_commits_after(store, log_path, known)
    return commit_version(listed[-1]) if listed else known
