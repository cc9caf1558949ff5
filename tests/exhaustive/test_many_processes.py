"""More writers than any machine of this project has cores: every append is there once."""

from __future__ import annotations

import pytest

from append_races import append_in_processes, create_table, ensure_every_append_is_there_once


@pytest.mark.timeout(600)  # 32 interpreters come up at once, on however few cores
def test_32_processes_append_20_times_each(tmp_path):
    create_table(tmp_path)
    append_in_processes(tmp_path, writers=32, appends=20, timeout_s=560)
    ensure_every_append_is_there_once(tmp_path, writers=32, appends=20)
