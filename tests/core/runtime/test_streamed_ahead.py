"""Streams that are moved on ahead of the consumer: order, bounds, errors and threads."""

import gc
import os
import threading

import pytest

from optimist.core.errors import UsageError
from optimist.core.runtime.streamed_ahead import AheadLimits, _Stream, stream_ahead

LIMITS = AheadLimits(streams=4, cost=1000, held_bytes=6)


def numbered(item):
    yield from (f"{item}.{number}" for number in range(5))


def streamed(open_item, items, limits=LIMITS, *, cost=1, in_order=True):
    costed = ((item, cost) for item in items)
    return stream_ahead(open_item, costed, lambda _: 2, limits, in_order=in_order)


def readers():
    return [each for each in threading.enumerate() if each.name == "optimist-read"]


def ensure_no_thread_is_left():
    for thread in readers():
        thread.join(10)
    assert readers() == []


def test_results_come_in_the_order_of_the_items():
    found = list(streamed(numbered, range(20)))
    assert found == [f"{item}.{number}" for item in range(20) for number in range(5)]
    ensure_no_thread_is_left()


def test_without_order_all_results_come_and_those_of_one_item_in_their_order():
    found = list(streamed(numbered, range(20), in_order=False))
    assert sorted(found) == sorted(f"{item}.{number}" for item in range(20) for number in range(5))
    assert [each for each in found if each.startswith("7.")] == list(numbered(7))


def test_without_order_a_slow_item_holds_nobody_up():
    go_on = threading.Event()

    def slow_first(item):
        if item == 0:
            assert go_on.wait(60)
        yield item

    results = streamed(slow_first, range(4), in_order=False)
    assert sorted(next(results) for _ in range(3)) == [1, 2, 3]
    go_on.set()
    assert list(results) == [0]


def test_threads_end_when_enough_waits_and_nothing_more_is_read():
    read = []

    def open_item(item):
        for number in range(100):
            read.append((item, number))
            yield number

    results = streamed(open_item, range(9))
    assert next(results) == 0
    ensure_no_thread_is_left()  # although the consumer is half-way
    assert {item for item, _ in read} == {0, 1, 2, 3}
    assert max(number for _, number in read) <= 4
    results.close()


@pytest.mark.parametrize(("cost", "opened"), [(999, 2), (1000, 1), (10**9, 1), (0, 4)])
def test_items_are_opened_by_what_they_cost(cost, opened):
    seen = []

    def open_item(item):
        seen.append(item)
        yield item
        yield item

    results = streamed(open_item, range(9), cost=cost)
    next(results)
    ensure_no_thread_is_left()
    assert sorted(seen) == list(range(opened))
    assert len(list(results)) == 17


def test_an_error_comes_after_the_results_before_it():
    def fails(item):
        yield item
        if item == 2:
            raise KeyError("lost")

    results = streamed(fails, range(9))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="lost"):
        next(results)
    ensure_no_thread_is_left()


def test_an_item_that_does_not_open_is_an_error_and_no_hang():
    def fails(item):
        raise KeyError(item)

    with pytest.raises(KeyError):
        list(streamed(fails, range(9), in_order=False))
    ensure_no_thread_is_left()


@pytest.mark.parametrize("end", ["close", "drop"])
def test_who_stops_half_way_leaves_no_thread_and_no_open_item(end):
    is_open = set()

    def open_item(item):
        is_open.add(item)
        try:
            yield from range(100)
        finally:
            is_open.discard(item)

    results = streamed(open_item, range(9))
    next(results)
    if end == "close":
        results.close()
    del results
    gc.collect()
    ensure_no_thread_is_left()
    assert is_open == set()


def test_no_items_give_no_results():
    assert list(streamed(numbered, [])) == []


def test_a_forked_child_does_not_wait_for_threads_of_its_parent():
    results = streamed(numbered, range(9))
    next(results)
    ensure_no_thread_is_left()
    child = os.fork()
    if child == 0:
        try:
            next(results)
        except UsageError as error:
            os._exit(0 if error.kind == "OPTIMIST_FORKED_READ" else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(results)) == 44


@pytest.mark.timeout(120)
def test_a_thread_that_ends_after_its_results_were_taken_is_followed_by_another(monkeypatch):
    consumer_waits = threading.Event()

    class Watched(threading.Condition):
        def wait_for(self, predicate, timeout=None):
            if not predicate():
                consumer_waits.set()
            return super().wait_for(predicate, timeout)

    hold_next = _Stream._hold_next

    def end_late(stream):
        goes_on = hold_next(stream)
        if not goes_on:
            consumer_waits.wait(30)  # so long the consumer takes what the thread has left
        return goes_on

    monkeypatch.setattr("optimist.core.runtime.streamed_ahead.threading.Condition", Watched)
    monkeypatch.setattr(_Stream, "_hold_next", end_late)
    assert list(streamed(numbered, [0])) == list(numbered(0))
    ensure_no_thread_is_left()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("entries", range(4))
def test_an_interrupt_as_the_lock_is_entered_leaves_no_thread_that_waits_for_it(
    monkeypatch, entries
):
    """An interrupt can strike in the condition's own entry, once the lock is acquired."""
    entered, main = [], threading.get_ident()

    class Interrupted(threading.Condition):
        def __enter__(self):
            found = super().__enter__()
            if threading.get_ident() == main and isinstance(self._lock, type(threading.RLock())):
                entered.append(self)
                if len(entered) > entries:
                    raise KeyboardInterrupt
            return found

    monkeypatch.setattr("optimist.core.runtime.streamed_ahead.threading.Condition", Interrupted)
    results = streamed(numbered, range(20))
    try:
        list(results)
    except KeyboardInterrupt:
        pass
    finally:
        monkeypatch.undo()
    locked = [each for each in entered if not _is_free(each)]
    for each in locked:
        each._lock.release()  # let the threads end
    ensure_no_thread_is_left()
    assert not locked


def _is_free(condition):
    """Whether another thread can acquire the condition's lock."""
    found = []

    def look():
        found.append(condition._lock.acquire(timeout=5))
        if found[0]:
            condition._lock.release()

    looking = threading.Thread(target=look)
    looking.start()
    looking.join()
    return found[0]
