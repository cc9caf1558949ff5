"""Random conditions with subqueries change the rows that a SELECT by the same condition finds."""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run

import pytest

from exhaustive_cases import in_proportion
from subquery_runs import COMMANDS, run_case

SEEDS = range(in_proportion(60))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_subqueries_choose_the_rows_of_a_select(enabled, conf, tmp_path, seed, command):
    chance = random.Random(f"{seed} {command}")
    conf("spark.optimist.spark.plane", chance.choice(["native", "arrow"]))
    run_case(enabled, tmp_path, chance, command)
