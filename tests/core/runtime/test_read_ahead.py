"""Reading ahead: in order, no further than asked for, and nothing after the last taker."""

from __future__ import annotations

import itertools
import threading

import pytest

from optimist.core.runtime.read_ahead import read_ahead


def test_results_come_in_the_order_of_the_items():
    others_are_done = threading.Event()

    def first_comes_last(number):
        if number == 0:
            others_are_done.wait(10)
        elif number == 7:
            others_are_done.set()
        return number * number

    found = list(read_ahead(first_comes_last, range(20), threads=4, ahead=8))
    assert found == [number * number for number in range(20)]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_one_item_starts_no_thread(count):
    threads = list(
        read_ahead(lambda _: threading.current_thread(), range(count), threads=2, ahead=4)
    )
    assert len(threads) == count
    assert (threading.current_thread() in threads) == (count == 1)


def test_no_more_is_read_than_the_taker_lets_wait():
    started = []
    results = read_ahead(started.append, itertools.count(), threads=4, ahead=5)
    for _ in range(3):
        next(results)
    assert max(started) < 3 + 5
    results.close()


def test_an_error_comes_in_its_place():
    def odd_only(number):
        if number == 2:
            raise ValueError(number)
        return number

    results = read_ahead(odd_only, range(9), threads=3, ahead=3)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="2"):
        next(results)


def test_who_stops_early_leaves_no_thread_behind():
    results = read_ahead(lambda number: number, range(1000), threads=2, ahead=4)
    next(results)
    results.close()
    for thread in threading.enumerate():
        if thread.name.startswith("optimist-read"):
            thread.join(10)
            assert not thread.is_alive()


def test_who_drops_the_results_waits_for_nobody():
    """The garbage collector does so in threads that others wait for."""
    is_dropped, ended = threading.Event(), threading.Event()

    def work(number):
        if number:
            is_dropped.wait(10)
            ended.set()
        return number

    results = read_ahead(work, range(9), threads=2, ahead=4)
    next(results)
    del results
    assert not ended.is_set()
    is_dropped.set()


def test_an_error_waits_for_what_has_begun():
    """Commands remove what they have written, and nothing may come after that."""
    begun, written, before = threading.Event(), [], set(threading.enumerate())

    def work(number):
        if number == 0:
            begun.wait(10)
            raise ValueError(number)
        begun.set()
        written.append(number)
        return number

    with pytest.raises(ValueError, match="0"):
        list(read_ahead(work, range(9), threads=2, ahead=4))
    others = set(threading.enumerate()) - before
    assert not any(thread.name.startswith("optimist-read") for thread in others)
    assert 0 < len(written) < 9
