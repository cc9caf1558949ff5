"""Keys of a caller for the commitInfo of its commits (option `commitInfo.extra`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

__all__ = ["OWN_KEYS", "parse_commit_keys"]

OWN_KEYS = frozenset(
    {
        "inCommitTimestamp",
        "timestamp",
        "operation",
        "operationParameters",
        "readVersion",
        "isolationLevel",
        "isBlindAppend",
        "dataChange",
        "operationMetrics",
        "userMetadata",
        "tags",
        "engineInfo",
        "txnId",
        "version",
    }
)
"""What a commit says of itself, which no caller may replace: readers rely on it."""
_TEXTS = ("userId", "userName")


def parse_commit_keys(text: str) -> Mapping[str, object]:
    """Return the keys of a JSON object, each with its value.

    Raises:
        ValueError: The text is no JSON object, or has a key of the commit's own.
    """
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError("must be a JSON object, without NaN and infinities")  # noqa: TRY004
    if not OWN_KEYS.isdisjoint(found):
        raise ValueError(f"must not have a key that commits have: {', '.join(sorted(OWN_KEYS))}")
    if any(not isinstance(found.get(name, ""), str) for name in _TEXTS):
        raise ValueError(f"must have text for {' and '.join(_TEXTS)}")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
