"""The LogStore: the one plug point through which the engine touches a log directory (spec 3.1).

A store gives three guarantees for the files of a log:

1. **Atomic visibility.** Readers see a file whole or not at all, unless `is_partial_write_visible`
   says otherwise.
2. **Mutual exclusion.** Of all `put_if_absent` calls for one path, by any number of threads,
   processes and machines, at most one is ever `CREATED`, and the bytes that readers then see are
   its bytes.
3. **Consistent listing.** Once a write has returned, `list_from` shows the file.

A store that cannot keep 2 must refuse to write with a `ConfigError`; it must never guess. To check
all three, subclass `optimist.core.testing.LogStoreSuite` in the store's tests.
"""

from __future__ import annotations

import enum
import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import BinaryIO

from optimist.core.errors import LogFileExistsError, StorageError
from optimist.core.plugins.created_tags import CreatedTags
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.secrets import Options

__all__ = ["COMMIT_REPLACED", "NO_ATOMIC_CREATE", "FileStatus", "LogStore", "PutOutcome"]

COMMIT_REPLACED = "OPTIMIST_COMMIT_REPLACED"
"""The kind of a `StorageError`: a commit that was read before is no longer in the log. Discard
everything that was derived from it."""
NO_ATOMIC_CREATE = "OPTIMIST_NO_ATOMIC_CREATE"
"""The kind of a `ConfigError`: the store can't create files so that only one of two writers wins.
Together with an arbiter that decides who wins, the store can still be used."""


class PutOutcome(enum.Enum):
    """How an attempt to create a file ended. Losing a race is a value, not an error."""

    CREATED = "created"
    """The file is there with our bytes; nobody else created it."""
    EXISTS = "exists"
    """The file was there already; we changed nothing."""
    UNKNOWN = "unknown"
    """No answer: the file may be there with our bytes, with another's, or not at all."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One entry of a listing.

    Attributes:
        path: The full path.
        size_bytes: The size in bytes.
        modified_ms: The modification time, in epoch milliseconds.
        etag: What tells this file from another that takes its place, as far as the store's
            listings say it: an entity tag, a generation, an inode. A time alone may be of whole
            seconds, in which a table can be dropped and made anew.
    """

    path: str
    size_bytes: int
    modified_ms: int
    etag: str = ""

    def is_same_file(self, other: FileStatus) -> bool:
        """Whether two listings have shown one file, and not another that has taken its place.

        A copy with the same bytes is the same one to stores that name a content by its entity tag.
        """
        return self._told == other._told

    @property
    def identity(self) -> str:
        """A text that two listings of one file share; see `is_same_file`."""
        return hashlib.sha256(repr(self._told).encode()).hexdigest()[:16]

    @property
    def _told(self) -> tuple[str, int, str | int]:
        return self.name, self.size_bytes, self.etag or self.modified_ms

    @property
    def name(self) -> str:
        """The final component of the path."""
        return self.path.rpartition("/")[2]


