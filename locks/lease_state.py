"""The state of one lease and its changes, for several kinds of lease."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.plugins.lease import LeaseGrant, lapsed

__all__ = ["LARGEST_NUMBER", "LeaseState", "damaged_lease", "parse_lease"]

LARGEST_NUMBER = (1 << 53) - 1
"""The largest fencing number and time: up to it, every server and every JSON parser is exact."""

_DIGITS = re.compile(r"[0-9]{1,16}")
_MAX_OWNER = 200


@dataclass(frozen=True, slots=True)
class LeaseState:
    """One lease at one moment.

    Attributes:
        fencing_number: The number of the newest grant; 0 before the first.
        owner: The token of the grant that holds the lease; None if it is free.
        deadline_ms: When that grant lapses, in epoch milliseconds.
    """

    fencing_number: int = 0
    owner: str | None = None
    deadline_ms: int = 0

    def is_free(self, now_ms: int) -> bool:
        """Check whether the lease can be taken now."""
        return self.owner is None or now_ms >= self.deadline_ms

    def taken(self, owner: str, deadline_ms: int) -> LeaseState:
        """Return the next grant, with the next number."""
        return LeaseState(self.fencing_number + 1, owner, deadline_ms)

    def is_held_by(self, grant: LeaseGrant, now_ms: int) -> bool:
        """Check whether the grant still holds the lease."""
        return self.owner == grant.owner and now_ms < self.deadline_ms

    def renewed(self, grant: LeaseGrant, now_ms: int, deadline_ms: int) -> LeaseState:
        """Return the same grant with a later deadline.

        Raises:
            LeaseLapsedError: The grant has lapsed.
        """
        if not self.is_held_by(grant, now_ms):
            raise lapsed(grant)
        return replace(self, deadline_ms=deadline_ms)

    def released(self, grant: LeaseGrant) -> LeaseState:
        """Free the lease, if the grant holds it.

        The number stays, so that the next one is greater.
        """
        if self.owner != grant.owner:
            return self
        return LeaseState(self.fencing_number)

    def grant(self, name: str) -> LeaseGrant:
        """Return the grant that holds the lease.

        Raises:
            ValueError: The lease is free.
        """
        if self.owner is None:
            raise ValueError(f"nobody holds the lease {name}")
        return LeaseGrant(name, self.owner, self.fencing_number, self.deadline_ms)


def parse_lease(fields: object) -> LeaseState:
    """Parse a lease from its stored fields, whoever wrote them.

    Args:
        fields: By name: `fencingNumber` and `deadlineMs`, as numbers or their digits, and `owner`,
            a text. Without an owner the lease is free and needs no deadline.

    Raises:
        ValueError: The fields are not a lease; the text says why.
    """
    if not isinstance(fields, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - content, not a call
    owner = fields.get("owner")
    number = _parse_number(fields, "fencingNumber")
    if owner is None:
        return LeaseState(number)
    if not isinstance(owner, str) or not 0 < len(owner) <= _MAX_OWNER:
        raise ValueError("its owner is not text, or too long")
    return LeaseState(number, owner, _parse_number(fields, "deadlineMs"))


def damaged_lease(name: str, where: str, reason: str) -> StorageError:
    """Return the error for a record that is not a lease.

    Args:
        name: The name of the lease.
        where: The record's location, as `the file ...`.
        reason: The problem, as `its owner ...`.
    """
    return StorageError(
        f"The lease on {shown(name)} can't be read from {where}: {reason}. Nothing was written. "
        "Find out who changed it. When no writer is at work, it can be deleted.",
        kind="OPTIMIST_LEASE_DAMAGED",
        name=name,
        where=where,
        retryable=False,
    )


def _parse_number(fields: Mapping[object, object], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if type(value) is not int or not 0 <= value <= LARGEST_NUMBER:
        raise ValueError(f"its {name} is not a whole number from 0 to 2^53")
    return value
