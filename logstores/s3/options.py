"""The options of `S3LogStore`, from the keys that users of S3A have already and from our own.

Of one option the first that is set wins:

1. `optimist.store.s3.<option>`
2. `fs.s3a.bucket.<bucket>.<option>`, for that bucket
3. `fs.s3a.<option>`
4. what boto3 finds by itself: the `AWS_*` environment, its configuration files, the instance

Each with or without `spark.` or `spark.hadoop.` before it; spellings that differ are an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optimist.core.errors import ConfigError
from optimist.core.options import parse_bool
from optimist.logstores.shared.hadoop_options import hadoop_options
from optimist.logstores.store_options import own_options

__all__ = ["S3Options"]

_S3A = "fs.s3a."
_AWS_ENDPOINT = re.compile(r"(?:https?://)?s3[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com/?")
_CENTRAL_ENDPOINT = re.compile(r"(?:https?://)?s3\.amazonaws\.com/?")
_DIRECTORY_BUCKET = re.compile(r".+--[a-z0-9-]+--x-s3")
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_ASSUMED_ROLE = "AssumedRoleCredentialProvider"

_ENCRYPTIONS = {
    "": "",
    "none": "",
    "aes256": "AES256",
    "sse-s3": "AES256",
    "aws:kms": "aws:kms",
    "sse-kms": "aws:kms",
    "aws:kms:dsse": "aws:kms:dsse",
    "dsse-kms": "aws:kms:dsse",
    "sse-c": "SSE-C",
}
"""S3's names and S3A's, to what a request says."""


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach one bucket. Secrets never show in `repr`.

    Attributes:
        endpoint: URL of a store other than Amazon's, or None.
        region: The region, or None for what boto3 finds.
        profile: A profile of boto3's configuration files, or None.
        access_key: With `secret_key`, and for temporary credentials `session_token`.
        secret_key: See `access_key`.
        session_token: See `access_key`.
        credentials_provider: `package.module:function`, called for credentials as they expire.
        is_anonymous: Whether requests go unsigned.
        path_style: Whether the bucket stands in the path; None leaves it to boto3.
        requester_pays: Whether the caller pays for the requests.
        encryption: `AES256`, `aws:kms`, `aws:kms:dsse`, `SSE-C`, or empty for the bucket's own.
        encryption_key: The KMS key id, or for SSE-C the key in base64.
        lists_in_order: Whether listings are sorted by key and may start after one.
        allows_unsafe_writes: Write although the store does not refuse to overwrite a commit.
        allows_foreign_arbiter: Write although another engine commits here through an arbiter.
        connect_timeout_s: How long to wait for a connection.
        read_timeout_s: How long to wait for an answer.
        max_connections: Connections kept open.
        read_ahead_bytes: How much a ranged read fetches at least.
    """

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    credentials_provider: str | None = None
    is_anonymous: bool = False
    path_style: bool | None = None
    requester_pays: bool = False
    encryption: str = ""
    encryption_key: str | None = field(default=None, repr=False)
    lists_in_order: bool = True
    allows_unsafe_writes: bool = False
    allows_foreign_arbiter: bool = False
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 30.0
    max_connections: int = 32
    read_ahead_bytes: int = 4 * 1024 * 1024

    @classmethod
    def from_options(cls, options: Mapping[str, str], *, bucket: str = "") -> S3Options:
        """The options for a bucket.

        Raises:
            ConfigError: An unknown key of our own, two spellings that differ, a value that does not
                parse, half a pair of keys, or an S3A setting that can't be honoured.
        """
        own = own_options(options, "s3")
        _refuse_unknown(own)
        given = hadoop_options(options, _S3A)
        s3a = _for_bucket({key.removeprefix(_S3A): text for key, text in given.items()}, bucket)
        values = _from_s3a(s3a)
        for name, text in own.items():
            attribute, parse = _OWN[name]
            values[attribute] = _parse(f"optimist.store.s3.{name}", text, parse)
        if "lists_in_order" not in values:
            values["lists_in_order"] = _DIRECTORY_BUCKET.fullmatch(bucket) is None
        parsed = cls(**_settled(values))
        _ensure_honest(parsed, s3a)
        return parsed

    @property
    def put_parameters(self) -> Mapping[str, Any]:
        """What every request that writes an object says besides."""
        parameters: dict[str, Any] = dict(self.request_parameters)
        if self.encryption == "SSE-C":
            return parameters | dict(self.read_parameters)
        if self.encryption:
            parameters["ServerSideEncryption"] = self.encryption
        if self.encryption_key and self.encryption.startswith("aws:kms"):
            parameters["SSEKMSKeyId"] = self.encryption_key
        return parameters

    @property
    def read_parameters(self) -> Mapping[str, Any]:
        """What every request that reads an object says besides."""
        parameters: dict[str, Any] = dict(self.request_parameters)
        if self.encryption == "SSE-C":
            parameters["SSECustomerAlgorithm"] = "AES256"
            parameters["SSECustomerKey"] = self.encryption_key
        return parameters

    @property
    def request_parameters(self) -> Mapping[str, Any]:
        """What every request says besides."""
        return {"RequestPayer": "requester"} if self.requester_pays else {}


def _for_bucket(s3a: Mapping[str, str], bucket: str) -> dict[str, str]:
    own = f"bucket.{bucket}."
    general = {key: value for key, value in s3a.items() if not key.startswith("bucket.")}
    special = {
        key.removeprefix(own): value for key, value in s3a.items() if bucket and key.startswith(own)
    }
    return {key: value for key, value in {**general, **special}.items() if value}


