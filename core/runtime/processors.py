"""How many processors this process may use."""

from __future__ import annotations

import os

__all__ = ["count_processors"]


def count_processors() -> int:
    """Return how many processors this process may use.

    A batch system or a container may bind a process to fewer than the machine has. A container's
    quota of processor time is not looked at.
    """
    ask = getattr(os, "sched_getaffinity", None)  # macOS and Windows do not have it
    return len(ask(0)) if ask is not None else os.cpu_count() or 1
