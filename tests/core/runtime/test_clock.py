import random  # noqa: TID251 - the sequence that must stay untouched
from multiprocessing import get_context

from optimist.core.runtime.clock import SystemClock


def test_a_retry_does_not_change_what_a_seeded_program_draws():
    random.seed(7)
    before = random.getstate()
    SystemClock().uniform(0, 1)
    assert random.getstate() == before


def test_forked_processes_do_not_wait_equally_long():
    clock, context = SystemClock(), get_context("fork")
    drawn = context.SimpleQueue()
    children = [
        context.Process(target=lambda: drawn.put(clock.uniform(0, 1)), daemon=True)
        for _ in range(3)
    ]
    for child in children:
        child.start()
    assert len({drawn.get() for _ in children}) == 3
    for child in children:
        child.join(30)


def test_chance_stays_between_its_bounds():
    drawn = [SystemClock().uniform(2, 4) for _ in range(200)]
    assert all(2 <= each <= 4 for each in drawn)
    assert len(set(drawn)) > 190
