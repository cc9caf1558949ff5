"""Logs in Google Cloud Storage (spec 3.4).

*Assumes* the JSON API of Google Cloud Storage: an upload becomes visible in one step when it is
complete, `ifGenerationMatch=0` is honoured, reads and listings see every write that has returned.
Any other endpoint (an emulator, a proxy) is probed before the first write.

*Provides* mutual exclusion between threads, processes and machines; atomic visibility; consistent
listing; listing from a name without scanning earlier names (`startOffset`).

*Does not provide* directories: one exists while it has a file. Nor more than about one write a
second to one object, which is the service's limit; writers that race for one version reach it and
get a true answer, see below. Nor protection against a writer that overwrites without a condition.

*Excludes* the writers of `deltalake` and of delta-spark with its GCS store, which create commits
with the same condition.

How a commit is created:

1. Send one multipart upload request with all the bytes and `ifGenerationMatch=0`, and no retry.
   Never use a resumable upload, which is several requests. (Checkpoints and data files that are too
   large for one request use one. They have the condition, too, and nobody writes other bytes to
   them.)
2. Created, and the answer names the object, the length and the MD5 of the bytes: done. On 412,
   another writer was first.
3. On 429 and 503 the object has too many writers, so another writer has probably won. But only the
   file shows it: the outcome is `UNKNOWN`, and the engine reads the file back. The same applies
   without an answer.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import requests
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError, from_http_response
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession, Request
from google.cloud.storage import Blob, Bucket, Client
from google.cloud.storage.exceptions import DataCorruption
from urllib3.exceptions import HTTPError

from optimist.core.errors import ConfigError, StorageError
from optimist.core.forking import ForkSafeLock, keep_inherited, renew_in_child
from optimist.core.paths import scheme_of
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import FileStatus
from optimist.core.plugins.renewed_access import Renewal
from optimist.core.runtime.clock import Clock
from optimist.logstores.gcs.batch import DELETIONS_A_REQUEST, PART_ID, deletions
from optimist.logstores.gcs.credentials import gcs_credentials
from optimist.logstores.gcs.data import DataTokens, gcs_data_access, gcs_origin
from optimist.logstores.gcs.errors import gcs_answer
from optimist.logstores.gcs.evidence import ensure_evidence
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.shared.answer_table import PutMeaning
from optimist.logstores.shared.batch_answers import numbers_gone
from optimist.logstores.shared.create_probe import describe_verdicts
from optimist.logstores.shared.file_pieces import PIECE_BYTES, md5_of, size_of
from optimist.logstores.shared.http_answers import error_of_answer
from optimist.logstores.shared.object_keys import object_key, split_key
from optimist.logstores.shared.object_store_log import ObjectStoreLog, OpenedObject, Probed
from optimist.logstores.shared.page_tokens import PageTokens
from optimist.logstores.shared.whole_answers import whole_session

__all__ = ["GCSLogStore"]

_Session = TypeVar("_Session", bound=requests.Session)

_WITH_URLS = (GoogleAPICallError, GoogleAuthError, requests.RequestException, HTTPError)
"""Errors whose text may quote a request."""
_MAX_PUT_TRIES = 1
"""An object takes about one write a second: a writer that is asked to slow down has mostly lost."""
_OBJECT_ACTIONS = ("read", "delete")
"""Actions for which a 404 is about the object. For others it is about the bucket."""
_LIST_FIELDS = "kind,items(name,size,updated,generation),nextPageToken"
_NAMES_TOO = "kind,items(name),prefixes,nextPageToken"


@dataclass(frozen=True, slots=True)
class _Object:
    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class _Page:
    blobs: tuple[Any, ...]
    next_token: str | None
    prefixes: tuple[str, ...]


class GCSLogStore(ObjectStoreLog):
    """Files under `gs://bucket/`.

    Args:
        options: Keys `optimist.store.gcs.*` and `fs.gs.*`, see `GCSOptions`.
        clock: Waits if the service is busy.
    """

    batch_size = DELETIONS_A_REQUEST

    def __init__(
        self, options: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> None:
        self._parsed = GCSOptions.from_options(options or {})
        tries = self._parsed.max_tries
        super().__init__(options, clock, max_tries=tries, max_put_tries=_MAX_PUT_TRIES)
        self._lock = ForkSafeLock()
        self._connected: tuple[Client, AuthorizedSession] | None = None
        self._written: set[str] = set()
        self._tokens = DataTokens(self._parsed, self._clock)
        self._renewals: dict[str, Renewal] = {}
        renew_in_child(self, GCSLogStore._forget_connections)

    def resolve_path(self, path: str) -> str:
        """Return the path as `gs://bucket/key`, without doubled or trailing slashes."""
        location = _locate(path.rstrip("/"))
        return f"gs://{location.bucket}/{location.key}".rstrip("/")

    def data_origin(self, path: str) -> DataOrigin:
        """See `LogStore.data_origin`."""
        return gcs_origin(_locate(path).bucket)

    def data_access(self, path: str) -> DataAccess:
        """See `LogStore.data_access`."""
        bucket = _locate(path).bucket
        with self._lock:
            renewal = self._renewals.get(bucket)
            if renewal is None:
                renewal = self._renewals[bucket] = Renewal(partial(self.data_access, path))
        return gcs_data_access(
            self._parsed, bucket, self.options, self._tokens, renewal=renewal.name
        )

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`.

        It includes the probes but no secrets.
        """
        return {
            **super().describe(),
            "one writer wins by": "ifGenerationMatch=0 on a single upload request",
            "excludes": "deltalake; delta-spark with GCSLogStore",
            "lists from a name by": "startOffset",
            "endpoint": self._parsed.endpoint,
            "credentials": self._parsed.auth_kind,
            "probed": describe_verdicts(
                (self._parsed.endpoint, bucket) for bucket in self._written
            ),
        }

    # The methods of `ObjectStoreLog`

    def _key(self, path: str) -> str:
        return _locate(path).key

    def _probed(self, path: str) -> Probed | None:
        options, bucket = self._parsed, _locate(path).bucket
        if not options.is_custom:
            return None
        self._written.add(bucket)
        address = (options.endpoint, bucket)
        return Probed(address, "optimist.store.gcs.allowUnsafeWrites", options.allow_unsafe_writes)

    def _put_new(self, path: str, data: bytes) -> Callable[[], object]:
        return partial(self._upload, _locate(path), data, only_if_absent=True)

    def _tag_of(self, answer: object) -> str:
        return str(answer.get("generation") or "") if isinstance(answer, dict) else ""

    def _put_new_in_pieces(self, path: str, file: BinaryIO) -> Callable[[], object]:
        """Send the pieces by one resumable upload, which has the condition from its start."""
        return partial(
            self._blob(path, chunk_size=PIECE_BYTES).upload_from_file,
            file,
            rewind=True,
            size=size_of(file),
            if_generation_match=0,
            checksum="crc32c",  # the SDK compares it with the answer
            **self._single_try,
        )

    def _replace(self, path: str, data: bytes) -> Callable[[], object]:
        return partial(self._upload, _locate(path), data)

    def _read(self, path: str) -> Callable[[], bytes]:
        blob = self._blob(path)
        return lambda: bytes(blob.download_as_bytes(**self._single_try))

    def _open(self, path: str) -> Callable[[], OpenedObject]:
        return partial(self._open_blob, path, self._blob(path))

    def _open_blob(self, path: str, blob: Blob) -> OpenedObject:
        blob.reload(**self._single_try)
        generation = blob.generation

        def fetch(offset: int, length: int) -> bytes:
            # A fresh blob: a reloaded one has a link that ignores the given endpoint.
            found = self._blob(path).download_as_bytes(
                start=offset,
                end=offset + length - 1,
                if_generation_match=generation,
                **self._single_try,
            )
            return bytes(found)

        return OpenedObject(int(blob.size), fetch, identity=str(generation))

    def _remove(self, path: str) -> Callable[[], object]:
        return partial(self._blob(path).delete, **self._single_try)

    def _remove_together(self, paths: Sequence[str]) -> Callable[[], list[str]]:
        objects = [_locate(path) for path in paths]

        def remove() -> list[str]:
            gone = self._delete_in_one_request(objects)
            return [path for number, path in enumerate(paths) if number not in gone]

        return remove

    def _endpoint(self, path: str) -> str:  # noqa: ARG002 - one for all
        return self._parsed.endpoint

    def _objects_from(self, path: str) -> Iterator[Any]:
        key = _locate(path).key
        question = {"delimiter": "/", "fields": _LIST_FIELDS}
        directory, _ = split_key(key)
        if directory:
            question["prefix"] = directory
        if key:
            question["start_offset"] = key
        return self._objects(path, question)

    def _objects_below(self, path: str) -> Iterator[Any]:
        return self._objects(path, {"prefix": _locate(path).key})

    def _holds_anything(self, path: str) -> bool:
        directory, _ = split_key(_locate(path).key)
        question = {"prefix": directory, "max_results": 1}
        # A page may be empty although more pages follow.
        return any(page.blobs for page in self._pages(path, question))

    def _date(self, path: str) -> object:
        named = _locate(path)
        payer = self._parsed.user_project_of(named.bucket)
        question = {"prefix": split_key(named.key)[0], "maxResults": "1"}
        response = self._connect()[1].get(
            f"{self._parsed.endpoint}/storage/v1/b/{quote(named.bucket, safe='')}/o",
            params=question if payer is None else {**question, "userProject": payer},
            timeout=self._parsed.timeout_s,
            allow_redirects=False,
        )
        if response.status_code != 200:
            raise from_http_response(response)  # type: ignore[no-untyped-call]
        return response.headers.get("Date")

    def _keys_below(self, path: str) -> Iterator[str]:
        question = {"prefix": _locate(path).key, "delimiter": "/", "fields": _NAMES_TOO}
        for page in self._pages(path, question):
            yield from (blob.name for blob in page.blobs)
            yield from page.prefixes

    def _status(self, found: Any, path: str) -> FileStatus:
        etag = str(found.generation or "")
        return FileStatus(path, int(found.size or 0), _milliseconds(found.updated), etag)

    def _meaning(self, error: Exception) -> PutMeaning:
        return gcs_answer(error, of_bucket=True)[1].put

    def _translated(self, error: Exception, doing: str, path: str) -> StorageError:
        answer, row = gcs_answer(error, of_bucket=doing not in _OBJECT_ACTIONS)
        service = f"bucket {_locate(path).bucket}"
        translated = error_of_answer(row, answer, doing=doing, path=path, service=service)
        # An error of any other class comes from an answer that the SDK could not read.
        is_foreign = not isinstance(error, _WITH_URLS)
        translated.__cause__ = error if is_foreign or answer.status not in (0, 401) else None
        translated.__suppress_context__ = True
        return translated

    # Requests

    @property
    def _single_try(self) -> dict[str, Any]:
        """Arguments for the SDK's methods: the time-out of one request, and no retry."""
        return {"timeout": self._parsed.timeout_s, "retry": None}

    def _upload(self, named: _Object, data: bytes, *, only_if_absent: bool = False) -> object:
        """Send all the bytes in one request, and return the answer of a success."""
        parameters = {"uploadType": "multipart"}
        if only_if_absent:
            parameters["ifGenerationMatch"] = "0"
        payer = self._parsed.user_project_of(named.bucket)
        if payer is not None:
            parameters["userProject"] = payer
        boundary = self._new_boundary()
        about = {"name": named.key, "md5Hash": md5_of(data)}
        response = self._post(
            f"upload/storage/v1/b/{quote(named.bucket, safe='')}/o?{urlencode(parameters)}",
            f"multipart/related; boundary={boundary}",
            _make_multipart(about, data, boundary),
        )
        _ensure_whole(response, {**about, "size": str(len(data))})
        return response.json()

    def _delete_in_one_request(self, named: Sequence[_Object]) -> set[int]:
        """Delete objects by one request, and return the numbers of those that are gone."""
        boundary = self._new_boundary()
        body = deletions([self._address_of(one) for one in named], boundary)
        kind = f"multipart/mixed; boundary={boundary}"
        response = self._post("batch/storage/v1", kind, body)
        return numbers_gone(response.headers.get("Content-Type", ""), response.content, PART_ID)

    def _address_of(self, named: _Object) -> str:
        """Return path and query of an object's address."""
        root = urlsplit(self._parsed.endpoint).path.rstrip("/")
        payer = self._parsed.user_project_of(named.bucket)
        query = "" if payer is None else f"?userProject={quote(payer, safe='')}"
        bucket, key = (quote(part, safe="") for part in (named.bucket, named.key))
        return f"{root}/storage/v1/b/{bucket}/o/{key}{query}"

    def _new_boundary(self) -> str:
        return f"optimist-{self._clock.new_uuid()}"

    def _post(self, target: str, content_type: str, body: bytes) -> requests.Response:
        response = self._connect()[1].post(
            f"{self._parsed.endpoint}/{target}",
            data=body,
            headers={"Content-Type": content_type},
            timeout=self._parsed.timeout_s,
            # If it followed a redirect, `requests` might send a GET instead, whose 200 would prove
            # nothing.
            allow_redirects=False,
        )
        if response.status_code != 200:
            raise from_http_response(response)  # type: ignore[no-untyped-call]
        return response

    def _objects(self, path: str, question: Mapping[str, Any]) -> Iterator[Any]:
        for page in self._pages(path, question):
            yield from page.blobs

    def _pages(self, path: str, question: Mapping[str, Any]) -> Iterator[_Page]:
        tokens = PageTokens(path)
        token: dict[str, str] = {}
        while True:
            page = self._page(path, {**question, **token})
            yield page
            if page.next_token is None:
                return
            token = {"page_token": tokens.follow(page.next_token)}

    def _page(self, path: str, question: Mapping[str, Any]) -> _Page:
        def ask() -> _Page:
            bucket = self._bucket(_locate(path))
            listing = self._connect()[0].list_blobs(bucket, **self._single_try, **question)
            blobs = tuple(next(listing.pages, ()))
            prefix = question.get("prefix", "")
            if any(not blob.name.startswith(prefix) for blob in blobs):
                raise requests.ConnectionError("the page is of another listing")
            return _Page(blobs, listing.next_page_token, tuple(sorted(listing.prefixes)))

        return self._patiently("list", path, ask)

    def _blob(self, path: str, **settings: Any) -> Blob:
        named = _locate(path)
        return self._bucket(named).blob(named.key, **settings)

    def _bucket(self, named: _Object) -> Bucket:
        payer = self._parsed.user_project_of(named.bucket)
        return self._connect()[0].bucket(named.bucket, user_project=payer)

    def _forget_connections(self) -> None:
        keep_inherited(self._connected)
        self._connected = None

    def _connect(self) -> tuple[Client, AuthorizedSession]:
        with self._lock:
            if self._connected is None:
                credentials = gcs_credentials(self._parsed)
                login = Request(self._with_whole_answers(requests.Session()))
                session = self._with_whole_answers(
                    AuthorizedSession(credentials, auth_request=login),  # type: ignore[no-untyped-call]
                    endpoint=self._parsed.endpoint,
                    ensure=ensure_evidence,
                )
                client = Client(
                    project=self._parsed.project,
                    credentials=credentials,
                    client_options=ClientOptions(api_endpoint=self._parsed.endpoint),
                    _http=session,
                )
                self._connected = (client, session)
            return self._connected

    def _with_whole_answers(self, session: _Session, **only: Any) -> _Session:
        connect_timeout_s, read_timeout_s = self._parsed.timeout_s
        return whole_session(
            session, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s, **only
        )


