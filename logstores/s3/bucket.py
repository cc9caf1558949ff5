"""The requests that a log makes to one bucket, each with its errors translated.

An object is created by one conditional PUT, or, if it is large, by the last request of an upload in
parts. That request is sent again only where the answer says that it was turned away; see
`s3/errors.py` for what each error says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from botocore.exceptions import ClientError

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.plugins.renewed_access import Renewal
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import Patience, call_patiently
from optimist.logstores.s3.client import S3Clients
from optimist.logstores.s3.data import abort_uploads, s3_data_access
from optimist.logstores.s3.errors import s3_error, s3_row
from optimist.logstores.s3.evidence import UnclearAnswerError
from optimist.logstores.s3.options import S3Options
from optimist.logstores.s3.parts import MAX_PUT_BYTES, PartsUpload
from optimist.logstores.s3.path import S3Location
from optimist.logstores.s3.reader import Fetched
from optimist.logstores.shared.answer_table import CREATE
from optimist.logstores.shared.create_once import create_once
from optimist.logstores.shared.file_pieces import md5_of, size_of
from optimist.logstores.shared.listing_order import in_order
from optimist.logstores.shared.page_tokens import PageTokens

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef, ObjectTypeDef

__all__ = ["S3Bucket"]

_Result = TypeVar("_Result")

_KEYS_A_REQUEST = 1000
_CREATE = Patience(max_tries=8, cap_s=2.0)
_REPEAT = Patience()


class S3Bucket:
    """One bucket. Threads may share it.

    The `path` of a method is for messages; a key or location says what it means.

    Args:
        name: The bucket.
        options: How to reach it.
        clients: The clients that send the requests.
        clock: Paces requests that are sent again.
    """

    def __init__(self, name: str, options: S3Options, clients: S3Clients, clock: Clock) -> None:
        self.name = name
        self.options = options
        self.endpoint = clients.server.endpoint
        self._clients = clients
        self._clock = clock
        self._renewal = Renewal(self.data_access)

    def data_access(self) -> DataAccess:
        """How data files in the bucket are reached; see `s3_data_access`."""
        session, server = self._clients.session, self._clients.server
        name = self._renewal.name
        return s3_data_access(self.options, session, server, self.name, renewal=name)

    def abort_uploads(self, directory: S3Location) -> None:
        """Abort unfinished uploads below a directory; see `LogStore.abort_uploads`."""
        abort_uploads(self._clients.client(), directory)

    def create(
        self, key: str, data: bytes | BinaryIO, *, path: str, is_conditional: bool = True
    ) -> tuple[PutOutcome, str]:
        """Create an object by a conditional request; returns its entity tag if it was created.

        Args:
            key: The object.
            data: Its bytes, or a file that holds them.
            path: For messages.
            is_conditional: False where an object of this key may be replaced.

        Raises:
            StorageError: Nothing was created.
        """
        condition = {"IfNoneMatch": "*"} if is_conditional else {}
        size_bytes = len(data) if isinstance(data, bytes) else size_of(data)
        if isinstance(data, bytes) or size_bytes <= MAX_PUT_BYTES:
            return self._created_by(
                lambda client: self._put(client, key, data, condition), path, size_bytes=size_bytes
            )
        ask = partial(self._ask, doing=CREATE, path=path)
        with PartsUpload(ask, self.name, key, self.options) as upload:
            upload.send(data)
            created = self._created_by(
                lambda client: upload.complete(client, condition), path, size_bytes=size_bytes
            )
            upload.is_done = created[0] is PutOutcome.CREATED
        return created

    def _created_by(
        self, send: Callable[[S3Client], Mapping[str, Any]], path: str, *, size_bytes: int
    ) -> tuple[PutOutcome, str]:
        """How a request with the condition ended, and the entity tag if it created the object."""

        def failed(error: Exception) -> StorageError:
            failure = self._failed(error, CREATE, path)
            failure.__cause__ = error
            return failure

        outcome, answer = create_once(
            lambda: send(self._clients.client()),
            lambda error: s3_row(error).put,
            failed,
            _CREATE,
            self._clock,
            size_bytes=size_bytes,
        )
        return outcome, "" if answer is None else answer.get("ETag", "")

    def put(self, key: str, data: bytes, *, path: str) -> None:
        """Write an object, without a condition."""
        self._ask(lambda client: self._put(client, key, data, {}), "write", path)

    def delete(self, key: str, *, path: str) -> None:
        """Delete an object; one that is absent is fine."""
        self._ask(
            lambda client: client.delete_object(
                Bucket=self.name, Key=key, **self.options.request_parameters
            ),
            "delete",
            path,
        )

    def delete_many(self, paths: Mapping[str, str]) -> None:
        """Delete objects, up to a thousand by one request; those that are absent are fine.

        An object that the answer does not name as deleted is deleted by a request of its own.

        Args:
            paths: By their keys, the paths of the objects.
        """
        plain = [key for key in paths if key.isprintable()]  # others don't fit into XML
        gone: set[str] = set()
        for start in range(0, len(plain), _KEYS_A_REQUEST):
            named = plain[start : start + _KEYS_A_REQUEST]
            gone |= self._ask(partial(self._deleted, keys=named), "delete", paths[named[0]])
        for key, path in paths.items():
            if key not in gone:
                self.delete(key, path=path)

    def _deleted(self, client: S3Client, *, keys: Sequence[str]) -> set[str]:
        """The keys that the answer names as deleted, and as nothing else."""
        answer = client.delete_objects(
            Bucket=self.name,
            Delete={"Objects": [{"Key": key} for key in keys], "Quiet": False},
            **self.options.request_parameters,
        )
        failed = {each.get("Key", ""): each.get("Code") for each in answer.get("Errors", [])}
        absent = {key for key, code in failed.items() if code == "NoSuchKey"}
        return ({each.get("Key", "") for each in answer.get("Deleted", [])} - set(failed)) | absent

    def fetch(
        self, key: str, *, path: str, byte_range: str | None = None, etag: str | None = None
    ) -> Fetched:
        """Read bytes of one object, in the state with this tag; asks again if a body is cut off."""
        request = dict(self.options.read_parameters)
        if byte_range is not None:
            request["Range"] = byte_range
        if etag:
            request["IfMatch"] = etag

        def get(client: S3Client) -> Fetched:
            response = client.get_object(Bucket=self.name, Key=key, **request)
            found = _fetched(response["Body"].read(), response)
            if etag and found.etag != etag:
                raise _replaced()
            if byte_range is not None:
                _ensure_holds(found, byte_range)
            return found

        return self._ask(get, "read", path)

    def first_under(self, prefix: str, *, path: str) -> ObjectTypeDef | None:
        """One object whose key starts so: the first, where the store lists in order."""
        found = self._page(path, Prefix=prefix, MaxKeys=1).get("Contents", [])
        return found[0] if found else None

    def objects_from(self, location: S3Location, *, path: str) -> Iterator[ObjectTypeDef]:
        """The objects in a key's directory from about that key on, sorted; page by page.

        Raises:
            LogFileNotFoundError: There is nothing in the directory.
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

    def everything_under(self, prefix: str, *, path: str) -> Iterator[ObjectTypeDef]:
        """All objects whose key starts so; page by page."""
        for page in self._pages_if_any(path, Prefix=prefix):
            yield from page.get("Contents", [])

    def names_under(self, prefix: str, *, path: str) -> Iterator[str]:
        """What comes after a prefix, up to the next slash."""
        for page in self._pages_if_any(path, Prefix=prefix, Delimiter="/"):
            yield from (item["Key"][len(prefix) :] for item in page.get("Contents", []))
            found = (item["Prefix"] for item in page.get("CommonPrefixes", []))
            yield from (each[len(prefix) :].rstrip("/") for each in found)

    def _put(
        self, client: S3Client, key: str, data: bytes | BinaryIO, condition: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        return client.put_object(
            Bucket=self.name,
            Key=key,
            # Buckets with Object Lock want it. It rewinds: an earlier attempt may have sent a part.
            ContentMD5=md5_of(data),
            Body=data,
            **condition,
            **self.options.put_parameters,
        )

    def _in_order(self, location: S3Location, path: str) -> Iterator[ObjectTypeDef]:
        request = {"Prefix": location.prefix, "Delimiter": "/"}
        if location.name:
            # S3 starts after the key that is given. Our key without its last character comes before
            # it, so that our key itself is listed, too.
            request["StartAfter"] = location.key[:-1]
        pages = self._pages(path, **request)
        return in_order(
            (item for page in pages for item in page.get("Contents", [])),
            lambda item: item["Key"],
            path=path,
            endpoint=self.endpoint,
            remedy="Set optimist.store.s3.sortedListing=false.",
        )

    def _pages(self, path: str, **request: Any) -> Iterator[ListObjectsV2OutputTypeDef]:
        """All pages; an empty prefix is a missing directory."""
        is_empty = True
        for page in self._pages_if_any(path, **request):
            is_empty = is_empty and not (page.get("Contents") or page.get("CommonPrefixes"))
            yield page
        if is_empty and not self._is_directory(path, request):
            raise LogFileNotFoundError(
                f"Cannot list {path}: there is nothing under s3://{self.name}/{request['Prefix']}.",
                kind="OPTIMIST_FILE_NOT_FOUND",
                path=path,
                retryable=False,
            )

    def _pages_if_any(self, path: str, **request: Any) -> Iterator[ListObjectsV2OutputTypeDef]:
        tokens = PageTokens(path)
        while True:
            page = self._page(path, **request)
            yield page
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = tokens.follow(page.get("NextContinuationToken"))

    def _is_directory(self, path: str, request: Mapping[str, Any]) -> bool:
        """Whether a listing without files is of a directory: they may all come before its start."""
        prefix = request["Prefix"]
        if not prefix:
            return True  # the bucket itself
        return "StartAfter" in request and self.first_under(prefix, path=path) is not None

    def _page(self, path: str, **request: Any) -> ListObjectsV2OutputTypeDef:
        def list_page(client: S3Client) -> ListObjectsV2OutputTypeDef:
            page = client.list_objects_v2(
                Bucket=self.name, **request, **self.options.request_parameters
            )
            _ensure_asked_for(page, request["Prefix"])
            return page

        return self._ask(list_page, "list", path)

    def _ask(self, request: Callable[[S3Client], _Result], doing: str, path: str) -> _Result:
        """Make a request that may be made more than once."""

        def ask() -> _Result:
            try:
                return request(self._clients.client())
            except Exception as error:
                raise self._failed(error, doing, path) from error

        return call_patiently(ask, _REPEAT, self._clock)

    def _failed(self, error: Exception, doing: str, path: str) -> StorageError:
        return s3_error(error, doing=doing, path=path, endpoint=self.endpoint)


def _ensure_asked_for(page: ListObjectsV2OutputTypeDef, prefix: str) -> None:
    """Refuse the page of another listing: its objects would be taken for those of this one."""
    is_other = page.get("Prefix", prefix) != prefix
    if is_other or any(not item["Key"].startswith(prefix) for item in page.get("Contents", [])):
        raise UnclearAnswerError("ListObjectsV2")


def _replaced() -> ClientError:
    """What a server should have said that ignores `If-Match`."""
    answer: Any = {
        "Error": {"Code": "PreconditionFailed"},
        "ResponseMetadata": {"HTTPStatusCode": 412},
    }
    return ClientError(answer, "GetObject")


def _ensure_holds(found: Fetched, byte_range: str) -> None:
    """Refuse an answer without all bytes of the range; more of them do no harm, see `Fetched`."""
    first, _, last = byte_range.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(found.size_bytes - int(last), 0)
    end = min(int(last) + 1, found.size_bytes) if first else found.size_bytes
    if not found.start <= start <= end <= found.start + len(found.data) <= found.size_bytes:
        raise UnclearAnswerError("GetObject")


def _fetched(data: bytes, response: Mapping[str, Any]) -> Fetched:
    etag = response.get("ETag", "")
    content_range = response.get("ContentRange", "")
    if not content_range:
        return Fetched(data, 0, len(data), etag)
    span, _, total = content_range.removeprefix("bytes ").partition("/")
    return Fetched(data, int(span.partition("-")[0]), int(total), etag)
