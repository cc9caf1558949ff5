"""Access to data files on S3: Arrow reads them, and a store with the log's options creates them.

Credentials from this process's options, environment or files are sent to the executors. Credentials
of the machine's role are not: each executor has that role and renews them itself. This process
renews credentials that expire (`renewed_access`); an executor uses those that it was sent.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from optimist.core.errors import ConfigError
from optimist.core.options.fields import own_values
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.secrets import Secret
from optimist.logstores.s3.options import S3Options
from optimist.logstores.s3.path import SCHEMES, S3Location
from optimist.logstores.s3.server import S3Server
from optimist.logstores.shared.page_tokens import PageTokens
from optimist.logstores.shared.store_options import options_from, options_of_store

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["abort_uploads", "s3_data_access", "s3_origin"]

_LOG = logging.getLogger(__name__)
_STORE = "optimist.logstores:S3LogStore"
_MACHINE_METHODS = ("iam-role", "container-role", "assume-role-with-web-identity")


def s3_origin(bucket: str) -> DataOrigin:
    """Return which URLs name objects of a bucket."""
    return DataOrigin(SCHEMES, bucket)


def s3_data_access(
    options: S3Options,
    session: boto3.Session,
    server: S3Server,
    bucket: str,
    *,
    renewal: str = "",
) -> DataAccess:
    """Return the settings of `pyarrow.fs.S3FileSystem`, and the options of a creating store.

    Args:
        options: How the log reaches the bucket.
        session: The session with the credentials of the log's requests.
        server: The server that gets them.
        bucket: The bucket.
        renewal: The name by which the access is renewed, for credentials that expire.

    Raises:
        ConfigError: The caller pays for requests, or files are encrypted with the caller's key,
            which Arrow's requests do not support (kind `OPTIMIST_UNSUPPORTED_OPTION`). Or the
            credentials can't be fetched (kind `OPTIMIST_NO_CREDENTIALS`).
    """
    _ensure_readable(options)
    settings: dict[str, Any] = {
        "anonymous": True if options.is_anonymous else None,
        "region": server.region,
        "endpoint_override": server.pinned,
        "force_virtual_addressing": True if server.pinned and server.is_virtual else None,
        "connect_timeout": options.connect_timeout_s,
        "request_timeout": options.read_timeout_s,
        "background_writes": True,
    }
    keys = {} if options.is_anonymous else _keys_to_send(session)
    settings |= keys
    found = replace(
        options,
        endpoint=server.pinned or (options.endpoint if options.is_central else None),
        region=server.region,
        path_style=not server.is_virtual if server.pinned else options.path_style,
        profile=None,
        credentials_provider=None,
        **keys,
    )
    creating = options_of_store(_STORE, options_from("s3", own_values(found)))
    return DataAccess.of(
        "s3",
        s3_origin(bucket),
        settings,
        store_options=creating,
        copies_alike=not options.encryption,
        renewal=renewal if keys and _expires(session) else "",
    )


def abort_uploads(client: S3Client, location: S3Location, options: S3Options) -> None:
    """Abort unfinished uploads below a directory, and only log failures."""
    target: dict[str, Any] = {"Bucket": location.bucket, **options.request_parameters}
    marks = PageTokens(location.url)
    try:
        pages = client.get_paginator("list_multipart_uploads").paginate(
            **target, Prefix=location.key.rstrip("/") + "/"
        )
        for page in pages:
            for upload in page.get("Uploads", []):
                with contextlib.suppress(client.exceptions.NoSuchUpload):
                    client.abort_multipart_upload(
                        **target, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
            if page.get("IsTruncated"):
                marks.follow(f"{page.get('NextKeyMarker')}?{page.get('NextUploadIdMarker')}")
    except Exception as error:  # noqa: BLE001 - an SDK raises anything on an answer cut off
        _LOG.warning(
            "Unfinished uploads below %s may be left (%s). A lifecycle rule of the bucket "
            "(AbortIncompleteMultipartUpload) removes them.",
            location.url,
            type(error).__name__,
        )


def _keys_to_send(session: boto3.Session) -> dict[str, Any]:
    try:
        found = session.get_credentials()
        if found is None or found.method in _MACHINE_METHODS:
            return {}
        frozen = found.get_frozen_credentials()
    except (BotoCoreError, ClientError) as error:
        raise ConfigError(
            f"There are no credentials for S3: fetching them failed ({type(error).__name__}). "
            "Check the profile, the keys, and the function that gives credentials.",
            kind="OPTIMIST_NO_CREDENTIALS",
        ) from None
    return {
        "access_key": Secret(frozen.access_key),
        "secret_key": Secret(frozen.secret_key),
        "session_token": Secret(frozen.token) if frozen.token else None,
    }


def _expires(session: boto3.Session) -> bool:
    return isinstance(session.get_credentials(), RefreshableCredentials)


def _ensure_readable(options: S3Options) -> None:
    asked = None
    if options.requester_pays:
        asked = "fs.s3a.requester.pays.enabled"
    elif options.encryption == "SSE-C":
        asked = "fs.s3a.encryption.algorithm=SSE-C"
    if asked is not None:
        raise ConfigError(
            f"{asked} can't be honoured for data files: Arrow's S3 file system does not send this "
            "header. Set optimist.spark.plane=native, and put Hadoop's S3A connector on Spark's "
            "class path.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key=asked,
        )
