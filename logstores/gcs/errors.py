"""What Google Cloud Storage answers, and what it means: one table, searched by code."""

from __future__ import annotations

from typing import Any

from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError
from google.cloud.storage.exceptions import InvalidResponse

from optimist.logstores.shared.http_answers import (
    NO_TOKEN,
    NOT_SENT,
    NOT_TRUSTED,
    AnswerRow,
    PutMeaning,
    ResponseCode,
    find_row,
    transport_code,
)

__all__ = ["GCS_ANSWERS", "gcs_answer"]

_NO_BUCKET = "no-bucket"
_UPLOAD_OVER = "upload-over"
_GONE = (404, 410)
_NO_ANSWER = range(1)
_ANY = range(1000)
_SERVER = range(500, 600)
_CLIENT = range(300, 500)

_AUTHENTICATION = "OPTIMIST_INVALID_CREDENTIALS"
_THROTTLED = "OPTIMIST_STORE_BUSY"
_CREDENTIALS_REFUSED = (
    "the credentials for {place} were refused; they are wrong, or have expired. Renew them"
)
_SLOW_DOWN = "{place} asks for fewer requests. Try again later"
_NOTHING = PutMeaning.NOTHING_WRITTEN
_UNKNOWN = PutMeaning.UNKNOWN


def _is(status: int) -> range:
    return range(status, status + 1)


GCS_ANSWERS: tuple[AnswerRow, ...] = (
    # ifGenerationMatch=0 fails: the file is there.
    AnswerRow(_is(412), "", PutMeaning.EXISTS, "OPTIMIST_FILE_CHANGED", "it was changed meanwhile"),
    # One object takes about one write a second, so this is what a crowd of writers gets on the file
    # of a version. The race is probably lost; only the file itself tells.
    AnswerRow(_is(429), "", _UNKNOWN, _THROTTLED, _SLOW_DOWN, retryable=True),
    AnswerRow(_is(403), "rateLimitExceeded", _UNKNOWN, _THROTTLED, _SLOW_DOWN, retryable=True),
    AnswerRow(_is(403), "userRateLimitExceeded", _UNKNOWN, _THROTTLED, _SLOW_DOWN, retryable=True),
    AnswerRow(_is(503), "", _UNKNOWN, _THROTTLED, _SLOW_DOWN, retryable=True),
    # Said when a piece is sent twice: by then the upload is done, or was given up.
    AnswerRow(
        _is(404),
        _UPLOAD_OVER,
        _UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "the upload to {place} is over: its file was made by an earlier request, or it was given "
        "up",
        retryable=True,
    ),
    AnswerRow(
        _is(404),
        _NO_BUCKET,
        _NOTHING,
        "OPTIMIST_BUCKET_NOT_FOUND",
        "{place} does not exist. Create the bucket, or correct the URL",
    ),
    AnswerRow(_is(404), "", _NOTHING, "OPTIMIST_FILE_NOT_FOUND", "it does not exist"),
    AnswerRow(_is(401), "", _NOTHING, _AUTHENTICATION, _CREDENTIALS_REFUSED),
    AnswerRow(_NO_ANSWER, NO_TOKEN, _NOTHING, _AUTHENTICATION, _CREDENTIALS_REFUSED),
    AnswerRow(
        _is(403),
        "",
        _NOTHING,
        "OPTIMIST_PERMISSION_DENIED",
        "permission denied on {place}. Reading needs storage.objects.get and .list, writing needs "
        ".create (and .delete to overwrite)",
    ),
    AnswerRow(
        _is(413),
        "",
        _NOTHING,
        "OPTIMIST_FILE_TOO_LARGE",
        "it is larger than one request to {place} may be",
    ),
    # The request may still be carried out.
    AnswerRow(
        _is(408), "", _UNKNOWN, "OPTIMIST_STORE_NO_ANSWER", "{place} gave up on the request", True
    ),
    AnswerRow(
        _SERVER,
        "",
        _UNKNOWN,
        "OPTIMIST_STORAGE_FAILED",
        "{place} failed. Try again later",
        retryable=True,
    ),
    AnswerRow(
        _is(409),
        "",
        _UNKNOWN,
        "OPTIMIST_STORE_CONFLICT",
        "its state in {place} does not allow it now",
    ),
    AnswerRow(_CLIENT, "", _NOTHING, "OPTIMIST_REQUEST_REFUSED", "{place} refused the request"),
    AnswerRow(
        _NO_ANSWER,
        NOT_SENT,
        _NOTHING,
        "OPTIMIST_STORE_UNREACHABLE",
        "no connection to {place} came about. Check the endpoint and the network",
        retryable=True,
    ),
    AnswerRow(
        _NO_ANSWER,
        NOT_TRUSTED,
        _NOTHING,
        "OPTIMIST_TLS_FAILED",
        "the certificate of {place} is not trusted. Check the endpoint, and the machine's roots",
    ),
    AnswerRow(
        _ANY, "", _UNKNOWN, "OPTIMIST_STORE_NO_ANSWER", "{place} gave no answer", retryable=True
    ),
)
"""The first row that matches an answer holds; the last takes everything."""


def gcs_answer(error: Exception, *, of_bucket: bool) -> tuple[ResponseCode, AnswerRow]:
    """What an error of the SDK says, by its code, never by its text.

    The one translation of this SDK's errors.

    Args:
        error: What the SDK raised: an error of its own, of its transport, or anything at all over
            an answer that it could not read, which counts as no answer.
        of_bucket: Whether the request named the bucket only, so that a 404 speaks of the bucket.
    """
    answer = _code_of(error)
    if answer.status in _GONE and _is_piece(error):
        answer = ResponseCode(404, _UPLOAD_OVER)
    elif answer.status == 404 and of_bucket:
        answer = ResponseCode(404, _NO_BUCKET)
    return answer, find_row(GCS_ANSWERS, answer)


def _is_piece(error: Exception) -> bool:
    """Whether an error answers a piece of a resumable upload: nothing else is sent by PUT."""
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
    if isinstance(error, GoogleAuthError):
        return ResponseCode(0, NO_TOKEN)
    return transport_code(error)
