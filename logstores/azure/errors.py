"""What Azure's Blob service answers, and what it means: one table, searched by code."""

from __future__ import annotations

from typing import Any

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

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

__all__ = ["AZURE_ANSWERS", "azure_answer"]

_NO_ANSWER = range(1)
_ANY = range(1000)
_SERVER = range(500, 600)
_CLIENT = range(300, 500)

_AUTHENTICATION = "OPTIMIST_INVALID_CREDENTIALS"
_CONTAINER = "OPTIMIST_BUCKET_NOT_FOUND"
_CREDENTIALS_REFUSED = (
    "the credentials for {place} were refused; they are wrong, or have expired. Renew them"
)
_NOTHING = PutMeaning.NOTHING_WRITTEN


def _is(status: int) -> range:
    return range(status, status + 1)


AZURE_ANSWERS: tuple[AnswerRow, ...] = (
    # The file is there: of all conditional puts of one name, one succeeds.
    AnswerRow(
        _is(409), "BlobAlreadyExists", PutMeaning.EXISTS, "DELTA_FILE_ALREADY_EXISTS", "it exists"
    ),
    # If-None-Match: * fails; or somebody holds a lease, which only a blob that is there can have.
    AnswerRow(_is(412), "", PutMeaning.EXISTS, "OPTIMIST_FILE_CHANGED", "it was changed meanwhile"),
    # A directory of a hierarchical account stands where the file should be.
    AnswerRow(
        _is(409),
        "ResourceTypeMismatch",
        _NOTHING,
        "OPTIMIST_NOT_A_FILE",
        "there is a directory in its place",
    ),
    AnswerRow(
        _is(409),
        "ContainerBeingDeleted",
        _NOTHING,
        _CONTAINER,
        "{place} is being deleted",
    ),
    AnswerRow(
        _is(409),
        "PublicAccessNotPermitted",
        _NOTHING,
        _AUTHENTICATION,
        "{place} allows no anonymous access; give credentials",
    ),
    AnswerRow(
        _is(404),
        "ContainerNotFound",
        _NOTHING,
        _CONTAINER,
        "{place} does not exist. Create the container, or correct the URL",
    ),
    AnswerRow(_is(404), "", _NOTHING, "OPTIMIST_FILE_NOT_FOUND", "it does not exist"),
    AnswerRow(_is(401), "", _NOTHING, _AUTHENTICATION, _CREDENTIALS_REFUSED),
    AnswerRow(_is(403), "AuthenticationFailed", _NOTHING, _AUTHENTICATION, _CREDENTIALS_REFUSED),
    AnswerRow(
        _is(400), "InvalidAuthenticationInfo", _NOTHING, _AUTHENTICATION, _CREDENTIALS_REFUSED
    ),
    AnswerRow(_NO_ANSWER, NO_TOKEN, _NOTHING, _AUTHENTICATION, _CREDENTIALS_REFUSED),
    AnswerRow(
        _is(403),
        "",
        _NOTHING,
        "OPTIMIST_PERMISSION_DENIED",
        "permission denied on {place}. Reading needs read and list, writing needs write and "
        "create; a firewall of the account looks like this, too",
    ),
    AnswerRow(
        _is(400),
        "InvalidResourceName",
        _NOTHING,
        "OPTIMIST_INVALID_PATH",
        "container or path are not valid names for {place}",
    ),
    AnswerRow(
        _is(413),
        "",
        _NOTHING,
        "OPTIMIST_FILE_TOO_LARGE",
        "it is larger than one request to {place} may be",
    ),
    # Busy: asked again later, and an EXISTS after that is read back by the engine.
    AnswerRow(
        _is(503),
        "ServerBusy",
        PutMeaning.SLOW_DOWN,
        "OPTIMIST_STORE_BUSY",
        "{place} asks for fewer requests. Try again later",
        retryable=True,
    ),
    AnswerRow(
        _is(429),
        "",
        PutMeaning.SLOW_DOWN,
        "OPTIMIST_STORE_BUSY",
        "{place} asks for fewer requests. Try again later",
        retryable=True,
    ),
    # The request may still be carried out.
    AnswerRow(
        _is(408),
        "",
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "{place} gave up on the request",
        retryable=True,
    ),
    AnswerRow(
        _SERVER,
        "",
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORAGE_FAILED",
        "{place} failed. Try again later",
        retryable=True,
    ),
    AnswerRow(
        _is(409),
        "",
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_CONFLICT",
        "its state in {place} does not allow it now",
    ),
    AnswerRow(_CLIENT, "", _NOTHING, "OPTIMIST_REQUEST_REFUSED", "{place} refused the request"),
    AnswerRow(
        _NO_ANSWER,
        NOT_SENT,
        _NOTHING,
        "OPTIMIST_STORE_UNREACHABLE",
        "no connection to {place} came about. Check the account's name, the endpoint, the network",
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
        _ANY,
        "",
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "{place} gave no answer",
        retryable=True,
    ),
)
"""The first row that matches an answer holds; the last takes everything."""


def azure_answer(error: Exception) -> tuple[ResponseCode, AnswerRow]:
    """What an error of the SDK says, by its code, never by its text.

    The one translation of this SDK's errors. Anything else that the SDK raises, over an answer that
    it could not read, counts as no answer.
    """
    answer = _code_of(error)
    return answer, find_row(AZURE_ANSWERS, answer)


def _code_of(error: Exception) -> ResponseCode:
    if isinstance(error, HttpResponseError) and error.response is not None:
        response: Any = error.response  # its type knows no headers
        code = response.headers.get("x-ms-error-code") or ""
        if isinstance(error, ClientAuthenticationError) and not code:
            # The login service's own answer, whatever its status: no token, so no request.
            return ResponseCode(0, NO_TOKEN)
        return ResponseCode(int(error.status_code or 0), code)
    if isinstance(error, ClientAuthenticationError):
        return ResponseCode(0, NO_TOKEN)
    return transport_code(error)
