"""Every interleaving of the arbiter's algorithm, and a schedule against each guard taken away.

The longer searches are in `tests/exhaustive`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from arbiter_scenarios import (
    CRASHES_AND_LOST_ANSWERS,
    EVERYTHING,
    FIRST,
    LAGGING_WORLD,
    WITH_STALE_LISTINGS,
    WORLD,
    OnlyThePredecessorIsRecovered,
    SharedFiles,
    a_foreign_writer_among_us,
    arbitrated,
    engine_model,
    model,
    numbers_given_beforehand,
    three_writers,
    two_writers_and_a_recoverer,
)
from optimist.core.paths import join
from optimist.core.plugins.arbiter import CommitEntry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import (
    InterleavingError,
    Operation,
    SimulatedArbiter,
    SimulatedWorld,
    explore_all,
    explore_randomly,
    replay,
)
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore

pytestmark = pytest.mark.usefixtures("quiet_log")


# The algorithm as it is


@pytest.mark.again
def test_two_writers_and_a_recoverer_survive_every_schedule_with_a_mishap_of_any_kind() -> None:
    found = explore_all(model(two_writers_and_a_recoverer(), EVERYTHING, 1))
    assert found.schedules > 10**12


@pytest.mark.again
def test_two_writers_and_a_recoverer_survive_every_schedule_with_a_listing_that_lags() -> None:
    workers = two_writers_and_a_recoverer()
    found = explore_all(model(workers, WITH_STALE_LISTINGS, 1, world=LAGGING_WORLD))
    assert found.schedules > 10**10


@pytest.mark.again
def test_where_the_store_creates_nothing_exclusively_the_arbiter_alone_is_enough() -> None:
    one_fence = arbitrated(files=SharedFiles)
    workers = two_writers_and_a_recoverer(one_fence)
    found = explore_all(model(workers, CRASHES_AND_LOST_ANSWERS, 1, open_store=one_fence))
    assert found.schedules > 10**12


def test_a_writer_past_the_arbiter_costs_nobody_a_commit_in_any_schedule() -> None:
    found = explore_all(model(a_foreign_writer_among_us(), CRASHES_AND_LOST_ANSWERS, 2))
    assert found.schedules > 10**7


@pytest.mark.again
def test_a_version_whose_predecessor_is_missing_is_refused_in_every_schedule() -> None:
    found = explore_all(model(numbers_given_beforehand(), CRASHES_AND_LOST_ANSWERS, 2))
    assert found.schedules > 10**9


@pytest.mark.again
def test_three_writers_survive_schedules_drawn_at_random() -> None:
    found = explore_randomly(model(three_writers(), EVERYTHING, 2), schedules=1_000, seed=2026)
    assert found.longest > 40


@pytest.mark.again
def test_the_engine_on_an_arbiter_survives_every_schedule_of_two_writers_and_a_reader() -> None:
    found = explore_all(engine_model((), 0))
    assert found.schedules > 10**9


# The algorithm with one guard taken away


class NoPredecessorCheck(ExternalArbiterLogStore):
    """Looks only whether its own version is taken."""

    def _is_taken(self, place):
        return self._exists(place.path)


class OverwritingArbiter(SimulatedArbiter):
    """Puts the entry whatever is there."""

    def create(self, entry):
        self._line.ask(Operation("put entry", entry.file_name, entry))
        return PutOutcome.CREATED


class CheckingArbiter(SimulatedArbiter):
    """Looks whether there is an entry, and then puts it: two steps."""

    def create(self, entry):
        if self.get(entry.table_path, entry.file_name) is not None:
            return PutOutcome.EXISTS
        self._line.ask(Operation("put entry", entry.file_name, entry))
        return PutOutcome.CREATED


class ForgetfulArbiter(SimulatedArbiter):
    """Does not know who comes again."""

    def create(self, entry):
        return self._line.ask(Operation("create entry once", entry.file_name, entry))


class ForgetfulWorld(SimulatedWorld):
    def apply(self, state, operation):
        if operation.kind != "create entry once":
            return super().apply(state, operation)
        if state.entry(operation.payload.file_name) is not None:
            return state, PutOutcome.EXISTS
        return state.with_entry(operation.payload), PutOutcome.CREATED

    def silence(self, operation):
        is_create = operation.kind == "create entry once"
        return PutOutcome.UNKNOWN if is_create else super().silence(operation)


class OverwritingRecovery(ExternalArbiterLogStore):
    """Copies the staged bytes over whatever came since it looked."""

    def _copy_staged(self, entry, log_path):
        target = join(log_path, entry.file_name)
        if not self._exists(target):
            data = self._store.read_bytes(join(log_path, entry.temp_path))
            self._store.put_overwrite(target, data)


class OverwritingPublication(ExternalArbiterLogStore):
    """The owner of the entry need not look: the version is his."""

    def _create_with_our_bytes(self, path, data):
        self._store.put_overwrite(path, data)
        return True


class TakesAnyFileForOurs(ExternalArbiterLogStore):
    """Does not read back what is there instead."""

    def _create_with_our_bytes(self, path, data):
        outcome = PutOutcome.UNKNOWN
        while outcome is PutOutcome.UNKNOWN:
            outcome = self._create_file(path, data)
        return True


class TakesAnyFileForAnothers(ExternalArbiterLogStore):
    """Nor this one: a recoverer may have copied ours."""

    def _create_with_our_bytes(self, path, data):
        return self._create_file(path, data) is PutOutcome.CREATED


class TakesSilenceOfTheStoreForSuccess(ExternalArbiterLogStore):
    def _create_with_our_bytes(self, path, data):
        return self._create_file(path, data) is not PutOutcome.EXISTS


class TakesSilenceOfTheArbiterForLoss(ExternalArbiterLogStore):
    def _claim(self, entry):
        outcome = self._arbiter.create(entry)
        return PutOutcome.EXISTS if outcome is PutOutcome.UNKNOWN else outcome


class TakesSilenceOfTheArbiterForSuccess(ExternalArbiterLogStore):
    def _claim(self, entry):
        outcome = self._arbiter.create(entry)
        return PutOutcome.CREATED if outcome is PutOutcome.UNKNOWN else outcome


class RaisesAfterItsClaim(ExternalArbiterLogStore):
    """Lets an error of the store pass for `nothing was written`."""

    def _publish(self, place, entry, data):
        created = self._create_with_our_bytes(place.path, data)
        self._arbiter.complete(self._complete_entry(entry))
        return PutOutcome.CREATED if created else PutOutcome.EXISTS


class UnknownIsLost(ExternalArbiterLogStore):
    """The commit loop never hears that it should read back."""

    def put_if_absent(self, path, data):
        outcome = super().put_if_absent(path, data)
        return PutOutcome.EXISTS if outcome is PutOutcome.UNKNOWN else outcome


class UnknownIsWon(ExternalArbiterLogStore):
    def put_if_absent(self, path, data):
        outcome = super().put_if_absent(path, data)
        return PutOutcome.CREATED if outcome is PutOutcome.UNKNOWN else outcome


class CompletesWithItsClaim(ExternalArbiterLogStore):
    def _stage(self, place, data):
        return replace(super()._stage(place, data), complete=True)


class CompletesBeforeItPublishes(ExternalArbiterLogStore):
    def _publish(self, place, entry, data):
        self._arbiter.complete(self._complete_entry(entry))
        return super()._publish(place, entry, data)


class ClaimsBeforeItStages(ExternalArbiterLogStore):
    def _stage(self, place, data):
        self._data = data
        staged = f".tmp/{place.file_name}.{self._clock.new_uuid()}"
        return CommitEntry(place.table_path, place.file_name, staged, complete=False)

    def _publish(self, place, entry, data):
        self._store.put_overwrite(join(place.log_path, entry.temp_path), data)
        return super()._publish(place, entry, data)


class StagesUnderOneName(ExternalArbiterLogStore):
    """All writers of a version stage at one place."""

    def _stage(self, place, data):
        staged = f".tmp/{place.file_name}.0"
        self._store.put_overwrite(join(place.log_path, staged), data)
        return CommitEntry(place.table_path, place.file_name, staged, complete=False)


class NobodyRecovers(ExternalArbiterLogStore):
    def fix_delta_log(self, entry, log_path):
        pass


FORGETFUL_WORLD = ForgetfulWorld([FIRST])
TEAM, FOREIGN, NUMBERED = (
    two_writers_and_a_recoverer,
    a_foreign_writer_among_us,
    numbers_given_beforehand,
)
MUTANTS = {
    "no predecessor check": (NUMBERED, arbitrated(NoPredecessorCheck), "not dense"),
    "arbiter overwrites": (TEAM, arbitrated(arbiter=OverwritingArbiter), "nothing is committed"),
    "arbiter checks, then puts": (
        TEAM,
        arbitrated(arbiter=CheckingArbiter),
        "nothing is committed",
    ),
    "arbiter forgets": (TEAM, arbitrated(arbiter=ForgetfulArbiter), "nothing is committed"),
    "recovery overwrites": (FOREIGN, arbitrated(OverwritingRecovery), "changed a file"),
    "publication overwrites": (FOREIGN, arbitrated(OverwritingPublication), "changed a file"),
    "any file is ours": (FOREIGN, arbitrated(TakesAnyFileForOurs), "lost"),
    "any file is another's": (TEAM, arbitrated(TakesAnyFileForAnothers), "complete, and not"),
    "store's silence is success": (
        TEAM,
        arbitrated(TakesSilenceOfTheStoreForSuccess),
        "complete, and not",
    ),
    "arbiter's silence is loss": (
        TEAM,
        arbitrated(TakesSilenceOfTheArbiterForLoss),
        "nothing is committed",
    ),
    "arbiter's silence is success, one fence": (
        TEAM,
        arbitrated(TakesSilenceOfTheArbiterForSuccess, files=SharedFiles),
        "changed a file",
    ),
    "raises after its claim": (TEAM, arbitrated(RaisesAfterItsClaim), "nothing is committed"),
    "unknown is lost": (TEAM, arbitrated(UnknownIsLost), "nothing is committed"),
    "unknown is won": (TEAM, arbitrated(UnknownIsWon), "lost"),
    "completes with its claim": (TEAM, arbitrated(CompletesWithItsClaim), "complete, and not"),
    "completes before it publishes": (TEAM, arbitrated(CompletesBeforeItPublishes), "complete"),
    "claims before it stages": (TEAM, arbitrated(ClaimsBeforeItStages), "blocked"),
    "stages under one name": (TEAM, arbitrated(StagesUnderOneName), "nothing is committed"),
    "nobody recovers": (TEAM, arbitrated(NobodyRecovers), "blocked"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_an_algorithm_without_one_guard_is_caught_by_a_schedule_that_replays(name: str) -> None:
    scenario, open_store, reason = MUTANTS[name]
    world = FORGETFUL_WORLD if name == "arbiter forgets" else WORLD
    mutant = model(scenario(open_store), EVERYTHING, 2, open_store=open_store, world=world)
    with pytest.raises(InterleavingError, match=reason) as found:
        explore_all(mutant)
    with pytest.raises(InterleavingError) as again:
        replay(mutant, found.value.schedule)
    assert again.value.reason == found.value.reason


def test_all_ways_of_recovery_but_one_taken_away_block_the_table() -> None:
    open_store = arbitrated(OnlyThePredecessorIsRecovered)
    with pytest.raises(InterleavingError, match="blocked"):
        explore_all(model(TEAM(open_store), EVERYTHING, 1, open_store=open_store))
