"""Logs in Azure Blob Storage and Azure Data Lake Storage (design section 4; spec 3.4).

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

1. One Put Blob with all the bytes, `If-None-Match: *`, and no retry by the SDK. Never blocks, never
   an append blob: those appear in pieces, or in more than one request.
2. Created: done. `BlobAlreadyExists`, or a failed condition: somebody else was first.
3. The service is busy: wait by the clock, go to 1. From now on step 2 answers `UNKNOWN` in place of
   `EXISTS`, since the file may be ours.
4. No answer, or an error of the server: `UNKNOWN`, and the engine reads the file back.

Checkpoints too large for memory go in blocks, which nobody sees; the request that makes a blob of
them has the condition, and is treated as above.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.paging import ItemPaged
from azure.core.pipeline.transport import HttpTransport
from azure.storage.blob import BlobBlock, BlobClient, BlobPrefix, BlobProperties, ContainerClient

from optimist.core.clock import Clock, SystemClock
from optimist.core.data.access import DataAccess
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.logstore import FileStatus, LogStore, PutOutcome
from optimist.logstores.azure.data import azure_data_access
from optimist.logstores.azure.errors import azure_answer
from optimist.logstores.azure.identity import sdk_credential
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.azure.paths import AzureLocation, parse_location
from optimist.logstores.file_pieces import PIECE_BYTES, pieces, size_of
from optimist.logstores.patience import Patience, call_patiently
from optimist.logstores.shared.create_probe import describe_verdicts, ensure_exclusive, probe_once
from optimist.logstores.shared.http_answers import PutMeaning, error_of_row
from optimist.logstores.shared.ranged_file import open_ranged

__all__ = ["AzureLogStore"]

T = TypeVar("T")

_MAX_PUT_BYTES = 5000 * 1024 * 1024
"""What one Put Blob may carry; beyond it the SDK would stage blocks, so beyond it we refuse."""


class AzureLogStore(LogStore):
    """Files under `abfss://container@account.dfs.core.windows.net/` and its other spellings.

    Args:
        options: Keys `optimist.store.azure.*` and `fs.azure.*`, see `AzureOptions`.
        clock: Waits where the service is busy.
        transport: What sends the requests, in place of the SDK's own.
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
        self._lock = threading.Lock()
        self._containers: dict[tuple[str, str, str], ContainerClient] = {}

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

        Blocks are seen by nobody before the request that makes a blob of them, and that one has the
        condition. Those of two writers are told apart by their names.
        """
        if size_of(file) <= PIECE_BYTES:
            return super().put_file_if_absent(path, file)
        self._ensure_exclusive(path)
        blob = self._blob(self._locate(path))
        writer = self._clock.new_uuid()
        blocks = []
        for number, piece in enumerate(pieces(file)):
            block = BlobBlock(f"{writer}-{number:06d}")
            self._patiently("write", path, partial(blob.stage_block, block.id, piece))
            blocks.append(block)
        commit = partial(blob.commit_block_list, blocks, match_condition=MatchConditions.IfMissing)
        return self._created_by(path, commit)

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
        properties = self._patiently("read", path, blob.get_blob_properties)

        def fetch(offset: int, length: int) -> bytes:
            def ask() -> bytes:
                return blob.download_blob(
                    offset=offset,
                    length=length,
                    etag=properties.etag,
                    match_condition=MatchConditions.IfNotModified,
                ).readall()

            return self._patiently("read", path, ask)

        return open_ranged(properties.size, fetch)

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
            modified_ms = int(blob.last_modified.timestamp() * 1000)
            yield FileStatus(prefix + name, int(blob.size or 0), modified_ms)
        if not found and not any(True for _ in self._walk(path, directory, flat=True)):
            raise LogFileNotFoundError(
                f"Cannot list {prefix}: there is nothing in it.",
                kind="OPTIMIST_FILE_NOT_FOUND",
                path=prefix,
                retryable=False,
            )

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

    def data_access(self, path: str) -> DataAccess:
        """See `LogStore.data_access`."""
        return azure_data_access(self._parsed, self._locate(path))

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
        """Try out an endpoint that is not the cloud's own, before the first write to it."""
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
        put = partial(blob.upload_blob, data, overwrite=False, length=len(data))
        return self._created_by(path, put)

    def _created_by(self, path: str, send: Callable[[], object]) -> PutOutcome:
        """Steps 1 to 4 of the module's protocol; the request has the condition."""
        was_busy = False
        for _ in self._patience.tries(self._clock):
            try:
                send()
            except AzureError as error:
                _, row = azure_answer(error)
                if row.put is PutMeaning.SLOW_DOWN:
                    was_busy = True
                    continue
                if row.put is PutMeaning.NOTHING_WRITTEN and not was_busy:
                    raise _translated(  # noqa: B904
                        error, doing="write", path=path, location=self._locate(path)
                    )
                is_lost = row.put is PutMeaning.EXISTS and not was_busy
                return PutOutcome.EXISTS if is_lost else PutOutcome.UNKNOWN
            return PutOutcome.CREATED
        return PutOutcome.UNKNOWN

    def _walk(
        self, path: str, directory: str, *, start_from: str | None = None, flat: bool = False
    ) -> Iterator[Any]:
        """The blobs right below a directory; `flat`: at most one, however deep."""
        container = self._container(self._locate(path))
        listing: ItemPaged[Any]
        if flat:
            listing = container.list_blobs(directory, results_per_page=1)
        else:
            start: dict[str, Any] = {"start_from": start_from} if start_from else {}
            listing = container.walk_blobs(directory, ["metadata"], "/", **start)
        pages = listing.by_page()
        while True:
            page = self._patiently("list", path, lambda: next(pages, None))
            if page is None:
                return
            yield from (each for each in page if flat or _is_file(each))
            if flat:
                return

    def _patiently(self, doing: str, path: str, call: Callable[[], T]) -> T:
        def translated() -> T:
            try:
                return call()
            except AzureError as error:
                location = self._locate(path)
                raise _translated(error, doing=doing, path=path, location=location)  # noqa: B904

        return call_patiently(translated, self._patience, self._clock)

    def _locate(self, path: str) -> AzureLocation:
        return parse_location(path, self._parsed.default_account)

    def _blob(self, location: AzureLocation) -> BlobClient:
        return self._container(location).get_blob_client(location.key)

    def _container(self, location: AzureLocation) -> ContainerClient:
        key = (location.account, location.suffix, location.container)
        with self._lock:
            client = self._containers.get(key)
            if client is None:
                client = self._containers[key] = self._new_container(location)
        return client

    def _new_container(self, location: AzureLocation) -> ContainerClient:
        options = self._parsed
        extra: dict[str, Any] = (
            {"transport": self._transport} if self._transport is not None else {}
        )
        return ContainerClient(
            options.endpoint_of(location),
            location.container,
            credential=sdk_credential(options.credential_of(location)),
            max_single_put_size=_MAX_PUT_BYTES,
            retry_total=0,  # a retry that we don't see turns our own commit into a lost race
            permit_redirects=False,
            connection_timeout=options.connect_timeout_seconds,
            read_timeout=options.read_timeout_seconds,
            **extra,
        )

    def _places(self) -> list[tuple[str, str]]:
        """The endpoints and containers in use."""
        with self._lock:
            containers = list(self._containers)
        return [
            (self._parsed.endpoint_of(AzureLocation(account, suffix, name, "")), name)
            for account, suffix, name in containers
        ]


def _ensure_one_request(path: str, data: bytes) -> None:
    if len(data) > _MAX_PUT_BYTES:
        raise StorageError(
            f"Nothing was written to {path}: its {len(data)} bytes are more than one request "
            f"carries ({_MAX_PUT_BYTES}). Commit fewer files at a time.",
            kind="OPTIMIST_FILE_TOO_LARGE",
            path=path,
            retryable=False,
        )


def _place(location: AzureLocation) -> str:
    return f"account {location.account}, container {location.container}"


def _is_file(item: BlobProperties | BlobPrefix) -> bool:
    # Hadoop's older connector marks a directory of a flat account by an empty blob of its name.
    return isinstance(item, BlobProperties) and (item.metadata or {}).get("hdi_isfolder") != "true"


def _translated(
    error: AzureError, *, doing: str, path: str, location: AzureLocation
) -> StorageError:
    answer, row = azure_answer(error)
    translated = error_of_row(row, answer, doing=doing, path=path, place=_place(location))
    # The SDK's own text may quote a signature, where there was no answer the whole URL with it.
    is_quotable = isinstance(error, HttpResponseError) and answer.status not in (0, 401, 403)
    translated.__cause__ = error if is_quotable else None
    translated.__suppress_context__ = True
    return translated
