"""The common part of logs in object stores that let only one of two writers create a file.

A log is a prefix of keys: a directory exists while it has an object. One conditional request
creates an object (`create_once`). An endpoint that is not the cloud's own is probed before the
first of them (`create_probe`). Reads fetch ranges of one version of the object.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, ClassVar, TypeVar

from optimist.core.errors import LogFileNotFoundError, OptimistError, StorageError
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.runtime.retry import Patience, call_patiently
from optimist.logstores.shared.answer_dates import ms_of_date
from optimist.logstores.shared.answer_table import CREATE, PutMeaning
from optimist.logstores.shared.create_once import create_once
from optimist.logstores.shared.create_probe import ensure_exclusive, probe_once
from optimist.logstores.shared.file_pieces import PIECE_BYTES, size_of
from optimist.logstores.shared.listing_order import in_order
from optimist.logstores.shared.object_keys import split_key
from optimist.logstores.shared.ranged_file import open_ranged, open_whole

__all__ = ["ObjectStoreLog", "OpenedObject", "Probed"]

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class OpenedObject:
    """One version of an object.

    Attributes:
        size_bytes: Its length.
        fetch: Returns the bytes at an offset, of a length; raises if the object has changed.
        head: The beginning of the object, if it was fetched already.
        identity: The entity tag or the generation of this version.
    """

    size_bytes: int
    fetch: Callable[[int, int], bytes]
    head: bytes = b""
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """An endpoint and container to probe before the first write.

    Attributes:
        address: Endpoint, and container or bucket.
        option: The option that allows a store which fails the probe.
        is_overridden: True if it is set.
    """

    address: tuple[str, str]
    option: str
    is_overridden: bool


class ObjectStoreLog(LogStore):
    """A log whose commits are created by a condition of the store.

    Attributes:
        batch_size: The most objects that `_remove_together` takes.

    Args:
        options: The store's options.
        clock: Waits if the service is busy.
        max_tries: How often a request is sent if the service is busy.
        max_put_tries: How often a creating request is sent if the service is busy.
    """

    batch_size: ClassVar[int]

    def __init__(
        self,
        options: Mapping[str, str] | None,
        clock: Clock | None,
        *,
        max_tries: int,
        max_put_tries: int,
    ) -> None:
        super().__init__(options)
        self._clock: Clock = clock or SystemClock()
        self._patience = Patience(max_tries=max_tries)
        self._put_patience = Patience(max_tries=max_put_tries)

    # Each store makes requests that are ready to be sent, with a client that exists

    @abstractmethod
    def _key(self, path: str) -> str:
        """Return the key of a path's object, with its trailing slash."""

    @abstractmethod
    def _probed(self, path: str) -> Probed | None:
        """Return what to probe before a path is written, or None for the cloud's own endpoint."""

    @abstractmethod
    def _put_new(self, path: str, data: bytes) -> Callable[[], object]:
        """Make one request with all the bytes and the condition."""

    @abstractmethod
    def _put_new_in_pieces(self, path: str, file: BinaryIO) -> Callable[[], object]:
        """Send invisible pieces, and return the last request, which has the condition."""

    @abstractmethod
    def _replace(self, path: str, data: bytes) -> Callable[[], object]:
        """Make one request with all the bytes and without a condition."""

    @abstractmethod
    def _read(self, path: str) -> Callable[[], bytes]:
        """Make one request for the whole object."""

    @abstractmethod
    def _open(self, path: str) -> Callable[[], OpenedObject]:
        """Make one request for the object as it is now."""

    @abstractmethod
    def _remove(self, path: str) -> Callable[[], object]:
        """Make one request that deletes the object."""

    @abstractmethod
    def _remove_together(self, paths: Sequence[str]) -> Callable[[], list[str]]:
        """Make one request that deletes objects and returns those that may still exist."""

    @abstractmethod
    def _endpoint(self, path: str) -> str:
        """Return the endpoint that serves a path."""

    @abstractmethod
    def _objects_from(self, path: str) -> Iterator[Any]:
        """Yield the objects in a path's directory, from its own name on, page by page."""

    @abstractmethod
    def _objects_below(self, path: str) -> Iterator[Any]:
        """Yield the objects below a path that ends in a slash, at any depth, page by page."""

    @abstractmethod
    def _holds_anything(self, path: str) -> bool:
        """Check by one request whether an object is in a path's directory or below it."""

    @abstractmethod
    def _date(self, path: str) -> object:
        """Return the header `Date` of the answer to one request about a path's directory."""

    @abstractmethod
    def _keys_below(self, path: str) -> Iterator[str]:
        """Yield the keys directly below a path with a slash, of objects and directories."""

    @abstractmethod
    def _status(self, found: Any, path: str) -> FileStatus:
        """Return what a listing says about an object."""

    @abstractmethod
    def _meaning(self, error: Exception) -> PutMeaning:
        """Return what an error of a creating request means for the object."""

    @abstractmethod
    def _translated(self, error: Exception, doing: str, path: str) -> StorageError:
        """Translate an error of the SDK to our error."""

    # Writing

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`. The parent need not exist.

        Raises:
            ConfigError: A custom endpoint ignores the condition (kind `OPTIMIST_NO_ATOMIC_CREATE`),
                or credentials are missing.
            StorageError: The service refused, and nothing was written.
        """
        self._ensure_exclusive(path)
        return self._create_whole(path, data)

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`.

        A large file is sent in pieces.

        Nobody sees the pieces before the last request, which makes an object of them and has the
        condition.
        """
        self._ensure_exclusive(path)
        return self.put_data_file(path, file)

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_data_file`.

        The endpoint is not probed for it.
        """
        size_bytes = size_of(file)
        if size_bytes <= PIECE_BYTES:
            file.seek(0)
            return self._create_whole(path, file.read())
        return self._create_by(path, self._put_new_in_pieces(path, file), size_bytes)

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`."""
        self._patiently("write", path, self._replace(path, data))

    def delete(self, path: str) -> None:
        """See `LogStore.delete`."""
        try:
            self._patiently("delete", path, self._remove(path))
        except LogFileNotFoundError:
            return

    def delete_data_files(self, paths: Sequence[str]) -> None:
        """See `LogStore.delete_data_files`.

        One request deletes many files.

        Files that the service did not delete this way are deleted one by one, which gives their
        errors.
        """
        for start in range(0, len(paths), self.batch_size):
            for path in self._delete_batch(paths[start : start + self.batch_size]):
                self.delete(path)

    def _delete_batch(self, paths: Sequence[str]) -> list[str]:
        if len(paths) == 1:
            return list(paths)
        try:
            return self._patiently("delete", paths[0], self._remove_together(paths))
        except (StorageError, LogFileNotFoundError):
            return list(paths)

    # Reading

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        return self._patiently("read", path, self._read(path))

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`.

        Ranges of one version are fetched as they are read.
        """
        found = self._patiently("read", path, self._open(path))
        if len(found.head) == found.size_bytes:
            return open_whole(found.head, identity=found.identity)

        def fetch(offset: int, length: int) -> bytes:
            return self._patiently("read", path, partial(found.fetch, offset, length))

        return open_ranged(found.size_bytes, fetch, head=found.head, identity=found.identity)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        Pages are fetched as they are read.

        A directory without files does not exist.

        Raises:
            StorageError: Also if the listing is out of order (kind `OPTIMIST_UNSORTED_LISTING`).
        """
        directory, first = split_key(self._key(path))
        prefix = path[: len(path) - len(first)]
        is_there = False
        for found in in_order(
            self._objects_from(path),
            lambda found: str(found.name),
            path=prefix,
            endpoint=self._endpoint(path),
            remedy="Use an endpoint that does, as the service itself.",
        ):
            name = found.name[len(directory) :]
            if name < first or not name:
                continue
            is_there = True
            yield self._status(found, prefix + name)
        if not is_there and not self._holds_anything(path):
            raise LogFileNotFoundError(
                f"Cannot list {prefix}: the directory does not exist. Check the path.",
                kind="OPTIMIST_FILE_NOT_FOUND",
                path=prefix,
                retryable=False,
            )

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """See `LogStore.list_below`."""
        path = directory.rstrip("/") + "/"
        prefix = self._key(path)
        for found in self._objects_below(path):
            if not found.name.endswith("/"):  # a marker that others write for a directory
                yield self._status(found, path + found.name[len(prefix) :])

    def list_names(self, directory: str) -> Iterator[str]:
        """See `LogStore.list_names`."""
        path = directory.rstrip("/") + "/"
        prefix = self._key(path)
        names = (key[len(prefix) :].rstrip("/") for key in self._keys_below(path))
        return filter(None, names)

    def service_time_ms(self, path: str) -> int | None:
        """See `LogStore.service_time_ms`."""
        return ms_of_date(self._patiently("list", path, lambda: self._date(path)))

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """Return False, since an object appears whole, in one step."""
        return False

    # Requests

    def _ensure_exclusive(self, path: str) -> None:
        """Probe an endpoint that is not the cloud's own, before the first write to it."""
        probed = self._probed(path)
        if probed is None:
            return
        address, override = probed.address, (probed.option, probed.is_overridden)
        verdict = probe_once(
            address, path, create=self._create_whole, delete=self.delete, clock=self._clock
        )
        ensure_exclusive(verdict, address, path, override=override)

    def _create_whole(self, path: str, data: bytes) -> PutOutcome:
        return self._create_by(path, self._put_new(path, data), len(data))

    def _tag_of(self, answer: object) -> str:  # noqa: ARG002 - for overriding
        """Return the entity tag in a put's answer, as a listing has it, or an empty text."""
        return ""

    def _create_by(self, path: str, send: Callable[[], object], size_bytes: int) -> PutOutcome:
        """Send the conditional request, by the protocol in each store's module."""
        outcome, answer = create_once(
            send,
            self._meaning,
            lambda error: self._translated(error, CREATE, path),
            self._put_patience,
            self._clock,
            size_bytes=size_bytes,
        )
        if outcome is PutOutcome.CREATED:
            self._created.note(path, self._tag_of(answer))
        return outcome

    def _patiently(self, doing: str, path: str, call: Callable[[], _Result]) -> _Result:
        def translated() -> _Result:
            try:
                return call()
            except OptimistError:
                raise  # of the connection: for example, credentials are missing
            except Exception as error:  # noqa: BLE001 - an SDK raises anything on a cut answer
                raise self._translated(error, doing, path)  # noqa: B904

        return call_patiently(translated, self._patience, self._clock)
