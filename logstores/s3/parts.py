"""Uploads a large file to S3 in parts, unseen until the last request makes an object of them.

1. Begin an upload. Parts belong to it by its id, so one that comes late or twice can't get into
   another upload, nor into the object once it is made.
2. Send the parts, each with its MD5, which the store compares. They may be sent again.
3. Complete it: one request with the condition. The caller judges its answer, and repeats it.
4. Abort an upload that was not completed, because its parts cost money. If the answer to step 3 was
   lost, that does no harm: either the object is made and there is nothing left to abort, or nothing
   was made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from optimist.core.errors import StorageError
from optimist.logstores.s3.evidence import UnclearAnswerError
from optimist.logstores.s3.options import S3Options
from optimist.logstores.shared.file_pieces import md5_of, send_pieces

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

__all__ = ["MAX_PUT_BYTES", "PartsUpload"]

MAX_PUT_BYTES = 64 << 20
"""Up to this size one request is quicker and cheaper than the three or more of an upload."""


class PartsUpload:
    """One upload, as a context. Threads may not share it.

    Args:
        ask: Makes a request that may be repeated, as often as needed.
        bucket: The bucket.
        key: The object.
        options: Give the extra parameters of the requests.

    Attributes:
        is_done: Set it once the object is made; else the end of the context aborts the upload.
    """

    def __init__(
        self,
        ask: Callable[[Callable[[S3Client], Any]], Any],
        bucket: str,
        key: str,
        options: S3Options,
    ) -> None:
        self.is_done = False
        self._ask = ask
        self._place: dict[str, Any] = {"Bucket": bucket, "Key": key}
        self._options = options
        self._parts: list[CompletedPartTypeDef] = []

    def __enter__(self) -> PartsUpload:
        said = self._options.put_parameters

        def begin(client: S3Client) -> str:
            begun = client.create_multipart_upload(**self._place, **said)
            if begun.get("Key", self._place["Key"]) != self._place["Key"]:
                raise UnclearAnswerError("CreateMultipartUpload")
            return begun["UploadId"]

        self._place["UploadId"] = self._ask(begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_done:
            return
        said = self._options.request_parameters
        with contextlib.suppress(StorageError):  # a lifecycle rule finds what is left
            self._ask(lambda client: client.abort_multipart_upload(**self._place, **said))

    def send(self, file: BinaryIO) -> None:
        """Send all parts of a file."""

        def send_one(number: int, piece: bytes) -> CompletedPartTypeDef:
            part = {"PartNumber": number, "Body": piece, "ContentMD5": md5_of(piece)}
            said = {**part, **self._options.read_parameters}
            sent = self._ask(lambda client: client.upload_part(**self._place, **said))
            return {"PartNumber": number, "ETag": sent["ETag"]}

        self._parts = send_pieces(file, send_one)

    def complete(self, client: S3Client, condition: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make the object, in one request.

        Raises:
            UnclearAnswerError: The answer does not name the object and its entity tag.
        """
        made = client.complete_multipart_upload(
            **self._place,
            MultipartUpload={"Parts": self._parts},
            **condition,
            **self._options.read_parameters,
        )
        if not made.get("ETag") or made.get("Key", self._place["Key"]) != self._place["Key"]:
            raise UnclearAnswerError("CompleteMultipartUpload")
        return made
