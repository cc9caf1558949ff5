import threading

import pytest

from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import Fault, FaultyLogStore, LogStoreSuite, Pause, When, injected_error
from optimist.logstores import MemoryLogStore
from optimist.logstores.memory import _Entry

ZERO, ONE = "memory://t/0.json", "memory://t/1.json"


class Died(BaseException):
    """Plays the death of the process."""


@pytest.fixture
def inner():
    return MemoryLogStore()


def wrapped_memory():
    return FaultyLogStore(MemoryLogStore())


class TestFaultyLogStoreWithoutPlan(LogStoreSuite):
    store_factory = staticmethod(wrapped_memory)
    supports_processes = False
    has_directories = False

    @pytest.fixture
    def directory(self):
        return "memory://t/_delta_log"

    def peek(self, path):
        directory, _, name = path.removeprefix("memory:/").rpartition("/")
        entry = MemoryLogStore()._directories.get(directory, {}).get(name)
        return None if entry is None else entry.data

    def poke(self, path, data):
        directory, _, name = path.removeprefix("memory:/").rpartition("/")
        MemoryLogStore()._directories.setdefault(directory, {})[name] = _Entry(
            data, 1_700_000_000_000
        )


def content(store, path=ZERO):
    try:
        return store.read_bytes(path)
    except FileNotFoundError:
        return None


@pytest.mark.parametrize(
    ("when", "left"), [(When.BEFORE, None), (When.DURING, b"ab"), (When.AFTER, b"abcd")]
)
def test_lost_answer_of_a_put_is_unknown_and_leaves_what_was_done_by_then(inner, when, left):
    store = FaultyLogStore(inner, Fault("put_if_absent", when))
    assert store.put_if_absent(ZERO, b"abcd") is PutOutcome.UNKNOWN
    assert content(inner) == left
    assert store.pending == ()
    assert store.put_if_absent(ONE, b"abcd") is PutOutcome.CREATED


@pytest.mark.parametrize(
    ("when", "left"), [(When.BEFORE, None), (When.DURING, b"ab"), (When.AFTER, b"abcd")]
)
@pytest.mark.parametrize("operation", ["put_if_absent", "put_overwrite"])
def test_error_of_a_write_is_raised_and_leaves_what_was_done_by_then(inner, operation, when, left):
    store = FaultyLogStore(inner, Fault(operation, when, error=Died()))
    with pytest.raises(Died):
        getattr(store, operation)(ZERO, b"abcd")
    assert content(inner) == left


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
@pytest.mark.parametrize(
    "call",
    [
        ("put_overwrite", ZERO, b"x"),
        ("read_bytes", ZERO),
        ("open_read", ZERO),
        ("delete", ZERO),
        ("ensure_directory", "memory://t"),
    ],
)
def test_fault_without_an_error_raises_one_that_can_be_told(inner, call, when):
    inner.put_overwrite(ZERO, b"old")
    store = FaultyLogStore(inner, Fault(call[0], when))
    with pytest.raises(StorageError) as caught:
        getattr(store, call[0])(*call[1:])
    assert caught.value.kind == "OPTIMIST_INJECTED_FAULT"
    assert store.pending == ()


@pytest.mark.parametrize(
    ("when", "left"), [(When.BEFORE, b"old"), (When.AFTER, None)], ids=["before", "after"]
)
def test_delete_that_fails_has_or_has_not_been_done(inner, when, left):
    inner.put_overwrite(ZERO, b"old")
    store = FaultyLogStore(inner, Fault("delete", when, error=injected_error(ZERO)))
    with pytest.raises(StorageError):
        store.delete(ZERO)
    assert content(inner) == left


@pytest.mark.parametrize("operation", ["read_bytes", "open_read"])
def test_read_can_give_the_first_half_for_the_whole(inner, operation):
    inner.put_overwrite(ZERO, b"abcd")
    store = FaultyLogStore(inner, Fault(operation, When.DURING))
    found = [getattr(store, operation)(ZERO) for _ in range(2)]
    texts = [each if isinstance(each, bytes) else each.read() for each in found]
    assert texts == [b"ab", b"abcd"]


