"""The answers of Google Cloud Storage and their meaning: one table, searched by code."""

from __future__ import annotations

from typing import Any

from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud.storage.exceptions import InvalidResponse

from optimist.core.errors import StorageError
from optimist.logstores.shared.answer_table import AnswerRow, AnswerTable, PutMeaning
from optimist.logstores.shared.http_answers import (
    HTTP_ROWS,
    NO_TOKEN,
    ResponseCode,
    transport_code,
)

__all__ = ["GCS_ANSWERS", "gcs_answer", "no_login"]

_NO_BUCKET = "no-bucket"
_UPLOAD_OVER = "upload-over"
_NO_LOGIN = "no-login"
_GONE = (404, 410)

GCS_ANSWERS = AnswerTable(
    # One object takes about one write a second, so many writers get this answer on the file of a
    # version. The race is probably lost, but only the file itself shows it.
    AnswerRow(
        ("429", "403 rateLimitExceeded", "403 userRateLimitExceeded", "503"),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_BUSY",
        "{service} asks for fewer requests",
        "Run the operation again later, or with fewer writers.",
        retryable=True,
    ),
    # The answer if a piece is sent twice: by then the upload is complete, or was aborted.
    AnswerRow(
        (f"404 {_UPLOAD_OVER}",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "the upload to {service} is over: an earlier request completed it or gave it up",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        (f"404 {_NO_BUCKET}",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_BUCKET_NOT_FOUND",
        "{service} does not exist",
        "Create the bucket, or correct the URL.",
    ),
    AnswerRow(
        ("403",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_PERMISSION_DENIED",
        "permission denied on {service}",
        "Reading needs storage.objects.get and storage.objects.list, writing needs "
        "storage.objects.create, overwriting also storage.objects.delete.",
    ),
    AnswerRow(
        (_NO_LOGIN,),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_CREDENTIALS_UNAVAILABLE",
        "the service that gives tokens for {service} did not answer",
        "Check the network, and the metadata server of this machine; run the operation again.",
        retryable=True,
    ),
    *HTTP_ROWS,
)


def gcs_answer(error: Exception, *, of_bucket: bool) -> tuple[ResponseCode, AnswerRow]:
    """Return the meaning of an error of the SDK, by its code, never by its text.

    It is the one translation of this SDK's errors.

    Args:
        error: The SDK's error: its own, its transport's, or any error on an answer that it could
            not read, which counts as no answer.
        of_bucket: True if the request named only the bucket, so that a 404 is about the bucket.
    """
    answer = _code_of(error)
    if answer.status in _GONE and _answers_piece(error):
        answer = ResponseCode(404, _UPLOAD_OVER)
    elif answer.status == 404 and of_bucket:
        answer = ResponseCode(404, _NO_BUCKET)
    return answer, GCS_ANSWERS.find(answer.names)


def no_login(error: GoogleAuthError) -> StorageError:
    """Return the error for credentials whose service did not answer."""
    return StorageError(
        "Nothing was read or written: the service that gives tokens for Google Cloud Storage did "
        f"not answer ({type(error).__name__}). Check the network, and the metadata server of this "
        "machine; run the operation again.",
        kind="OPTIMIST_CREDENTIALS_UNAVAILABLE",
        retryable=True,
    )


def _answers_piece(error: Exception) -> bool:
    """Check whether the request sent a piece of an upload, as only a PUT does."""
    response = getattr(error, "response", None)
    return getattr(getattr(response, "request", None), "method", "") == "PUT"


def _code_of(error: Exception) -> ResponseCode:
    if isinstance(error, GoogleAPICallError):
        details: Any = error.errors
        first = details[0] if details else {}
        reason = first.get("reason", "") if isinstance(first, dict) else ""
        return ResponseCode(int(error.code or 0), str(reason))
    if isinstance(error, InvalidResponse):
        return ResponseCode(int(error.response.status_code), "")
    if isinstance(error, TransportError):
        return ResponseCode(0, _NO_LOGIN)
    if isinstance(error, GoogleAuthError):
        return ResponseCode(0, NO_TOKEN)
    return transport_code(error)
