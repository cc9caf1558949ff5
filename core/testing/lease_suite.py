"""The contract of leases, as a test class to subclass (docs/locks.md).

    class TestMyLease(LeaseSuite):
        lease_factory = MyLease

        def let_lapse(self, grant): ...   # let its time run out, as the keeper sees time

This is enough if `MyLease()` can be built without arguments; otherwise give a function, or override
`new_lease`, for example to pass a clock. A subclass declares what its lease cannot do
(`supports_processes`), and may add tests. It may not change the tests here.
"""

# A test's name says what it checks.
# ruff: noqa: D102

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import pytest

from optimist.core.errors import LeaseLapsedError
from optimist.core.plugins.lease import Lease, LeaseGrant
from optimist.core.runtime.clock import SystemClock
from optimist.core.testing.forked_children import run_in_forked_children
from optimist.core.testing.logstore_races import each_round, run_in_processes, run_in_threads

__all__ = ["LeaseSuite"]

_THREADS = 16
_ROUNDS = 50
_PROCESSES = 4
_PROCESS_ROUNDS = 25
_TTL_S = 300.0

_ODD_NAMES = ("with space", "{braces}:%20*", "/umlaut-äöü/日本語", "x" * 900)


class LeaseSuite:
    """The tests for a lease, to subclass.

    Every test gets a new `name`.

    Attributes:
        lease_factory: Builds a lease. It must be a class or a function of a module, so that other
            processes can build theirs.
        supports_processes: Whether leases in different processes exclude each other.
        survives_forks: Whether it continues to work in a forked process.
    """

    lease_factory: ClassVar[Callable[[], Lease]]
    supports_processes: ClassVar[bool] = True
    survives_forks: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, test in vars(LeaseSuite).items():
            if name.startswith("test_") and getattr(cls, name) is not test:
                raise TypeError(
                    f"{cls.__name__} overrides {name}. The suite holds for every lease as it is; "
                    "declare what the lease cannot do, or add a test under another name."
                )

    @pytest.fixture
    def name(self) -> str:
        """Return the name of a lease that no other test uses."""
        return f"/tables/{SystemClock().new_uuid()}/_delta_log"

    @pytest.fixture
    def lease(self) -> Lease:
        """Return a new lease."""
        return self.new_lease()

    def new_lease(self) -> Lease:
        """Return another instance of the lease under test.

        All in a test share one clock.
        """
        return type(self).lease_factory()

    def let_lapse(self, grant: LeaseGrant) -> None:
        """Let the time of a grant end, so that another holder may take the lease."""
        raise NotImplementedError("give a method `let_lapse`")

    # One holder

    def test_free_lease_is_granted(self, lease: Lease, name: str) -> None:
        grant = lease.try_acquire(name, ttl_s=_TTL_S)
        assert grant is not None
        assert grant.name == name
        assert grant.fencing_number > 0
        # Milliseconds of this century, not seconds, not nanoseconds.
        assert 946_684_800_000 < grant.deadline_ms < 4_102_444_800_000
        lease.ensure_held(grant)

    def test_held_lease_is_granted_to_nobody(self, lease: Lease, name: str) -> None:
        grant = acquired(lease, name)
        for other in (lease, self.new_lease()):
            assert other.try_acquire(name, ttl_s=_TTL_S) is None
        lease.ensure_held(grant)

    def test_released_lease_is_free(self, lease: Lease, name: str) -> None:
        first = acquired(lease, name)
        lease.release(first)
        second = acquired(self.new_lease(), name)
        assert second.owner != first.owner
        with pytest.raises(LeaseLapsedError):
            lease.ensure_held(first)

    def test_lease_may_be_released_by_another_instance(self, lease: Lease, name: str) -> None:
        grant = acquired(lease, name)
        self.new_lease().ensure_held(grant)
        self.new_lease().release(grant)
        acquired(lease, name)

    def test_releasing_twice_is_fine(self, lease: Lease, name: str) -> None:
        first = acquired(lease, name)
        lease.release(first)
        lease.release(first)
        second = acquired(lease, name)
        lease.release(first)
        lease.ensure_held(second)

    def test_names_are_kept_apart(self, lease: Lease, name: str) -> None:
        grants = [acquired(lease, each) for each in (name, f"{name}/below", f"{name}2")]
        lease.release(grants[0])
        for grant in grants[1:]:
            lease.ensure_held(grant)

    @pytest.mark.parametrize("odd", _ODD_NAMES)
    def test_odd_name_is_taken_as_it_is(self, lease: Lease, name: str, odd: str) -> None:
        grant = acquired(lease, name + odd)
        assert grant.name == name + odd
        assert lease.try_acquire(name + odd, ttl_s=_TTL_S) is None
        lease.release(lease.renew(grant, ttl_s=_TTL_S))
        acquired(lease, name + odd)

    # Holding it longer

    def test_renewed_lease_keeps_owner_and_number(self, lease: Lease, name: str) -> None:
        grant = acquired(lease, name)
        for holder in (lease, self.new_lease()):
            renewed = holder.renew(grant, ttl_s=_TTL_S * 2)
            assert (renewed.owner, renewed.fencing_number) == (grant.owner, grant.fencing_number)
            assert renewed.name == name
            assert renewed.deadline_ms > grant.deadline_ms
        lease.ensure_held(grant)
        assert lease.try_acquire(name, ttl_s=_TTL_S) is None

    def test_released_lease_cannot_be_renewed(self, lease: Lease, name: str) -> None:
        grant = acquired(lease, name)
        lease.release(grant)
        with pytest.raises(LeaseLapsedError):
            lease.renew(grant, ttl_s=_TTL_S)
        acquired(lease, name)

    # Lapse and fencing

    def test_lapsed_lease_is_not_held(self, lease: Lease, name: str) -> None:
        grant = acquired(lease, name)
        self.let_lapse(grant)
        with pytest.raises(LeaseLapsedError) as caught:
            lease.ensure_held(grant)
        assert caught.value.fields["name"] == name
        assert caught.value.fields["owner"] == grant.owner
        assert not caught.value.retryable

    def test_lapsed_lease_cannot_be_renewed(self, lease: Lease, name: str) -> None:
        grant = acquired(lease, name)
        self.let_lapse(grant)
        with pytest.raises(LeaseLapsedError):
            lease.renew(grant, ttl_s=_TTL_S)

    def test_lapsed_lease_is_granted_to_the_next(self, lease: Lease, name: str) -> None:
        first = acquired(lease, name)
        self.let_lapse(first)
        second = acquired(self.new_lease(), name)
        assert second.fencing_number > first.fencing_number
        with pytest.raises(LeaseLapsedError):
            lease.ensure_held(first)
        with pytest.raises(LeaseLapsedError):
            lease.renew(first, ttl_s=_TTL_S)
        lease.ensure_held(second)

    def test_release_after_the_lapse_leaves_the_next_holder_alone(
        self, lease: Lease, name: str
    ) -> None:
        first = acquired(lease, name)
        self.let_lapse(first)
        second = acquired(self.new_lease(), name)
        lease.release(first)
        self.new_lease().ensure_held(second)
        assert lease.try_acquire(name, ttl_s=_TTL_S) is None

    def test_fencing_numbers_only_grow(self, lease: Lease, name: str) -> None:
        numbers = []
        for turn in range(12):
            grant = acquired(lease if turn % 2 else self.new_lease(), name)
            numbers.append(grant.fencing_number)
            if turn % 3:
                lease.release(grant)
            else:
                self.let_lapse(grant)
        assert numbers == sorted(set(numbers))

    # Races

    def test_of_many_threads_exactly_one_is_granted_the_lease(self, name: str) -> None:
        leases = [self.new_lease() for _ in range(_THREADS // 2)]
        barrier = threading.Barrier(_THREADS)
        granted = run_in_threads(
            [
                partial(acquire_each_round, leases[worker % len(leases)], name, _ROUNDS, barrier)
                for worker in range(_THREADS)
            ]
        )
        _check_one_holder_per_round(granted, _ROUNDS)

    def test_of_many_threads_exactly_one_takes_over_a_lapsed_lease(self, name: str) -> None:
        before = acquired(self.new_lease(), name)
        self.let_lapse(before)
        barrier = threading.Barrier(_THREADS)
        granted = run_in_threads(
            [
                partial(acquire_in_step, self.new_lease(), name, barrier=barrier)
                for _ in range(_THREADS)
            ]
        )
        numbers = [number for number in granted if number]
        assert len(numbers) == 1
        assert numbers[0] > before.fencing_number

    def test_of_many_processes_exactly_one_is_granted_the_lease(self, name: str) -> None:
        if not self.supports_processes:
            pytest.skip("the lease declares that it serves one process only")
        granted = run_in_processes(
            type(self).lease_factory,
            acquire_each_round,
            [{"name": name, "rounds": _PROCESS_ROUNDS}] * _PROCESSES,
        )
        _check_one_holder_per_round(granted, _PROCESS_ROUNDS)

    # Forks

    def test_children_forked_at_any_moment_go_on_and_disturb_nobody(
        self, lease: Lease, name: str
    ) -> None:
        if not (self.supports_processes and self.survives_forks):
            pytest.skip("the lease declares that it does not survive a fork")

        def take_and_give_back(called: str, number: int) -> None:
            grant = lease.try_acquire(f"{name}-{called}-{number}", ttl_s=_TTL_S)
            assert grant is not None
            lease.ensure_held(lease.renew(grant, ttl_s=_TTL_S))
            lease.release(grant)

        take_and_give_back("first", 0)  # connections are there before the first fork
        run_in_forked_children(
            partial(take_and_give_back, "child"), meanwhile=partial(take_and_give_back, "parent")
        )

    # Description

    def test_description_names_the_lease(self, lease: Lease) -> None:
        description = lease.describe()
        assert type(lease).__qualname__ in description["lease"]
        assert all(isinstance(value, str) for value in description.values())


def acquired(lease: Lease, name: str) -> LeaseGrant:
    """Take a lease that must be free."""
    grant = lease.try_acquire(name, ttl_s=_TTL_S)
    assert grant is not None
    return grant


def acquire_each_round(
    lease: Lease, name: str, rounds: int, barrier: threading.Barrier | None = None
) -> list[int]:
    """Ask for one lease per round, all workers at once, and release it between rounds.

    Returns:
        For each round the fencing number, or 0 if it was not granted.
    """
    held: list[LeaseGrant] = []

    def step(number: int) -> int:
        if number % 2:
            for each in held:
                lease.release(each)
            held.clear()
            return 0
        grant = lease.try_acquire(name, ttl_s=_TTL_S)
        held.extend([grant] if grant is not None else [])
        return 0 if grant is None else grant.fencing_number

    return each_round(step, 2 * rounds, barrier=barrier)[::2]


def acquire_in_step(lease: Lease, name: str, *, barrier: threading.Barrier) -> int:
    """Ask once, at the same time as the others, and return the fencing number or 0."""

    def step(_number: int) -> int:
        grant = lease.try_acquire(name, ttl_s=_TTL_S)
        return 0 if grant is None else grant.fencing_number

    return each_round(step, 1, barrier=barrier)[0]


def _check_one_holder_per_round(granted: Sequence[Sequence[int]], rounds: int) -> None:
    numbers = []
    for number in range(rounds):
        of_round = [each[number] for each in granted if each[number]]
        assert len(of_round) == 1, f"round {number}: {of_round}"
        numbers += of_round
    assert numbers == sorted(set(numbers))
