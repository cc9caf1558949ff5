"""Creation of a file with a known outcome, or an error that says the outcome is unknown.

A store answers `CREATED`, `EXISTS` or `UNKNOWN`. After an unclear answer the engine reads the file
back:

1. The file is ours: it is created.
2. The file is another's: the race is lost, as with `EXISTS`.
3. The file is absent: the engine puts the same bytes again.
4. The file can't be read: the engine raises the caller's error for an unknown outcome. The caller
   must not try anything else before the outcome is settled.

An `EXISTS` that follows an unknown outcome may be our own file, so the engine reads that back too.
The timeline of the race that this prevents: put (the file is created, the answer lost) -> put again
(`EXISTS`) -> a naive engine takes its own file for another's.

This module creates commits (`transaction.outcome`) and data files (`data.new_file`).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from optimist.core.errors import (
    LogFileNotFoundError,
    OptimistError,
    StorageError,
    TableError,
)
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.runtime.budget import is_budget_spent, within_budget
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import RetryPolicy, pause_s
from optimist.core.secrets import without_secrets

__all__ = ["FileToCreate", "create_file"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileToCreate(ABC):
    """A file to create: its path, its content, and how to recognise it as ours.

    Attributes:
        path: The path of the new file.
    """

    path: str

    @property
    @abstractmethod
    def doubts_exists(self) -> bool:
        """Whether `EXISTS` is read back even if it is the first answer.

        A proxy may send one request twice, so that the second meets our own file. A caller that
        looks later whose file it was need not look now.
        """

    @abstractmethod
    def put(self, store: LogStore) -> PutOutcome:
        """Create the file in one atomic step of the store."""

    @abstractmethod
    def is_there(self, store: LogStore) -> bool:
        """Read back the file at the path, and return whether it is ours.

        Raises:
            LogFileNotFoundError: The file does not exist.
        """

    @abstractmethod
    def unknown(self, reason: str) -> OptimistError:
        """Return the error for an outcome that could not be settled."""


def create_file(
    store: LogStore,
    file: FileToCreate,
    policy: RetryPolicy,
    clock: Clock,
    *,
    ensure_may_write: Callable[[], None] = lambda: None,
) -> PutOutcome:
    """Create the file: repeat the put and read it back until the outcome is known.

    Args:
        store: The store that creates the file.
        file: The file.
        policy: The limits for attempts without a clear answer.
        clock: The clock for the pauses.
        ensure_may_write: A function that is called right before each put. It raises if nothing may
            be written any more.

    Returns:
        `CREATED` or `EXISTS`, never `UNKNOWN`.

    Raises:
        OptimistError: The error of `file.unknown`: the store gave no clear answer, and the file
            could not be read back.
        StorageError: The store refused, so nothing was written.
    """
    with within_budget(clock):
        return _create(store, file, policy, clock, ensure_may_write)


def _create(
    store: LogStore,
    file: FileToCreate,
    policy: RetryPolicy,
    clock: Clock,
    ensure_may_write: Callable[[], None],
) -> PutOutcome:
    was_unknown = False
    for retry in _retries(policy, clock):
        try:
            ensure_may_write()
            outcome = _try_put(store, file, may_retry=retry < policy.max_non_conflict_attempts)
        except OptimistError as error:
            if was_unknown:  # an earlier put may still arrive
                raise file.unknown(
                    "the store did not answer the request to create the file, and then failed: "
                    f"{error}"
                ) from error
            raise
        if outcome is None:
            continue
        if outcome is PutOutcome.CREATED:
            return outcome
        if outcome is PutOutcome.EXISTS and not (file.doubts_exists or was_unknown):
            return outcome
        if outcome is PutOutcome.UNKNOWN:
            _LOG.warning(
                "The store gave no clear answer while creating %s. The file is read back.",
                without_secrets(file.path),
            )
        was_unknown = True
        settled = _settle(store, file, policy, clock)
        if settled is not None:
            return settled
    raise file.unknown("the store answered no attempt to create the file")


def _try_put(store: LogStore, file: FileToCreate, *, may_retry: bool) -> PutOutcome | None:
    """Put once. Return None if certainly nothing was written and the put may be repeated."""
    try:
        return file.put(store)
    except StorageError as error:
        if error.retryable and may_retry and not is_budget_spent():
            _LOG.warning(
                "Creating %s failed and is tried again: %s", without_secrets(file.path), error
            )
            return None
        raise
    except OptimistError:
        raise
    except Exception:  # noqa: BLE001 - a store may raise anything, and none of it is an answer to a put
        _LOG.warning(
            "The store failed while creating %s.", without_secrets(file.path), exc_info=True
        )
        return PutOutcome.UNKNOWN


def _settle(
    store: LogStore, file: FileToCreate, policy: RetryPolicy, clock: Clock
) -> PutOutcome | None:
    """Read the file back: `CREATED` if it is ours, `EXISTS` if another's, None if absent."""
    problem: Exception | None = None
    for _ in _retries(policy, clock):
        try:
            return PutOutcome.CREATED if file.is_there(store) else PutOutcome.EXISTS
        except LogFileNotFoundError:
            return None
        except TableError as error:
            problem = error
        except Exception as error:  # noqa: BLE001 - a store may raise anything, and none of it is an answer
            problem = error
    raise file.unknown("the file can't be read back") from problem


def _retries(policy: RetryPolicy, clock: Clock) -> Iterator[int]:
    """Yield the number of each try, from 0, with pauses between, until the budget is spent."""
    yield 0
    for retry in range(1, policy.max_non_conflict_attempts + 1):
        if is_budget_spent():
            return
        clock.sleep(pause_s(retry, policy, clock))
        yield retry
