"""The creation of an object by a conditional request, repeated only while this is safe.

| the answer | nothing was in doubt | after a `SLOW_DOWN` |
|---|---|---|
| a success | `CREATED` | `CREATED` |
| `EXISTS` | `EXISTS` | `UNKNOWN`: it may be our own file |
| `NOTHING_WRITTEN` | its error | `UNKNOWN` |
| `UNKNOWN` | `UNKNOWN` | `UNKNOWN` |
| `CONFLICT` | sent again; at last its error | sent again; at last `UNKNOWN` |
| `SLOW_DOWN` | sent again; at last `UNKNOWN` | sent again; at last `UNKNOWN` |
| no time left to send it again | the error that says so | `UNKNOWN` |

A store that asks to slow down may have forwarded the request before it refused it. After that, an
existing file may be ours, and an error of a later request proves nothing about the first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from optimist.core.errors import OptimistError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import Patience, call_once
from optimist.logstores.shared.answer_table import PutMeaning

__all__ = ["create_once"]

_LOG = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


def create_once(
    send: Callable[[], _Answer],
    judge: Callable[[Exception], PutMeaning],
    error_of: Callable[[Exception], OptimistError],
    patience: Patience,
    clock: Clock,
    *,
    size_bytes: int,
) -> tuple[PutOutcome, _Answer | None]:
    """Send a conditional request, and return the outcome and the answer if it created the object.

    Args:
        send: Makes the request once, with the condition that the object must not exist.
        judge: Returns the meaning of an error of `send` for the object.
        error_of: Translates an error after which nothing was created into our error.
        patience: How often to repeat a refused request.
        clock: Makes the pauses.
        size_bytes: The number of bytes that are sent.

    Raises:
        OptimistError: Nothing was created, for certain.
    """
    is_doubtful = False
    failure: Exception | None = None
    for _ in patience.tries(clock):
        try:
            return PutOutcome.CREATED, call_once(send, clock, size_bytes=size_bytes)
        except OptimistError as error:  # out of time, or no credentials: nothing was sent
            failure = error
            break
        except Exception as error:  # noqa: BLE001 - an SDK raises anything on an answer cut off
            failure, meaning = error, judge(error)
        if meaning is PutMeaning.EXISTS and not is_doubtful:
            return PutOutcome.EXISTS, None
        if meaning is PutMeaning.NOTHING_WRITTEN:
            break
        if meaning in (PutMeaning.EXISTS, PutMeaning.UNKNOWN):
            is_doubtful = True
            break
        is_doubtful = is_doubtful or meaning is PutMeaning.SLOW_DOWN
    if is_doubtful or failure is None:
        _LOG.warning("It is not known whether the object was created: %s", type(failure).__name__)
        return PutOutcome.UNKNOWN, None
    if isinstance(failure, OptimistError):
        raise failure
    raise error_of(failure)
