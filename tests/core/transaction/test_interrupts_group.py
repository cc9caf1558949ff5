"""An interrupt of the thread that commits for others, between any two lines: nobody is lied to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from grouped_appends import APPEND, GROUPED
from interrupts import Place, interrupted, places
from optimist.core.errors import CommitOutcomeUnknownError, OptimistError, StorageError
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.log.segment import commit_version, list_commits_after
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import AddFile, CommitInfo
from optimist.core.testing import Fault, FaultyLogStore, Pause, When
from optimist.core.transaction.groups.members import Member
from optimist.core.transaction.result import CommitResult
from optimist.logstores import MemoryLogStore
from prepared_commits import prepared

pytestmark = pytest.mark.usefixtures("quiet_log")
STEPS = ("transaction/groups/", "transaction/commit_loop.py", "transaction/after_commit.py")
ALL = ("transaction/", "plugins/creation.py", "table/own_commits.py")
LOCKED = {"spark.databricks.delta.commitLock.enabled": "true"}
_PATIENCE_S = 30


@dataclass
class Scene:
    """A table, two transactions that wait, and a third whose thread will commit all of them."""

    make_table: Callable
    options: dict[str, str]
    prepare: Callable[[Scene], object]
    told: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = FaultyLogStore(MemoryLogStore({}))
        self.table = self.make_table(store=self.store, options={**GROUPED, **self.options})
        self.table.create(self.table.add("f0"))
        self.log = self.table.log
        self.waiting = {name: self._member(name) for name in ("b", "c")}
        self.log.commit_queue._waiting.extend(self.waiting.values())
        self.txn = self.log.start_transaction()
        self.prepare(self)

    def _member(self, name: str) -> Member:
        txn = self.log.start_transaction()
        return Member(prepared(txn, [self.table.add(name)], APPEND), txn.snapshot)

    def commit(self) -> None:
        """What is interrupted."""
        try:
            self.told["a"] = self.txn.commit([self.table.add("a")], APPEND)
        except OptimistError as error:
            self.told["a"] = error

    def come_again(self) -> None:
        """Others commit afterwards: a thread that was not there yet, and what was left to it."""
        self.store.clear()
        for name in ("d", "e"):
            thread = threading.Thread(target=self._append, args=(name,), daemon=True)
            thread.start()
            thread.join(_PATIENCE_S)
            assert not thread.is_alive(), "a thread is stranded"
        self.told |= {name: member.outcome for name, member in self.waiting.items()}

    def _append(self, name: str) -> None:
        try:
            self.told[name] = self.log.start_transaction().commit([self.table.add(name)], APPEND)
        except OptimistError as error:
            self.told[name] = error

    def ensure_true(self) -> None:
        found = self._found()
        for name in "abcde":
            _ensure_true(name, self.told.get(name), found.get(name, []), is_struck=name == "a")
        paths = sorted(self.log.snapshot().files.column("path").to_pylist())
        assert paths == sorted(found) == sorted(set(found)), "the handle and the log differ"

    def _found(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for status in list_commits_after(self.store, self.log.log_path, -1):
            for action in read_commit(self.store, status.path):
                if isinstance(action, AddFile):
                    found.setdefault(action.path, []).append(commit_version(status))
        return found


def _ensure_true(name: str, told: object, found: list[int], *, is_struck: bool) -> None:
    assert len(found) < 2, f"{name} is doubled: {found}"
    if isinstance(told, CommitResult):
        assert found == [told.version], f"{name} is told {told.version} and is in {found}"
    elif told is None:
        assert is_struck, f"{name} was told nothing"
    elif not isinstance(told, CommitOutcomeUnknownError):
        assert not found, f"{name} is told {told} and is in {found}"


def a_winner_comes_first(scene: Scene) -> None:
    actions = (CommitInfo(txn_id="foreign", is_blind_append=True), scene.table.add("x"))
    scene.store.plan(
        Pause("put_if_absent", When.BEFORE, lambda _: scene.table.poke(1, actions), name=_file(1))
    )


def the_answer_is_lost(scene: Scene) -> None:
    scene.store.plan(Fault("put_if_absent", When.AFTER, name=_file(1)))


def the_store_refuses(scene: Scene) -> None:
    error = StorageError("no", kind="OPTIMIST_ACCESS_DENIED", retryable=False)
    scene.store.plan(Fault("put_if_absent", When.BEFORE, error, name=_file(1)))


def our_own_file_is_taken_for_anothers(scene: Scene) -> None:
    """An SDK has tried again by itself: its first try landed, and its second found that there."""
    put = scene.store.put_if_absent

    def put_twice(path: str, data: bytes) -> PutOutcome:
        if path.endswith(_file(1)):
            put(path, data)
        return put(path, data)

    scene.store.put_if_absent = put_twice


def _file(version: int) -> str:
    return commit_path("", version)[1:]


WITHOUT_INFO = {"spark.databricks.delta.commitInfo.enabled": "false"}
SCENES = {
    "at once": ({}, lambda _: None),
    "with the commit lock": (LOCKED, lambda _: None),
    "without commitInfo": (WITHOUT_INFO, lambda _: None),
    "after a winner": ({}, a_winner_comes_first),
    "after a lost answer": ({}, the_answer_is_lost),
    "after a wrong answer": ({}, our_own_file_is_taken_for_anothers),
    "after a refusal": ({}, the_store_refuses),
}


@pytest.mark.parametrize(
    ("folders", "one_in"), [(STEPS, 5), pytest.param(ALL, 1, marks=pytest.mark.again)]
)
@pytest.mark.parametrize("name", SCENES)
def test_an_interrupt_of_the_leader_leaves_nobody_with_a_lie(make_table, name, folders, one_in):
    options, prepare = SCENES[name]
    struck = 0
    for place in list(places(Scene(make_table, options, prepare).commit, folders))[::one_in]:
        struck += _play(Scene(make_table, options, prepare), folders, place)
    assert struck > 20


def _play(scene: Scene, folders: tuple[str, ...], place: Place) -> bool:
    is_struck = interrupted(scene.commit, folders, place)
    try:
        scene.come_again()
        scene.ensure_true()
    except AssertionError as error:
        raise AssertionError(f"interrupted at {place}: {error}") from error
    return is_struck
