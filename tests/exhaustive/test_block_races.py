"""Blocks of commands as single commands: races, VACUUM, kills, interrupts and lost answers."""

from __future__ import annotations

import pytest

from block_races import BlockRace, vectors_in_files
from exhaustive_cases import CASES

_SEEDS = range(max(20, CASES // 20))


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_block_is_in_the_table_whole_or_not_at_all(tmp_path, seed):
    with vectors_in_files():
        BlockRace(tmp_path / "t", seed, kills=True).run()
