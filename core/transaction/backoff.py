"""How long to wait before a retry: full jitter, so that those who collided spread out."""

from __future__ import annotations

from optimist.core.clock import Clock
from optimist.core.options import RetryPolicy

__all__ = ["pause_s"]

_LARGEST_EXPONENT = 30


def pause_s(retry: int, policy: RetryPolicy, clock: Clock) -> float:
    """A pause in seconds before the n-th retry (1, 2, ...), drawn evenly up to a growing bound."""
    bound = policy.base_s * 2.0 ** min(retry - 1, _LARGEST_EXPONENT)
    return clock.uniform(0.0, min(policy.cap_s, bound))
