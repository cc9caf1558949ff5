"""How many processors this process may use."""

from __future__ import annotations

import os

__all__ = ["count_processors"]


def count_processors() -> int:
    """Return how many processors this process may use.

    A container or a batch system often gives a process fewer than the machine has.
    """
    ask = getattr(os, "sched_getaffinity", None)  # macOS and Windows do not have it
    return len(ask(0)) if ask is not None else os.cpu_count() or 1
