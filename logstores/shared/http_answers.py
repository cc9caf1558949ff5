"""What an answer of an object store means: rows of data, one table per SDK, searched by code.

A store asks two things of an answer that is not a success. After a conditional put: is the file
there, is it certain that nothing was written, or is neither known? After anything else: which error
is it, and can trying again help? A row answers both, so that the tables of the docs are the code's
own.
"""

from __future__ import annotations

import enum
import ssl
from dataclasses import dataclass

import urllib3.exceptions

from optimist.core.errors import LogFileNotFoundError, StorageError

__all__ = [
    "NOT_SENT",
    "NOT_TRUSTED",
    "NO_ANSWER",
    "NO_TOKEN",
    "AnswerRow",
    "PutMeaning",
    "ResponseCode",
    "error_of_row",
    "find_row",
    "transport_code",
]

NOT_SENT = "not-sent"
"""No connection came about, so the store never saw the request."""
NOT_TRUSTED = "not-trusted"
"""The certificate of the endpoint was refused; the store never saw the request."""
NO_ANSWER = "no-answer"
"""The request may have arrived; its answer did not."""
NO_TOKEN = "no-token"
"""The credentials gave no token, so no request was made."""


class PutMeaning(enum.Enum):
    """What an answer says about a conditional put."""

    EXISTS = "the file was there already"
    NOTHING_WRITTEN = "certainly nothing was written"
    CONFLICT = "turned away because of another request; ask again"
    SLOW_DOWN = "not yet; wait, then ask again"
    UNKNOWN = "written or not, it can't be told"


@dataclass(frozen=True, slots=True)
class ResponseCode:
    """An answer reduced to what it is judged by.

    Attributes:
        status: The HTTP status; 0 where there was no answer.
        code: The store's own error code, or one of the constants of this module for status 0.
    """

    status: int
    code: str


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row of a store's table; the first one that matches holds.

    Attributes:
        statuses: The HTTP statuses it holds for; 0 stands for no answer.
        code: The store's error code, or `""` for every code.
        put: What it says about a conditional put.
        kind: The kind of the error that is raised where one is raised.
        cause: The same in words.
        retryable: Whether the same call may succeed when made again.
    """

    statuses: range
    code: str
    put: PutMeaning
    kind: str
    cause: str
    retryable: bool = False

    def matches(self, answer: ResponseCode) -> bool:
        """Whether the row speaks of this answer."""
        return answer.status in self.statuses and self.code in ("", answer.code)


def find_row(table: tuple[AnswerRow, ...], answer: ResponseCode) -> AnswerRow:
    """The first row that matches an answer; every table ends in one that matches all."""
    return next(row for row in table if row.matches(answer))


def error_of_row(
    row: AnswerRow, answer: ResponseCode, *, doing: str, path: str, place: str
) -> StorageError:
    """The error for an answer.

    Args:
        row: What the answer means.
        answer: What the store said; it lands in the fields `status` and `code`.
        doing: What was tried, for the message: `read`, `list`, `write`.
        path: The path as the caller gave it.
        place: Account and container, or bucket: what the cause speaks of.
    """
    kind = LogFileNotFoundError if row.kind == "OPTIMIST_FILE_NOT_FOUND" else StorageError
    said = " ".join(text for text in (str(answer.status or ""), answer.code) if text)
    return kind(
        f"Cannot {doing} {path}: {row.cause.format(place=place)} ({said}).",
        kind=row.kind,
        path=path,
        status=answer.status,
        code=answer.code,
        retryable=row.retryable,
    )


def transport_code(error: BaseException) -> ResponseCode:
    """The code for a request that ended without an answer: can it have reached the store?

    Only what is known to happen before the first byte of a request counts as not sent; whatever
    else a transport raises, the request may have arrived.
    """
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ResponseCode(0, NOT_TRUSTED)
        if isinstance(
            cause,
            urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError,
        ):
            return ResponseCode(0, NOT_SENT)
    return ResponseCode(0, NO_ANSWER)


def _causes(error: BaseException) -> list[BaseException]:
    """The error and what it wraps, by the attributes that wrappers use on purpose.

    Not `__context__`: that may be an error of an earlier attempt.
    """
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop(0)
        if not isinstance(each, BaseException) or each in found:
            continue
        found.append(each)
        inner = (getattr(each, "inner_exception", None), getattr(each, "reason", None))
        waiting.extend((*inner, *each.args, each.__cause__))
    return found
