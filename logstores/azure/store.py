"""Logs in Azure Blob Storage and Azure Data Lake Storage (spec 3.4).

*Assumes* the Blob service of an ordinary account, flat or hierarchical: Put Blob is one atomic
step, its condition `If-None-Match: *` is honoured, reads and listings see every write that has
returned. Any other endpoint (an emulator, a proxy) is probed before the first write.

*Provides* mutual exclusion between threads, processes and machines; atomic visibility; consistent
listing; listing from a name without scanning earlier names (`startFrom` of List Blobs; an endpoint
without it returns the whole directory, which is filtered here).

*Does not provide* directories: one exists while it has a file, also on hierarchical accounts. Nor
protection against a writer that overwrites without a condition.

*Excludes* the writers of `deltalake`, which create commits with the same condition; those of
delta-spark on hierarchical accounts, whose rename fails if the target exists. On flat accounts
delta-spark (`wasb`) checks and then renames: do not write one table with it and anything else.

How a commit is created:

1. Send one Put Blob with all the bytes, `If-None-Match: *`, and no retry by the SDK. Never use
   blocks, which need several requests, or an append blob, which appears in pieces.
2. Created: done. `BlobAlreadyExists`, or a failed condition: another writer was first.
3. The service is busy: wait by the clock, and go to 1. From now on step 2 returns `UNKNOWN` instead
   of `EXISTS`, since the file may be ours.
4. No answer, or an error of the server: `UNKNOWN`, and the engine reads the file back.

Checkpoints and data files that are too large for one request are sent in invisible blocks. The
request that makes a blob of them has the condition, and is treated as above. Data files are created
in the same way, so a request that comes late or twice finds them and changes nothing. All bytes are
sent with their MD5, and the service refuses changed ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO

import requests
from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.paging import ItemPaged
from azure.core.pipeline.transport import HttpTransport, RequestsTransport
from azure.storage.blob import BlobBlock, BlobClient, BlobPrefix, BlobProperties, ContainerClient

from optimist.core.errors import StorageError
from optimist.core.forking import ForkSafeLock, keep_inherited, renew_in_child
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import FileStatus
from optimist.core.runtime.clock import Clock
from optimist.logstores.azure.data import azure_data_access, azure_origin
from optimist.logstores.azure.errors import azure_answer
from optimist.logstores.azure.evidence import ensure_evidence
from optimist.logstores.azure.identity import sdk_credential
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.azure.paths import AzureAccount, AzureLocation, parse_location
from optimist.logstores.shared.answer_table import CREATE, PutMeaning
from optimist.logstores.shared.batch_answers import numbers_gone
from optimist.logstores.shared.create_probe import describe_verdicts
from optimist.logstores.shared.file_pieces import send_pieces
from optimist.logstores.shared.http_answers import error_of_answer
from optimist.logstores.shared.object_store_log import ObjectStoreLog, OpenedObject, Probed
from optimist.logstores.shared.page_tokens import PageTokens
from optimist.logstores.shared.ranged_file import READ_AHEAD_BYTES
from optimist.logstores.shared.whole_answers import whole_session

__all__ = ["AzureLogStore"]

_MAX_PUT_BYTES = 5000 * 1024 * 1024
"""The limit of one Put Blob, beyond which we refuse, since the SDK would stage blocks."""

_PART_ID = re.compile(r"(\d+)")


class AzureLogStore(ObjectStoreLog):
    """Files under `abfss://container@account.dfs.core.windows.net/` and its other spellings.

    Args:
        options: Keys `optimist.store.azure.*` and `fs.azure.*`, see `AzureOptions`.
        clock: Waits if the service is busy.
        transport: Sends the requests, instead of the store's own transport.
    """

    batch_size = 256

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        transport: HttpTransport[Any, Any] | None = None,
    ) -> None:
        self._parsed = AzureOptions.from_options(options or {})
        tries = self._parsed.max_tries
        super().__init__(options, clock, max_tries=tries, max_put_tries=tries)
        self._transport = transport
        self._lock = ForkSafeLock()
        self._containers: dict[tuple[AzureAccount, str], ContainerClient] = {}
        renew_in_child(self, AzureLogStore._forget_connections)

    def resolve_path(self, path: str) -> str:
        """Return the path as `abfss://container@account.dfs...`, for any spelling."""
        return self._locate(path.rstrip("/")).url

    def data_origin(self, path: str) -> DataOrigin:
        """See `LogStore.data_origin`."""
        return azure_origin(self._parsed, self._locate(path))

    def data_access(self, path: str) -> DataAccess:
        """See `LogStore.data_access`."""
        return azure_data_access(self._parsed, self._locate(path), self.options)

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`.

        It includes the probes but no secrets.
        """
        return {
            **super().describe(),
            "one writer wins by": "Put Blob with If-None-Match: *",
            "excludes": "deltalake; delta-spark on hierarchical accounts",
            "lists from a name by": "startFrom",
            "account": self._parsed.default_account or "from the URL",
            "endpoint": self._parsed.endpoint or "the account's own",
            "probed": describe_verdicts(self._containers_in_use()),
        }

    # The methods of `ObjectStoreLog`

    def _key(self, path: str) -> str:
        return self._locate(path).key

    def _probed(self, path: str) -> Probed | None:
        location, options = self._locate(path), self._parsed
        if not options.is_custom(location):
            return None
        return Probed(
            (options.endpoint_of(location), location.container),
            "optimist.store.azure.allowUnsafeWrites",
            options.allow_unsafe_writes,
        )

    def _put_new(self, path: str, data: bytes) -> Callable[[], object]:
        _ensure_one_request(path, data)
        upload = self._blob(path).upload_blob
        return partial(upload, data, overwrite=False, length=len(data), validate_content=True)

    def _tag_of(self, answer: object) -> str:
        # Headers have the tag in quotation marks, listings without them.
        return str(answer.get("etag") or "").strip('"') if isinstance(answer, dict) else ""

    def _put_new_in_pieces(self, path: str, file: BinaryIO) -> Callable[[], object]:
        """Stage the pieces as blocks, with different names for different writers."""
        blob = self._blob(path)
        writer = self._clock.new_uuid()

        def stage(number: int, piece: bytes) -> BlobBlock:
            block = BlobBlock(f"{writer}-{number:06d}")
            send = partial(blob.stage_block, block.id, piece, validate_content=True)
            self._patiently(CREATE, path, send)
            return block

        blocks = send_pieces(file, stage)
        return partial(blob.commit_block_list, blocks, match_condition=MatchConditions.IfMissing)

    def _replace(self, path: str, data: bytes) -> Callable[[], object]:
        return partial(self._blob(path).upload_blob, data, overwrite=True)

    def _read(self, path: str) -> Callable[[], bytes]:
        blob = self._blob(path)
        return lambda: blob.download_blob().readall()

    def _open(self, path: str) -> Callable[[], OpenedObject]:
        return partial(_open_blob, self._blob(path))

    def _remove(self, path: str) -> Callable[[], object]:
        return self._blob(path).delete_blob

    def _remove_together(self, paths: Sequence[str]) -> Callable[[], list[str]]:
        container = self._container(self._locate(paths[0]))
        names = [self._key(path) for path in paths]

        def remove() -> list[str]:
            answers: list[Any] = []
            # The SDK matches the parts of the answer with the blobs by order.
            container.delete_blobs(
                *names, raise_on_any_failure=False, raw_response_hook=answers.append
            )
            answer = answers[-1].http_response
            gone = numbers_gone(answer.headers.get("Content-Type", ""), answer.body(), _PART_ID)
            return [path for number, path in enumerate(paths) if number not in gone]

        return remove

    def _endpoint(self, path: str) -> str:
        return self._parsed.endpoint_of(self._locate(path))

    def _objects_from(self, path: str) -> Iterator[Any]:
        location = self._locate(path)
        start: dict[str, Any] = {"start_from": location.key} if location.key else {}
        container = self._container(location)
        listing = container.walk_blobs(location.directory, ["metadata"], "/", **start)
        return filter(_is_file, self._items(path, listing, location.directory))

    def _objects_below(self, path: str) -> Iterator[Any]:
        """See `ObjectStoreLog._objects_below`.

        Directories of hierarchical accounts are left out.
        """
        location = self._locate(path)
        listing = self._container(location).list_blobs(location.key, ["metadata"])
        return filter(_is_file, self._items(path, listing, location.key))

    def _holds_anything(self, path: str) -> bool:
        location = self._locate(path)
        listing = self._container(location).list_blobs(location.directory, results_per_page=1)
        return any(True for _ in self._items(path, listing, location.directory))

    def _date(self, path: str) -> object:
        location, answers = self._locate(path), list[Any]()
        listing = self._container(location).list_blobs(
            location.directory, results_per_page=1, raw_response_hook=answers.append
        )
        next(listing.by_page(), None)
        return answers[-1].http_response.headers.get("Date")

    def _keys_below(self, path: str) -> Iterator[str]:
        location = self._locate(path)
        listing = self._container(location).walk_blobs(location.key, delimiter="/")
        return (item.name for item in self._items(path, listing, location.key))

    def _status(self, found: Any, path: str) -> FileStatus:
        modified_ms = int(found.last_modified.timestamp() * 1000)
        return FileStatus(path, int(found.size or 0), modified_ms, str(found.etag or ""))

    def _meaning(self, error: Exception) -> PutMeaning:
        return azure_answer(error)[1].put

    def _translated(self, error: Exception, doing: str, path: str) -> StorageError:
        answer, row = azure_answer(error)
        container = _describe_container(self._locate(path))
        translated = error_of_answer(row, answer, doing=doing, path=path, service=container)
        # The SDK's own text may quote a signature, and without an answer the whole URL. An error of
        # any other class comes from an answer that the SDK could not read.
        is_answer = isinstance(error, HttpResponseError) and answer.status not in (0, 401, 403)
        is_quotable = is_answer or not isinstance(error, AzureError | requests.RequestException)
        translated.__cause__ = error if is_quotable else None
        translated.__suppress_context__ = True
        return translated

    # Requests

    def _items(self, path: str, listing: ItemPaged[Any], prefix: str) -> Iterator[Any]:
        """Yield the items of a listing, page by page."""
        pages: Any = listing.by_page()
        tokens = PageTokens(path)
        while True:
            page = self._patiently("list", path, lambda: next(pages, None))
            if page is None:
                return
            found = list(page)
            tokens.ensure_below(prefix, (item.name for item in found))
            if pages.continuation_token:
                tokens.follow(pages.continuation_token)
            yield from found

    def _locate(self, path: str) -> AzureLocation:
        return parse_location(path, self._parsed.default_account)

    def _blob(self, path: str) -> BlobClient:
        location = self._locate(path)
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
            retry_total=0,  # a hidden retry would turn our own commit into a lost race
            permit_redirects=False,
            transport=self._transport or self._new_transport(options.endpoint_of(location)),
        )

    def _new_transport(self, endpoint: str) -> HttpTransport[Any, Any]:
        session = whole_session(
            requests.Session(),
            connect_timeout_s=self._parsed.connect_timeout_s,
            read_timeout_s=self._parsed.read_timeout_s,
            endpoint=endpoint,
            ensure=ensure_evidence,
        )
        transport: HttpTransport[Any, Any] = RequestsTransport(session=session, session_owner=False)
        return transport

    def _containers_in_use(self) -> list[tuple[str, str]]:
        """Return the endpoints and containers in use."""
        with self._lock:
            containers = list(self._containers)
        return [
            (self._parsed.endpoint_of(AzureLocation(account, name, "")), name)
            for account, name in containers
        ]


