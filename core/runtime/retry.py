"""Retries of calls within a budget: how often, with which pauses, and which errors are final.

Each pause may be twice as long as the one before, up to a bound, and is shortened at random so that
callers that collided spread out. A writer that lost a race draws from 0 up ("full jitter",
`pause_s`), because the next version is free at once. A caller that the server asked for less
traffic draws from the upper half (`Patience`), so that a busy server gets a real pause.

The SDKs' own retries are off. A request that may be sent twice goes through `call_patiently`. A
request that may not, because it creates something, goes through `call_once`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from optimist.core.errors import OptimistError, StorageError
from optimist.core.errors.kinds import FILE_CHANGED, STORE_BUDGET_SPENT
from optimist.core.runtime.budget import current_budget, limited_to, within_budget
from optimist.core.runtime.clock import Clock

__all__ = ["Patience", "RetryPolicy", "call_once", "call_patiently", "pause_s"]

_Result = TypeVar("_Result")

_LARGEST_EXPONENT = 30
_FINAL = frozenset({FILE_CHANGED, STORE_BUDGET_SPENT})
"""Kinds of retryable errors whose request is not repeated.

The same request can't succeed, but the whole operation may succeed when it is run again.
"""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The time and the tries that a commit has against other writers.

    After the first lost race it tries again at once. After the n-th it pauses for a time drawn
    evenly from 0 to `min(cap_s, base_s * 2**(n - 2))` ("full jitter"). It gives up after
    `max_attempts` retries, or once it has tried for `budget_s`. A put that fails or goes unanswered
    is repeated at most `max_non_conflict_attempts` times.
    """

    max_attempts: int
    max_non_conflict_attempts: int
    base_s: float
    cap_s: float
    budget_s: float


def pause_s(retry: int, policy: RetryPolicy, clock: Clock) -> float:
    """Return a random pause in seconds before retry `retry` (1, 2, ...), up to a growing bound."""
    return clock.uniform(0.0, _bound_s(retry, policy.base_s, policy.cap_s))


@dataclass(frozen=True, slots=True)
class Patience:
    """The number of tries and their pauses.

    The operation's budget limits the time.

    The pause after the n-th try (1, 2, ...) is drawn evenly from the upper half of
    `min(cap_s, base_s * 2**(n - 1))`.
    """

    max_tries: int = 5
    base_s: float = 0.1
    cap_s: float = 5.0

    def tries(self, clock: Clock) -> Iterator[int]:
        """Yield tries from 0 while budget is left, with a pause before each but the first."""
        for number in range(self.max_tries):
            budget = current_budget()
            if number:
                if budget is not None and budget.is_spent:
                    return
                self.pause(number, clock)
            yield number

    def pause(self, number: int, clock: Clock) -> None:
        """Sleep before try `number`, counted from 0, but no longer than the budget lasts."""
        bound_s = _bound_s(number, self.base_s, self.cap_s)
        pause_s = clock.uniform(bound_s / 2, bound_s)
        budget = current_budget()
        clock.sleep(pause_s if budget is None else min(pause_s, budget.left_s))


def call_patiently(
    call: Callable[[], _Result],
    patience: Patience,
    clock: Clock,
    *,
    error_of: Callable[[Exception], OptimistError] | None = None,
) -> _Result:
    """Return the result of a repeatable call, with retries while its error is retryable.

    It uses the budget of the current operation, or a new one. The call asks `try_limit_s` how long
    it may wait for the server.

    Args:
        call: Makes one request.
        patience: The number of tries and their pauses.
        clock: The clock for the pauses.
        error_of: Translates an error of the SDK into one of ours. Without it, `call` itself must
            raise ours.

    Raises:
        StorageError: The last error, or the first that is not retryable; or the budget is spent.
    """
    request = call if error_of is None else _translate_errors(call, error_of)
    with within_budget(clock) as budget:
        number = 0
        while True:
            since_s = budget.now_s()  # before the pause: if this try fails too, the pause is lost
            if number:
                patience.pause(number, clock)
            budget.ensure_left()
            try:
                with limited_to(budget.limit_s(number)):
                    result = request()
            except StorageError as error:
                if not error.retryable or error.kind in _FINAL:
                    raise
                budget.lose(since_s, error)
                number += 1
                if number >= patience.max_tries:
                    raise
            else:
                budget.gain()
                return result


def call_once(call: Callable[[], _Result], clock: Clock, *, size_bytes: int = 0) -> _Result:
    """Return the result of a call that must not be repeated, because it creates something.

    Args:
        call: Makes one request, and asks `try_limit_s` how long it may wait.
        clock: The clock that measures the budget.
        size_bytes: The number of bytes to send.

    Raises:
        StorageError: The budget is spent, and nothing was sent.
        Exception: Every error of the call; its time counts as lost.
    """
    with within_budget(clock) as budget:
        budget.ensure_left()
        since_s = budget.now_s()
        try:
            with limited_to(budget.limit_to_create_s(size_bytes)):
                result = call()
        except Exception:
            budget.lose(since_s)
            raise
        budget.gain()
        return result


def _bound_s(retry: int, base_s: float, cap_s: float) -> float:
    return min(cap_s, base_s * 2.0 ** min(retry - 1, _LARGEST_EXPONENT))


def _translate_errors(
    call: Callable[[], _Result], error_of: Callable[[Exception], OptimistError]
) -> Callable[[], _Result]:
    def request() -> _Result:
        try:
            return call()
        except OptimistError:
            raise
        except Exception as error:
            raise error_of(error) from error

    return request
