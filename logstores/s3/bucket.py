"""The requests that a log needs of one bucket, each with its errors translated.

Creating an object is one conditional PUT, sent again only where the answer says that it was turned
away; see `s3_errors` for what each error says about it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from botocore.exceptions import BotoCoreError, ClientError

from optimist.core.clock import Clock
from optimist.core.data.access import DataAccess
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.logstore import PutOutcome
from optimist.logstores.patience import Patience
from optimist.logstores.s3.client import S3Clients
from optimist.logstores.s3.data import abort_uploads, s3_data_access
from optimist.logstores.s3.errors import rule_for, storage_error
from optimist.logstores.s3.options import S3Options
from optimist.logstores.s3.path import S3Location
from optimist.logstores.s3.reader import Fetched
from optimist.logstores.shared.http_answers import PutMeaning

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef, ObjectTypeDef

__all__ = ["S3Bucket"]

_LOG = logging.getLogger(__name__)

_CREATE = Patience(max_tries=8, cap_s=2.0)
_READ = Patience(max_tries=3)


class S3Bucket:
    """One bucket. Threads may share it.

    Paths are given for messages, next to the location that they mean.

    Args:
        name: The bucket.
        options: How to reach it.
        clients: The clients that do.
        clock: Paces what is sent again.
    """

    def __init__(self, name: str, options: S3Options, clients: S3Clients, clock: Clock) -> None:
        self.name = name
        self.options = options
        self.endpoint = clients.endpoint
        self._clients = clients
        self._clock = clock

    def data_access(self) -> DataAccess:
        """How data files in the bucket are reached; see `s3_data_access`."""
        region = self._clients.patient.meta.region_name
        return s3_data_access(self.options, self._clients.session, region)

    def abort_uploads(self, directory: S3Location) -> None:
        """Give up what was begun below a directory; see `LogStore.abort_uploads`."""
        abort_uploads(self._clients.patient, directory)

    def create(self, key: str, data: bytes | BinaryIO, *, path: str) -> tuple[PutOutcome, str]:
        """The conditional PUT, until it is answered; with the entity tag if created.

        `EXISTS` after the store asked to slow down may be our own file, if the request had been
        passed on before it was turned away: that is `UNKNOWN`.

        Raises:
            StorageError: Nothing was created.
        """
        is_doubtful = False
        failure: BotoCoreError | ClientError | None = None
        for _ in _CREATE.tries(self._clock):
            sent = self._send_create(key, data)
            if isinstance(sent, str):
                return PutOutcome.CREATED, sent
            failure, answer = sent, rule_for(sent).on_create
            if answer is PutMeaning.EXISTS and not is_doubtful:
                return PutOutcome.EXISTS, ""
            if answer in (PutMeaning.UNKNOWN, PutMeaning.EXISTS):
                _LOG.warning("No clear answer while creating %s: %s", path, type(sent).__name__)
                return PutOutcome.UNKNOWN, ""
            if answer is PutMeaning.NOTHING_WRITTEN:
                break
            is_doubtful = is_doubtful or answer is PutMeaning.SLOW_DOWN
        assert failure is not None
        if is_doubtful:
            return PutOutcome.UNKNOWN, ""
        raise self._failed(failure, "create", path) from failure

    def put(self, key: str, data: bytes, *, path: str) -> None:
        """The PUT without a condition."""
        try:
            self._clients.patient.put_object(
                Bucket=self.name, Key=key, Body=data, **self.options.put_parameters
            )
        except (BotoCoreError, ClientError) as error:
            raise self._failed(error, "write", path) from error

    def delete(self, key: str, *, path: str) -> None:
        """The DELETE; an object that is absent is fine."""
        try:
            self._clients.patient.delete_object(
                Bucket=self.name, Key=key, **self.options.request_parameters
            )
        except (BotoCoreError, ClientError) as error:
            raise self._failed(error, "delete", path) from error

    def fetch(
        self, key: str, *, path: str, byte_range: str | None = None, etag: str | None = None
    ) -> Fetched:
        """Bytes of one object, of the state with this tag; a body cut off is asked for again."""
        request = dict(self.options.read_parameters)
        if byte_range is not None:
            request["Range"] = byte_range
        if etag:
            request["IfMatch"] = etag
        for attempt in _READ.tries(self._clock):
            try:
                response = self._clients.patient.get_object(Bucket=self.name, Key=key, **request)
                return _fetched(response["Body"].read(), response)
            except ClientError as error:
                raise self._failed(error, "read", path) from error
            except BotoCoreError as error:
                if attempt + 1 == _READ.max_tries or not rule_for(error).retryable:
                    raise self._failed(error, "read", path) from error
        raise AssertionError("the last attempt returns or raises")

    def first_under(self, prefix: str, *, path: str) -> ObjectTypeDef | None:
        """Any one object whose key starts so; the first where the store lists in order."""
        found = self._page(path, Prefix=prefix, MaxKeys=1).get("Contents", [])
        return found[0] if found else None

    def objects_from(self, location: S3Location, *, path: str) -> Iterator[ObjectTypeDef]:
        """The objects beside a key from about there on, sorted; page by page.

        Raises:
            LogFileNotFoundError: There is nothing beside it.
            StorageError: Also when the store lists in no order (kind `OPTIMIST_UNSORTED_LISTING`).
        """
        if self.options.lists_in_order:
            return self._in_order(location, path)
        found = [
            item
            for page in self._pages(path, Prefix=location.prefix, Delimiter="/")
            for item in page.get("Contents", [])
        ]
        return iter(sorted(found, key=lambda item: item["Key"]))

    def _send_create(self, key: str, data: bytes | BinaryIO) -> str | BotoCoreError | ClientError:
        if not isinstance(data, bytes):
            data.seek(0)  # an attempt before this one may have sent a part of it
        try:
            response = self._clients.once.put_object(
                Bucket=self.name,
                Key=key,
                Body=data,
                IfNoneMatch="*",
                **self.options.put_parameters,
            )
        except (BotoCoreError, ClientError) as error:
            return error
        return response.get("ETag", "")

    def _in_order(self, location: S3Location, path: str) -> Iterator[ObjectTypeDef]:
        request = {"Prefix": location.prefix, "Delimiter": "/"}
        if location.name:
            # Listing starts after a key. All keys from ours on come after ours less its end.
            request["StartAfter"] = location.key[:-1]
        last = ""
        for page in self._pages(path, **request):
            for item in page.get("Contents", []):
                if item["Key"] < last:
                    raise self._unsorted(path)
                last = item["Key"]
                yield item

    def _pages(self, path: str, **request: Any) -> Iterator[ListObjectsV2OutputTypeDef]:
        """All pages; an empty prefix is a missing directory."""
        is_empty = True
        while True:
            page = self._page(path, **request)
            is_empty = is_empty and not (page.get("Contents") or page.get("CommonPrefixes"))
            yield page
            if not page.get("IsTruncated"):
                break
            request["ContinuationToken"] = page["NextContinuationToken"]
        if is_empty and not self._is_directory(path, request):
            raise LogFileNotFoundError(
                f"Cannot list {path}: there is nothing under s3://{self.name}/{request['Prefix']}.",
                kind="OPTIMIST_FILE_NOT_FOUND",
                path=path,
                retryable=False,
            )

    def _is_directory(self, path: str, request: Mapping[str, Any]) -> bool:
        """Asked where a listing showed nothing: the files may all come before its start."""
        prefix = request["Prefix"]
        if not prefix:
            return True  # the bucket itself
        return "StartAfter" in request and self.first_under(prefix, path=path) is not None

    def _page(self, path: str, **request: Any) -> ListObjectsV2OutputTypeDef:
        try:
            return self._clients.patient.list_objects_v2(
                Bucket=self.name, **request, **self.options.request_parameters
            )
        except (BotoCoreError, ClientError) as error:
            raise self._failed(error, "list", path) from error

    def _failed(self, error: BotoCoreError | ClientError, doing: str, path: str) -> StorageError:
        return storage_error(error, doing=doing, path=path, endpoint=self.endpoint)

    def _unsorted(self, path: str) -> StorageError:
        return StorageError(
            f"Cannot list {path}: the store at {self.endpoint} does not list in the order of "
            "names. Set optimist.store.s3.sortedListing=false.",
            kind="OPTIMIST_UNSORTED_LISTING",
            path=path,
            endpoint=self.endpoint,
            retryable=False,
        )


def _fetched(data: bytes, response: Mapping[str, Any]) -> Fetched:
    etag = response.get("ETag", "")
    content_range = response.get("ContentRange", "")
    if not content_range:
        return Fetched(data, 0, len(data), etag)
    span, _, total = content_range.removeprefix("bytes ").partition("/")
    return Fetched(data, int(span.partition("-")[0]), int(total), etag)