def _from_s3a(s3a: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, (attribute, parse) in _FROM_S3A.items():
        if key in s3a:
            values[attribute] = _parse(_S3A + key, s3a[key], parse)
    providers = s3a.get("aws.credentials.provider", "")
    if providers.strip().endswith(_ANONYMOUS):
        values["is_anonymous"] = True
    if "endpoint" in values and "://" not in values["endpoint"]:
        is_secure = _parse(
            f"{_S3A}connection.ssl.enabled", s3a.get("connection.ssl.enabled", "true"), parse_bool
        )
        values["endpoint"] = f"{'https' if is_secure else 'http'}://{values['endpoint']}"
    return values


def _settled(values: dict[str, Any]) -> dict[str, Any]:
    """What follows from the endpoint: Amazon's own name a region, others want path style."""
    endpoint = values.get("endpoint")
    if endpoint is None:
        return values
    if _CENTRAL_ENDPOINT.fullmatch(endpoint):
        return {**values, "endpoint": None}
    amazon = _AWS_ENDPOINT.fullmatch(endpoint)
    if amazon:
        return {"region": amazon[1], **values}
    return {"path_style": True, **values}


def _ensure_honest(options: S3Options, s3a: Mapping[str, str]) -> None:
    if (options.access_key is None) != (options.secret_key is None):
        raise ConfigError(
            "An access key needs its secret key, and the other way round. Set both "
            "fs.s3a.access.key and fs.s3a.secret.key, or neither.",
            kind="OPTIMIST_INVALID_OPTION",
            key="fs.s3a.access.key",
        )
    has_own = options.access_key or options.profile or options.credentials_provider
    providers = s3a.get("aws.credentials.provider", "")
    if _ASSUMED_ROLE in providers and not has_own:
        raise ConfigError(
            f"fs.s3a.aws.credentials.provider={providers} assumes a role through S3A, which is not "
            "done here. Name a profile with a role_arn (optimist.store.s3.profile), or a function "
            "that gives credentials (optimist.store.s3.credentialsProvider).",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="fs.s3a.aws.credentials.provider",
        )
    if options.encryption == "SSE-C" and not options.encryption_key:
        raise ConfigError(
            "SSE-C needs a key: set fs.s3a.encryption.key.",
            kind="OPTIMIST_INVALID_OPTION",
            key="fs.s3a.encryption.key",
        )


def _refuse_unknown(own: Mapping[str, str]) -> None:
    for name in own:
        if name not in _OWN:
            raise ConfigError(
                f"Unknown option optimist.store.s3.{name}. Known: {', '.join(sorted(_OWN))}.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=f"optimist.store.s3.{name}",
            )


def _parse(key: str, text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text.strip())
    except ValueError as error:
        # The value is not quoted: it may be a secret under the wrong key.
        raise ConfigError(
            f"The value of {key} does not parse: {error}.",
            kind="OPTIMIST_INVALID_OPTION",
            key=key,
        ) from None


def _encryption(text: str) -> str:
    try:
        return _ENCRYPTIONS[text.lower()]
    except KeyError:
        raise ValueError(
            "it must be SSE-S3 (AES256), SSE-KMS (aws:kms), DSSE-KMS (aws:kms:dsse) or SSE-C; "
            "client-side encryption is not done here"
        ) from None


def _seconds(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value <= 0:
        raise ValueError("it must be a number of seconds above 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("it must be at least 1")
    return value


def _url(text: str) -> str:
    if not re.match(r"https?://[^/@]+", text):
        raise ValueError("it must be a URL such as http://127.0.0.1:9000, without credentials")
    return text.rstrip("/")


def _host(text: str) -> str:
    if "@" in text:
        raise ValueError("credentials can't stand in an endpoint")
    return text.rstrip("/")


_OWN: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "accessKey": ("access_key", str),
    "allowForeignArbiter": ("allows_foreign_arbiter", parse_bool),
    "allowUnsafeWrites": ("allows_unsafe_writes", parse_bool),
    "anonymous": ("is_anonymous", parse_bool),
    "connectTimeoutSeconds": ("connect_timeout_s", _seconds),
    "credentialsProvider": ("credentials_provider", str),
    "encryption": ("encryption", _encryption),
    "encryptionKey": ("encryption_key", str),
    "endpoint": ("endpoint", _url),
    "maxConnections": ("max_connections", _count),
    "pathStyle": ("path_style", parse_bool),
    "profile": ("profile", str),
    "readAheadBytes": ("read_ahead_bytes", _count),
    "readTimeoutSeconds": ("read_timeout_s", _seconds),
    "region": ("region", str),
    "requesterPays": ("requester_pays", parse_bool),
    "secretKey": ("secret_key", str),
    "sessionToken": ("session_token", str),
    "sortedListing": ("lists_in_order", parse_bool),
}
"""Our own options: the attribute and the parser of each."""

_FROM_S3A: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "access.key": ("access_key", str),
    "secret.key": ("secret_key", str),
    "session.token": ("session_token", str),
    "endpoint": ("endpoint", _host),
    "endpoint.region": ("region", str),
    "path.style.access": ("path_style", parse_bool),
    "requester.pays.enabled": ("requester_pays", parse_bool),
    "server-side-encryption-algorithm": ("encryption", _encryption),
    "server-side-encryption.key": ("encryption_key", str),
    "encryption.algorithm": ("encryption", _encryption),
    "encryption.key": ("encryption_key", str),
}
"""S3A's options, the older names first: where both are set the newer one holds."""
