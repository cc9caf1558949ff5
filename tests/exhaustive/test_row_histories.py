"""Commands that change rows of one table, in every order in which they can begin and commit."""

from __future__ import annotations

import itertools
import random  # noqa: TID251 - the same sample each time

import pytest

from exhaustive_cases import CASES
from row_histories import (
    appends,
    compacts,
    copies,
    deletes,
    ensure_serial,
    make,
    play,
    schedules,
    updates,
    upserts,
)

COMMANDS = [
    deletes(0, 2),
    deletes(1, 6),
    deletes(2, 4),
    updates(0, 1, 2),
    updates(2, 5, 100),
    updates(3, 4, -3),
    appends(500, 3),
    copies(0, 3, 1000),
    compacts(1),
    upserts({0: 7, 3: 2, 501: 3}, only_low=True),
]
LEVELS = ["Serializable", "WriteSerializable"]
PARTS = 6
STRIDE = max(1, 10_000 // CASES)
"""Every how many histories one is tried."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("part", range(PARTS))
def test_three_commands_in_every_order(tmp_path, level, part):
    histories = list(itertools.product(itertools.combinations(COMMANDS, 3), schedules(3)))
    random.Random(0).shuffle(histories)
    tried = landed = 0
    for number in range(part, len(histories), PARTS * STRIDE):
        commands, schedule = histories[number]
        log = make(tmp_path / str(number), isolationLevel=level)
        found = play(log, commands, schedule)
        ensure_serial(log, found, in_order=level == "Serializable")
        tried, landed = tried + 3, landed + len(found)
    assert 0.5 < landed / tried < 1
