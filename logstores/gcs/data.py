"""How data files in Google Cloud Storage are reached: read by Arrow, created by the log's store.

Arrow takes a token, not a key: a service account's key, or an account to act as, becomes an access
token here, which lasts an hour. Each executor finds default credentials for itself.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request

from optimist.core.errors import ConfigError
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.secrets import Options, Secret
from optimist.logstores.gcs.credentials import gcs_credentials
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.shared.store_options import options_from, options_of_store
from optimist.logstores.shared.whole_answers import private_session

__all__ = ["gcs_data_access", "gcs_origin"]

_SCHEMES = ("gs",)
_ARROWS_EMULATOR = "CLOUD_STORAGE_EMULATOR_ENDPOINT"
_STORE = "optimist.logstores:GCSLogStore"
_RETRIES_LAST = dt.timedelta(minutes=2)
_NOT_KNOWN = dt.datetime(2200, 1, 1, tzinfo=dt.timezone.utc)
"""The expiry of a token that was given without one; Arrow wants a time."""


def gcs_origin(bucket: str) -> DataOrigin:
    """Which URLs name objects of a bucket."""
    return DataOrigin(_SCHEMES, bucket)


def gcs_data_access(options: GCSOptions, bucket: str, given: Mapping[str, str]) -> DataAccess:
    """The settings of `pyarrow.fs.GcsFileSystem`, and the options of a store that creates files.

    Args:
        options: The store's.
        bucket: The table's.
        given: What the options were parsed from.

    Raises:
        ConfigError: There are no credentials, or the caller pays for requests, which those of Arrow
            can't say (kind `OPTIMIST_UNSUPPORTED_OPTION`).
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
    credentials = _credentials(options)
    settings: dict[str, Any] = {
        "project_id": options.project,
        "retry_time_limit": _RETRIES_LAST,
        **credentials,
    }
    if options.is_custom:
        endpoint = urlsplit(options.endpoint)
        settings |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    creating = _creating(options, credentials.get("access_token"), given)
    return DataAccess.of("gcs", gcs_origin(bucket), settings, store_options=creating)


def _ensure_same_server(options: GCSOptions) -> None:
    """Refuse a variable by which Arrow asks another server than the log, whatever it is told."""
    asked = os.environ.get(_ARROWS_EMULATOR, "")
    if asked and asked.rstrip("/") != options.endpoint.rstrip("/"):
        raise ConfigError(
            f"The environment variable {_ARROWS_EMULATOR} sends Arrow to another server than the "
            "table's log, with the table's credentials. Nothing was read or written. Unset it, or "
            "set optimist.store.gcs.emulatorHost to the same server.",
            kind="OPTIMIST_CONTRADICTING_OPTIONS",
            key=_ARROWS_EMULATOR,
        )


def _creating(
    options: GCSOptions, access_token: Secret[str] | None, given: Mapping[str, str]
) -> Options:
    """Options for creating files: a key is sent as a token, default credentials are not sent."""
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


def _credentials(options: GCSOptions) -> dict[str, Any]:
    if options.auth_kind == "anonymous":
        return {"anonymous": True}
    if options.auth_kind == "default" and options.impersonate is None:
        return {}
    if options.access_token is not None and options.impersonate is None:
        return {"access_token": options.access_token, "credential_token_expiration": _NOT_KNOWN}
    credentials = gcs_credentials(options)
    try:
        credentials.refresh(Request(private_session()))
    except GoogleAuthError as error:
        raise ConfigError(
            f"Google refused a token for these credentials ({type(error).__name__}). Check the "
            "service account and its key.",
            kind="OPTIMIST_NO_CREDENTIALS",
        ) from None
    return {
        "access_token": Secret(credentials.token),
        "credential_token_expiration": credentials.expiry.replace(tzinfo=dt.timezone.utc),
    }
