"""boto3 clients for one bucket: one that never sends a request twice, and one that does.

A conditional PUT must not be repeated behind our back: when the answer to the first is lost and the
SDK sends it again, the second finds our own file and the answer is a lost race. So the client that
creates files has the SDK's retries off; all others may retry.
"""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import CredentialResolver, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, CredentialRetrievalError

from optimist.core.clock import Clock
from optimist.core.errors import ConfigError
from optimist.logstores.s3.options import S3Options

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["S3Clients", "S3Credentials", "credentials_callable", "make_clients"]

_ATTEMPTS = 5
_DEFAULT_LIFE_S = 1800
"""boto3 fetches anew a quarter of an hour before the end."""


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """What a credentials callable returns.

    Attributes:
        access_key: The access key.
        secret_key: Its secret.
        session_token: For temporary credentials.
        expires_ms: When they expire, epoch milliseconds; the callable is asked again before. None
            has it asked again after a quarter of an hour.
    """

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class S3Clients:
    """The two clients of a bucket, and where they go.

    Attributes:
        once: Sends each request once, for creating files.
        patient: Sends again what failed, for everything that may be repeated.
        endpoint: Where the requests go.
        session: Whose credentials they carry.
    """

    once: S3Client
    patient: S3Client
    endpoint: str
    session: boto3.Session


def make_clients(
    options: S3Options, clock: Clock, credentials: Callable[[], S3Credentials] | None = None
) -> S3Clients:
    """Build both clients; asks no server.

    Raises:
        ConfigError: Profile, region or endpoint make no sense to boto3, or the credentials callable
            can't be found.
    """
    if credentials is None and options.credentials_provider:
        credentials = credentials_callable(options.credentials_provider)
    try:
        session = _session(options, clock, credentials)
        once, patient = (
            session.client(
                "s3",
                region_name=options.region,
                endpoint_url=options.endpoint,
                config=_config(options, attempts),
            )
            for attempts in (1, _ATTEMPTS)
        )
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"boto3 can't make a client with these options ({type(error).__name__}). Check "
            "profile, region and endpoint.",
            kind="OPTIMIST_INVALID_OPTION",
            cause=type(error).__name__,
        ) from None
    return S3Clients(once, patient, once.meta.endpoint_url, session)


def credentials_callable(path: str) -> Callable[[], S3Credentials]:
    """The function that `package.module:function` names.

    Raises:
        ConfigError: There is no such function.
    """
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError):
        found = None
    if not callable(found):
        raise ConfigError(
            f"optimist.store.s3.credentialsProvider={path} names no function. Write it as "
            "package.module:function, of a module on the driver's Python path.",
            kind="OPTIMIST_INVALID_OPTION",
            key="optimist.store.s3.credentialsProvider",
        )
    provider: Callable[[], S3Credentials] = found
    return provider


def _session(
    options: S3Options, clock: Clock, credentials: Callable[[], S3Credentials] | None
) -> boto3.Session:
    if credentials is None:
        return boto3.Session(
            aws_access_key_id=options.access_key,
            aws_secret_access_key=options.secret_key,
            aws_session_token=options.session_token,
            profile_name=options.profile,
        )
    refreshing = DeferredRefreshableCredentials(
        refresh_using=_metadata(credentials, clock), method="optimist"
    )
    inner = botocore.session.Session(profile=options.profile)
    inner.register_component("credential_provider", _Fixed(refreshing))
    return boto3.Session(botocore_session=inner)


class _Fixed(CredentialResolver):
    """A resolver that knows one answer."""

    def __init__(self, credentials: Any) -> None:
        super().__init__(providers=[])
        self._credentials = credentials

    def load_credentials(self) -> Any:
        return self._credentials


def _metadata(
    credentials: Callable[[], S3Credentials], clock: Clock
) -> Callable[[], Mapping[str, Any]]:
    def fetch() -> Mapping[str, Any]:
        try:
            found = credentials()
        except Exception as error:  # a function of the user's own may raise anything
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


def _config(options: S3Options, attempts: int) -> Config:
    settings: dict[str, Any] = {
        "retries": {"mode": "standard", "total_max_attempts": attempts},
        "connect_timeout": options.connect_timeout_s,
        "read_timeout": options.read_timeout_s,
        "max_pool_connections": options.max_connections,
    }
    if options.path_style is not None:
        settings["s3"] = {"addressing_style": "path" if options.path_style else "virtual"}
    if options.is_anonymous:
        settings["signature_version"] = UNSIGNED
    if options.endpoint is not None:
        # Many servers that speak S3 do not know the checksums that boto3 adds since 1.36.
        settings["request_checksum_calculation"] = "when_required"
        settings["response_checksum_validation"] = "when_required"
    return Config(**settings)
