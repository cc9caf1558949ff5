"""In-commit timestamps: a table's time grows strictly with its versions (spec 1.11)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.protocol.actions import Metadata

__all__ = [
    "ENABLEMENT_TIMESTAMP",
    "ENABLEMENT_VERSION",
    "first_timestamp",
    "is_newly_enabled",
    "with_enablement",
]

ENABLEMENT_VERSION = "delta.inCommitTimestampEnablementVersion"
ENABLEMENT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


def is_newly_enabled(metadata: Metadata, version: int) -> bool:
    """Whether this metadata is what switches timestamps on, in the commit of that version."""
    return metadata.configuration.get(ENABLEMENT_VERSION) == str(version)


def first_timestamp(now_ms: int, read_timestamp_ms: int | None) -> int:
    """The value for a first attempt: the wall clock, but after the version read."""
    return now_ms if read_timestamp_ms is None else max(now_ms, read_timestamp_ms + 1)


def with_enablement(metadata: Metadata, *, version: int, timestamp_ms: int) -> Metadata:
    """Record since when timestamps stand in the commits; a table born with them records nothing."""
    enablement = {ENABLEMENT_VERSION: str(version), ENABLEMENT_TIMESTAMP: str(timestamp_ms)}
    return replace(metadata, configuration={**metadata.configuration, **enablement})
