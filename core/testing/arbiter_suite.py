"""The contract of arbiters, as a test class to subclass (spec 4).

    class TestMyArbiter(ArbiterSuite):
        arbiter_factory = MyArbiter

This is enough if `MyArbiter()` can be built without arguments; otherwise give a function. A
subclass declares what its arbiter cannot do (`supports_processes`), and may add tests. It may not
change the tests here.
"""

# A test's name says what it checks.
# ruff: noqa: D102

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest

from optimist.core.errors import StorageError
from optimist.core.plugins.arbiter import Arbiter, CommitEntry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.clock import SystemClock
from optimist.core.testing.faulty_arbiter import ArbiterFault, FaultyArbiter
from optimist.core.testing.faulty_store import When
from optimist.core.testing.forked_children import run_in_forked_children
from optimist.core.testing.logstore_races import each_round, run_in_processes, run_in_threads

__all__ = ["ArbiterSuite"]

_THREADS = 16
_ROUNDS = 50
_PROCESSES = 4
_PROCESS_ROUNDS = 25
_CLAIMS = 3
_FAR_FUTURE_S = 4_000_000_000

_ODD_TABLES = (
    "s3a://bucket/with space",
    "s3a://bucket/percent%20escape%",
    "s3a://bucket/{braces}/[brackets]*?",
    "s3a://bucket/umlaut-äöü/日本語",
    "s3a://bucket/quote'quote\"",
    "abfss://container@account.dfs.core.windows.net/a:b",
)


