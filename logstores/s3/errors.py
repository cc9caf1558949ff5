"""What S3's errors mean: one table, looked up by code, then by status, never by text.

A row tells two things: how an attempt to create a file ended, and what every other call raises. For
the attempt the question is whether the bytes may be there, see `PutMeaning`. A `SLOW_DOWN` may come
from something between us and the store that had passed the request on, so an `EXISTS` after it may
be our own file. `UNKNOWN` is anything after bytes were sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from botocore.exceptions import ClientError

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.logstores.shared.http_answers import PutMeaning

__all__ = [
    "OTHER_REFUSALS",
    "S3_ERRORS",
    "S3ErrorRule",
    "code_of",
    "rule_for",
    "storage_error",
]


@dataclass(frozen=True, slots=True)
class S3ErrorRule:
    """One row of the table.

    Attributes:
        codes: S3's error codes, names of botocore's exception classes, or statuses as text.
        on_create: What it says about an attempt to create a file.
        kind: The kind of the error that is raised for it.
        retryable: Whether the same call may succeed when made again.
        cause: What happened.
        remedy: What to do.
    """

    codes: tuple[str, ...]
    on_create: PutMeaning
    kind: str
    retryable: bool
    cause: str
    remedy: str


S3_ERRORS: tuple[S3ErrorRule, ...] = (
    S3ErrorRule(
        ("PreconditionFailed", "412"),
        PutMeaning.EXISTS,
        "OPTIMIST_FILE_CHANGED",
        True,
        "the file was replaced while it was being read",
        "Run the operation again.",
    ),
    S3ErrorRule(
        ("ConditionalRequestConflict", "OperationAborted"),
        PutMeaning.CONFLICT,
        "OPTIMIST_STORE_CONFLICT",
        True,
        "other requests for the same object kept getting in the way",
        "Run the operation again.",
    ),
    S3ErrorRule(
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
        True,
        "the store asks to slow down",
        "Run it again later, or with fewer writers.",
    ),
    S3ErrorRule(
        ("NoSuchKey",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_FILE_NOT_FOUND",
        False,
        "it does not exist",
        "Check the path.",
    ),
    S3ErrorRule(
        ("NoSuchBucket", "InvalidBucketName"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_BUCKET_NOT_FOUND",
        False,
        "there is no such bucket",
        "Check the bucket's name and the endpoint, or create the bucket.",
    ),
    S3ErrorRule(
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_CREDENTIALS_EXPIRED",
        False,
        "the credentials have expired",
        "Give new ones, or a callable that renews them "
        "(optimist.store.s3.credentialsProvider=package.module:function).",
    ),
    S3ErrorRule(
        (
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "InvalidSecurity",
            "AuthorizationHeaderMalformed",
            "NotSignedUp",
            "401",
        ),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_INVALID_CREDENTIALS",
        False,
        "the store does not accept the credentials",
        "Check the access key, the secret key, the session token and the region.",
    ),
    S3ErrorRule(
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
        False,
        "no credentials were found, or they could not be fetched",
        "Set fs.s3a.access.key and fs.s3a.secret.key, the AWS_* environment, a profile, or "
        "optimist.store.s3.credentialsProvider. Spark Connect hides those two keys of a session's "
        "conf: there pass them as options of the call.",
    ),
    S3ErrorRule(
        ("AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidObjectState", "403"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_PERMISSION_DENIED",
        False,
        "permission denied",
        "A writer needs s3:GetObject, s3:PutObject and s3:DeleteObject on the table, and "
        "s3:ListBucket on the bucket.",
    ),
    S3ErrorRule(
        (
            "PermanentRedirect",
            "TemporaryRedirect",
            "IllegalLocationConstraintException",
            "IncorrectEndpoint",
            "301",
            "307",
        ),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_WRONG_REGION",
        False,
        "the bucket is in another region or behind another endpoint",
        "Set fs.s3a.endpoint.region (or AWS_REGION) and fs.s3a.endpoint to the bucket's.",
    ),
    S3ErrorRule(
        ("RequestTimeTooSkewed",),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_CLOCK_SKEWED",
        False,
        "the clock of this machine is wrong by minutes",
        "Set the clock.",
    ),
    S3ErrorRule(
        ("NotImplemented", "MethodNotAllowed", "XNotImplemented", "501", "405"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_STORE_UNSUPPORTED",
        False,
        "the store does not know this request",
        "Check the endpoint; it may speak only a part of S3.",
    ),
    S3ErrorRule(
        ("EntityTooLarge", "QuotaExceeded", "XMinioStorageFull", "413", "507"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_NO_SPACE",
        False,
        "the store has no room for it",
        "Make room, or raise the quota.",
    ),
    S3ErrorRule(
        (
            "InvalidArgument",
            "InvalidRequest",
            "InvalidURI",
            "KeyTooLongError",
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
        False,
        "the store refuses the request as it stands",
        "Check the path and the options; the store may speak only a part of S3.",
    ),
    S3ErrorRule(
        # Said when an upload in parts is completed twice: by then it is done, or was aborted.
        ("NoSuchUpload",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        True,
        "the upload is over: its file was made by an earlier request, or it was given up",
        "Run the operation again.",
    ),
    S3ErrorRule(
        ("InvalidRange", "416"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_FILE_CHANGED",
        True,
        "the file has become shorter while it was being read",
        "Run the operation again.",
    ),
    S3ErrorRule(
        ("EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError"),
        PutMeaning.NOTHING_WRITTEN,
        "OPTIMIST_STORE_UNREACHABLE",
        True,
        "no connection to the store",
        "Check the endpoint, the port, the network, and whether the server is up.",
    ),
    S3ErrorRule(
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
        False,
        "endpoint and region do not fit together",
        "Check fs.s3a.endpoint and fs.s3a.endpoint.region.",
    ),
    S3ErrorRule(
        ("SSLError",),
        PutMeaning.UNKNOWN,
        "OPTIMIST_TLS_FAILED",
        False,
        "the secure connection failed",
        "Check the certificate (AWS_CA_BUNDLE) and fs.s3a.connection.ssl.enabled.",
    ),
    S3ErrorRule(
        (
            "ReadTimeoutError",
            "ConnectionClosedError",
            "HTTPClientError",
            "ConnectionError",
            "ResponseStreamingError",
            "IncompleteReadError",
            "InternalError",
            "500",
            "502",
            "504",
            "408",
        ),
        PutMeaning.UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        True,
        "the store gave no clear answer",
        "Run the operation again.",
    ),
)
"""The first row with the code wins; without one, the first with the status. See `rule_for`."""

_OTHER_5XX = S3_ERRORS[-1]
OTHER_REFUSALS = S3ErrorRule(
    ("4xx",),
    PutMeaning.NOTHING_WRITTEN,
    "OPTIMIST_STORAGE_FAILED",
    False,
    "the store refuses the request",
    "Look the code up in the documentation of the store.",
)
"""The row for a 3xx or 4xx that has none of its own; any other answer without a row gets the last
of `S3_ERRORS`."""

_NO_FILE = next(rule for rule in S3_ERRORS if "NoSuchKey" in rule.codes)

_BY_CODE: Mapping[str, S3ErrorRule] = {
    code: rule for rule in reversed(S3_ERRORS) for code in rule.codes
}


def rule_for(error: Exception) -> S3ErrorRule:
    """The row for an error.

    A code without a row is looked up by its status. If that has no row either, a 3xx or 4xx counts
    as a refusal; any other status or exception counts as no answer.
    """
    if not isinstance(error, ClientError):
        for ancestor in type(error).__mro__:
            if ancestor.__name__ in _BY_CODE:
                return _BY_CODE[ancestor.__name__]
        return _OTHER_5XX
    code, status = code_of(error)
    if code in _BY_CODE and not code.isdigit():
        return _BY_CODE[code]
    if status == 404:
        return _NO_FILE  # a HEAD has no body and so no code
    if str(status) in _BY_CODE:
        return _BY_CODE[str(status)]
    return OTHER_REFUSALS if 300 <= status < 500 else _OTHER_5XX


def code_of(error: ClientError) -> tuple[str, int]:
    """S3's code and the HTTP status; an empty code and 0 where the response has none."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code, int(status) or (int(code) if code.isdigit() else 0)


