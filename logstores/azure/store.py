"""Logs in Azure Blob Storage and Azure Data Lake Storage (spec 3.4).

*Assumes* the Blob service of an ordinary account, flat or hierarchical: Put Blob is one step, its
condition `If-None-Match: *` is honoured, reads and listings see every write that has returned. Any
other endpoint (an emulator, a proxy) is probed before the first write.

*Provides* mutual exclusion between threads, processes and machines; atomic visibility; consistent
listing; listing from a name without scanning what comes before it (`startFrom` of List Blobs; an
endpoint that does not know it gives the whole directory, which is filtered here).

*Does not provide* directories: one exists while there is a file in it, also on hierarchical
accounts. Nor help against a writer that overwrites without a condition.

*Excludes* the writers of `deltalake`, which create commits with the same condition; those of
delta-spark on hierarchical accounts, whose rename fails if the target exists. On flat accounts
delta-spark (`wasb`) checks and then renames: do not write one table with it and anything else.

How a commit is created:

1. One Put Blob with all the bytes, `If-None-Match: *`, and no retry by the SDK. Never blocks, which
   need more than one request; never an append blob, which appears in pieces.
2. Created: done. `BlobAlreadyExists`, or a failed condition: somebody else was first.
3. The service is busy: wait by the clock, go to 1. From now on step 2 answers `UNKNOWN` in place of
   `EXISTS`, since the file may be ours.
4. No answer, or an error of the server: `UNKNOWN`, and the engine reads the file back.

Checkpoints and data files too large for one request go in blocks, which nobody sees; the request
that makes a blob of them has the condition, and is treated as above. Data files are created in the
same way, so a request that comes late or twice finds them there and changes nothing. Everything is
sent with its MD5, and the service refuses what arrives changed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, TypeVar

import requests
from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.paging import ItemPaged
from azure.core.pipeline.transport import HttpTransport, RequestsTransport
from azure.storage.blob import BlobBlock, BlobClient, BlobPrefix, BlobProperties, ContainerClient

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.forking import ForkSafeLock, keep_inherited, renew_in_child
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.running.clock import Clock, SystemClock
from optimist.core.running.retry import Patience, call_patiently
from optimist.logstores.azure.data import azure_data_access, azure_origin
from optimist.logstores.azure.errors import azure_answer
from optimist.logstores.azure.identity import sdk_credential
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.azure.paths import AzureAccount, AzureLocation, parse_location
from optimist.logstores.shared.answer_table import CREATE
from optimist.logstores.shared.create_once import create_once
from optimist.logstores.shared.create_probe import describe_verdicts, ensure_exclusive, probe_once
from optimist.logstores.shared.file_pieces import PIECE_BYTES, send_pieces, size_of
from optimist.logstores.shared.http_answers import error_of_answer
from optimist.logstores.shared.page_tokens import PageTokens
from optimist.logstores.shared.ranged_file import READ_AHEAD_BYTES, open_ranged
from optimist.logstores.shared.whole_answers import whole_session

__all__ = ["AzureLogStore"]

_Result = TypeVar("_Result")

_MAX_PUT_BYTES = 5000 * 1024 * 1024
"""What one Put Blob may carry; beyond it the SDK would stage blocks, so beyond it we refuse."""


class AzureLogStore(LogStore):
    """Files under `abfss://container@account.dfs.core.windows.net/` and its other spellings.

    Args:
        options: Keys `optimist.store.azure.*` and `fs.azure.*`, see `AzureOptions`.
        clock: Waits where the service is busy.
        transport: What sends the requests, in place of the store's own.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        transport: HttpTransport[Any, Any] | None = None,
    ) -> None:
        super().__init__(options)
        self._parsed = AzureOptions.from_options(self.options)
        self._clock: Clock = clock or SystemClock()
        self._patience = Patience(max_tries=self._parsed.max_tries)
        self._transport = transport
        self._lock = ForkSafeLock()
        self._containers: dict[tuple[AzureAccount, str], ContainerClient] = {}
        renew_in_child(self, AzureLogStore._forget_connections)

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
        """See `LogStore.put_file_if_absent`; a large file is sent in blocks.

        Nobody sees the blocks before the request that makes a blob of them, and that request has
        the condition. The blocks of two writers have different names.
        """
        self._ensure_exclusive(path)
        return self.put_data_file(path, file)

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_data_file`; the endpoint is not probed for it."""
        if size_of(file) <= PIECE_BYTES:
            file.seek(0)
            return self._put_if_absent(path, file.read())
        blob = self._blob(self._locate(path))
        writer = self._clock.new_uuid()

        def stage(number: int, piece: bytes) -> BlobBlock:
            block = BlobBlock(f"{writer}-{number:06d}")
            send = partial(blob.stage_block, block.id, piece, validate_content=True)
            self._patiently(CREATE, path, send)
            return block

        blocks = send_pieces(file, stage)
        commit = partial(blob.commit_block_list, blocks, match_condition=MatchConditions.IfMissing)
        return self._created_by(path, commit, size_bytes=size_of(file))

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`."""
        blob = self._blob(self._locate(path))
        self._patiently("write", path, lambda: blob.upload_blob(data, overwrite=True))

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        blob = self._blob(self._locate(path))
        return self._patiently("read", path, lambda: blob.download_blob().readall())

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`; ranges are fetched as they are read, all of one version."""
        blob = self._blob(self._locate(path))
        head, size_bytes, etag = self._patiently("read", path, partial(_begin, blob))
        if len(head) == size_bytes:
            return io.BytesIO(head)

        def fetch(offset: int, length: int) -> bytes:
            def ask() -> bytes:
                return blob.download_blob(
                    offset=offset,
                    length=length,
                    etag=etag,
                    match_condition=MatchConditions.IfNotModified,
                ).readall()

            return self._patiently("read", path, ask)

        return open_ranged(size_bytes, fetch, head=head)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`; pages are fetched as they are read.

        A directory without files does not exist.
        """
        location = self._locate(path)
        prefix = path[: len(path) - len(location.name)]
        directory = location.directory
        found = False
        for blob in self._walk(path, directory, start_from=location.key or None):
            name = blob.name[len(directory) :]
            if name < location.name or not name:
                continue
            found = True
            yield _status(blob, prefix + name)
        if not found and not any(True for _ in self._walk(path, directory, flat=True)):
            raise LogFileNotFoundError(
                f"Cannot list {prefix}: the directory does not exist. Check the path.",
                kind="OPTIMIST_FILE_NOT_FOUND",
                path=prefix,
                retryable=False,
            )

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """See `LogStore.list_below`; directories of hierarchical accounts are none."""
        path = directory.rstrip("/") + "/"
        prefix = self._locate(path).key
        listing = self._container(self._locate(path)).list_blobs(prefix, ["metadata"])
        for blob in filter(_is_file, self._items(path, listing)):
            if not blob.name.endswith("/"):  # a marker that others leave for a directory
                yield _status(blob, path + blob.name[len(prefix) :])

    def list_names(self, directory: str) -> Iterator[str]:
        """See `LogStore.list_names`."""
        path = directory.rstrip("/") + "/"
        prefix = self._locate(path).key
        listing = self._container(self._locate(path)).walk_blobs(prefix, delimiter="/")
        for item in self._items(path, listing):
            name = item.name[len(prefix) :].rstrip("/")
            if name:
                yield name

    def delete(self, path: str) -> None:
        """See `LogStore.delete`."""
        blob = self._blob(self._locate(path))
        try:
            self._patiently("delete", path, blob.delete_blob)
        except LogFileNotFoundError:
            return

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """False: a Put Blob appears whole, in one step."""
        return False

    def resolve_path(self, path: str) -> str:
        """The path as `abfss://container@account.dfs...`, whichever spelling it came in."""
        return self._locate(path.rstrip("/")).url

    def data_origin(self, path: str) -> DataOrigin:
        """See `LogStore.data_origin`."""
        return azure_origin(self._parsed, self._locate(path))

    def data_access(self, path: str) -> DataAccess:
        """See `LogStore.data_access`."""
        return azure_data_access(self._parsed, self._locate(path), self.options)

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`; tells what was probed, and no secrets."""
        return {
            **super().describe(),
            "one writer wins by": "Put Blob with If-None-Match: *",
            "excludes": "deltalake; delta-spark on hierarchical accounts",
            "lists from a name by": "startFrom",
            "account": self._parsed.default_account or "from the URL",
            "endpoint": self._parsed.endpoint or "the account's own",
            "probed": describe_verdicts(self._places()),
        }

    def _ensure_exclusive(self, path: str) -> None:
        """Probe an endpoint that is not the cloud's own, before the first write to it."""
        location = self._locate(path)
        if self._parsed.is_custom(location):
            place = (self._parsed.endpoint_of(location), location.container)
            verdict = probe_once(
                place, path, create=self._put_if_absent, delete=self.delete, clock=self._clock
            )
            override = ("optimist.store.azure.allowUnsafeWrites", self._parsed.allow_unsafe_writes)
            ensure_exclusive(verdict, place, path, override=override)

    def _put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        blob = self._blob(self._locate(path))
        _ensure_one_request(path, data)
        put = partial(
            blob.upload_blob, data, overwrite=False, length=len(data), validate_content=True
        )
        return self._created_by(path, put, size_bytes=len(data))

    def _created_by(self, path: str, send: Callable[[], object], *, size_bytes: int) -> PutOutcome:
        """Steps 1 to 4 of the module's protocol; the request has the condition."""
        outcome, _ = create_once(
            send,
            lambda error: azure_answer(error)[1].put,
            partial(_translated, doing=CREATE, path=path, location=self._locate(path)),
            self._patience,
            self._clock,
            size_bytes=size_bytes,
        )
        return outcome

    def _walk(
        self, path: str, directory: str, *, start_from: str | None = None, flat: bool = False
    ) -> Iterator[Any]:
        """The blobs right below a directory; with `flat`, at most one, at any depth."""
        container = self._container(self._locate(path))
        listing: ItemPaged[Any]
        if flat:
            listing = container.list_blobs(directory, results_per_page=1)
        else:
            start: dict[str, Any] = {"start_from": start_from} if start_from else {}
            listing = container.walk_blobs(directory, ["metadata"], "/", **start)
        for blob in self._items(path, listing):
            if flat or _is_file(blob):
                yield blob
            if flat:
                return

    def _items(self, path: str, listing: ItemPaged[Any]) -> Iterator[Any]:
        """What a listing has, page by page."""
        pages: Any = listing.by_page()
        tokens = PageTokens(path)
        while True:
            page = self._patiently("list", path, lambda: next(pages, None))
            if page is None:
                return
            if pages.continuation_token:
                tokens.follow(pages.continuation_token)
            yield from page

    def _patiently(self, doing: str, path: str, call: Callable[[], _Result]) -> _Result:
        def translated() -> _Result:
            try:
                return call()
            except Exception as error:  # noqa: BLE001 - an SDK raises anything on a cut answer
                location = self._locate(path)
                raise _translated(error, doing=doing, path=path, location=location)  # noqa: B904

        return call_patiently(translated, self._patience, self._clock)

    def _locate(self, path: str) -> AzureLocation:
        return parse_location(path, self._parsed.default_account)

    def _blob(self, location: AzureLocation) -> BlobClient:
        return self._container(location).get_blob_client(location.key)

    def _container(self, location: AzureLocation) -> ContainerClient:
        key = (location.of, location.container)
        with self._lock:
            client = self._containers.get(key)
            if client is None:
                client = self._containers[key] = self._new_container(location)
        return client

    def _forget_connections(self) -> None:
        keep_inherited(self._containers)
        self._containers = {}

    def _new_container(self, location: AzureLocation) -> ContainerClient:
        options = self._parsed
        return ContainerClient(
            options.endpoint_of(location),
            location.container,
            credential=sdk_credential(options.credential_of(location)),
            max_single_put_size=_MAX_PUT_BYTES,
            retry_total=0,  # a retry that we don't see turns our own commit into a lost race
            permit_redirects=False,
            transport=self._transport or self._new_transport(),
        )

    def _new_transport(self) -> HttpTransport[Any, Any]:
        session = whole_session(
            requests.Session(),
            connect_timeout_s=self._parsed.connect_timeout_s,
            read_timeout_s=self._parsed.read_timeout_s,
        )
        transport: HttpTransport[Any, Any] = RequestsTransport(session=session, session_owner=False)
        return transport

    def _places(self) -> list[tuple[str, str]]:
        """The endpoints and containers in use."""
        with self._lock:
            containers = list(self._containers)
        return [
            (self._parsed.endpoint_of(AzureLocation(account, name, "")), name)
            for account, name in containers
        ]


def _begin(blob: BlobClient) -> tuple[bytes, int, str]:
    """The first bytes of a blob, its size and its tag; by a GET, for a HEAD may be cut unseen."""
    try:
        found = blob.download_blob(offset=0, length=READ_AHEAD_BYTES)
    except HttpResponseError as error:
        if error.status_code != 416:
            raise
        return b"", 0, ""  # an empty blob has no first byte
    total = str(found.properties.content_range).rpartition("/")[2]
    return found.readall(), int(total), str(found.properties.etag)


def _ensure_one_request(path: str, data: bytes) -> None:
    if len(data) > _MAX_PUT_BYTES:
        raise StorageError(
            f"Nothing was written to {path}: its {len(data)} bytes are more than one request "
            f"can carry ({_MAX_PUT_BYTES}). Commit fewer files at a time.",
            kind="OPTIMIST_FILE_TOO_LARGE",
            path=path,
            retryable=False,
        )


def _place(location: AzureLocation) -> str:
    return f"container {location.container} of account {location.account}"


def _status(blob: Any, path: str) -> FileStatus:
    modified_ms = int(blob.last_modified.timestamp() * 1000)
    return FileStatus(path, int(blob.size or 0), modified_ms, str(blob.etag or ""))


def _is_file(item: BlobProperties | BlobPrefix) -> bool:
    # Hadoop's older connector marks a directory of a flat account by an empty blob of its name.
    return isinstance(item, BlobProperties) and (item.metadata or {}).get("hdi_isfolder") != "true"


def _translated(
    error: Exception, *, doing: str, path: str, location: AzureLocation
) -> StorageError:
    answer, row = azure_answer(error)
    translated = error_of_answer(row, answer, doing=doing, path=path, place=_place(location))
    # The SDK's own text may quote a signature, and the whole URL where there was no answer. An
    # error of any other class comes from an answer that the SDK could not read.
    is_answer = isinstance(error, HttpResponseError) and answer.status not in (0, 401, 403)
    is_quotable = is_answer or not isinstance(error, AzureError | requests.RequestException)
    translated.__cause__ = error if is_quotable else None
    translated.__suppress_context__ = True
    return translated
