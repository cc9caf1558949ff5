"""The meaning of S3's errors: one table, searched by code, then by status, never by text.

A row holds two things: the result of an attempt to create a file, and the error that every other
call raises. For the attempt, the question is whether the bytes may exist; see `PutMeaning`. A
`SLOW_DOWN` may come from a proxy that had already forwarded the request, so an `EXISTS` after it
may be our own file. `UNKNOWN` is any error after bytes were sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from botocore.exceptions import ClientError

from optimist.core.errors import StorageError
from optimist.core.runtime.unsent_requests import was_proxy_unreachable
from optimist.logstores.shared.answer_table import (
    ANY_OTHER,
    AnswerRow,
    AnswerTable,
    PutMeaning,
    error_of_row,
)

__all__ = ["NO_PROXY", "S3_ANSWERS", "code_of", "s3_error", "s3_row"]

NO_PROXY = "no-proxy"
"""The proxy was never reached. Any other `ProxyConnectionError` is a connection that broke."""

S3_ANSWERS = AnswerTable(
    AnswerRow(
        ("PreconditionFailed", "412"),
        PutMeaning.EXISTS,
        "OPTIMIST_FILE_CHANGED",
        "the file was replaced while it was being read",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("ConditionalRequestConflict", "OperationAborted"),
        PutMeaning.CONFLICT,
        "OPTIMIST_STORE_CONFLICT",
        "other requests for the same object kept getting in the way",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        (
            "SlowDown",
            "SlowDownRead",
            "SlowDownWrite",
            "ServiceUnavailable",
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "RequestThrottled",
            "RequestThrottledException",
            "RequestLimitExceeded",
            "BandwidthLimitExceeded",
            "TooManyRequests",
            "TooManyRequestsException",
            "RequestTimeout",
            "429",
            "503",
        ),
        PutMeaning.SLOW_DOWN,
        "OPTIMIST_STORE_BUSY",
        "{service} asks to slow down",
        "Run it again later, or with fewer writers.",
        retryable=True,
    ),
    AnswerRow(
        ("NoSuchKey", "404"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_FILE_NOT_FOUND",
        "it does not exist",
        "Check the path.",
    ),
    AnswerRow(
        ("NoSuchBucket", "InvalidBucketName"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_BUCKET_NOT_FOUND",
        "{service} has no such bucket",
        "Check the bucket's name and the endpoint, or create the bucket.",
    ),
    AnswerRow(
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_CREDENTIALS_EXPIRED",
        "the credentials have expired",
        "Set new ones, or name a function that renews them "
        "(optimist.store.s3.credentialsProvider=package.module:function). Spark's executors keep "
        "those of the beginning of a job: let them last longer than the job.",
    ),
    AnswerRow(
        (
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "InvalidSecurity",
            "NotSignedUp",
            "401",
        ),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_INVALID_CREDENTIALS",
        "{service} does not accept the credentials",
        "Check the access key, the secret key, the session token and the region.",
    ),
    AnswerRow(
        (
            "NoCredentialsError",
            "PartialCredentialsError",
            "CredentialRetrievalError",
            "TokenRetrievalError",
            "NoAuthTokenError",
            "UnknownCredentialError",
            "SSOError",
            "SSOTokenLoadError",
            "UnauthorizedSSOTokenError",
            "MetadataRetrievalError",
            "RefreshWithMFAUnsupportedError",
        ),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_CREDENTIALS_UNAVAILABLE",
        "no credentials were found, or fetching them failed",
        "Set fs.s3a.access.key and fs.s3a.secret.key, the AWS_* environment, a profile, or "
        "optimist.store.s3.credentialsProvider. Spark Connect hides those two keys of a session's "
        "conf: there, pass them as options of the call.",
    ),
    AnswerRow(
        ("AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidObjectState", "403"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_PERMISSION_DENIED",
        "permission denied by {service}",
        "A writer needs s3:GetObject, s3:PutObject and s3:DeleteObject on the table, and "
        "s3:ListBucket on the bucket.",
    ),
    AnswerRow(
        (
            "PermanentRedirect",
            "TemporaryRedirect",
            "IllegalLocationConstraintException",
            "IncorrectEndpoint",
            # Amazon's answer to a signature for another region.
            "AuthorizationHeaderMalformed",
            "301",
            "307",
        ),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_WRONG_REGION",
        "the bucket is not in the region of {service}, or not behind that endpoint",
        "Set fs.s3a.endpoint.region (or AWS_REGION) and fs.s3a.endpoint to the bucket's.",
    ),
    AnswerRow(
        ("RequestTimeTooSkewed",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_CLOCK_SKEWED",
        "the clock of this machine is wrong by several minutes",
        "Correct the clock.",
    ),
    AnswerRow(
        ("NotImplemented", "MethodNotAllowed", "XNotImplemented", "501", "405"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_STORE_UNSUPPORTED",
        "{service} does not support this request",
        "Check the endpoint; the server may support only a part of S3.",
    ),
    AnswerRow(
        ("EntityTooLarge", "QuotaExceeded", "XMinioStorageFull", "413", "507"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_NO_SPACE",
        "{service} has no room for the file",
        "Make room, or raise the quota.",
    ),
    AnswerRow(
        ("KeyTooLongError",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_INVALID_PATH",
        "the name is too long for {service}",
        "Shorten the path.",
    ),
    AnswerRow(
        (
            "InvalidArgument",
            "InvalidRequest",
            "InvalidURI",
            "MalformedXML",
            "BadDigest",
            "InvalidDigest",
            "MissingContentLength",
            "IncompleteBody",
            "ParamValidationError",
            "400",
            "411",
        ),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_REQUEST_REFUSED",
        "{service} refuses the request as invalid",
        "Check the path and the options; the server may support only a part of S3.",
    ),
    AnswerRow(
        # The answer if an upload in parts is completed twice: it is complete by then, or was
        # aborted.
        ("NoSuchUpload",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "the upload is over: an earlier request completed it or gave it up",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("InvalidRange", "416"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_FILE_CHANGED",
        "the file became shorter while it was being read",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("EndpointConnectionError", "ConnectTimeoutError", NO_PROXY),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_STORE_UNREACHABLE",
        "no connection to {service} could be made",
        "Check the endpoint, the port, the network, and whether the server is up.",
        retryable=True,
    ),
    AnswerRow(
        (
            "InvalidEndpointConfigurationError",
            "EndpointProviderError",
            "EndpointResolutionError",
            "InvalidRegionError",
            "NoRegionError",
            "UnknownEndpointError",
        ),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_INVALID_ENDPOINT",
        "the endpoint and the region do not match",
        "Check fs.s3a.endpoint and fs.s3a.endpoint.region.",
    ),
    AnswerRow(
        ("SSLError",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_TLS_FAILED",
        "the TLS connection to {service} failed",
        "Check the certificate (AWS_CA_BUNDLE) and fs.s3a.connection.ssl.enabled.",
    ),
    AnswerRow(
        (
            "ReadTimeoutError",
            "ConnectionClosedError",
            "HTTPClientError",
            "ConnectionError",
            "ResponseStreamingError",
            "IncompleteReadError",
            "InternalError",
            "408",
            "5xx",
            ANY_OTHER,
        ),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "{service} gave no clear answer",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("3xx", "4xx"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_STORAGE_FAILED",
        "{service} refuses the request",
        "Look the code up in the documentation of the server.",
    ),
)
"""The names of an answer are S3's code, then its status; or the names of botocore's exception
classes, from the error's own class to its base classes."""


