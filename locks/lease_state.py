"""What is known of one lease, and how it changes: shared by the keepers that have no server."""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimist.core.lease import LeaseGrant, lapsed

__all__ = ["LeaseState"]


@dataclass(frozen=True, slots=True)
class LeaseState:
    """One lease at one moment.

    Attributes:
        fencing_number: That of the newest grant; 0 before the first.
        owner: The token of the grant that holds; None where nobody does.
        deadline_ms: When that grant lapses, epoch milliseconds.
    """

    fencing_number: int = 0
    owner: str | None = None
    deadline_ms: int = 0

    def is_free(self, now_ms: int) -> bool:
        """Whether it can be taken now."""
        return self.owner is None or now_ms >= self.deadline_ms

    def taken(self, owner: str, deadline_ms: int) -> LeaseState:
        """The next grant, with the next number."""
        return LeaseState(self.fencing_number + 1, owner, deadline_ms)

    def is_held_by(self, grant: LeaseGrant, now_ms: int) -> bool:
        """Whether the grant still holds."""
        return self.owner == grant.owner and now_ms < self.deadline_ms

    def renewed(self, grant: LeaseGrant, now_ms: int, deadline_ms: int) -> LeaseState:
        """The same grant, held longer.

        Raises:
            LeaseLapsedError: It holds no longer.
        """
        if not self.is_held_by(grant, now_ms):
            raise lapsed(grant)
        return replace(self, deadline_ms=deadline_ms)

    def released(self, grant: LeaseGrant) -> LeaseState:
        """Free, if the grant was the holder; its number stays, so that the next is greater."""
        if self.owner != grant.owner:
            return self
        return LeaseState(self.fencing_number)

    def grant(self, name: str) -> LeaseGrant:
        """The grant that holds."""
        assert self.owner is not None
        return LeaseGrant(name, self.owner, self.fencing_number, self.deadline_ms)
