"""The Lease: one holder at a time, each with a greater number than the last (docs/locks.md).

A lease serialises work: the commit loop on a store that shows partial writes, or maintenance. It
depends on clocks and can lapse while its holder sleeps. So it never guards a commit alone: the
store or the arbiter excludes other writers. A lease gives more than a plain lock: each holder gets
a fencing number, greater than those of all earlier holders. A holder whose lease lapsed stops
before it writes.

To check a lease, subclass `optimist.core.testing.LeaseSuite` in its tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from optimist.core.errors import LeaseLapsedError
from optimist.core.errors.kinds import LEASE_LAPSED
from optimist.core.secrets import Options

__all__ = ["Lease", "LeaseGrant", "lapsed"]


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """A lease that was taken.

    Attributes:
        name: The protected thing, usually the resolved log path of a table.
        owner: A token that is unique to this grant.
        fencing_number: Greater than that of every earlier grant of the name.
        deadline_ms: The time at which it lapses unless renewed, in epoch milliseconds by the
            keeper's clock.
    """

    name: str
    owner: str
    fencing_number: int
    deadline_ms: int


class Lease(ABC):
    """A keeper of leases by name. Threads may share it.

    Its constructor takes one argument: the options, a plain mapping.
    """

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.options: Mapping[str, str] = Options(options)

    @abstractmethod
    def try_acquire(self, name: str, *, ttl_s: float) -> LeaseGrant | None:
        """Take the lease if it is free or lapsed, and else return None at once.

        Raises:
            StorageError: The keeper of the leases gave no clear answer. If the keeper granted the
                lease anyway, the lease lapses by itself after `ttl_s` at the latest.
        """

    @abstractmethod
    def renew(self, grant: LeaseGrant, *, ttl_s: float) -> LeaseGrant:
        """Extend the lease to `ttl_s` from now: same owner and fencing number, later deadline.

        Raises:
            LeaseLapsedError: It lapsed, whether or not another has it by now. Stop; do not write.
            StorageError: The keeper failed. Assume that the old deadline still holds.
        """

    @abstractmethod
    def release(self, grant: LeaseGrant) -> None:
        """Return the lease if this grant still holds it, and ignore a lapsed one.

        Raises:
            StorageError: The keeper failed. The lease lapses by itself.
        """

    @abstractmethod
    def ensure_held(self, grant: LeaseGrant) -> None:
        """Raise unless the grant still holds. Call it right before a write.

        Raises:
            LeaseLapsedError: It lapsed, whether or not another has it by now. Stop; do not write.
            StorageError: The keeper did not answer.
        """

    def describe(self) -> Mapping[str, str]:
        """Describe this lease as text without secrets."""
        return {"lease": f"{type(self).__module__}:{type(self).__qualname__}"}


def lapsed(grant: LeaseGrant) -> LeaseLapsedError:
    """Return the error for a grant that no longer holds."""
    return LeaseLapsedError(
        f"The lease on {grant.name} expired before the work was done, and another writer may hold "
        "it now. Nothing more was written. Run the operation again; if this happens often, raise "
        "optimist.commit.lock.leaseSeconds.",
        kind=LEASE_LAPSED,
        name=grant.name,
        owner=grant.owner,
        fencing_number=grant.fencing_number,
        retryable=False,
    )
