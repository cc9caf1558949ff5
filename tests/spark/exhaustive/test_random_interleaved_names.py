"""Random steps of clients over the same names, within a step of another: no table is lost."""

from __future__ import annotations

import random  # noqa: TID251 - each round draws the same steps each time
import shutil

import pytest

from catalog_on_disk import STEPS, Client, Server, answer, interleaved, log_at, tables_in
from exhaustive_cases import in_proportion
from interleaved_names import NAMES, Step, is_one_of, may_be
from optimist.spark.commands.catalog import named_tables, server_entries

_ROUNDS = 150
_MOST_REQUESTS = 14
_MAKING = ("create", "as", "at", "if new", "create or replace")


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(server_entries, "ensure_format_known", lambda _: None)
    monkeypatch.setattr(server_entries, "open_log", log_at)
    monkeypatch.setattr(named_tables, "open_target", log_at)
    return Server(tmp_path)


def drawn(chance, number):
    """The step of the one client, those of others within it, and before which request."""
    rows = iter(range(20 * number, 20 * number + 20))

    def step(what=None, names=()):
        name, other = names or chance.sample(NAMES, 2)
        return Step(what or chance.choice(STEPS), name, other, next(rows))

    outer = step()
    same = (outer.name, outer.other)
    # A name with a location may be lost with that of a failed statement (docs/connect.md).
    making = [what for what in _MAKING if (what, outer.what) != ("at", "fail")]
    inner = chance.choice(
        (
            [step(names=same)],
            [step(names=same[::-1]), step()],
            [step("drop", same), step(chance.choice(making), same)],
            [step("rename", same), step(chance.choice(making), same)],
            [step(names=same), step(names=same), step(names=same)],
        )
    )
    return outer, inner, chance.randint(1, _MOST_REQUESTS)


def prepare(server, chance):
    """Let managed tables be there, and nothing without a name."""
    for name, table in tables_in(server).items():
        if isinstance(table, str) or not table.is_managed or chance.random() < 0.2:
            server.run(f"DROP TABLE `{name}`")
    for place in server.folder.iterdir():
        if place.name not in server.entries:
            shutil.rmtree(place)
    for number, name in enumerate(chance.sample(NAMES, 2)):
        answer(Client(server), Step("if new", name, "", 1_000_000 + number))


@pytest.mark.parametrize("seed", range(8))
def test_what_succeeds_has_happened_and_what_fails_has_not(server, seed):
    for number in range(in_proportion(_ROUNDS)):
        chance = random.Random(f"{seed} {number}")
        prepare(server, chance)
        outer, inner, at = drawn(chance, number)
        begun = tables_in(server)
        told, answers = interleaved(server, outer, inner, at)
        taken = list(zip(inner, answers, strict=True))
        found, states = tables_in(server), list(may_be(begun, (outer, told), taken))
        assert is_one_of(found, states), (number, at, begun, (outer, told), taken, found, states)
