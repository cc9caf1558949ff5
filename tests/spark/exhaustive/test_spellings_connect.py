"""On Spark Connect, a version or a partition in a table's name is heeded, or the change refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of
from exhaustive_cases import in_proportion
from spelled_tables import PATH_SPELLINGS

SCRIPT = Path(__file__).with_name("connect_spellings_script.py")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connect")
    return results_of(SCRIPT, folder, str(in_proportion(50)), timeout_s=3500)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("spelling", PATH_SPELLINGS)
def test_what_a_spelling_of_a_table_changes(told, spelling):
    assert told[spelling] == []
