"""Metadata domains of users: texts that the table keeps under names (spec 2.5, 6.3)."""

from __future__ import annotations

from optimist.core.commands.alter.alteration import Alteration
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.protocol.actions import DomainMetadata
from optimist.core.protocol.domains import is_of_the_system
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["remove_domain", "set_domain"]

_OPERATION = Operation("Manual Update")  # Delta has neither a command nor a name for it


def set_domain(domain: str, configuration: str) -> Alteration:
    """Set the text that the table keeps under a name, and replace an earlier one.

    Raises:
        UsageError: The name is reserved for the system (kind `OPTIMIST_RESERVED_METADATA_DOMAIN`),
            or the table lacks the feature (`DELTA_DOMAIN_METADATA_NOT_SUPPORTED`).
    """
    _ensure_of_users(domain)
    return Alteration(_OPERATION, actions=(DomainMetadata(domain, configuration),))


def remove_domain(txn: OptimisticTransaction, domain: str) -> Alteration:
    """Remove the text that the table keeps under a name.

    Raises:
        UsageError: The table has no such domain (kind `OPTIMIST_UNKNOWN_METADATA_DOMAIN`); or see
            `set_domain`.
    """
    _ensure_of_users(domain)
    known = txn.snapshot.domain_metadata
    if domain not in known:
        raise UsageError(
            f"The table has no metadata domain {shown(domain)}; it has {listed(known) or 'none'}. "
            "Nothing was written. Check the name.",
            kind="OPTIMIST_UNKNOWN_METADATA_DOMAIN",
            domain=domain,
        )
    removed = DomainMetadata(domain, known[domain].configuration, removed=True)
    return Alteration(_OPERATION, actions=(removed,))


def _ensure_of_users(domain: str) -> None:
    if not domain or is_of_the_system(domain):
        raise UsageError(
            f"The metadata domain {shown(domain or 'of no name')} is not for users. Nothing was "
            "written. Choose a name that does not begin with 'delta.'.",
            kind="OPTIMIST_RESERVED_METADATA_DOMAIN",
            domain=domain,
        )