def _locate(path: str) -> _Object:
    bucket, slash, rest = path.partition(":")[2].removeprefix("//").partition("/")
    if scheme_of(path) != "gs":
        raise ConfigError(
            f"GCSLogStore cannot serve {path}: it is not a gs: URL. "
            "Check spark.delta.logStore.class and the scheme keys.",
            kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
            path=path,
        )
    if not bucket:
        raise ConfigError(
            f"{path} names no bucket. Write gs://bucket/path.",
            kind="OPTIMIST_INCOMPLETE_PATH",
            path=path,
        )
    return _Object(bucket, object_key(slash + rest))


def _make_multipart(about: Mapping[str, str], data: bytes, boundary: str) -> bytes:
    """Return name and checksum, then the bytes: the service refuses incomplete ones."""
    first = f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
    second = f"\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\r\n"
    last = f"\r\n--{boundary}--\r\n"
    return b"".join(
        (first.encode(), json.dumps(about).encode(), second.encode(), data, last.encode())
    )


def _ensure_whole(response: requests.Response, sent: Mapping[str, str]) -> None:
    """Compare the service's name, length and digest with those that were sent.

    Raises:
        DataCorruption: They differ, are missing, or can't be read.
    """
    try:
        found = response.json()
        is_same = all(found.get(name) == value for name, value in sent.items())
    except (AttributeError, requests.JSONDecodeError):
        is_same = False
    if not is_same:
        raise DataCorruption(response, "the answer describes other bytes than were sent")


def _milliseconds(moment: datetime.datetime | None) -> int:
    return int(moment.timestamp() * 1000) if moment is not None else 0
