"""The searches through the schedules of the arbiter's algorithm that need minutes, or 2 GB."""

from __future__ import annotations

import pytest

from arbiter_scenarios import (
    CRASHES_AND_LOST_ANSWERS,
    EVERYTHING,
    GOOD,
    LAGGING_WORLD,
    TABLE,
    WITH_STALE_LISTINGS,
    DoesNotFinishWhoeverWon,
    ListsWithoutRecovery,
    NothingIsDeleted,
    ReadsWithoutRecovery,
    a_foreign_writer_among_us,
    arbitrated,
    engine_model,
    model,
    numbers_given_beforehand,
    three_writers,
    two_writers_and_a_recoverer,
)
from exhaustive_cases import in_proportion
from optimist.core.testing import (
    explore_all,
    explore_randomly,
    reader,
)

pytestmark = pytest.mark.usefixtures("quiet_log")


def test_two_writers_and_a_recoverer_survive_every_schedule_with_two_mishaps() -> None:
    found = explore_all(model(two_writers_and_a_recoverer(), CRASHES_AND_LOST_ANSWERS, 2))
    assert found.schedules > 10**12


def test_three_writers_survive_schedules_drawn_at_random() -> None:
    explore_randomly(
        model(three_writers(), EVERYTHING, 2), schedules=in_proportion(100_000), seed=2026
    )


def test_three_writers_and_a_recoverer_survive_schedules_drawn_at_random() -> None:
    workers = [*three_writers(), reader("r", TABLE, GOOD)]
    explore_randomly(model(workers, EVERYTHING, 2), schedules=in_proportion(100_000), seed=2027)


@pytest.mark.parametrize(
    "scenario",
    [two_writers_and_a_recoverer, a_foreign_writer_among_us, numbers_given_beforehand],
)
def test_every_kind_of_mishap_twice_is_survived_in_every_schedule(scenario) -> None:
    explore_all(model(scenario(), EVERYTHING, 2))


def test_listings_that_lag_twice_are_survived_in_every_schedule() -> None:
    workers = two_writers_and_a_recoverer()
    explore_all(model(workers, WITH_STALE_LISTINGS, 2, world=LAGGING_WORLD))


def test_the_engine_on_an_arbiter_survives_every_schedule_with_two_mishaps() -> None:
    explore_all(engine_model(CRASHES_AND_LOST_ANSWERS, 2))


# Guards that another guard stands in for


@pytest.mark.parametrize(
    "open_store",
    [
        arbitrated(files=NothingIsDeleted),
        arbitrated(DoesNotFinishWhoeverWon),
        arbitrated(ListsWithoutRecovery),
        arbitrated(ReadsWithoutRecovery),
    ],
    ids=["no deletion", "no help for the winner", "no help on listing", "no help on reading"],
)
def test_a_guard_with_a_second_behind_it_can_fail_alone(open_store) -> None:
    for scenario in (a_foreign_writer_among_us, numbers_given_beforehand):
        explore_all(model(scenario(open_store), EVERYTHING, 1, open_store=open_store))
    workers = two_writers_and_a_recoverer(open_store)
    explore_all(model(workers, CRASHES_AND_LOST_ANSWERS, 1, open_store=open_store))
