"""The answers of Azure's Blob service and their meaning: one table, searched by code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

from optimist.logstores.shared.answer_table import AnswerRow, AnswerTable, PutMeaning
from optimist.logstores.shared.http_answers import (
    CREDENTIALS_REFUSED,
    HTTP_ROWS,
    NO_TOKEN,
    ResponseCode,
    transport_code,
)

__all__ = ["AZURE_ANSWERS", "azure_answer"]

_NOTHING = PutMeaning.NOTHING_WRITTEN

AZURE_ANSWERS = AnswerTable(
    # The file exists: of all conditional puts of one name, one succeeds.
    AnswerRow(
        ("409 BlobAlreadyExists",),
        PutMeaning.EXISTS,
        "DELTA_FILE_ALREADY_EXISTS",
        "the file exists already",
        "Run the operation again.",
    ),
    # A shared access signature that may create files and not write them gives this answer instead.
    AnswerRow(
        ("403 UnauthorizedBlobOverwrite",),
        PutMeaning.EXISTS,
        "OPTIMIST_PERMISSION_DENIED",
        "the file exists already, and the credentials for {service} may only create files",
        "Give them the permission write, too.",
    ),
    # A directory of a hierarchical account has the file's name.
    AnswerRow(
        ("409 ResourceTypeMismatch",),
        _NOTHING,
        "OPTIMIST_NOT_A_FILE",
        "a directory has that name",
        "Check the path; find out who made the directory, and move it away.",
    ),
    AnswerRow(
        ("409 ContainerBeingDeleted",),
        _NOTHING,
        "OPTIMIST_BUCKET_NOT_FOUND",
        "{service} is being deleted",
        "Wait until it is gone and create it again, or correct the URL.",
    ),
    AnswerRow(
        ("404 ContainerNotFound",),
        _NOTHING,
        "OPTIMIST_BUCKET_NOT_FOUND",
        "{service} does not exist",
        "Create the container, or correct the URL.",
    ),
    AnswerRow(
        ("409 PublicAccessNotPermitted",),
        _NOTHING,
        "OPTIMIST_INVALID_CREDENTIALS",
        "{service} allows no anonymous access",
        "Set one of optimist.store.azure.accountKey, .sas, .connectionString or .auth.",
    ),
    replace(
        CREDENTIALS_REFUSED, answers=("403 AuthenticationFailed", "400 InvalidAuthenticationInfo")
    ),
    AnswerRow(
        ("403",),
        _NOTHING,
        "OPTIMIST_PERMISSION_DENIED",
        "permission denied on {service}",
        "Reading needs the permissions read and list, writing needs write and create. A firewall "
        "of the account answers in the same way.",
    ),
    AnswerRow(
        ("400 InvalidResourceName",),
        _NOTHING,
        "OPTIMIST_INVALID_PATH",
        "Azure does not allow the name of the container or of the path",
        "Check the URL.",
    ),
    # The request may still have succeeded: the engine reads the file back on an EXISTS after this.
    AnswerRow(
        ("503 ServerBusy", "429"),
        PutMeaning.SLOW_DOWN,
        "OPTIMIST_STORE_BUSY",
        "{service} asks for fewer requests",
        "Run the operation again later, or with fewer writers.",
        retryable=True,
    ),
    *HTTP_ROWS,
)


def azure_answer(error: Exception) -> tuple[ResponseCode, AnswerRow]:
    """Return the meaning of an error of the SDK, by its code, never by its text.

    It is the one translation of this SDK's errors. Any other error of the SDK, on an answer that it
    could not read, counts as no answer.
    """
    answer = _code_of(error)
    return answer, AZURE_ANSWERS.find(answer.names)


def _code_of(error: Exception) -> ResponseCode:
    if isinstance(error, HttpResponseError) and error.response is not None:
        response: Any = error.response  # its type has no headers
        code = response.headers.get("x-ms-error-code") or ""
        if isinstance(error, ClientAuthenticationError) and not code:
            # An answer of the login service, with any status: no token, so no request.
            return ResponseCode(0, NO_TOKEN)
        return ResponseCode(int(error.status_code or 0), code)
    if isinstance(error, ClientAuthenticationError):
        return ResponseCode(0, NO_TOKEN)
    return transport_code(error)