@pytest.mark.parametrize(("when", "given"), [(When.DURING, 2), (When.AFTER, 4)])
def test_listing_breaks_off_where_planned(inner, when, given):
    for version in range(4):
        inner.put_if_absent(f"memory://t/{version}", b"x")
    store = FaultyLogStore(inner, Fault("list_from", when))
    listing = store.list_from("memory://t/0")
    assert [next(listing).name for _ in range(given)] == ["0", "1", "2", "3"][:given]
    with pytest.raises(StorageError):
        next(listing)
    assert [status.name for status in store.list_from("memory://t/0")] == ["0", "1", "2", "3"]


def test_fault_waits_for_its_name_and_its_call_and_strikes_as_often_as_planned(inner):
    fault = Fault("put_if_absent", When.BEFORE, name="0.json", on_call=2, times=2)
    store = FaultyLogStore(inner, fault)
    outcomes = []
    for _ in range(5):
        store.put_if_absent(ONE, b"x")
        outcomes.append(store.put_if_absent(ZERO, b"x"))
        store.delete(ZERO)
    assert [outcome is PutOutcome.UNKNOWN for outcome in outcomes] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_plan_that_has_not_struck_as_often_as_planned_is_pending(inner):
    fault = Fault("delete", When.AFTER, on_call=2)
    store = FaultyLogStore(inner, fault)
    store.delete(ZERO)
    assert store.pending == (fault,)
    with pytest.raises(StorageError):
        store.delete(ZERO)
    assert store.pending == ()


def test_plan_counts_from_when_it_was_made(inner):
    store = FaultyLogStore(inner)
    store.put_if_absent(ZERO, b"x")
    store.plan(Fault("put_if_absent", When.BEFORE))
    assert store.put_if_absent(ONE, b"x") is PutOutcome.UNKNOWN


def test_pause_lets_another_writer_win(inner):
    store = FaultyLogStore(
        inner,
        Pause("put_if_absent", When.BEFORE, lambda path: inner.put_if_absent(path, b"winner")),
    )
    assert store.put_if_absent(ZERO, b"loser") is PutOutcome.EXISTS
    assert inner.read_bytes(ZERO) == b"winner"


def test_pause_after_a_listing_makes_it_old(inner):
    inner.put_if_absent(ZERO, b"x")
    store = FaultyLogStore(
        inner, Pause("list_from", When.AFTER, lambda _: inner.put_if_absent(ONE, b"x"))
    )
    assert len(list(store.list_from(ZERO))) == 1
    assert len(list(store.list_from(ZERO))) == 2


def test_pause_holds_its_thread_and_no_other(inner):
    here, on = threading.Event(), threading.Event()

    def hold(path):
        here.set()
        assert on.wait(30)

    store = FaultyLogStore(inner, Pause("put_if_absent", When.AFTER, hold, name="0.json"))
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(store.put_if_absent(ZERO, b"held")))
    thread.start()
    assert here.wait(30)
    assert store.put_if_absent(ONE, b"free") is PutOutcome.CREATED
    assert store.put_if_absent(ZERO, b"late") is PutOutcome.EXISTS
    assert outcomes == []
    on.set()
    thread.join(30)
    assert outcomes == [PutOutcome.CREATED]


def test_calls_are_counted_by_what_they_cost(inner):
    store = FaultyLogStore(inner)
    store.write(ZERO, ["a"])
    store.read(ZERO)
    list(store.list_from(ZERO))
    list(store.list_from(ONE))
    assert store.counts == {"put_if_absent": 1, "read_bytes": 1, "list_from": 2}
    assert store.calls[-1] == ("list_from", ONE)
    store.clear()
    assert store.counts == {}


@pytest.mark.parametrize(
    "build",
    [
        lambda: Fault("put", When.BEFORE),
        lambda: Fault("delete", When.DURING),
        lambda: Pause("put_if_absent", When.DURING, print),
    ],
)
def test_plan_that_could_never_strike_is_refused(build):
    with pytest.raises(ValueError, match=r"put_if_absent|in the middle"):
        build()
