"""Commands change the partitions that a condition names, for conditions of every kind."""

from __future__ import annotations

import pytest

from chosen_partitions import COMMANDS, PartitionedTable, random_conditions
from exhaustive_cases import in_proportion

CONDITIONS = random_conditions(seed=20261127, count=in_proportion(100))


@pytest.fixture(scope="module")
def table(enabled, tmp_path_factory):
    made = PartitionedTable(enabled, tmp_path_factory.mktemp("chosen")).build()
    yield made
    made.close()


@pytest.mark.parametrize("by", ["driver", "jobs"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_changes_what_its_condition_names(table, conf, command, by):
    if by == "jobs":
        conf("spark.optimist.spark.driverShortcut.maxBytes", "0")
    wrong = {}
    for condition, wanted in zip(CONDITIONS, table.matching(CONDITIONS), strict=True):
        found = table.changed(command, condition)
        if found != (wanted, True):
            wrong[condition] = (found, wanted)
    assert wrong == {}
