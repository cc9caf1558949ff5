"""The models of the arbiter's algorithm: who is at work, on what world, and what must hold.

The searches in `tests/logstores` and the longer ones in `tests/exhaustive` are about the same.
"""

from __future__ import annotations

from optimist.core.errors import ConfigError
from optimist.core.log.names import commit_path
from optimist.core.testing import (
    LogInvariants,
    Mishap,
    Model,
    SimulatedArbiter,
    SimulatedLogStore,
    SimulatedWorld,
    added_file,
    appender,
    commit_bytes,
    engine_writer,
    first_commit,
    numbered_writer,
    reader,
    snapshot_reader,
)
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore

TABLE = "sim://table"
CRASHES_AND_LOST_ANSWERS = (Mishap.CRASH, Mishap.LOST)
WITH_STALE_LISTINGS = (Mishap.CRASH, Mishap.LOST, Mishap.STALE)
EVERYTHING = (Mishap.CRASH, Mishap.LOST, Mishap.LATE, Mishap.REFUSED)
FIRST = (commit_path(f"{TABLE}/_delta_log", 0), commit_bytes("first"))
WORLD = SimulatedWorld([FIRST])
LAGGING_WORLD = SimulatedWorld([FIRST], has_late_listings=True)


class SharedFiles(SimulatedLogStore):
    """A store without exclusive creation."""

    def put_if_absent(self, path, data):
        raise ConfigError("It can't.", kind="OPTIMIST_NO_ATOMIC_CREATE", path=path)


def arbitrated(store=ExternalArbiterLogStore, arbiter=SimulatedArbiter, files=SimulatedLogStore):
    """Opens the store under test, or a mutant of it, as one worker has it."""

    def open_store(line, clock):
        return store(store=files(line), arbiter=arbiter(line), clock=clock)

    return open_store


def past_the_arbiter(line, clock):
    """What an engine has that does not ask the arbiter."""
    return SimulatedLogStore(line)


GOOD = arbitrated()


def newcomers(open_store):
    """Who must find a whole table at the end of every schedule, and commit to it."""
    late = appender("late", TABLE, open_store, known=-1)
    return late, reader("after all", TABLE, open_store, passes=2)


def model(workers, mishaps, max_mishaps, *, open_store=GOOD, world=WORLD):
    invariant = LogInvariants(TABLE, world, *newcomers(open_store))
    return Model(world, tuple(workers), invariant, mishaps, max_mishaps)


def two_writers_and_a_recoverer(open_store=GOOD):
    a, b = (appender(name, TABLE, open_store) for name in "ab")
    return a, b, reader("r", TABLE, open_store)


def a_foreign_writer_among_us(open_store=GOOD):
    ours = appender("a", TABLE, open_store)
    foreign = appender("foreign", TABLE, past_the_arbiter)
    return ours, foreign, reader("r", TABLE, open_store)


def numbers_given_beforehand(open_store=GOOD):
    ours = appender("a", TABLE, open_store)
    return ours, numbered_writer("second", TABLE, open_store, 2), reader("r", TABLE, open_store)


def three_writers(open_store=GOOD):
    return [appender(name, TABLE, open_store) for name in "abc"]


# The engine on it

ENGINE_WORLD = SimulatedWorld([first_commit(TABLE, "f0")])


def blind_append(txn, name):
    return [added_file(name)]


def engine_model(mishaps, max_mishaps):
    def writer(name):
        return engine_writer(name, TABLE, GOOD, blind_append, world=ENGINE_WORLD)

    workers = (writer("a"), writer("b"), snapshot_reader("r", TABLE, GOOD, world=ENGINE_WORLD))
    invariant = LogInvariants(TABLE, ENGINE_WORLD, writer("late"), reader("after", TABLE, GOOD))
    return Model(ENGINE_WORLD, workers, invariant, mishaps, max_mishaps)


# Guards that another guard stands in for


class NothingIsDeleted(SimulatedLogStore):
    def delete(self, path):
        """The staged bytes stay where a foreign file has won."""


class DoesNotFinishWhoeverWon(ExternalArbiterLogStore):
    def _ensure_winner_is_there(self, place):
        pass


class ListsWithoutRecovery(ExternalArbiterLogStore):
    def list_from(self, path):
        return self._store.list_from(path)


class ReadsWithoutRecovery(ExternalArbiterLogStore):
    def _finish_and_read(self, path, read):
        return read(path)


class OnlyThePredecessorIsRecovered(
    ListsWithoutRecovery, ReadsWithoutRecovery, DoesNotFinishWhoeverWon
):
    pass