class LogStore(ABC):
    """Moves the bytes of a log. Subclass it, name it in the conf, and the engine uses it.

    A store is built with one argument, the options (a plain mapping, for example the entries of a
    Spark conf), and may be shared by threads.

    Attributes:
        chosen_because: Why the registry chose this store: conf keys or defaults, one for each way
            in which it was found. Empty for a store that was built by hand.
        finds_cheaply: Whether `find` is cheap while a listing reads the whole directory, so that
            the next few versions are better looked up by name.
    """

    chosen_because: tuple[str, ...] = ()
    finds_cheaply: bool = False

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.options: Mapping[str, str] = Options(options)
        self._created = CreatedTags()

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file with exactly these bytes, if and only if it is absent.

        Never implement this as an existence check followed by a write: two writers can pass the
        check together. Raise an error only if certainly nothing was written; if the store can't
        tell, return `UNKNOWN`, and the engine reads the file back.

        Raises:
            LogFileNotFoundError: The parent directory does not exist (stores with directories).
            ConfigError: The store cannot guarantee that one writer wins.
            StorageError: The write failed and nothing of it is there.
        """

    @abstractmethod
    def put_overwrite(self, path: str, data: bytes) -> None:
        """Write the file, replacing any that is there; for hints such as `_last_checkpoint`."""

    @abstractmethod
    def read_bytes(self, path: str) -> bytes:
        """The whole file.

        Raises:
            LogFileNotFoundError: There is no such file.
        """

    @abstractmethod
    def list_from(self, path: str) -> Iterator[FileStatus]:
        """List the files in the directory of `path` from its name on, sorted by name.

        No file needs to exist at `path` itself. The listing is not recursive and leaves out
        directories. It is lazy if the store lists page by page.

        Raises:
            LogFileNotFoundError: The directory does not exist (on the call or the first item).
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; it may be absent already. Only cleanup calls this."""

    @abstractmethod
    def is_partial_write_visible(self, path: str) -> bool:
        """Whether readers can see a file before it is whole; commits then take the commit lock."""

    def take_turns(self, log_path: str, *, timeout_s: float) -> AbstractContextManager[None]:  # noqa: ARG002 - for overriding
        """Wait until no other process of this machine commits to a log; for stores that can tell.

        If commits take the commit lock, one thread of a process at a time enters this. The process
        that has waited longest is next, and one that dies gives up its turn at once. Turns only
        save writers from racing each other; they do not exclude them: after `timeout_s` a writer
        goes on without a turn.
        """
        return nullcontext()

    def find(self, path: str) -> FileStatus | None:
        """The status of one file as a listing would show it, or None if there is no such file.

        The engine calls this only if `finds_cheaply` is set.
        """
        raise NotImplementedError

    def is_as_created(self, listed: FileStatus) -> bool:
        """Whether a listed file is known to be the one that this store has created there.

        A store knows it by the tag with which its put was answered, `_created.note`. False where
        that can't be told; then the engine reads the file.
        """
        return self._created.is_tag_of(listed.path, listed.etag)

    def ensure_directory(self, path: str) -> None:  # noqa: B027 - object stores have none
        """Make the directory and its parents; does nothing on stores without directories."""

    def resolve_path(self, path: str) -> str:
        """The full form of a path, the same for all spellings of one place; used in cache keys."""
        return path

    def open_read(self, path: str) -> BinaryIO:
        """Open a file as a seekable binary stream, to read a large checkpoint column by column.

        Stores with ranged reads override this; the default fetches the whole file.
        """
        return io.BytesIO(self.read_bytes(path))

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """As `put_if_absent`, with the whole content of a seekable local file; for checkpoints.

        Stores that can send a file piece by piece override this; the default reads it into memory.
        The file stays open, at an unspecified position.

        Raises:
            LogFileNotFoundError, ConfigError, StorageError: As `put_if_absent`.
        """
        file.seek(0)
        return self.put_if_absent(path, file.read())

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """As `put_file_if_absent`, for a data file, whose name nobody else uses.

        The condition is the same, because a request that arrives late or twice must not replace
        what is there. But there are no rivals, so stores need not look for them first. `EXISTS` may
        mean the writer's own file, see `creation`.

        Raises:
            LogFileNotFoundError, ConfigError, StorageError: As `put_if_absent`.
        """
        return self.put_file_if_absent(path, file)

    def data_access(self, path: str) -> DataAccess | None:  # noqa: ARG002 - for overriding
        """How to reach the data files below a table's path, with the store's own credentials.

        None leaves it to the scheme: local files, or its fsspec driver without options.

        Raises:
            ConfigError: There are no credentials, or there are options that Arrow's file systems
                can't honour.
        """
        return None

    def data_origin(self, path: str) -> DataOrigin:
        """The origin of a table's path, which tells which URLs name files of the same store.

        Only such files are reached with the credentials of `data_access`, and by default a table's
        log may name no others (`optimist.paths.outsideTable`). This default knows the scheme and
        the host of the path itself; stores that have several schemes override it. No request is
        made.

        Raises:
            ConfigError: The path does not belong to the store.
        """
        return DataOrigin.of(path)

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """The files below a directory at any depth, in no order; none if it is not there.

        Stores whose `data_access` is one of Arrow's own file systems override this and
        `list_names`: their data files are found and removed by the store, see `stored_files`.
        """
        raise NotImplementedError(f"{type(self).__name__} lists no data files")

    def list_names(self, directory: str) -> Iterator[str]:
        """The names of the files and directories in a directory, in no order; see `list_below`."""
        raise NotImplementedError(f"{type(self).__name__} lists no data files")

    def delete_data_files(self, paths: Sequence[str]) -> None:
        """Remove data files of one table; each may be absent already.

        Stores that remove many files by one request override this; the default removes each by
        `delete`.

        Raises:
            StorageError: Some of the files may still be there.
        """
        for path in paths:
            self.delete(path)

    def abort_uploads(self, directory: str) -> None:  # noqa: B027 - most stores keep none
        """Abort unfinished uploads of data files below a directory.

        The engine calls this when a write has failed or one of its tasks was run again. Stores
        whose unfinished uploads cost money and do not expire override this; it must not raise.
        """

    def describe(self) -> Mapping[str, str]:
        """Which store this is and why it was chosen, as text without secrets.

        Stores add how one writer wins there, and which other engines' writers that excludes.
        """
        return {
            "store": f"{type(self).__module__}:{type(self).__qualname__}",
            "chosen because": "; ".join(self.chosen_because) or "it was built by hand",
        }

    def read(self, path: str) -> list[str]:
        """The lines of a text file, trimmed (Delta's `read`)."""
        # Not splitlines(): it also splits at U+2028 and the like, which JSON text may hold.
        lines = self.read_bytes(path).decode("utf-8").split("\n")
        if lines[-1] == "":
            lines.pop()
        return [line.strip() for line in lines]

    def write(self, path: str, actions: Iterable[str], overwrite: bool = False) -> None:
        """Write lines, each ended by a newline (Delta's `write`).

        Raises:
            LogFileExistsError: `overwrite` is false and the file exists.
            StorageError: The outcome is unknown (kind `OPTIMIST_WRITE_OUTCOME_UNKNOWN`).
        """
        data = "".join(f"{line}\n" for line in actions).encode()
        if overwrite:
            self.put_overwrite(path, data)
            return
        outcome = self.put_if_absent(path, data)
        if outcome is PutOutcome.EXISTS:
            raise LogFileExistsError(
                f"The file {path} exists already. It was left unchanged.",
                kind="DELTA_FILE_ALREADY_EXISTS",
                path=path,
            )
        if outcome is PutOutcome.UNKNOWN:
            raise StorageError(
                f"The file {path} may or may not have been written, because the store gave no "
                "answer. Look at the file before you write it again.",
                kind="OPTIMIST_WRITE_OUTCOME_UNKNOWN",
                path=path,
                retryable=False,
            )
