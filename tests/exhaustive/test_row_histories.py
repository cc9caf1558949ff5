"""Commands that change rows of one table, in every order in which they can begin and commit."""

from __future__ import annotations

import itertools

import pytest

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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("part", range(PARTS))
def test_three_commands_in_every_order(tmp_path, level, part):
    tried = landed = 0
    for number, commands in enumerate(list(itertools.combinations(COMMANDS, 3))[part::PARTS]):
        for order, schedule in enumerate(schedules(3)):
            log = make(tmp_path / f"{number}-{order}", isolationLevel=level)
            found = play(log, commands, schedule)
            ensure_serial(log, found, in_order=level == "Serializable")
            tried, landed = tried + 3, landed + len(found)
    assert 0.5 < landed / tried < 1
