"""Threads whose appends wait for one leader, so that they go out together for certain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from optimist.core import DeltaLog
from optimist.core.protocol.actions import AddFile, CommitInfo, SetTransaction
from optimist.core.testing import FaultyLogStore, Pause, When
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.logstores import MemoryLogStore

GROUPED = {"spark.optimist.commit.group.enabled": "true"}
APPEND = Operation.write("Append").with_metrics({"numFiles": 1, "numOutputRows": 10})
_PATIENCE_S = 60

Outcome = CommitResult | BaseException


class GroupTable:
    """A table whose store can be told to fail, and a first append that holds up all others."""

    def __init__(self, make_table, options=None, **differences) -> None:
        self.store = FaultyLogStore(MemoryLogStore({}))
        self.table = make_table(
            store=self.store, options={**GROUPED, **(options or {})}, **differences
        )
        self.log: DeltaLog = self.table.log
        first = CommitInfo(in_commit_timestamp=1)
        self.table.poke(0, (first, self.table.protocol, self.table.metadata))
        self.queue = self.log.commit_queue

    def begin(self, name: str, *, txn: tuple[str, int] | None = None, looks_up: bool = True):
        """A transaction that will add a file, and the actions that it will commit."""
        transaction = self.log.start_transaction()
        actions: list[object] = [self.table.add(name)]
        if txn is not None:
            if looks_up:
                transaction.txn_version(txn[0])
            actions.append(SetTransaction(*txn))
        return transaction, actions

    def together(
        self,
        commits: Sequence[Callable[[], CommitResult]],
        *,
        before_release: Callable[[], object] = lambda: None,
    ) -> list[Outcome]:
        """Run these, each in a thread of its own, while the append of another is under way.

        They are in the queue in their order. Returns how each ended.
        """
        held, release = threading.Event(), threading.Event()

        def hold(_: str) -> None:
            held.set()
            assert release.wait(_PATIENCE_S)

        self.store.plan(Pause("put_if_absent", When.BEFORE, hold))
        first, actions = self.begin("plug")
        outcomes: list[Outcome] = [AssertionError("did not end")] * (len(commits) + 1)
        threads = [self._start(outcomes, 0, lambda: first.commit(actions, APPEND))]
        assert held.wait(_PATIENCE_S)
        for number, commit in enumerate(commits, 1):
            threads.append(self._start(outcomes, number, commit))
            wait_until(lambda n=number: self.queue.num_waiting == n or not threads[n].is_alive())
        before_release()
        release.set()
        for thread in threads:
            thread.join(_PATIENCE_S)
            assert not thread.is_alive(), "a thread is stranded"
        assert isinstance(outcomes[0], CommitResult), outcomes[0]
        return outcomes[1:]

    @staticmethod
    def _start(outcomes, place, commit) -> threading.Thread:
        def run() -> None:
            try:
                outcomes[place] = commit()
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                outcomes[place] = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


def committing(
    begun: tuple[OptimisticTransaction, Sequence[AddFile]], operation: Operation = APPEND
) -> Callable[[], CommitResult]:
    """The commit of a transaction that `GroupTable.begin` has begun."""
    transaction, actions = begun
    return lambda: transaction.commit(actions, operation)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that another thread is about to do."""
    pulse = threading.Event()
    for _ in range(_PATIENCE_S * 1000):
        if holds():
            return
        pulse.wait(0.001)
    raise AssertionError("it did not happen")
