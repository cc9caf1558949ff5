"""Metadata domains: the feature of each, and which of a table's domains count (spec 6.3).

A domain of the system belongs to a feature. Without that feature no writer follows the domain, so
it means nothing. All rooms ask this module.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.protocol.actions import DomainMetadata, Protocol
from optimist.core.protocol.gates import supports

__all__ = ["CLUSTERING_DOMAIN", "ROW_TRACKING_DOMAIN", "domains_that_count", "is_of_the_system"]

CLUSTERING_DOMAIN = "delta.clustering"
ROW_TRACKING_DOMAIN = "delta.rowTracking"
_PREFIX = "delta."
_FEATURES = {CLUSTERING_DOMAIN: "clustering", ROW_TRACKING_DOMAIN: "rowTracking"}
"""The features without which these domains mean nothing."""


def is_of_the_system(domain: str) -> bool:
    """Return whether the domain belongs to a feature, so that users may not change it."""
    return domain.lower().startswith(_PREFIX)


def domains_that_count(
    domains: Mapping[str, DomainMetadata], protocol: Protocol
) -> dict[str, DomainMetadata]:
    """Return the domains, by name, without those whose feature the protocol lacks."""
    return {
        name: item
        for name, item in domains.items()
        if name not in _FEATURES or supports(protocol, _FEATURES[name])
    }
