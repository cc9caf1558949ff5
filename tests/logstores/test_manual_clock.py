import threading

from optimist.core.runtime.clock import Clock
from optimist.core.testing import ManualClock


def test_time_stands_still_until_told():
    clock: Clock = ManualClock(now_ms=1_000)
    assert [clock.now_ms(), clock.now_ms(), clock.monotonic_s()] == [1_000, 1_000, 0]


def test_sleep_returns_at_once_moves_both_clocks_and_is_recorded():
    clock = ManualClock(now_ms=1_000)
    clock.sleep(2.5)
    clock.sleep(0.25)
    assert (clock.now_ms(), clock.monotonic_s()) == (3_750, 2.75)
    assert clock.sleeps == (2.5, 0.25)


def test_advance_is_no_sleep():
    clock = ManualClock(now_ms=1_000)
    clock.advance(3)
    assert (clock.now_ms(), clock.monotonic_s(), clock.sleeps) == (4_000, 3, ())


def test_wall_clock_may_be_set_back_while_the_other_goes_on():
    clock = ManualClock(now_ms=10_000)
    clock.advance(1)
    clock.set_now_ms(500)
    assert (clock.now_ms(), clock.monotonic_s()) == (500, 1)


def test_parts_of_milliseconds_add_up():
    clock = ManualClock(now_ms=0)
    for _ in range(8):
        clock.advance(0.000125)
    assert clock.now_ms() == 1


def test_chance_repeats_for_a_seed_and_differs_between_seeds():
    one, same, other = ManualClock(seed=1), ManualClock(seed=1), ManualClock(seed=2)
    drawn = [one.uniform(2, 4) for _ in range(200)]
    assert drawn == [same.uniform(2, 4) for _ in range(200)]
    assert drawn != [other.uniform(2, 4) for _ in range(200)]
    assert all(2 <= each < 4 for each in drawn)
    assert len(set(drawn)) == 200
    assert 2.8 < sum(drawn) / 200 < 3.2


def test_uuids_are_never_given_twice_even_to_threads():
    clock = ManualClock()
    given = []
    threads = [
        threading.Thread(target=lambda: given.extend(clock.new_uuid() for _ in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(given)) == 400
    assert ManualClock().new_uuid() == "00000000-0000-4000-8000-000000000001"
