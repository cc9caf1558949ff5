"""How data files in Google Cloud Storage are reached by Arrow's own file system.

Arrow takes a token, not a key: a service account's key, and whoever is acted for, become an access
token here, which lasts an hour. Default credentials are found by each executor for itself.
"""

from __future__ import annotations

import datetime as dt
from typing import Any
from urllib.parse import urlsplit

from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request

from optimist.core.data.access import DataAccess
from optimist.core.errors import ConfigError
from optimist.logstores.gcs.credentials import gcs_credentials
from optimist.logstores.gcs.options import GCSOptions

__all__ = ["gcs_data_access"]

_SCHEMES = ("gs",)
_RETRIES_LAST = dt.timedelta(minutes=2)


def gcs_data_access(options: GCSOptions, bucket: str) -> DataAccess:
    """The settings of `pyarrow.fs.GcsFileSystem`.

    Raises:
        ConfigError: There are no credentials, or the caller pays for requests, which Arrow's can't
            say (kind `OPTIMIST_UNSUPPORTED_OPTION`).
    """
    if options.user_project_of(bucket) is not None:
        raise ConfigError(
            f"The requests to bucket {bucket} are to be paid for by another project, which Arrow's "
            "file system can't say. Set optimist.spark.plane=native, with Hadoop's connector on "
            "Spark's class path.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="optimist.store.gcs.userProject",
        )
    settings: dict[str, Any] = {
        "project_id": options.project,
        "retry_time_limit": _RETRIES_LAST,
        **_credentials(options),
    }
    if options.is_custom:
        endpoint = urlsplit(options.endpoint)
        settings |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    return DataAccess.of("gcs", _SCHEMES, settings)


def _credentials(options: GCSOptions) -> dict[str, Any]:
    if options.auth_kind == "anonymous":
        return {"anonymous": True}
    if options.auth_kind == "default" and options.impersonate is None:
        return {}
    credentials = gcs_credentials(options)
    try:
        credentials.refresh(Request())
    except GoogleAuthError as error:
        raise ConfigError(
            f"Google gives no token for these credentials ({type(error).__name__}). Check the "
            "service account and its key.",
            kind="OPTIMIST_NO_CREDENTIALS",
        ) from None
    return {
        "access_token": credentials.token,
        "credential_token_expiration": credentials.expiry.replace(tzinfo=dt.timezone.utc),
    }
