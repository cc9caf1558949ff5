"""Row ids over long histories of row tracking and RESTORE."""

from __future__ import annotations

import pytest

from exhaustive_cases import in_proportion
from numbered_histories import NumberedHistory


@pytest.mark.parametrize("seed", range(in_proportion(300)))
def test_no_two_rows_share_an_id_and_versions_come_back_with_theirs(tmp_path, seed):
    NumberedHistory(tmp_path / "table", seed).live(20)
