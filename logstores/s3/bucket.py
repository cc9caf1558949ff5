"""The requests that a log makes to one bucket, each with its errors translated.

One conditional PUT creates an object, or for a large object the last request of an upload in parts.
That request is sent again only if the answer says that it was refused. `s3/errors.py` has the
meaning of each error.
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
from optimist.logstores.shared.answer_dates import ms_of_date
from optimist.logstores.shared.answer_table import CREATE
from optimist.logstores.shared.create_once import create_once
from optimist.logstores.shared.file_pieces import md5_of, size_of
from optimist.logstores.shared.listing_order import in_order
from optimist.logstores.shared.missed_commits import commits_after_gap, missed_commits
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
    """One bucket, which threads may share.

    The `path` of a method is only for messages; the object is given by a key or location.

    Args:
        name: The bucket.
        options: How to reach it.
        clients: The clients that send the requests.
        clock: Paces repeated requests.
    """

    def __init__(self, name: str, options: S3Options, clients: S3Clients, clock: Clock) -> None:
        self.name = name
        self.options = options
        self.endpoint = clients.server.endpoint
        self._clients = clients
        self._clock = clock
        self._renewal = Renewal(self.data_access)

    def data_access(self) -> DataAccess:
        """Return how data files in the bucket are reached (see `s3_data_access`)."""
        session, server = self._clients.session, self._clients.server
        name = self._renewal.name
        return s3_data_access(self.options, session, server, self.name, renewal=name)

    def abort_uploads(self, directory: S3Location) -> None:
        """Abort unfinished uploads below a directory (see `LogStore.abort_uploads`)."""
        abort_uploads(self._clients.client(), directory, self.options)

    def create(
        self, key: str, data: bytes | BinaryIO, *, path: str, is_conditional: bool = True
    ) -> tuple[PutOutcome, str]:
        """Create an object by a conditional request, and return its entity tag if it was created.

        Args:
            key: The object.
            data: Its bytes, or a file that holds them.
            path: For messages.
            is_conditional: False if an object of this key may be replaced.

        Raises:
            StorageError: Nothing was created.
        """
        condition = {"IfNoneMatch": "*"} if is_conditional else {}
        size_bytes = len(data) if isinstance(data, bytes) else size_of(data)
        if isinstance(data, bytes) or size_bytes <= MAX_PUT_BYTES:
            return self._create_by(
                lambda client: self._put(client, key, data, condition), path, size_bytes=size_bytes
            )
        ask = partial(self._ask, doing=CREATE, path=path)
        with PartsUpload(ask, self.name, key, self.options) as upload:
            upload.send(data)
            created = self._create_by(
                lambda client: upload.complete(client, condition), path, size_bytes=size_bytes
            )
            upload.is_done = created[0] is PutOutcome.CREATED
        return created

    def _create_by(
        self, send: Callable[[S3Client], Mapping[str, Any]], path: str, *, size_bytes: int
    ) -> tuple[PutOutcome, str]:
        """Send a conditional request, and return the outcome and the new object's tag."""

        def failed(error: Exception) -> StorageError:
            failure = self._translate(error, CREATE, path)
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
        """Delete an object, which may be absent."""
        self._ask(
            lambda client: client.delete_object(
                Bucket=self.name, Key=key, **self.options.request_parameters
            ),
            "delete",
            path,
        )

    def delete_many(self, paths: Mapping[str, str]) -> None:
        """Delete objects, up to a thousand per request, which may be absent.

        If the answer does not name an object as deleted, a separate request deletes it.

        Args:
            paths: The paths of the objects, by their keys.
        """
        plain = [key for key in paths if key.isprintable()]  # XML can't hold others
        gone: set[str] = set()
        for start in range(0, len(plain), _KEYS_A_REQUEST):
            named = plain[start : start + _KEYS_A_REQUEST]
            gone |= self._ask(partial(self._delete_batch, keys=named), "delete", paths[named[0]])
        for key, path in paths.items():
            if key not in gone:
                self.delete(key, path=path)

    def _delete_batch(self, client: S3Client, *, keys: Sequence[str]) -> set[str]:
        """Delete objects, and return the keys that the answer names only as deleted."""
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
        """Read bytes of one object with this tag, and read again if a body is cut off."""
        request = dict(self.options.read_parameters)
        if byte_range is not None:
            request["Range"] = byte_range
        if etag:
            request["IfMatch"] = etag

        def get(client: S3Client) -> Fetched:
            response = client.get_object(Bucket=self.name, Key=key, **request)
            found = _parse_fetched(response["Body"].read(), response)
            if etag and found.etag != etag:
                raise _precondition_failed()
            if byte_range is not None:
                _ensure_holds(found, byte_range)
            return found

        return self._ask(get, "read", path)

    def first_under(self, prefix: str, *, path: str) -> ObjectTypeDef | None:
        """Return one object whose key starts with a prefix, the first in an ordered listing.

        A page may be empty although more pages follow.
        """
        pages = self._pages_if_any(path, Prefix=prefix, MaxKeys=1)
        return next((item for page in pages for item in page.get("Contents", [])), None)

    def service_time_ms(self, location: S3Location, *, path: str) -> int | None:
        """Return the time that the answer to a listing tells; None if it tells none."""
        page = self._page(path, Prefix=location.prefix, MaxKeys=1)
        return ms_of_date(page["ResponseMetadata"]["HTTPHeaders"].get("date"))

    def objects_from(self, location: S3Location, *, path: str) -> Iterator[ObjectTypeDef]:
        """Yield a directory's objects from about a key on, sorted and page by page.

        Raises:
            LogFileNotFoundError: The directory has no objects.
            StorageError: Also if the listing is out of order (kind `OPTIMIST_UNSORTED_LISTING`).
        """
        if self.options.lists_in_order:
            return self._list_in_order(location, path)
        return iter(self._list_without_order(location, path))

    def everything_under(self, prefix: str, *, path: str) -> Iterator[ObjectTypeDef]:
        """Yield all objects whose key starts with a prefix, page by page."""
        for page in self._pages_if_any(path, Prefix=prefix):
            yield from page.get("Contents", [])

    def names_under(self, prefix: str, *, path: str) -> Iterator[str]:
        """Yield the part of each key after a prefix, up to the next slash."""
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
            # Buckets with Object Lock require it. It rewinds the file, of which an earlier attempt
            # may have sent a part.
            ContentMD5=md5_of(data),
            Body=data,
            **condition,
            **self.options.put_parameters,
        )

    def _list_in_order(self, location: S3Location, path: str) -> Iterator[ObjectTypeDef]:
        request = {"Prefix": location.prefix, "Delimiter": "/"}
        if location.name:
            # S3 starts after the given key. Our key without its last character sorts before our
            # key, so our key itself is listed, too.
            request["StartAfter"] = location.key[:-1]
        pages = self._pages(path, **request)
        return in_order(
            (item for page in pages for item in page.get("Contents", [])),
            lambda item: item["Key"],
            path=path,
            endpoint=self.endpoint,
            remedy="Set optimist.store.s3.sortedListing=false.",
        )

    def _list_without_order(self, location: S3Location, path: str) -> list[ObjectTypeDef]:
        """List a directory whose pages are in no order, and again if it has missed commits."""
        listed = self._list_whole(location, path)
        names = [key[len(location.prefix) :] for key in sorted(listed)]
        if missed_commits(names):
            listed |= self._list_whole(location, path)
            both = [key[len(location.prefix) :] for key in sorted(listed)]
            for name in commits_after_gap(both, names):
                del listed[location.prefix + name]
        return [item for _, item in sorted(listed.items())]

    def _list_whole(self, location: S3Location, path: str) -> dict[str, ObjectTypeDef]:
        pages = self._pages(path, Prefix=location.prefix, Delimiter="/")
        return {item["Key"]: item for page in pages for item in page.get("Contents", [])}

    def _pages(self, path: str, **request: Any) -> Iterator[ListObjectsV2OutputTypeDef]:
        """Yield all pages, where an empty prefix is a missing directory."""
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
        """Check for a directory whose files all sort before the start of a listing."""
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
        """Make a request that may be sent more than once."""

        def ask() -> _Result:
            try:
                return request(self._clients.client())
            except Exception as error:
                raise self._translate(error, doing, path) from error

        return call_patiently(ask, _REPEAT, self._clock)

    def _translate(self, error: Exception, doing: str, path: str) -> StorageError:
        return s3_error(error, doing=doing, path=path, endpoint=self.endpoint)


