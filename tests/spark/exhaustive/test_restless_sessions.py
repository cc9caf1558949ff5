"""Confs that another thread changes between and within the passes of commands."""

from __future__ import annotations

import pytest

from exhaustive_cases import in_proportion
from restless_session import COMMANDS, PROPERTIES, ensure_one_choice


@pytest.mark.parametrize("seed", range(in_proportion(10)))
@pytest.mark.parametrize("properties", PROPERTIES, ids=["copies", "feed", "vectors"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("every_plane")
def test_a_command_chooses_its_rows_once(spark, table_path, command, properties, seed):
    ensure_one_choice(spark, table_path, command, properties, seed)
