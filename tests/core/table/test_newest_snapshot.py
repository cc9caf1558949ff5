"""One listing for all threads that ask at the same time, and none that is older than the asking."""

from __future__ import annotations

import pytest

from optimist.core.protocol.actions import CommitInfo
from optimist.core.testing import FaultyLogStore
from optimist.logstores import MemoryLogStore


class Overtaken:
    """A lock that something else gets first: it is done between the asking and the listing."""

    def __init__(self, newest, first):
        self.newest, self.lock, self.first = newest, newest._lock, first

    def __enter__(self):
        self.newest._lock = self.lock
        self.first()
        self.lock.__enter__()

    def __exit__(self, *error):
        self.lock.__exit__(*error)


@pytest.fixture
def table(make_table):
    return make_table(store=FaultyLogStore(MemoryLogStore({}))).create()


def test_a_listing_that_began_after_the_asking_is_shared(table):
    table.log.snapshot()
    newest = table.log._newest
    table.poke(1, (CommitInfo(txn_id="other"),))
    newest._lock = Overtaken(newest, newest.refresh)
    before = table.store.counts["list_from"]
    assert newest.refresh().version == 1
    assert table.store.counts["list_from"] == before + 1


def test_a_listing_that_was_under_way_before_the_asking_is_not(table):
    newest = table.log._newest
    table.log.snapshot()
    newest._begun += 1  # another thread has asked the store, which has answered it

    def end():
        newest._done = newest._begun

    table.poke(1, (CommitInfo(txn_id="other"),))
    newest._lock = Overtaken(newest, end)
    assert newest.refresh().version == 1


def test_a_listing_that_failed_is_shared_with_nobody(table):
    table.log.snapshot()
    newest = table.log._newest

    def fail():
        newest._begun += 1

    table.poke(1, (CommitInfo(txn_id="other"),))
    newest._lock = Overtaken(newest, fail)
    assert newest.refresh().version == 1
