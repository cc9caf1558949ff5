"""An upload of a large file to S3 in parts, which only the last request makes visible.

1. Begin an upload. Parts belong to it by its id. So a part that comes late or twice can't get into
   another upload, nor into the object once it exists.
2. Send the parts, each with its MD5, which the store checks. They may be sent again.
3. Complete it by one conditional request. The caller judges its answer, and repeats it.
4. Abort an upload that was not completed, because its parts cost money. If the answer to step 3 was
   lost, the abort does no harm: either the object exists and nothing is left to abort, or the
   object was not created.
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
"""Up to this size, one request is faster and cheaper than an upload's three or more."""


class PartsUpload:
    """One upload, as a context manager that threads must not share.

    Args:
        ask: Makes a request that may be repeated, as often as needed.
        bucket: The bucket.
        key: The object.
        options: The extra parameters of the requests.

    Attributes:
        is_done: Set it once the object exists; else the end of the context aborts the upload.
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
        self._target: dict[str, Any] = {"Bucket": bucket, "Key": key}
        self._options = options
        self._parts: list[CompletedPartTypeDef] = []

    def __enter__(self) -> PartsUpload:
        parameters = self._options.put_parameters

        def begin(client: S3Client) -> str:
            begun = client.create_multipart_upload(**self._target, **parameters)
            if begun.get("Key", self._target["Key"]) != self._target["Key"]:
                raise UnclearAnswerError("CreateMultipartUpload")
            return begun["UploadId"]

        self._target["UploadId"] = self._ask(begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_done:
            return
        parameters = self._options.request_parameters
        with contextlib.suppress(StorageError):  # a lifecycle rule removes the rest
            self._ask(lambda client: client.abort_multipart_upload(**self._target, **parameters))

    def send(self, file: BinaryIO) -> None:
        """Send all parts of a file."""

        def send_one(number: int, piece: bytes) -> CompletedPartTypeDef:
            part = {"PartNumber": number, "Body": piece, "ContentMD5": md5_of(piece)}
            parameters = {**part, **self._options.read_parameters}
            sent = self._ask(lambda client: client.upload_part(**self._target, **parameters))
            return {"PartNumber": number, "ETag": sent["ETag"]}

        self._parts = send_pieces(file, send_one)

    def complete(self, client: S3Client, condition: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create the object, in one request.

        Raises:
            UnclearAnswerError: The answer does not name the object and its entity tag.
        """
        answer = client.complete_multipart_upload(
            **self._target,
            MultipartUpload={"Parts": self._parts},
            **condition,
            **self._options.read_parameters,
        )
        if not answer.get("ETag") or answer.get("Key", self._target["Key"]) != self._target["Key"]:
            raise UnclearAnswerError("CompleteMultipartUpload")
        return answer
