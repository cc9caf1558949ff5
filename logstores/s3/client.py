"""boto3 clients for one bucket, which send no request twice and trust no partial answer.

The SDK must not repeat a conditional PUT on its own: if the first answer is lost and the SDK sends
the PUT again, the second finds our own file and looks like a lost race. The store itself repeats
requests where this is safe, by its Clock and within the operation's budget.

An answer that was cut off in its headers, or a page of a proxy, looks whole to the SDK: an empty
listing, an empty file, a created object. So an answer counts only with the evidence in
`s3/evidence.py`.
"""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import CredentialResolver, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, CredentialRetrievalError

from optimist.core.errors import ConfigError
from optimist.core.runtime.budget import PerTimeout
from optimist.core.runtime.clock import Clock
from optimist.core.secrets import Secret, revealed
from optimist.logstores.s3.evidence import ensure_evidence
from optimist.logstores.s3.options import S3Options
from optimist.logstores.s3.server import S3Server

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["S3Clients", "S3Credentials", "credentials_callable", "make_clients"]

_DEFAULT_LIFE_S = 1800
"""The lifetime of credentials without an expiry. boto3 renews them 15 minutes before it ends."""


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """The credentials that a credentials callable returns.

    Attributes:
        access_key: The access key.
        secret_key: Its secret.
        session_token: The token of temporary credentials.
        expires_ms: When they expire, in epoch milliseconds; the callable is called again before
            that. With None it is called again after a quarter of an hour.
    """

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_ms: int | None = None


class S3Clients:
    """The clients of a bucket, one per time-out, which threads may share.

    Args:
        options: How to reach the bucket.
        session: The session with the credentials of the requests.

    Attributes:
        server: The server that gets the requests.
        session: The session with the credentials of the requests.
    """

    def __init__(self, options: S3Options, session: boto3.Session) -> None:
        self.session = session
        self._options = options
        self._clients = PerTimeout(self._new_client, options.read_timeout_s)
        self.server = S3Server.of(self.client())

    def client(self) -> S3Client:
        """Return the client for the next request."""
        return self._clients.get()

    def _new_client(self, read_timeout_s: float) -> S3Client:
        client: S3Client = self.session.client(
            "s3",
            region_name=self._options.region or self.session.region_name or _region_of_others(),
            endpoint_url=None if self._options.is_central else self._options.endpoint,
            config=_make_config(self._options, read_timeout_s),
        )
        client.meta.events.register(
            "before-parse.s3", ensure_evidence, unique_id="optimist-evidence"
        )
        return client


def make_clients(
    options: S3Options, clock: Clock, credentials: Callable[[], S3Credentials] | None = None
) -> S3Clients:
    """Make the clients for a bucket, without sending a request.

    Raises:
        ConfigError: boto3 refuses the profile, region or endpoint, or the credentials callable is
            not found.
    """
    if credentials is None and options.credentials_provider:
        credentials = credentials_callable(options.credentials_provider)
    try:
        return S3Clients(options, _make_session(options, clock, credentials))
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"boto3 can't make a client with these options ({type(error).__name__}). Check "
            "the profile, the region and the endpoint.",
            kind="OPTIMIST_INVALID_OPTION",
            cause=type(error).__name__,
        ) from None


def credentials_callable(path: Secret[str]) -> Callable[[], S3Credentials]:
    """Return the function that `package.module:function` names.

    Raises:
        ConfigError: The function does not exist.
    """
    provider = _named_function(*path.reveal().partition(":")[::2])
    if provider is None:
        raise ConfigError(
            "The value of optimist.store.s3.credentialsProvider names no function. Write it as "
            "package.module:function, with a module that is on the driver's Python path.",
            kind="OPTIMIST_INVALID_OPTION",
            key="optimist.store.s3.credentialsProvider",
        )
    return provider


def _named_function(module: str, name: str) -> Callable[[], S3Credentials] | None:
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError):
        return None
    return found if callable(found) else None


def _make_session(
    options: S3Options, clock: Clock, credentials: Callable[[], S3Credentials] | None
) -> boto3.Session:
    if credentials is None:
        return boto3.Session(
            aws_access_key_id=revealed(options.access_key),
            aws_secret_access_key=revealed(options.secret_key),
            aws_session_token=revealed(options.session_token),
            profile_name=options.profile,
        )
    refreshing = DeferredRefreshableCredentials(
        refresh_using=_fetch_for_botocore(credentials, clock), method="optimist"
    )
    inner = botocore.session.Session(profile=options.profile)
    inner.register_component("credential_provider", _Fixed(refreshing))
    return boto3.Session(botocore_session=inner)


class _Fixed(CredentialResolver):
    """A resolver that always returns the same credentials."""

    def __init__(self, credentials: Any) -> None:
        super().__init__(providers=[])
        self._credentials = credentials

    def load_credentials(self) -> Any:
        return self._credentials


def _region_of_others() -> str | None:
    """Return the region that Amazon's other SDKs read, also Hadoop's and Arrow's, but not boto3."""
    return os.environ.get("AWS_REGION") or None


def _fetch_for_botocore(
    credentials: Callable[[], S3Credentials], clock: Clock
) -> Callable[[], Mapping[str, Any]]:
    def fetch() -> Mapping[str, Any]:
        try:
            found = credentials()
        except Exception as error:  # the user's function may raise anything
            raise CredentialRetrievalError(
                provider="credentials callable", error_msg=type(error).__name__
            ) from error
        expires_ms = found.expires_ms or clock.now_ms() + _DEFAULT_LIFE_S * 1000
        if expires_ms <= clock.now_ms():
            raise CredentialRetrievalError(
                provider="credentials callable", error_msg="it gave credentials that have expired"
            )
        expiry = datetime.datetime.fromtimestamp(expires_ms / 1000, datetime.timezone.utc)
        return {
            "access_key": found.access_key,
            "secret_key": found.secret_key,
            "token": found.session_token,
            "expiry_time": expiry.isoformat(),
        }

    return fetch


def _make_config(options: S3Options, read_timeout_s: float) -> Config:
    settings: dict[str, Any] = {
        "retries": {"mode": "standard", "total_max_attempts": 1},
        "connect_timeout": min(options.connect_timeout_s, read_timeout_s),
        "read_timeout": read_timeout_s,
        "max_pool_connections": options.max_connections,
    }
    if options.path_style is not None:
        settings["s3"] = {"addressing_style": "path" if options.path_style else "virtual"}
    if options.is_anonymous:
        settings["signature_version"] = UNSIGNED
    if options.endpoint is not None:
        # Also for Amazon's own endpoint, whose regions boto3 knows: the environment may name
        # another.
        settings["ignore_configured_endpoint_urls"] = True
    if options.endpoint is not None and not options.is_central:
        # Many S3-compatible servers do not know the checksums that boto3 adds since 1.36.
        settings["request_checksum_calculation"] = "when_required"
        settings["response_checksum_validation"] = "when_required"
    return Config(**settings)
