"""How data files on S3 are reached by Arrow's own file system, with the options of the log's store.

Credentials that this process was given, or found in its environment or its files, go along. Those
of the machine's role do not: every executor has that role and renews it by itself.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from optimist.core.data.access import DataAccess
from optimist.core.errors import ConfigError
from optimist.logstores.s3.options import S3Options
from optimist.logstores.s3.path import SCHEMES, S3Location

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["abort_uploads", "s3_data_access"]

_LOG = logging.getLogger(__name__)
_OF_THE_MACHINE = ("iam-role", "container-role", "assume-role-with-web-identity")
_AMAZONS_OWN = "AES256"


def s3_data_access(options: S3Options, session: boto3.Session, region: str | None) -> DataAccess:
    """The settings of `pyarrow.fs.S3FileSystem`.

    Raises:
        ConfigError: The caller pays for requests, or files are encrypted with the caller's key:
            Arrow's requests can't say so (kind `OPTIMIST_UNSUPPORTED_OPTION`). Or the credentials
            can't be had (kind `OPTIMIST_NO_CREDENTIALS`).
    """
    _ensure_readable(options)
    is_virtual = options.endpoint is not None and options.path_style is False
    settings: dict[str, Any] = {
        "anonymous": True if options.is_anonymous else None,
        "region": options.region or region,
        "endpoint_override": options.endpoint,
        "force_virtual_addressing": True if is_virtual else None,
        "connect_timeout": options.connect_timeout_s,
        "request_timeout": options.read_timeout_s,
        "background_writes": True,
    }
    if not options.is_anonymous:
        settings |= _keys(session)
    return DataAccess.of("s3", SCHEMES, settings, refuses_writes=_refusal(options))


def abort_uploads(client: S3Client, location: S3Location) -> None:
    """Give up what was begun below a directory; failures are told in the log alone."""
    prefix = location.key.rstrip("/") + "/"
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
    except (BotoCoreError, ClientError) as error:
        _LOG.warning(
            "Unfinished uploads below %s may be left (%s). A lifecycle rule of the bucket "
            "(AbortIncompleteMultipartUpload) removes such.",
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
            f"The credentials for S3 can't be had ({type(error).__name__}). Check profile, "
            "credentials callable and keys.",
            kind="OPTIMIST_NO_CREDENTIALS",
        ) from None
    return {
        "access_key": frozen.access_key,
        "secret_key": frozen.secret_key,
        "session_token": frozen.token or None,
    }


def _ensure_readable(options: S3Options) -> None:
    asked = None
    if options.requester_pays:
        asked = "fs.s3a.requester.pays.enabled"
    elif options.encryption == "SSE-C":
        asked = "fs.s3a.encryption.algorithm=SSE-C"
    if asked is not None:
        raise ConfigError(
            f"{asked} can't be honoured for data files: Arrow's S3 file system sends no such "
            "header. Set optimist.spark.plane=native, with Hadoop's S3A connector on Spark's class "
            "path.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key=asked,
        )


def _refusal(options: S3Options) -> str:
    """Amazon encrypts by AES256 unless the bucket says more; anything else has to be asked for."""
    is_default = options.encryption == _AMAZONS_OWN and options.endpoint is None
    if not options.encryption or is_default:
        return ""
    return (
        f"The encryption {options.encryption} can't be asked for: Arrow's S3 file system sends no "
        "such header. Make it the bucket's default encryption and leave the option out, or set "
        "optimist.spark.plane=native with Hadoop's S3A connector on Spark's class path."
    )
