"""Whether a store's answers count as quick or as slow, however busy the machine is."""

from __future__ import annotations

import pytest

from optimist.core.log.known_log import KnownLog

__all__ = ["every_look_is_fresh", "no_look_is_fresh"]


def every_look_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log counts as just seen after each listing: requests are those of a quick store."""

    def was_just_seen(log: KnownLog, _now_s: float, version: int) -> bool:
        # A time long before any look, so that the version alone decides.
        return seen(log, -1.0, version)

    seen = KnownLog.was_just_seen
    monkeypatch.setattr(KnownLog, "was_just_seen", was_just_seen)


def no_look_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log counts as seen too long ago: requests are those of a slow put."""
    monkeypatch.setattr(KnownLog, "was_just_seen", lambda *_: False)