class ArbiterSuite:
    """The tests for an arbiter, to subclass.

    Every test gets a new `table_path`.

    Attributes:
        arbiter_factory: Builds an arbiter. It must be a class or a function of a module, so that
            other processes can build theirs.
        supports_processes: Whether arbiters in different processes see the same entries.
        survives_forks: Whether it continues to work in a forked process.
    """

    arbiter_factory: ClassVar[Callable[[], Arbiter]]
    supports_processes: ClassVar[bool] = True
    survives_forks: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, test in vars(ArbiterSuite).items():
            if name.startswith("test_") and getattr(cls, name) is not test:
                raise TypeError(
                    f"{cls.__name__} overrides {name}. The suite holds for every arbiter as it is; "
                    "declare what the arbiter cannot do, or add a test under another name."
                )

    @pytest.fixture
    def table_path(self) -> str:
        """Return the path of a table that no other test uses."""
        return f"s3a://bucket/{SystemClock().new_uuid()}/table"

    @pytest.fixture
    def arbiter(self) -> Arbiter:
        """Return a new arbiter."""
        return self.new_arbiter()

    def new_arbiter(self) -> Arbiter:
        """Return another instance of the arbiter under test."""
        return type(self).arbiter_factory()

    # Creating and reading

    def test_created_entry_comes_back_as_it_is(self, arbiter: Arbiter, table_path: str) -> None:
        entry = entry_of(table_path, 7)
        assert arbiter.create(entry) is PutOutcome.CREATED
        for reader in (arbiter, self.new_arbiter()):
            assert reader.get(table_path, entry.file_name) == entry
            assert reader.latest(table_path) == entry

    def test_existing_entry_is_left_alone(self, arbiter: Arbiter, table_path: str) -> None:
        entry = entry_of(table_path, 0)
        arbiter.create(entry)
        for loser in (arbiter, self.new_arbiter()):
            assert loser.create(entry_of(table_path, 0, worker=1)) is PutOutcome.EXISTS
        assert arbiter.get(table_path, entry.file_name) == entry

    def test_complete_entry_is_left_alone_too(self, arbiter: Arbiter, table_path: str) -> None:
        entry = entry_of(table_path, 0)
        arbiter.create(entry)
        arbiter.complete(entry.completed(_FAR_FUTURE_S))
        assert arbiter.create(entry_of(table_path, 0, worker=1)) is PutOutcome.EXISTS
        assert arbiter.get(table_path, entry.file_name) == entry.completed(_FAR_FUTURE_S)

    def test_request_that_is_delivered_twice_has_won_both_times(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        entry = entry_of(table_path, 0)
        assert arbiter.create(entry) is PutOutcome.CREATED
        assert self.new_arbiter().create(entry) is PutOutcome.CREATED
        arbiter.complete(entry.completed(_FAR_FUTURE_S))
        assert arbiter.create(entry) is PutOutcome.CREATED
        assert arbiter.get(table_path, entry.file_name) == entry.completed(_FAR_FUTURE_S)

    def test_entry_that_is_not_there_is_none(self, arbiter: Arbiter, table_path: str) -> None:
        assert arbiter.get(table_path, file_name_of(0)) is None
        assert arbiter.latest(table_path) is None
        arbiter.create(entry_of(table_path, 0))
        assert arbiter.get(table_path, file_name_of(1)) is None

    def test_tables_are_kept_apart(self, arbiter: Arbiter, table_path: str) -> None:
        tables = [
            table_path,
            f"{table_path}/below",
            f"{table_path}2",
            table_path.replace("a:", ":"),
        ]
        for number, table in enumerate(tables):
            assert arbiter.create(entry_of(table, number)) is PutOutcome.CREATED
        for number, table in enumerate(tables):
            assert arbiter.latest(table) == entry_of(table, number)
            assert arbiter.get(table, file_name_of(number + 1)) is None

    @pytest.mark.parametrize("prefix", _ODD_TABLES)
    def test_odd_table_path_is_taken_as_it_is(
        self, arbiter: Arbiter, table_path: str, prefix: str
    ) -> None:
        entry = entry_of(f"{prefix}/{table_path.rpartition(':')[2]}", 3)
        assert arbiter.create(entry) is PutOutcome.CREATED
        arbiter.complete(entry.completed(_FAR_FUTURE_S))
        assert arbiter.latest(entry.table_path) == entry.completed(_FAR_FUTURE_S)

    # The latest entry

    def test_latest_is_the_greatest_name_whenever_it_was_created(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        for version in (9, 10, 2, 100, 99):
            arbiter.create(entry_of(table_path, version))
        assert arbiter.latest(table_path) == entry_of(table_path, 100)

    def test_latest_of_one_version_is_the_commit_and_not_its_checksum(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        commit = entry_of(table_path, 4)
        name = f"{4:020d}.crc"
        checksum = replace(commit, file_name=name, temp_path=f".tmp/{name}.{0:012d}")
        assert arbiter.create(commit) is PutOutcome.CREATED
        assert arbiter.create(checksum) is PutOutcome.CREATED
        assert arbiter.latest(table_path) == commit

    def test_latest_shows_an_entry_as_soon_as_it_was_created(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        reader = self.new_arbiter()
        for version in range(20):
            arbiter.create(entry_of(table_path, version))
            assert reader.latest(table_path) == entry_of(table_path, version)

    # Completing

    def test_completed_entry_says_so_to_everybody(self, arbiter: Arbiter, table_path: str) -> None:
        entry = entry_of(table_path, 0)
        arbiter.create(entry)
        self.new_arbiter().complete(entry.completed(_FAR_FUTURE_S))
        for reader in (arbiter, self.new_arbiter()):
            assert reader.latest(table_path) == entry.completed(_FAR_FUTURE_S)

    def test_completing_twice_is_fine(self, arbiter: Arbiter, table_path: str) -> None:
        entry = entry_of(table_path, 0)
        arbiter.create(entry)
        for expire_time_s in (_FAR_FUTURE_S, _FAR_FUTURE_S + 1):
            arbiter.complete(entry.completed(expire_time_s))
        found = arbiter.get(table_path, entry.file_name)
        assert found == entry.completed(_FAR_FUTURE_S + 1)

    def test_entry_of_another_is_never_completed(self, arbiter: Arbiter, table_path: str) -> None:
        entry = entry_of(table_path, 0)
        arbiter.create(entry)
        arbiter.complete(entry_of(table_path, 0, worker=1).completed(_FAR_FUTURE_S))
        assert arbiter.get(table_path, entry.file_name) == entry

    def test_entry_that_is_gone_is_not_made_anew(self, arbiter: Arbiter, table_path: str) -> None:
        entry = entry_of(table_path, 0)
        arbiter.complete(entry.completed(_FAR_FUTURE_S))
        assert arbiter.get(table_path, entry.file_name) is None

    def test_many_that_complete_one_entry_leave_it_complete(self, table_path: str) -> None:
        entry = entry_of(table_path, 0)
        self.new_arbiter().create(entry)
        run_in_threads(
            [
                partial(self.new_arbiter().complete, entry.completed(_FAR_FUTURE_S))
                for _ in range(_THREADS)
            ]
        )
        assert self.new_arbiter().latest(table_path) == entry.completed(_FAR_FUTURE_S)

    # Lost answers

    def test_lost_answer_of_a_create_is_told_by_the_entry(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        faulty = FaultyArbiter(arbiter, ArbiterFault("create", When.AFTER))
        entry = entry_of(table_path, 0)
        assert faulty.create(entry) is PutOutcome.UNKNOWN
        assert faulty.get(table_path, entry.file_name) == entry
        assert faulty.create(entry_of(table_path, 0, worker=1)) is PutOutcome.EXISTS
        assert faulty.create(entry) is PutOutcome.CREATED

    def test_create_that_never_arrived_leaves_the_version_free(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        faulty = FaultyArbiter(arbiter, ArbiterFault("create", When.BEFORE))
        entry = entry_of(table_path, 0)
        assert faulty.create(entry) is PutOutcome.UNKNOWN
        assert faulty.get(table_path, entry.file_name) is None
        assert faulty.create(entry) is PutOutcome.CREATED

    def test_lost_answer_of_a_complete_is_mended_by_saying_it_again(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        faulty = FaultyArbiter(arbiter, ArbiterFault("complete", When.AFTER))
        entry = entry_of(table_path, 0)
        faulty.create(entry)
        with pytest.raises(StorageError):
            faulty.complete(entry.completed(_FAR_FUTURE_S))
        faulty.complete(entry.completed(_FAR_FUTURE_S))
        assert faulty.latest(table_path) == entry.completed(_FAR_FUTURE_S)

    # Races

    def test_of_many_threads_exactly_one_creates(self, table_path: str) -> None:
        arbiters = [self.new_arbiter() for _ in range(_THREADS // 2)]
        barrier = threading.Barrier(_THREADS)
        outcomes = run_in_threads(
            [
                partial(
                    create_each_round,
                    arbiters[worker % len(arbiters)],  # two threads share each
                    table_path,
                    _ROUNDS,
                    worker=worker,
                    barrier=barrier,
                )
                for worker in range(_THREADS)
            ]
        )
        self._check_one_owner_per_version(table_path, outcomes, _ROUNDS)

    def test_of_many_processes_exactly_one_creates(self, table_path: str) -> None:
        if not self.supports_processes:
            pytest.skip("the arbiter declares that it serves one process only")
        outcomes = run_in_processes(
            type(self).arbiter_factory,
            create_each_round,
            [
                {"table_path": table_path, "rounds": _PROCESS_ROUNDS, "worker": worker}
                for worker in range(_PROCESSES)
            ],
        )
        self._check_one_owner_per_version(table_path, outcomes, _PROCESS_ROUNDS)

    def test_versions_that_many_threads_claim_are_dense(self, table_path: str) -> None:
        claimed = run_in_threads(
            [
                partial(claim_versions, self.new_arbiter(), table_path, _CLAIMS, worker=worker)
                for worker in range(_THREADS)
            ]
        )
        versions = sorted(version for each in claimed for version in each)
        assert versions == list(range(_THREADS * _CLAIMS))

    # Description

    def test_description_names_the_arbiter(self, arbiter: Arbiter) -> None:
        description = arbiter.describe()
        assert type(arbiter).__qualname__ in description["arbiter"]
        assert all(isinstance(value, str) for value in description.values())

    def test_entries_are_kept_for_a_while_once_complete(self, arbiter: Arbiter) -> None:
        assert arbiter.entry_ttl_s >= 0

    # Forks

    def test_children_forked_at_any_moment_go_on_and_disturb_nobody(
        self, arbiter: Arbiter, table_path: str
    ) -> None:
        if not (self.supports_processes and self.survives_forks):
            pytest.skip("the arbiter declares that it does not survive a fork")

        def create_and_look(table: str, number: int) -> None:
            entry = entry_of(table, number)
            assert create_settled(arbiter, entry) is PutOutcome.CREATED
            other = entry_of(table, number, worker=1)
            assert create_settled(arbiter, other) is PutOutcome.EXISTS
            arbiter.complete(entry.completed(_FAR_FUTURE_S))
            assert arbiter.get(table, entry.file_name) == entry.completed(_FAR_FUTURE_S)
            assert arbiter.latest(table) is not None

        create_and_look(table_path, 0)  # connections are there before the first fork
        run_in_forked_children(
            lambda child: create_and_look(f"{table_path}-of-{child}", child),
            meanwhile=lambda number: create_and_look(f"{table_path}-of-parent", number),
        )

    def _check_one_owner_per_version(
        self, table_path: str, outcomes: Sequence[Sequence[PutOutcome]], rounds: int
    ) -> None:
        arbiter = self.new_arbiter()
        for version in range(rounds):
            of_round = [each[version] for each in outcomes]
            assert of_round.count(PutOutcome.CREATED) == 1, f"version {version}: {of_round}"
            assert of_round.count(PutOutcome.EXISTS) == len(outcomes) - 1
            winner = of_round.index(PutOutcome.CREATED)
            found = arbiter.get(table_path, file_name_of(version))
            assert found == entry_of(table_path, version, worker=winner)


def file_name_of(version: int) -> str:
    """Return the name of a commit file."""
    return f"{version:020d}.json"


def entry_of(table_path: str, version: int, *, worker: int = 0) -> CommitEntry:
    """Return an incomplete entry that shows who made it."""
    name = file_name_of(version)
    return CommitEntry(table_path, name, f".tmp/{name}.{worker:012d}", complete=False)


def create_settled(arbiter: Arbiter, entry: CommitEntry) -> PutOutcome:
    """Create an entry, and after a lost answer read the outcome from the entry.

    A server at full load may close a connection, so `UNKNOWN` is a valid answer.
    """
    outcome = arbiter.create(entry)
    while outcome is PutOutcome.UNKNOWN:
        found = arbiter.get(entry.table_path, entry.file_name)
        if found is None:
            outcome = arbiter.create(entry)
        else:
            is_ours = found.temp_path == entry.temp_path
            outcome = PutOutcome.CREATED if is_ours else PutOutcome.EXISTS
    return outcome


def create_each_round(
    arbiter: Arbiter,
    table_path: str,
    rounds: int,
    *,
    worker: int,
    barrier: threading.Barrier | None = None,
) -> list[PutOutcome]:
    """Claim one version per round, all workers at once, and return the outcomes in order."""
    return each_round(
        lambda version: create_settled(arbiter, entry_of(table_path, version, worker=worker)),
        rounds,
        barrier=barrier,
    )


def claim_versions(arbiter: Arbiter, table_path: str, count: int, *, worker: int) -> list[int]:
    """Claim the version after the latest until `count` are won, and return those won."""
    won: list[int] = []
    while len(won) < count:
        newest = arbiter.latest(table_path)
        version = 0 if newest is None else int(newest.file_name.partition(".")[0]) + 1
        outcome = create_settled(arbiter, entry_of(table_path, version, worker=worker))
        if outcome is PutOutcome.CREATED:
            won.append(version)
    return won
