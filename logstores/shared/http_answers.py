"""Answers of services that are used over HTTP by their own SDK: Azure's and Google's.

`HTTP_ROWS` applies to both. Each store adds the rows of its own service.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass

import urllib3.exceptions

from optimist.core.errors import StorageError
from optimist.logstores.shared.answer_table import ANY_OTHER, AnswerRow, PutMeaning, error_of_row
from optimist.logstores.shared.whole_answers import AnotherHostError

__all__ = [
    "ANOTHER_HOST",
    "CREDENTIALS_REFUSED",
    "HTTP_ROWS",
    "NOT_SENT",
    "NOT_TRUSTED",
    "NO_ANSWER",
    "NO_TOKEN",
    "ResponseCode",
    "error_of_answer",
    "transport_code",
]

ANOTHER_HOST = "another-host"
"""An answer named another host for the next request, which was not sent."""
NOT_SENT = "not-sent"
"""The connection failed, so the store never saw the request."""
NOT_TRUSTED = "not-trusted"
"""The certificate of the endpoint was refused, so the store never saw the request."""
NO_ANSWER = "no-answer"
"""The request may have arrived, but its answer did not."""
NO_TOKEN = "no-token"
"""The credentials gave no token, so no request was made."""


@dataclass(frozen=True, slots=True)
class ResponseCode:
    """An answer, reduced to the parts by which it is judged.

    Attributes:
        status: The HTTP status; 0 without an answer.
        code: The store's own error code, or one of the constants of this module for status 0.
    """

    status: int
    code: str

    @property
    def names(self) -> Sequence[str]:
        """Its names in a table of answers, the most exact one first."""
        if not self.status:
            return (self.code,)
        return (f"{self.status} {self.code}", str(self.status), f"{self.status // 100}xx")


CREDENTIALS_REFUSED = AnswerRow(
    ("401", NO_TOKEN),
    PutMeaning.NOTHING_WRITTEN,
    "OPTIMIST_INVALID_CREDENTIALS",
    "the credentials for {service} were refused: they are wrong or have expired",
    "Renew them.",
)
HTTP_ROWS: tuple[AnswerRow, ...] = (
    CREDENTIALS_REFUSED,
    AnswerRow(
        ("404",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_FILE_NOT_FOUND",
        "it does not exist",
        "Check the path.",
    ),
    AnswerRow(
        ("413",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_FILE_TOO_LARGE",
        "it is larger than {service} accepts in one request",
        "Commit fewer files at a time.",
    ),
    # The file exists: the condition fails, or (Azure) somebody holds a lease on it.
    AnswerRow(
        ("412",),
        PutMeaning.EXISTS,
        "OPTIMIST_FILE_CHANGED",
        "the file was replaced while it was being read",
        "Run the operation again.",
    ),
    AnswerRow(
        ("409",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_CONFLICT",
        "{service} reports a conflict with the present state of the file",
        "Look for leases, holds and snapshots of the file, and run the operation again.",
    ),
    AnswerRow(
        ("4xx",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_REQUEST_REFUSED",
        "{service} refused the request",
        "Check the path and the options; look the code up in the documentation of the service.",
    ),
    # The request may have been carried out, or still be.
    AnswerRow(
        ("3xx",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_REQUEST_REFUSED",
        "{service} sends the request to another address, which is not followed",
        "Check the path and the endpoint.",
    ),
    AnswerRow(
        ("408",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "{service} gave up on the request",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("5xx",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORAGE_FAILED",
        "{service} had an internal error",
        "Run the operation again later.",
        retryable=True,
    ),
    AnswerRow(
        (NOT_SENT,),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_STORE_UNREACHABLE",
        "no connection to {service} could be made",
        "Check the URL, the endpoint and the network.",
        retryable=True,
    ),
    AnswerRow(
        (NOT_TRUSTED,),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_TLS_FAILED",
        "the TLS certificate of {service} is not trusted",
        "Check the endpoint, and the root certificates of this machine.",
    ),
    AnswerRow(
        (ANOTHER_HOST,),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_INVALID_ENDPOINT",
        "an answer of {service} names another host for the next request",
        "Nothing was sent there. Check the endpoint, and what answers there for the service.",
    ),
    AnswerRow(
        (NO_ANSWER, ANY_OTHER),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "{service} gave no answer",
        "Run the operation again.",
        retryable=True,
    ),
)


def error_of_answer(
    row: AnswerRow, answer: ResponseCode, *, doing: str, path: str, service: str
) -> StorageError:
    """Return the error for an answer, with the fields `status` and `code`.

    Args:
        row: The meaning of the answer.
        answer: The store's answer.
        doing: The action, for the message: `read`, `list`, `write`.
        path: The path as the caller gave it.
        service: The account and container, or the bucket.
    """
    return error_of_row(
        row,
        doing=doing,
        path=path,
        service=service,
        said=" ".join(text for text in (str(answer.status or ""), answer.code) if text),
        status=answer.status,
        code=answer.code,
    )


def transport_code(error: BaseException) -> ResponseCode:
    """Return the code of a request without an answer: it says whether it may have arrived.

    A request counts as not sent only if the error surely happened before its first byte. After any
    other error of a transport, the request may have arrived.
    """
    for cause in _wrapped_errors(error):
        if isinstance(cause, AnotherHostError):
            return ResponseCode(0, ANOTHER_HOST)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ResponseCode(0, NOT_TRUSTED)
        if isinstance(
            cause,
            urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError,
        ):
            return ResponseCode(0, NOT_SENT)
    return ResponseCode(0, NO_ANSWER)


def _wrapped_errors(error: BaseException) -> list[BaseException]:
    """Return the error and the errors that it wraps on purpose, by their attributes.

    `__context__` is not used: it may be an error of an earlier attempt.
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
