"""The server that a boto3 client uses, so that data files go where the log goes.

boto3 finds an endpoint not only in our options, but also in `AWS_ENDPOINT_URL_S3`,
`AWS_ENDPOINT_URL`, and `endpoint_url` of a profile, which may also set a region and an addressing
style. Arrow has other sources. Without this module, the log could go to one server, and the data to
another, signed with the keys of the first. So Arrow and the executors get the endpoint that boto3
has chosen.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["S3Server"]

_AMAZON = re.compile(r"https://s3(?:[.-][a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?")
"""An address that Arrow finds itself, from the region."""
_MISLEADING = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


@dataclass(frozen=True, slots=True)
class S3Server:
    """The server that gets the requests of a log.

    Attributes:
        endpoint: The URL.
        region: The region for which requests are signed.
        is_virtual: True if the bucket is in the host, and not in the path.
        pinned: The endpoint, if other clients can't find it by the region; else None.
    """

    endpoint: str
    region: str
    is_virtual: bool
    pinned: str | None

    @classmethod
    def of(cls, client: S3Client) -> S3Server:
        """Return the server that a client uses."""
        endpoint = client.meta.endpoint_url
        style = (client.meta.config.s3 or {}).get("addressing_style")  # type: ignore[attr-defined]
        is_amazon = _AMAZON.fullmatch(endpoint) is not None
        is_virtual = style == "virtual" or (is_amazon and style != "path")
        # Arrow reads these variables, too, while boto3 may be configured not to.
        is_found = is_amazon and is_virtual and not any(map(os.environ.get, _MISLEADING))
        return cls(endpoint, client.meta.region_name, is_virtual, None if is_found else endpoint)