def _ensure_asked_for(page: ListObjectsV2OutputTypeDef, prefix: str) -> None:
    """Refuse the page of another listing, whose objects would be mistaken for this one's."""
    is_other = page.get("Prefix", prefix) != prefix
    if is_other or any(not item["Key"].startswith(prefix) for item in page.get("Contents", [])):
        raise UnclearAnswerError("ListObjectsV2")


def _precondition_failed() -> ClientError:
    """Return the error that a server which ignores `If-Match` should have sent."""
    answer: Any = {
        "Error": {"Code": "PreconditionFailed"},
        "ResponseMetadata": {"HTTPStatusCode": 412},
    }
    return ClientError(answer, "GetObject")


def _ensure_holds(found: Fetched, byte_range: str) -> None:
    """Refuse an answer without all bytes of the range.

    More bytes do no harm, see `Fetched`.
    """
    first, _, last = byte_range.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(found.size_bytes - int(last), 0)
    end = min(int(last) + 1, found.size_bytes) if first else found.size_bytes
    if not found.start <= start <= end <= found.start + len(found.data) <= found.size_bytes:
        raise UnclearAnswerError("GetObject")


def _parse_fetched(data: bytes, response: Mapping[str, Any]) -> Fetched:
    etag = response.get("ETag", "")
    content_range = response.get("ContentRange", "")
    if not content_range:
        return Fetched(data, 0, len(data), etag)
    span, _, total = content_range.removeprefix("bytes ").partition("/")
    return Fetched(data, int(span.partition("-")[0]), int(total), etag)
