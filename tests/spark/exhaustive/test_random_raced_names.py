"""Random steps of two clients over the same names, at the same time: no table is lost."""

from __future__ import annotations

import random  # noqa: TID251 - each round draws the same steps each time

import pytest

from calls_on_disk import rows_on_disk
from catalog_on_disk import STEPS, Server, prepare, tables_in
from exhaustive_cases import in_proportion
from interleaved_names import NAMES, Step, is_one_of
from raced_names import orders, raced

_ROUNDS = 100
_ALL = tuple(what for what in STEPS if what != "read")
_GIVEN_BACK = ("fail", "fail or replace", "another", "as", "create or replace")
"""What makes names, and gives them back, at the same place."""


@pytest.fixture
def server(tmp_path):
    with rows_on_disk():
        yield Server(tmp_path)


def drawn(chance, number, steps=_ALL):
    """What each of the two clients does: most of it with the same name."""
    rows = iter(range(20 * number, 20 * number + 20))
    name, other = chance.sample(NAMES, 2)

    def step():
        names = (name, other) if chance.random() < 0.8 else (other, name)
        return Step(chance.choice((*steps, "drop", "drop", "rename")), *names, next(rows))

    clients = [[step() for _ in range(chance.randint(1, 3))] for _ in range(2)]
    # A name with a location may be lost with that of a failed statement (docs/connect.md).
    if any(each.what.startswith("fail") for own in clients for each in own):
        clients = [[each for each in own if not each.what.endswith("at")] for own in clients]
    return clients


@pytest.mark.parametrize("steps", [_ALL, _GIVEN_BACK], ids=["all", "given back"])
@pytest.mark.parametrize("seed", range(8))
def test_what_succeeds_has_happened_and_what_fails_has_not(server, seed, steps):
    for number in range(in_proportion(_ROUNDS)):
        chance = random.Random(f"{seed} {number}")
        prepare(server, chance)
        begun = tables_in(server)
        taken = raced(server, chance, drawn(chance, number, steps))
        found, states = tables_in(server), list(orders(begun, taken))
        assert is_one_of(found, states), (number, begun, taken, found, states)
