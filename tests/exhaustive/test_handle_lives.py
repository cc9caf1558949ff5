"""One handle over 100,000 commits: its answers, and what it keeps in memory."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from exhaustive_cases import in_proportion
from handle_lives import HandleLife

_COMMITS = 100_000
_PARTS = 20
_MOST_GROWTH_BYTES = 24 << 20
"""After the first tenth of the life; a status for each commit would be some 30 MiB."""


def memory_bytes() -> int:
    """What the process has in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(3))
def test_a_long_life_needs_no_more_memory_than_a_short_one(seed):
    life = HandleLife(seed)
    in_memory = []
    while life.log.snapshot().version < in_proportion(_COMMITS):
        life.live(max(10, in_proportion(_COMMITS) // _PARTS))
        life.ensure_alike()
        assert life.num_commits_held < 130  # others' checkpoints are looked for in a hundred
        in_memory.append(memory_bytes())
    assert in_memory[-1] - in_memory[1] < _MOST_GROWTH_BYTES
