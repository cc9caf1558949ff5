"""Logs in Google Cloud Storage (spec 3.4).

*Assumes* the JSON API of Google Cloud Storage: an upload becomes visible in one step when it is
complete, `ifGenerationMatch=0` is honoured, reads and listings see every write that has returned.
Any other endpoint (an emulator, a proxy) is probed before the first write.

*Provides* mutual exclusion between threads, processes and machines; atomic visibility; consistent
listing; listing from a name without scanning what comes before it (`startOffset`).

*Does not provide* directories: one exists while there is a file in it. Nor more than about one
write a second to one object, which is the service's limit; writers that race for one version feel
it and are told the truth, see below. Nor help against a writer that overwrites without a condition.

*Excludes* the writers of `deltalake` and of delta-spark with its GCS store, which create commits
with the same condition.

How a commit is created:

1. One multipart upload request with all the bytes and `ifGenerationMatch=0`, and no retry. Never a
   resumable upload: that is several requests. (Checkpoints and data files too large for one request
   go by one; they have the condition, too, and nobody races them with other bytes.)
2. Created, and the answer's length and MD5 are those of the bytes: done. On 412 somebody else was
   first.
3. On 429 and 503 the object is under pressure, so another writer has probably won; but only the
   file can tell. The outcome is `UNKNOWN`, and the engine reads the file back. The same holds where
   no answer came.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote

import requests
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError, from_http_response
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession, Request
from google.cloud.storage import Bucket, Client
from google.cloud.storage.exceptions import DataCorruption
from urllib3.exceptions import HTTPError

from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.forking import ForkSafeLock, keep_inherited, renew_in_child
from optimist.core.paths import join, scheme_of
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.running.clock import Clock, SystemClock
from optimist.core.running.retry import Patience, call_patiently
from optimist.logstores.gcs.credentials import gcs_credentials
from optimist.logstores.gcs.data import gcs_data_access, gcs_origin
from optimist.logstores.gcs.errors import gcs_answer
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.shared.answer_table import CREATE
from optimist.logstores.shared.create_once import create_once
from optimist.logstores.shared.create_probe import describe_verdicts, ensure_exclusive, probe_once
from optimist.logstores.shared.file_pieces import PIECE_BYTES, md5_of, size_of
from optimist.logstores.shared.http_answers import error_of_answer
from optimist.logstores.shared.object_keys import object_key, split_key
from optimist.logstores.shared.page_tokens import PageTokens
from optimist.logstores.shared.ranged_file import open_ranged
from optimist.logstores.shared.whole_answers import whole_session

__all__ = ["GCSLogStore"]

_Result = TypeVar("_Result")
_Session = TypeVar("_Session", bound=requests.Session)

_WITH_URLS = (GoogleAPICallError, GoogleAuthError, requests.RequestException, HTTPError)
"""Errors whose text may quote a request."""
_ONCE = Patience(max_tries=1)
"""An object takes about one write a second: a writer asked to slow down has mostly lost."""
_LIST_FIELDS = "items(name,size,updated,generation),nextPageToken"
_NAMES_TOO = "items(name),prefixes,nextPageToken"


@dataclass(frozen=True, slots=True)
class _Object:
    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class _Page:
    blobs: tuple[Any, ...]
    next_token: str | None
    prefixes: tuple[str, ...]


class GCSLogStore(LogStore):
    """Files under `gs://bucket/`.

    Args:
        options: Keys `optimist.store.gcs.*` and `fs.gs.*`, see `GCSOptions`.
        clock: Waits where the service is busy.
    """

    def __init__(
        self, options: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(options)
        self._parsed = GCSOptions.from_options(self.options)
        self._clock: Clock = clock or SystemClock()
        self._patience = Patience(max_tries=self._parsed.max_tries)
        self._lock = ForkSafeLock()
        self._connected: tuple[Client, AuthorizedSession] | None = None
        self._written: set[str] = set()
        renew_in_child(self, GCSLogStore._forget_connections)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`. The parent need not exist.

        Raises:
            ConfigError: A custom endpoint ignores the condition (kind `OPTIMIST_NO_ATOMIC_CREATE`),
                or there are no credentials.
            StorageError: The service refused, and nothing was written.
        """
        self._ensure_exclusive(path)
        return self._put_if_absent(path, data)

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`; a large file goes by a resumable upload."""
        self._ensure_exclusive(path)
        return self.put_data_file(path, file)

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_data_file`; the endpoint is not probed for it."""
        size_bytes = size_of(file)
        if size_bytes <= PIECE_BYTES:
            file.seek(0)
            return self._put_if_absent(path, file.read())
        place = _locate(path)
        blob = self._bucket(place).blob(place.key, chunk_size=PIECE_BYTES)
        upload = partial(
            blob.upload_from_file,
            file,
            rewind=True,
            size=size_bytes,
            if_generation_match=0,
            timeout=self._parsed.timeout_s,
            checksum="crc32c",  # the SDK compares it with the answer's
            retry=None,
        )
        return self._created_by(path, upload, size_bytes=size_bytes)

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`."""
        place = _locate(path)
        self._patiently("write", path, lambda: self._upload(place, data), of_bucket=True)

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        place = _locate(path)
        blob = self._bucket(place).blob(place.key)
        return self._patiently(
            "read",
            path,
            lambda: bytes(blob.download_as_bytes(timeout=self._parsed.timeout_s, retry=None)),
        )

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`; ranges are fetched as they are read, all of one version."""
        place = _locate(path)
        blob = self._bucket(place).blob(place.key)
        wait = {"timeout": self._parsed.timeout_s, "retry": None}
        self._patiently("read", path, lambda: blob.reload(**wait))
        generation, size_bytes = blob.generation, int(blob.size)

        def fetch(offset: int, length: int) -> bytes:
            # A fresh blob: one that was reloaded has a link that leads past the endpoint given.
            fresh = self._bucket(place).blob(place.key)
            return self._patiently(
                "read",
                path,
                lambda: bytes(
                    fresh.download_as_bytes(
                        start=offset,
                        end=offset + length - 1,
                        if_generation_match=generation,
                        **wait,
                    )
                ),
            )

        return open_ranged(size_bytes, fetch)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`; pages are fetched as they are read.

        A directory without files does not exist.
        """
        place = _locate(path)
        directory, first = split_key(place.key)
        prefix = path[: len(path) - len(first)]
        found = False
        for blob in self._walk(path, place, directory):
            name = blob.name[len(directory) :]
            if name < first or not name:
                continue
            found = True
            yield _status(blob, prefix + name)
        if found:
            return
        anything = self._page(path, place, {"prefix": directory, "max_results": 1})
        if not anything.blobs:
            raise LogFileNotFoundError(
                f"Cannot list {prefix}: the directory does not exist. Check the path.",
                kind="OPTIMIST_FILE_NOT_FOUND",
                path=prefix,
                retryable=False,
            )

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """See `LogStore.list_below`."""
        place = _locate(directory.rstrip("/") + "/")
        for page in self._pages(directory, place, {"prefix": place.key}):
            for blob in page.blobs:
                if not blob.name.endswith("/"):  # a marker that others leave for a directory
                    yield _status(blob, join(directory, blob.name[len(place.key) :]))

    def list_names(self, directory: str) -> Iterator[str]:
        """See `LogStore.list_names`."""
        place = _locate(directory.rstrip("/") + "/")
        question = {"prefix": place.key, "delimiter": "/", "fields": _NAMES_TOO}
        for page in self._pages(directory, place, question):
            names = (*(blob.name for blob in page.blobs), *page.prefixes)
            yield from filter(None, (name[len(place.key) :].rstrip("/") for name in names))

    def delete(self, path: str) -> None:
        """See `LogStore.delete`."""
        place = _locate(path)
        blob = self._bucket(place).blob(place.key)
        try:
            self._patiently(
                "delete",
                path,
                lambda: blob.delete(timeout=self._parsed.timeout_s, retry=None),
            )
        except LogFileNotFoundError:
            return

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """False: an upload appears whole, in one step."""
        return False

    def resolve_path(self, path: str) -> str:
        """The path as `gs://bucket/key`, without doubled or trailing slashes."""
        place = _locate(path.rstrip("/"))
        return f"gs://{place.bucket}/{place.key}".rstrip("/")

    def data_origin(self, path: str) -> DataOrigin:
        """See `LogStore.data_origin`."""
        return gcs_origin(_locate(path).bucket)

    def data_access(self, path: str) -> DataAccess:
        """See `LogStore.data_access`."""
        return gcs_data_access(self._parsed, _locate(path).bucket, self.options)

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`; tells what was probed, and no secrets."""
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

    def _ensure_exclusive(self, path: str) -> None:
        """Probe an endpoint that is not the cloud's own, before the first write to it."""
        if not self._parsed.is_custom:
            return
        place = _locate(path)
        self._written.add(place.bucket)
        probed = (self._parsed.endpoint, place.bucket)
        verdict = probe_once(
            probed, path, create=self._put_if_absent, delete=self.delete, clock=self._clock
        )
        override = ("optimist.store.gcs.allowUnsafeWrites", self._parsed.allow_unsafe_writes)
        ensure_exclusive(verdict, probed, path, override=override)

    def _put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        upload = partial(self._upload, _locate(path), data, only_if_absent=True)
        return self._created_by(path, upload, size_bytes=len(data))

    def _created_by(
        self, path: str, upload: Callable[[], object], *, size_bytes: int
    ) -> PutOutcome:
        """Steps 1 to 3 of the module's protocol; the upload has the condition."""
        outcome, _ = create_once(
            upload,
            lambda error: gcs_answer(error, of_bucket=True)[1].put,
            partial(_translated, doing=CREATE, path=path, of_bucket=True),
            _ONCE,
            self._clock,
            size_bytes=size_bytes,
        )
        return outcome

    def _upload(self, place: _Object, data: bytes, *, only_if_absent: bool = False) -> None:
        """Send all the bytes in one request; raises unless it succeeds."""
        parameters = {"uploadType": "multipart"}
        if only_if_absent:
            parameters["ifGenerationMatch"] = "0"
        payer = self._parsed.user_project_of(place.bucket)
        if payer is not None:
            parameters["userProject"] = payer
        boundary = f"optimist-{self._clock.new_uuid()}"
        about = {"name": place.key, "md5Hash": md5_of(data)}
        response = self._connect()[1].post(
            f"{self._parsed.endpoint}/upload/storage/v1/b/{quote(place.bucket, safe='')}/o",
            params=parameters,
            data=_multipart(about, data, boundary),
            headers={"Content-Type": f"multipart/related; boundary={boundary}"},
            timeout=self._parsed.timeout_s,
            # Following a redirect, requests may send a GET instead, whose 200 would say nothing.
            allow_redirects=False,
        )
        if response.status_code != 200:
            raise from_http_response(response)  # type: ignore[no-untyped-call]
        _ensure_whole(response, {"size": str(len(data)), "md5Hash": about["md5Hash"]})

    def _walk(self, path: str, place: _Object, directory: str) -> Iterator[Any]:
        """The objects right below a directory, from the place's own name on."""
        question: dict[str, Any] = {"delimiter": "/", "fields": _LIST_FIELDS}
        if directory:
            question["prefix"] = directory
        if place.key:
            question["start_offset"] = place.key
        for page in self._pages(path, place, question):
            yield from page.blobs

    def _pages(self, path: str, place: _Object, question: Mapping[str, Any]) -> Iterator[_Page]:
        tokens = PageTokens(path)
        token: dict[str, str] = {}
        while True:
            page = self._page(path, place, {**question, **token})
            yield page
            if page.next_token is None:
                return
            token = {"page_token": tokens.follow(page.next_token)}

    def _page(self, path: str, place: _Object, question: Mapping[str, Any]) -> _Page:
        def ask() -> _Page:
            client = self._connect()[0]
            listing = client.list_blobs(
                self._bucket(place), timeout=self._parsed.timeout_s, retry=None, **question
            )
            page = next(listing.pages, ())
            return _Page(tuple(page), listing.next_page_token, tuple(sorted(listing.prefixes)))

        return self._patiently("list", path, ask, of_bucket=True)

    def _patiently(
        self, doing: str, path: str, call: Callable[[], _Result], *, of_bucket: bool = False
    ) -> _Result:
        def translated() -> _Result:
            try:
                return call()
            except Exception as error:  # noqa: BLE001 - an SDK raises anything on a cut answer
                raise _translated(error, doing, path, of_bucket=of_bucket)  # noqa: B904

        return call_patiently(translated, self._patience, self._clock)

    def _bucket(self, place: _Object) -> Bucket:
        payer = self._parsed.user_project_of(place.bucket)
        return self._connect()[0].bucket(place.bucket, user_project=payer)

    def _forget_connections(self) -> None:
        keep_inherited(self._connected)
        self._connected = None

    def _connect(self) -> tuple[Client, AuthorizedSession]:
        with self._lock:
            if self._connected is None:
                credentials = gcs_credentials(self._parsed)
                session = self._whole(
                    AuthorizedSession(  # type: ignore[no-untyped-call]
                        credentials, auth_request=Request(self._whole(requests.Session()))
                    )
                )
                client = Client(
                    project=self._parsed.project,
                    credentials=credentials,
                    client_options=ClientOptions(api_endpoint=self._parsed.endpoint),
                    _http=session,
                )
                self._connected = (client, session)
            return self._connected

    def _whole(self, session: _Session) -> _Session:
        connect_timeout_s, read_timeout_s = self._parsed.timeout_s
        return whole_session(
            session, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s
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


def _multipart(about: Mapping[str, str], data: bytes, boundary: str) -> bytes:
    """Name and checksum, then the bytes: the service refuses what it did not receive whole."""
    first = f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
    second = f"\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\r\n"
    last = f"\r\n--{boundary}--\r\n"
    return b"".join(
        (first.encode(), json.dumps(about).encode(), second.encode(), data, last.encode())
    )


def _ensure_whole(response: requests.Response, sent: Mapping[str, str]) -> None:
    """Compare what the service says it has with what was sent.

    Raises:
        DataCorruption: It differs, or the answer can't be read.
    """
    try:
        found = response.json()
        is_same = all(found.get(name, value) == value for name, value in sent.items())
    except (AttributeError, requests.JSONDecodeError):
        is_same = False
    if not is_same:
        raise DataCorruption(response, "the answer describes other bytes than were sent")


def _status(blob: Any, path: str) -> FileStatus:
    etag = str(blob.generation or "")
    return FileStatus(path, int(blob.size or 0), _milliseconds(blob.updated), etag)


def _milliseconds(moment: datetime.datetime | None) -> int:
    return int(moment.timestamp() * 1000) if moment is not None else 0


def _translated(error: Exception, doing: str, path: str, *, of_bucket: bool) -> StorageError:
    answer, row = gcs_answer(error, of_bucket=of_bucket)
    translated = error_of_answer(
        row, answer, doing=doing, path=path, place=f"bucket {_locate(path).bucket}"
    )
    # An error of any other class comes from an answer that the SDK could not read.
    is_foreign = not isinstance(error, _WITH_URLS)
    translated.__cause__ = error if is_foreign or answer.status not in (0, 401) else None
    translated.__suppress_context__ = True
    return translated