def _open_blob(blob: BlobClient) -> OpenedObject:
    """Return the blob with its first bytes, by a GET, since a HEAD may be cut unnoticed."""
    try:
        first = blob.download_blob(offset=0, length=READ_AHEAD_BYTES)
    except HttpResponseError as error:
        if error.status_code != 416:
            raise
        return OpenedObject(0, lambda *_: b"")  # an empty blob has no first byte
    size_bytes = int(str(first.properties.content_range).rpartition("/")[2])
    etag = str(first.properties.etag)
    as_listed = etag.strip('"')  # headers have it in quotation marks, listings without them

    def fetch(offset: int, length: int) -> bytes:
        same = MatchConditions.IfNotModified
        found = blob.download_blob(offset=offset, length=length, etag=etag, match_condition=same)
        return found.readall()

    return OpenedObject(size_bytes, fetch, first.readall(), as_listed)


def _ensure_one_request(path: str, data: bytes) -> None:
    if len(data) > _MAX_PUT_BYTES:
        raise StorageError(
            f"Nothing was written to {path}: its {len(data)} bytes are more than one request "
            f"can carry ({_MAX_PUT_BYTES}). Commit fewer files at a time.",
            kind="OPTIMIST_FILE_TOO_LARGE",
            path=path,
            retryable=False,
        )


def _describe_container(location: AzureLocation) -> str:
    return f"container {location.container} of account {location.account}"


def _is_file(item: BlobProperties | BlobPrefix) -> bool:
    # Hadoop's older connector marks a directory of a flat account by an empty blob with its name.
    return isinstance(item, BlobProperties) and (item.metadata or {}).get("hdi_isfolder") != "true"
