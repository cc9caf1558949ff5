"""Which server a client of boto3 asks, so that data files go where the log goes.

boto3 finds an endpoint in more places than our options: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`,
and `endpoint_url` of a profile, which may have a region and a style of addressing, too. Arrow looks
in other places. Left to themselves the log goes to one server, and the data to another, signed with
the keys of the first. So what boto3 has settled on is what Arrow and the executors are told.
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
"""An address that Arrow finds by itself, from the region."""
_MISLEADING = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where the requests of a log go.

    Attributes:
        endpoint: The URL.
        region: What they are signed for.
        is_virtual: Whether the bucket stands in the host, and not in the path.
        pinned: The endpoint, if others would not find it by the region; else None.
    """

    endpoint: str
    region: str
    is_virtual: bool
    pinned: str | None

    @classmethod
    def of(cls, client: S3Client) -> S3Server:
        """The server that a client asks."""
        endpoint = client.meta.endpoint_url
        style = (client.meta.config.s3 or {}).get("addressing_style")  # type: ignore[attr-defined]
        is_amazon = _AMAZON.fullmatch(endpoint) is not None
        is_virtual = style == "virtual" or (is_amazon and style != "path")
        # Arrow reads these variables, too, and boto3 may have been told not to.
        is_found = is_amazon and is_virtual and not any(map(os.environ.get, _MISLEADING))
        return cls(endpoint, client.meta.region_name, is_virtual, None if is_found else endpoint)
