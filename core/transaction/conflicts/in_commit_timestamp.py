"""In-commit timestamps: a table's time grows strictly with its versions (spec 1.11)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import IN_COMMIT_TIMESTAMP_ENABLEMENT

__all__ = [
    "first_timestamp",
    "is_newly_enabled",
    "with_enablement",
]

_ENABLEMENT_VERSION, _ENABLEMENT_TIMESTAMP = IN_COMMIT_TIMESTAMP_ENABLEMENT


def is_newly_enabled(metadata: Metadata, version: int) -> bool:
    """Return whether this metadata switches the timestamps on in the commit of that version."""
    return metadata.configuration.get(_ENABLEMENT_VERSION) == str(version)


def first_timestamp(now_ms: int, read_timestamp_ms: int | None) -> int:
    """Return the timestamp of a first attempt: the clock's, but later than the version read."""
    return now_ms if read_timestamp_ms is None else max(now_ms, read_timestamp_ms + 1)


def with_enablement(metadata: Metadata, *, version: int, timestamp_ms: int) -> Metadata:
    """Record in the metadata at which version and time timestamps were switched on.

    A table that is created with them records neither.
    """
    enablement = {_ENABLEMENT_VERSION: str(version), _ENABLEMENT_TIMESTAMP: str(timestamp_ms)}
    return replace(metadata, configuration={**metadata.configuration, **enablement})
