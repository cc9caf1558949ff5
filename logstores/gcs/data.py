"""Access to data files in Google Cloud Storage: Arrow reads them, the log's store creates them.

Arrow takes a token, not a key. So this module turns a service account's key, or an account to act
as, into an access token, which lasts an hour. This process keeps it until shortly before its end,
and then renews it (`renewed_access`). Each executor finds default credentials itself.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import Request

from optimist.core.errors import ConfigError
from optimist.core.forking import ForkSafeLock
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.runtime.clock import Clock
from optimist.core.secrets import Options, Secret
from optimist.logstores.gcs.credentials import gcs_credentials
from optimist.logstores.gcs.errors import no_login
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.shared.store_options import options_from, options_of_store
from optimist.logstores.shared.whole_answers import private_session

__all__ = ["DataTokens", "gcs_data_access", "gcs_origin"]

_SCHEMES = ("gs",)
_ARROWS_EMULATOR = "CLOUD_STORAGE_EMULATOR_ENDPOINT"
_STORE = "optimist.logstores:GCSLogStore"
_RENEWED_BEFORE_MS = 30 * 60 * 1000
"""The time before its end at which a token is renewed: a task has at least so much time with it."""
_RETRIES_LAST = dt.timedelta(minutes=2)
_UNKNOWN_EXPIRY = dt.datetime(2200, 1, 1, tzinfo=dt.timezone.utc)
"""The expiry of a token that was given without one, since Arrow needs a time."""


def gcs_origin(bucket: str) -> DataOrigin:
    """Return which URLs name objects of a bucket."""
    return DataOrigin(_SCHEMES, bucket)


class DataTokens:
    """The access token for data files, which threads may share.

    Args:
        options: The store's options.
        clock: Decides when the token ends.

    Attributes:
        is_renewed: True if a token is used that ends and can be renewed.
    """

    def __init__(self, options: GCSOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._lock = ForkSafeLock()
        self._credentials: Any = None
        self.is_renewed = options.auth_kind == "service-account" or (
            options.impersonate is not None and options.auth_kind != "anonymous"
        )

    def settings(self) -> dict[str, Any]:
        """Return the settings for Arrow's file system.

        Raises:
            ConfigError: Credentials are missing, or Google refuses a token for them.
        """
        options = self._options
        if options.auth_kind == "anonymous":
            return {"anonymous": True}
        if self.is_renewed:
            with self._lock:
                return self._token_settings()
        if options.auth_kind == "default":
            return {}
        token = gcs_credentials(options).token
        return {"access_token": Secret(token), "credential_token_expiration": _UNKNOWN_EXPIRY}

    def _token_settings(self) -> dict[str, Any]:
        if self._credentials is None:
            self._credentials = gcs_credentials(self._options)
        credentials = self._credentials
        if credentials.token is None or self._ends_soon(credentials.expiry):
            _refresh_token(credentials)
        return {
            "access_token": Secret(credentials.token),
            "credential_token_expiration": credentials.expiry.replace(tzinfo=dt.timezone.utc),
        }

    def _ends_soon(self, expiry: dt.datetime) -> bool:
        end_ms = expiry.replace(tzinfo=dt.timezone.utc).timestamp() * 1000
        return self._clock.now_ms() > end_ms - _RENEWED_BEFORE_MS


def gcs_data_access(
    options: GCSOptions,
    bucket: str,
    given: Mapping[str, str],
    tokens: DataTokens,
    *,
    renewal: str = "",
) -> DataAccess:
    """Return the settings of `pyarrow.fs.GcsFileSystem`, and the options of a creating store.

    Args:
        options: The store's options.
        bucket: The table's bucket.
        given: The options before they were parsed.
        tokens: The store's tokens.
        renewal: The name by which the access is renewed, for a token that ends.

    Raises:
        ConfigError: Credentials are missing, or the caller pays for requests, which Arrow does not
            support (kind `OPTIMIST_UNSUPPORTED_OPTION`).
    """
    if options.user_project_of(bucket) is not None:
        raise ConfigError(
            f"Another project pays for requests to bucket {bucket}, and Arrow's file system can't "
            "name it. Set optimist.spark.plane=native, and put Hadoop's connector on Spark's class "
            "path.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="optimist.store.gcs.userProject",
        )
    _ensure_same_server(options)
    credentials = tokens.settings()
    settings: dict[str, Any] = {
        "project_id": options.project,
        "retry_time_limit": _RETRIES_LAST,
        **credentials,
    }
    if options.is_custom:
        endpoint = urlsplit(options.endpoint)
        settings |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    creating = _options_for_creating(options, credentials.get("access_token"), given)
    return DataAccess.of(
        "gcs",
        gcs_origin(bucket),
        settings,
        store_options=creating,
        renewal=renewal if tokens.is_renewed else "",
    )


def _ensure_same_server(options: GCSOptions) -> None:
    """Refuse an environment variable that sends Arrow to another server than the log."""
    asked = os.environ.get(_ARROWS_EMULATOR, "")
    if asked and asked.rstrip("/") != options.endpoint.rstrip("/"):
        raise ConfigError(
            f"The environment variable {_ARROWS_EMULATOR} sends Arrow to another server than the "
            "table's log, with the table's credentials. Nothing was read or written. Unset it, or "
            "set optimist.store.gcs.emulatorHost to the same server.",
            kind="OPTIMIST_CONTRADICTING_OPTIONS",
            key=_ARROWS_EMULATOR,
        )


def _options_for_creating(
    options: GCSOptions, access_token: Secret[str] | None, given: Mapping[str, str]
) -> Options:
    """Return options for creating files, with a token for a key, and no default credentials."""
    if access_token is None and options.auth_kind != "anonymous":
        return options_of_store(_STORE, given)
    own = {
        "endpoint": options.endpoint if options.is_custom else None,
        "auth": "anonymous" if access_token is None else "access-token",
        "accessToken": access_token,
        "project": options.project,
        "connectTimeoutSeconds": options.connect_timeout_s,
        "readTimeoutSeconds": options.read_timeout_s,
        "maxTries": options.max_tries,
    }
    return options_of_store(_STORE, options_from("gcs", own))


def _refresh_token(credentials: Any) -> None:
    try:
        credentials.refresh(Request(private_session()))
    except TransportError as error:
        raise no_login(error) from None
    except GoogleAuthError as error:
        raise ConfigError(
            f"Google refused a token for these credentials ({type(error).__name__}). Check the "
            "service account and its key.",
            kind="OPTIMIST_NO_CREDENTIALS",
        ) from None
