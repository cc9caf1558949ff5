"""Intents in stores, which the writes of one process share; here on a disk, as a store is one."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from optimist.core import DeltaLog
from optimist.core.data.intents.intents import intents_directory
from optimist.core.data.intents.stored_intents import begin_stored, forget_ended
from optimist.core.data.storage.stored_files import files_below
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import StorageError
from optimist.core.paths import join, name_of
from optimist.core.testing import ManualClock

MINUTES_10 = 600


class Table:
    """A table, and the intents of this process for it."""

    def __init__(self, path: str) -> None:
        self.clock = ManualClock()
        self.ref: TableRef = replace(DeltaLog.for_path(path).table, clock=self.clock)
        self.num_made = 0

    def begin(self, table_id: str | None = "a"):
        return begin_stored(self.ref, table_id, self._new_path)

    def _new_path(self) -> str:
        self.num_made += 1
        return join(intents_directory(self.ref), f"{self.num_made}")

    def there(self) -> list[str]:
        return sorted(name_of(each.path) for each in files_below(intents_directory(self.ref)))


@pytest.fixture
def table(tmp_path) -> Table:
    return Table(str(tmp_path / "table"))


def test_writes_of_ten_minutes_share_an_intent_and_the_next_makes_another(table):
    first = table.begin()
    table.clock.advance(MINUTES_10 - 1)
    table.begin().end()
    assert table.there() == ["1"]
    table.clock.advance(1)
    table.begin().end()
    assert table.there() == ["1", "2"]
    first.end()
    assert table.there() == ["1", "2"]


@pytest.mark.parametrize("hours", [30, -30])
def test_a_write_after_the_machine_was_suspended_makes_an_intent_of_its_own(table, hours):
    table.begin().end()
    # The monotonic clock stood still meanwhile; or an administrator has set the other one back.
    table.clock.set_now_ms(table.clock.now_ms() + hours * 3_600_000)
    table.begin().end()
    assert table.there() == ["1", "2"]


def test_a_table_that_was_made_anew_shares_no_intent_with_the_one_before(table):
    for table_id in ("a", "a", None, None, "b", "b"):
        table.begin(table_id).end()
    assert table.there() == ["1", "2", "3", "4"]


def test_intents_that_no_write_needs_are_removed_sixteen_at_a_time(table):
    long_write = table.begin()
    for _ in range(16):
        table.clock.advance(MINUTES_10)
        table.begin().end()
    assert len(table.there()) == 17
    table.clock.advance(MINUTES_10)
    table.begin().end()
    assert table.there() == ["1", "18"]
    long_write.end()
    forget_ended(table.ref)
    assert table.there() == []


def test_a_vacuum_of_the_process_removes_only_what_no_write_needs(table):
    write = table.begin()
    forget_ended(table.ref)
    assert table.there() == ["1"]
    write.end()
    forget_ended(table.ref)
    assert table.there() == []
    table.begin()
    assert table.there() == ["2"]


def test_intents_that_can_not_be_removed_are_known_to_have_ended(table, monkeypatch):
    table.begin().end()
    with monkeypatch.context() as patched:

        def failing(*_):
            raise StorageError("No answer.", kind="OPTIMIST_STORAGE_FAILED")

        patched.setattr("optimist.core.data.intents.stored_intents.remove_files", failing)
        assert [name_of(path) for path in forget_ended(table.ref)] == ["1"]
    assert [name_of(path) for path in forget_ended(table.ref, removes=False)] == ["1"]
    assert table.there() == ["1"]
    forget_ended(table.ref)
    assert table.there() == []


def test_an_intent_that_can_not_be_made_is_an_error_and_the_next_write_tries_again(
    table, monkeypatch
):
    with monkeypatch.context() as patched:

        def failing(*_, **__):
            raise StorageError("No answer.", kind="OPTIMIST_STORAGE_FAILED")

        patched.setattr("optimist.core.data.intents.stored_intents.new_file", failing)
        with pytest.raises(StorageError):
            table.begin()
    table.begin()
    assert table.there() == ["2"]


def test_a_forked_child_makes_intents_of_its_own_and_removes_none_of_its_parents(table):
    write = table.begin()
    child = os.fork()
    if not child:
        table.num_made = 100
        write.end()
        forget_ended(table.ref)
        table.begin()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert table.there() == ["1", "101"]
