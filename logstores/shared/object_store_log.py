"""What logs in object stores share, where the store itself lets only one of two writers create.

A log is a prefix of keys: a directory exists while there is an object in it. An object is created
by one request with a condition (`create_once`); an endpoint that is not the cloud's own is probed
before the first of them (`create_probe`). Reads go by ranges of one version of the object.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, ClassVar, TypeVar

from optimist.core.errors import LogFileNotFoundError, OptimistError, StorageError
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.runtime.retry import Patience, call_patiently
from optimist.logstores.shared.answer_table import CREATE, PutMeaning
from optimist.logstores.shared.create_once import create_once
from optimist.logstores.shared.create_probe import ensure_exclusive, probe_once
from optimist.logstores.shared.file_pieces import PIECE_BYTES, size_of
from optimist.logstores.shared.listing_order import in_order
from optimist.logstores.shared.object_keys import split_key
from optimist.logstores.shared.ranged_file import open_ranged

__all__ = ["ObjectStoreLog", "OpenedObject", "Probed"]

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class OpenedObject:
    """One version of an object.

    Attributes:
        size_bytes: Its length.
        fetch: Returns the bytes at an offset, of a length; raises where the object is another.
        head: The beginning of the object, where it was fetched already.
    """

    size_bytes: int
    fetch: Callable[[int, int], bytes]
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Probed:
    """What is probed before the first write to it.

    Attributes:
        place: Endpoint, and container or bucket.
        option: The option that insists on a store which fails the probe.
        is_overridden: Whether it is set.
    """

    place: tuple[str, str]
    option: str
    is_overridden: bool


class ObjectStoreLog(LogStore):
    """A log whose commits are created by a condition of the store.

    Attributes:
        batch_size: How many objects `_remove_together` can take.

    Args:
        options: The store's options.
        clock: Waits where the service is busy.
        max_tries: How often a request is sent that the service is too busy for.
        max_put_tries: The same for a request that creates.
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

    # What each store gives: requests that are ready to be sent, by clients that are made

    @abstractmethod
    def _key(self, path: str) -> str:
        """The key of the object that a path means; a trailing slash stays."""

    @abstractmethod
    def _probed(self, path: str) -> Probed | None:
        """What to probe before a path is written; None where the endpoint is the cloud's own."""

    @abstractmethod
    def _put_new(self, path: str, data: bytes) -> Callable[[], object]:
        """One request with all the bytes, which has the condition."""

    @abstractmethod
    def _put_new_in_pieces(self, path: str, file: BinaryIO) -> Callable[[], object]:
        """Sends what nobody sees yet; returns the last request, which has the condition."""

    @abstractmethod
    def _replace(self, path: str, data: bytes) -> Callable[[], object]:
        """One request with all the bytes, without a condition."""

    @abstractmethod
    def _read(self, path: str) -> Callable[[], bytes]:
        """One request for the whole object."""

    @abstractmethod
    def _open(self, path: str) -> Callable[[], OpenedObject]:
        """One request for the object as it is now."""

    @abstractmethod
    def _remove(self, path: str) -> Callable[[], object]:
        """One request that deletes the object."""

    @abstractmethod
    def _remove_together(self, paths: Sequence[str]) -> Callable[[], list[str]]:
        """One request that deletes objects; returns those that may still be there."""

    @abstractmethod
    def _endpoint(self, path: str) -> str:
        """The endpoint that serves a path."""

    @abstractmethod
    def _objects_from(self, path: str) -> Iterator[Any]:
        """The objects beside a path, from its own name on, page by page."""

    @abstractmethod
    def _objects_below(self, path: str) -> Iterator[Any]:
        """The objects below a path that ends in a slash, at any depth, page by page."""

    @abstractmethod
    def _holds_anything(self, path: str) -> bool:
        """Whether there is an object beside a path or below its directory, by one request."""

    @abstractmethod
    def _keys_below(self, path: str) -> Iterator[str]:
        """The keys right below a path that ends in a slash, of objects and of directories."""

    @abstractmethod
    def _status(self, found: Any, path: str) -> FileStatus:
        """What a listing tells of an object."""

    @abstractmethod
    def _meaning(self, error: Exception) -> PutMeaning:
        """What an error of a request that creates says about the object."""

    @abstractmethod
    def _translated(self, error: Exception, doing: str, path: str) -> StorageError:
        """An error of the SDK as one of ours."""

    # Writing

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`. The parent need not exist.

        Raises:
            ConfigError: A custom endpoint ignores the condition (kind `OPTIMIST_NO_ATOMIC_CREATE`),
                or there are no credentials.
            StorageError: The service refused, and nothing was written.
        """
        self._ensure_exclusive(path)
        return self._created_whole(path, data)

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`; a large file is sent in pieces.

        Nobody sees the pieces before the request that makes an object of them, and that request has
        the condition.
        """
        self._ensure_exclusive(path)
        return self.put_data_file(path, file)

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_data_file`; the endpoint is not probed for it."""
        size_bytes = size_of(file)
        if size_bytes <= PIECE_BYTES:
            file.seek(0)
            return self._created_whole(path, file.read())
        return self._created_by(path, self._put_new_in_pieces(path, file), size_bytes)

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
        """See `LogStore.delete_data_files`: many files by one request.

        Those that the service did not remove so are removed one by one, which tells why not.
        """
        for start in range(0, len(paths), self.batch_size):
            for path in self._left_by_batch(paths[start : start + self.batch_size]):
                self.delete(path)

    def _left_by_batch(self, paths: Sequence[str]) -> list[str]:
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
        """See `LogStore.open_read`; ranges are fetched as they are read, all of one version."""
        found = self._patiently("read", path, self._open(path))
        if len(found.head) == found.size_bytes:
            return io.BytesIO(found.head)

        def fetch(offset: int, length: int) -> bytes:
            return self._patiently("read", path, partial(found.fetch, offset, length))

        return open_ranged(found.size_bytes, fetch, head=found.head)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`; pages are fetched as they are read.

        A directory without files does not exist.

        Raises:
            StorageError: Also when the store lists in no order (kind `OPTIMIST_UNSORTED_LISTING`).
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
            if not found.name.endswith("/"):  # a marker that others leave for a directory
                yield self._status(found, path + found.name[len(prefix) :])

    def list_names(self, directory: str) -> Iterator[str]:
        """See `LogStore.list_names`."""
        path = directory.rstrip("/") + "/"
        prefix = self._key(path)
        names = (key[len(prefix) :].rstrip("/") for key in self._keys_below(path))
        return filter(None, names)

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """False: an object appears whole, in one step."""
        return False

    # Requests

    def _ensure_exclusive(self, path: str) -> None:
        """Probe an endpoint that is not the cloud's own, before the first write to it."""
        probed = self._probed(path)
        if probed is None:
            return
        place, override = probed.place, (probed.option, probed.is_overridden)
        verdict = probe_once(
            place, path, create=self._created_whole, delete=self.delete, clock=self._clock
        )
        ensure_exclusive(verdict, place, path, override=override)

    def _created_whole(self, path: str, data: bytes) -> PutOutcome:
        return self._created_by(path, self._put_new(path, data), len(data))

    def _tag_of(self, answer: object) -> str:  # noqa: ARG002 - for overriding
        """The entity tag that a put was answered with, as a listing has it; empty if unknown."""
        return ""

    def _created_by(self, path: str, send: Callable[[], object], size_bytes: int) -> PutOutcome:
        """Send the request that has the condition: the protocol of each store's module."""
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
                raise  # of making the connection: there are no credentials, for example
            except Exception as error:  # noqa: BLE001 - an SDK raises anything on a cut answer
                raise self._translated(error, doing, path)  # noqa: B904

        return call_patiently(translated, self._patience, self._clock)
