"""The options of `S3LogStore`, from S3A's keys that users already have and from our own.

For each option, the first of these that is set wins:

1. `optimist.store.s3.<option>`
2. `fs.s3a.bucket.<bucket>.<option>`, for that bucket
3. `fs.s3a.<option>`
4. the value that boto3 finds: in the `AWS_*` environment, its configuration files, the instance

Each key may start with `spark.` or `spark.hadoop.`. Two spellings with different values are an
error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optimist.core.errors import ConfigError
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import option, parse_foreign_options, parse_options
from optimist.core.options.values import (
    at_least,
    parse_bool,
    parse_option,
    parse_positive,
    parse_url,
)
from optimist.core.secrets import Options, Secret, masked_repr, revealed
from optimist.logstores.shared.hadoop_options import hadoop_options

__all__ = ["S3Options"]

_S3A = "fs.s3a."
_AWS_ENDPOINT = re.compile(r"(?:https?://)?s3[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com/?")
_CENTRAL_ENDPOINT = re.compile(r"(?:https?://)?s3\.amazonaws\.com/?")
_DIRECTORY_BUCKET = re.compile(r".+--[a-z0-9-]+--x-s3")
_PROVIDER = "aws.credentials.provider"
_TLS = "connection.ssl.enabled"
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
"""The value in a request, by the names that S3 and S3A have for it."""


def _parse_encryption(text: str) -> str:
    found = _ENCRYPTIONS.get(text.lower())
    if found is None:
        raise ValueError(
            "must be SSE-S3 (AES256), SSE-KMS (aws:kms), DSSE-KMS (aws:kms:dsse) or SSE-C; "
            "client-side encryption is not supported"
        )
    return found


@dataclass(frozen=True, slots=True)
class S3Options:
    """The options to reach one bucket.

    Attributes:
        endpoint: URL of a store other than Amazon's, or None.
        region: The region, or None for the one that boto3 finds.
        profile: A profile of boto3's configuration files, or None.
        access_key: The access key, used with `secret_key`, and for temporary credentials with
            `session_token`.
        secret_key: See `access_key`.
        session_token: See `access_key`.
        credentials_provider: `package.module:function`, called for credentials when they expire.
        is_anonymous: True if requests are not signed.
        path_style: True if the bucket is in the URL's path; None leaves it to boto3.
        requester_pays: True if the caller pays for the requests.
        encryption: `AES256`, `aws:kms`, `aws:kms:dsse`, `SSE-C`, or empty for the bucket's own.
        encryption_key: The KMS key id, or for SSE-C the key in base64.
        lists_in_order: True if listings are sorted by key and may start after a key.
        allow_unsafe_writes: Write although the store may overwrite a commit.
        allow_foreign_arbiter: Write although another engine commits here through an arbiter.
        connect_timeout_s: How long to wait for a connection.
        read_timeout_s: How long to wait for an answer.
        max_connections: Connections kept open.
        read_ahead_bytes: The fewest bytes that a ranged read fetches.
    """

    endpoint: str | None = option(None, parse_url, foreign=("endpoint",))
    region: str | None = option(None, foreign=("endpoint.region",))
    profile: str | None = option(None)
    access_key: Secret[str] | None = option(None, Secret, foreign=("access.key",))
    secret_key: Secret[str] | None = option(None, Secret, foreign=("secret.key",))
    session_token: Secret[str] | None = option(None, Secret, foreign=("session.token",))
    credentials_provider: Secret[str] | None = option(None, Secret)
    is_anonymous: bool = option(False, parse_bool, "anonymous")
    path_style: bool | None = option(None, parse_bool, foreign=("path.style.access",))
    requester_pays: bool = option(False, parse_bool, foreign=("requester.pays.enabled",))
    encryption: str = option(
        "",
        _parse_encryption,
        foreign=("encryption.algorithm", "server-side-encryption-algorithm"),
    )
    encryption_key: Secret[str] | None = option(
        None, Secret, foreign=("encryption.key", "server-side-encryption.key")
    )
    lists_in_order: bool = option(True, parse_bool, "sortedListing")
    allow_unsafe_writes: bool = option(False, parse_bool)
    allow_foreign_arbiter: bool = option(False, parse_bool)
    connect_timeout_s: float = option(5.0, parse_positive)
    read_timeout_s: float = option(30.0, parse_positive)
    max_connections: int = option(32, at_least(1))
    read_ahead_bytes: int = option(4 * 1024 * 1024, at_least(1))

    __repr__ = masked_repr

    @classmethod
    def from_options(cls, options: Mapping[str, str], *, bucket: str = "") -> S3Options:
        """Parse the options for a bucket.

        Raises:
            ConfigError: A key of ours is unknown, two spellings differ, a value does not parse, one
                of a pair of keys is missing, or an S3A setting is not supported.
        """
        own = parse_options(cls, options, f"{STORE_PREFIX}s3.")
        s3a = _select_for_bucket(hadoop_options(options, _S3A), bucket)
        values = {**_from_s3a(s3a), **own}
        if "lists_in_order" not in values:
            values["lists_in_order"] = _DIRECTORY_BUCKET.fullmatch(bucket) is None
        parsed = cls(**_complete_by_endpoint(values))
        _ensure_supported(parsed, s3a)
        return parsed

    @property
    def is_central(self) -> bool:
        """True if the endpoint is Amazon's for all regions, which stands for the region's own."""
        return self.endpoint is not None and _CENTRAL_ENDPOINT.fullmatch(self.endpoint) is not None

    @property
    def put_parameters(self) -> Mapping[str, Any]:
        """The extra parameters of every request that writes an object."""
        parameters: dict[str, Any] = dict(self.request_parameters)
        if self.encryption == "SSE-C":
            return parameters | dict(self.read_parameters)
        if self.encryption:
            parameters["ServerSideEncryption"] = self.encryption
        if self.encryption_key and self.encryption.startswith("aws:kms"):
            parameters["SSEKMSKeyId"] = self.encryption_key.reveal()
        return parameters

    @property
    def read_parameters(self) -> Mapping[str, Any]:
        """The extra parameters of every request that reads an object."""
        parameters: dict[str, Any] = dict(self.request_parameters)
        if self.encryption == "SSE-C":
            parameters["SSECustomerAlgorithm"] = "AES256"
            parameters["SSECustomerKey"] = revealed(self.encryption_key)
        return parameters

    @property
    def request_parameters(self) -> Mapping[str, Any]:
        """The extra parameters of every request."""
        return {"RequestPayer": "requester"} if self.requester_pays else {}


def _select_for_bucket(given: Mapping[str, str], bucket: str) -> Options:
    """Return the S3A options for a bucket, by their names after `fs.s3a.`."""
    every, own = f"{_S3A}bucket.", f"{_S3A}bucket.{bucket}."
    keys = {key.removeprefix(_S3A): key for key in given if not key.startswith(every)}
    if bucket:
        keys |= {key.removeprefix(own): key for key in given if key.startswith(own)}
    return Options({name: given[key] for name, key in keys.items() if given[key]})


def _from_s3a(s3a: Mapping[str, str]) -> dict[str, Any]:
    values = parse_foreign_options(S3Options, _with_scheme(s3a), _S3A)
    if s3a.get(_PROVIDER, "").strip().endswith(_ANONYMOUS):
        values["is_anonymous"] = True
    return values


def _with_scheme(s3a: Mapping[str, str]) -> Mapping[str, str]:
    """Complete an endpoint that is only a host, since S3A sets TLS by another key."""
    if "://" in s3a.get("endpoint", "://"):
        return s3a
    is_secure = _TLS not in s3a or parse_option(s3a, _TLS, parse_bool, key=_S3A + _TLS)
    scheme = "https" if is_secure else "http"
    return Options({**s3a, "endpoint": f"{scheme}://{s3a['endpoint'].strip()}"})


def _complete_by_endpoint(values: dict[str, Any]) -> dict[str, Any]:
    """Derive from the endpoint: Amazon's gives a region, others need path style."""
    endpoint = values.get("endpoint")
    if endpoint is None:
        return values
    if _CENTRAL_ENDPOINT.fullmatch(endpoint):
        return values
    amazon = _AWS_ENDPOINT.fullmatch(endpoint)
    if amazon:
        return {"region": amazon[1], **values}
    return {"path_style": True, **values}


def _ensure_supported(options: S3Options, s3a: Mapping[str, str]) -> None:
    if (options.access_key is None) != (options.secret_key is None):
        raise ConfigError(
            "Only one of access key and secret key is set. Set both fs.s3a.access.key and "
            "fs.s3a.secret.key, or neither.",
            kind="OPTIMIST_INVALID_OPTION",
            key="fs.s3a.access.key",
        )
    has_own = options.access_key or options.profile or options.credentials_provider
    if _ASSUMED_ROLE in s3a.get(_PROVIDER, "") and not has_own:
        raise ConfigError(
            f"fs.s3a.aws.credentials.provider names {_ASSUMED_ROLE}, which assumes a role through "
            "S3A; this is not supported. Name a profile with a role_arn (optimist.store.s3.profile)"
            ", or a function that gives credentials (optimist.store.s3.credentialsProvider).",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="fs.s3a.aws.credentials.provider",
        )
    if options.encryption == "SSE-C" and not options.encryption_key:
        raise ConfigError(
            "SSE-C needs a key: set fs.s3a.encryption.key.",
            kind="OPTIMIST_INVALID_OPTION",
            key="fs.s3a.encryption.key",
        )
