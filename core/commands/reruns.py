"""The rerun of commands after a conflict, if their caller or the options ask for it.

1. The command runs in a transaction on the newest version.
2. After a conflict, nothing was committed, and the files of the try have been removed.
3. It waits, as the commit loop does between attempts, and runs again from the start, until it
   lands. If the attempts or the time of the retry policy are used up, the last conflict is raised.

A source or a value that is not deterministic is computed again each time, but the time at which the
command began stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from optimist.core.errors import DeltaConcurrentModificationException
from optimist.core.runtime.retry import pause_s
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["run_until_it_lands"]

_Result = TypeVar("_Result")


def run_until_it_lands(
    begin: Callable[[], OptimisticTransaction],
    run: Callable[[OptimisticTransaction], _Result],
    *,
    retry: bool | None = None,
) -> _Result:
    """Run a command, and rerun it after conflicts if retry is on.

    Args:
        begin: Starts a transaction on the newest version.
        run: Runs the command in it, to its commit.
        retry: Whether to run again after a conflict; None to use the option `conflict.retry`.

    Raises:
        DeltaConcurrentModificationException: The conflict of the last try.
    """
    txn = begin()
    options, clock = txn.table.options, txn.table.clock
    if not (options.conflict_retry if retry is None else retry):
        return run(txn)
    policy, start_s = options.retry_policy, clock.monotonic_s()
    tries = 0
    while True:
        txn.num_reruns, tries = tries, tries + 1
        try:
            return run(txn)
        except DeltaConcurrentModificationException:
            is_late = clock.monotonic_s() - start_s > policy.budget_s
            # A conflict raised after the commit landed must not run the command twice.
            if txn.may_be_in_table or tries > policy.max_attempts or is_late:
                raise
            if tries > 1:
                clock.sleep(pause_s(tries - 1, policy, clock))
            again = begin()
            # A transaction that is bound to its source's version would meet the same conflict.
            if again.read_version <= txn.read_version:
                raise
            again.begun_ms = txn.begun_ms
            txn = again
