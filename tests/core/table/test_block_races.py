"""A sample of blocks with vectors in files, raced and struck; `tests/exhaustive` has the search."""

from __future__ import annotations

import pytest

from block_races import BlockRace, vectors_in_files


@pytest.mark.parametrize("seed", range(5, 10))
def test_a_block_is_in_the_table_whole_or_not_at_all(tmp_path, seed):
    with vectors_in_files():
        BlockRace(tmp_path / "t", seed).run()
