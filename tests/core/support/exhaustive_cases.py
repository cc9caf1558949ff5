"""How much `make exhaustive` tries: its CASES."""

from __future__ import annotations

import os

_ALL = 10_000
CASES = int(os.environ.get("EXHAUSTIVE_CASES", _ALL))


def in_proportion(count: int) -> int:
    """As many of `count` as CASES is of ten thousand, and one at least."""
    return max(1, count * CASES // _ALL)
