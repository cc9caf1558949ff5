"""How data files on S3 are reached: read by Arrow, created by a store with the log's options.

Credentials that this process was given, or found in its environment or its files, are sent to the
executors. Those of the machine's role are not: every executor has that role and renews it by
itself. Credentials that expire are renewed in this process (`renewed_access`); an executor works
with those that it was sent.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from optimist.core.errors import ConfigError, StorageError
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
_OF_THE_MACHINE = ("iam-role", "container-role", "assume-role-with-web-identity")


def s3_origin(bucket: str) -> DataOrigin:
    """Which URLs name objects of a bucket."""
    return DataOrigin(SCHEMES, bucket)


def s3_data_access(
    options: S3Options,
    session: boto3.Session,
    server: S3Server,
    bucket: str,
    *,
    renewal: str = "",
) -> DataAccess:
    """The settings of `pyarrow.fs.S3FileSystem`, and the options of a store that creates files.

    Args:
        options: How the log reaches the bucket.
        session: Whose credentials the log's requests carry.
        server: Where they go.
        bucket: The bucket.
        renewal: The name under which the access is made anew, for credentials that expire.

    Raises:
        ConfigError: The caller pays for requests, or files are encrypted with the caller's key:
            Arrow's requests can't say so (kind `OPTIMIST_UNSUPPORTED_OPTION`). Or the credentials
            can't be had (kind `OPTIMIST_NO_CREDENTIALS`).
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
    keys = {} if options.is_anonymous else _keys(session)
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


def abort_uploads(client: S3Client, location: S3Location) -> None:
    """Abort unfinished uploads below a directory; failures are only logged."""
    prefix = location.key.rstrip("/") + "/"
    marks = PageTokens(location.url)
    try:
        pages = client.get_paginator("list_multipart_uploads").paginate(
            Bucket=location.bucket, Prefix=prefix
        )
        for page in pages:
            for upload in page.get("Uploads", []):
                with contextlib.suppress(client.exceptions.NoSuchUpload):
                    client.abort_multipart_upload(
                        Bucket=location.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
            if page.get("IsTruncated"):
                marks.follow(f"{page.get('NextKeyMarker')}?{page.get('NextUploadIdMarker')}")
    except (BotoCoreError, ClientError, StorageError) as error:
        _LOG.warning(
            "Unfinished uploads below %s may be left (%s). A lifecycle rule of the bucket "
            "(AbortIncompleteMultipartUpload) removes them.",
            location.url,
            type(error).__name__,
        )


def _keys(session: boto3.Session) -> dict[str, Any]:
    try:
        found = session.get_credentials()
        if found is None or found.method in _OF_THE_MACHINE:
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
