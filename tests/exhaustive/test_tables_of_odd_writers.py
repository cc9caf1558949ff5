"""Many tables of writers with odd habits, with more steps than in `make test`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from exhaustive_cases import in_proportion
from odd_writer_trials import TRIALS, play


@pytest.mark.timeout(3600)
@settings(max_examples=in_proportion(1000))
@given(TRIALS)
def test_many_tables_of_odd_writers(trial):
    with TemporaryDirectory() as folder:
        play(Path(folder) / "table", **trial)