def storage_error(error: Exception, *, doing: str, path: str, endpoint: str = "") -> StorageError:
    """Translate an error of the SDK into the store's.

    Args:
        error: What the SDK raised: an error of its own, or anything at all over an answer that it
            could not read. Its text is never repeated: it may quote a request.
        doing: What was tried, for the message: `read`, `list`, `create`.
        path: The path as the caller gave it.
        endpoint: Where the request went.

    Returns:
        A `LogFileNotFoundError` where the file is missing, else a `StorageError`; fields `path`,
        `code`, `status`, `request_id` and `endpoint`.
    """
    rule = rule_for(error)
    code, status = code_of(error) if isinstance(error, ClientError) else (type(error).__name__, 0)
    request_id = ""
    if isinstance(error, ClientError):
        request_id = str(error.response.get("ResponseMetadata", {}).get("RequestId", ""))
    if rule is _NO_FILE:
        return LogFileNotFoundError(
            f"Cannot {doing} {path}: it does not exist.",
            kind=rule.kind,
            path=path,
            retryable=False,
        )
    where = f" at {endpoint}" if endpoint else ""
    return StorageError(
        f"Cannot {doing} {path}{where}: {rule.cause} ({code or status}). {rule.remedy}",
        kind=rule.kind,
        path=path,
        code=code,
        status=status,
        request_id=request_id,
        endpoint=endpoint,
        retryable=rule.retryable,
    )