def s3_row(error: Exception) -> AnswerRow:
    """Return the row for an error of the SDK, or for any error on an answer."""
    return S3_ANSWERS.find(_names_of_error(error))


def code_of(error: ClientError) -> tuple[str, int]:
    """Return S3's code and the HTTP status, or an empty code and 0 without them."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code, int(status) or (int(code) if code.isdigit() else 0)


def s3_error(error: Exception, *, doing: str, path: str, endpoint: str = "") -> StorageError:
    """Translate an error of the SDK into the store's.

    Args:
        error: The SDK's error: one of its own, or any error on an answer that it could not read.
            Its text is never repeated, since it may quote a request.
        doing: The action, for the message: `read`, `list`, `create`.
        path: The path as the caller gave it.
        endpoint: The endpoint of the request.

    Returns:
        A `LogFileNotFoundError` for a missing file, else a `StorageError`; with the fields `path`,
        `code`, `status`, `request_id` and `endpoint`.
    """
    code, status, request_id = type(error).__name__, 0, ""
    if isinstance(error, ClientError):
        code, status = code_of(error)
        request_id = str(error.response.get("ResponseMetadata", {}).get("RequestId", ""))
    return error_of_row(
        s3_row(error),
        doing=doing,
        path=path,
        service=f"the store at {endpoint}" if endpoint else "the store",
        said=code or str(status),
        code=code,
        status=status,
        request_id=request_id,
        endpoint=endpoint,
    )


def _names_of_error(error: Exception) -> Sequence[str]:
    if not isinstance(error, ClientError):
        names = [ancestor.__name__ for ancestor in type(error).__mro__]
        return [NO_PROXY, *names] if was_proxy_unreachable(error) else names
    code, status = code_of(error)
    of_status = [str(status), f"{status // 100}xx"]
    # The answer to a HEAD has no body, so no code; the SDK gives its status instead.
    return [code, *of_status] if code.isalpha() else of_status
