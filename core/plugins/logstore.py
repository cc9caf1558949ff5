"""The LogStore: the one plug point through which the engine touches a log directory (spec 3.1).

A store gives three guarantees for the files of a log:

1. **Atomic visibility.** Readers see a file whole or not at all, unless `is_partial_write_visible`
   says otherwise.
2. **Mutual exclusion.** Of all `put_if_absent` calls for one path, by any number of threads,
   processes and machines, at most one is ever `CREATED`, and the bytes that readers then see are
   its bytes.
3. **Consistent listing.** Once a write has returned, `list_from` shows the file. So a listing that
   shows a version also shows those before it, which were made first.

A store that cannot keep 2 must refuse to write with a `ConfigError`, and must never guess. To check
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
from optimist.core.runtime.observed_requests import observe_requests
from optimist.core.secrets import Options

__all__ = ["COMMIT_REPLACED", "NO_ATOMIC_CREATE", "FileStatus", "LogStore", "PutOutcome"]

COMMIT_REPLACED = "OPTIMIST_COMMIT_REPLACED"
"""The kind of a `StorageError`: a commit that was read before is no longer in the log. Discard
everything that was derived from it."""
NO_ATOMIC_CREATE = "OPTIMIST_NO_ATOMIC_CREATE"
"""The kind of a `ConfigError`: the store can't create files so that only one of two writers wins.
An arbiter that decides who wins makes the store usable."""

_CALLS = (
    *("put_if_absent", "put_overwrite", "put_file_if_absent", "put_data_file"),
    *("read_bytes", "open_read", "find", "delete", "delete_data_files"),
)
_LISTINGS = ("list_from", "list_below", "list_names")
"""The requests of which observers are told, those that return at once and those that go on."""


class PutOutcome(enum.Enum):
    """The outcome of an attempt to create a file. Losing a race is a value, not an error."""

    CREATED = "created"
    """The file has our bytes, and nobody else created it."""
    EXISTS = "exists"
    """The file existed already, and we changed nothing."""
    UNKNOWN = "unknown"
    """No answer: the file may exist with our bytes, with another's, or not at all."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One entry of a listing.

    Attributes:
        path: The full path.
        size_bytes: The size in bytes.
        modified_ms: The modification time, in epoch milliseconds.
        etag: An entity tag, a generation or an inode, if the store's listings give one. It
            distinguishes this file from another that replaces it. A time alone may be in whole
            seconds, and a table can be dropped and made anew within one.
    """

    path: str
    size_bytes: int
    modified_ms: int
    etag: str = ""

    def is_same_file(self, other: FileStatus) -> bool:
        """Return whether two listings show one file, and not a file that replaced it.

        A copy with the same bytes is the same file to stores whose entity tag names a content.
        """
        return self._identifying_fields == other._identifying_fields

    @property
    def identity(self) -> str:
        """A text that two listings of one file share (see `is_same_file`)."""
        return hashlib.sha256(repr(self._identifying_fields).encode()).hexdigest()[:16]

    @property
    def _identifying_fields(self) -> tuple[str, int, str | int]:
        return self.name, self.size_bytes, self.etag or self.modified_ms

    @property
    def name(self) -> str:
        """The final component of the path."""
        return self.path.rpartition("/")[2]


class LogStore(ABC):
    """A store of log files. Subclass it, name it in the conf, and the engine uses it.

    A store's constructor takes one argument: the options (a plain mapping, for example the entries
    of a Spark conf). Threads may share a store.

    Attributes:
        chosen_because: The reasons why the registry chose this store: conf keys or defaults, one
            for each way in which it found the store. Empty for a store that a program built itself.
        finds_cheaply: Whether `find` is cheap while a listing reads the whole directory. If so, the
            engine looks the next few versions up by name.
    """

    chosen_because: tuple[str, ...] = ()
    finds_cheaply: bool = False

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.options: Mapping[str, str] = Options(options)
        self._created = CreatedTags()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        observe_requests(cls, _CALLS, _LISTINGS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # options may be secrets; `describe` tells more

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file with exactly these bytes, if and only if it is absent.

        Never implement this as an existence check followed by a write: two writers can pass the
        check together. Raise an error only if certainly nothing was written. If the store can't
        tell, return `UNKNOWN`, and the engine reads the file back.

        Raises:
            LogFileNotFoundError: The parent directory does not exist (stores with directories).
            ConfigError: The store cannot guarantee that one writer wins.
            StorageError: The write failed and nothing of it is there.
        """

    @abstractmethod
    def put_overwrite(self, path: str, data: bytes) -> None:
        """Write the file, replacing an existing one. For hints such as `_last_checkpoint`."""

    @abstractmethod
    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of the whole file.

        Raises:
            LogFileNotFoundError: The file does not exist.
        """

    @abstractmethod
    def list_from(self, path: str) -> Iterator[FileStatus]:
        """List the files in the directory of `path` from its name on, sorted by name.

        `path` itself need not exist. The listing is not recursive and leaves out directories. It is
        lazy if the store lists page by page.

        Raises:
            LogFileNotFoundError: The directory does not exist (on the call or the first item).
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file, which may be absent already. Only cleanup calls this."""

    @abstractmethod
    def is_partial_write_visible(self, path: str) -> bool:
        """Return whether a reader can see a part of a file. Commits then take the commit lock."""

    def take_turns(self, log_path: str, *, timeout_s: float) -> AbstractContextManager[None]:  # noqa: ARG002 - for overriding
        """Wait until no other process of this machine commits to a log, if the store can tell.

        If commits take the commit lock, one thread of a process at a time enters this. The process
        that has waited longest is next. A process that dies gives up its turn at once. Turns keep
        writers from racing each other, but they do not exclude writers: after `timeout_s` a writer
        goes on without a turn.
        """
        return nullcontext()

    def find(self, path: str) -> FileStatus | None:
        """Return the status of one file as a listing would show it, or None without a file.

        The engine calls this only if `finds_cheaply` is set.
        """
        raise NotImplementedError

    def is_as_created(self, listed: FileStatus) -> bool:
        """Return whether a listed file is certainly the file that this store created there.

        A store knows it by the tag that answered its put (`_created.note`). If it returns False,
        the engine reads the file.
        """
        return self._created.is_tag_of(listed.path, listed.etag)

    def newest_claimed(self, log_path: str) -> str | None:  # noqa: ARG002 - for overriding
        """Return the name of a log's newest file, if an arbiter says that it certainly exists.

        None without an arbiter, without an entry, and for an unfinished one. `fsck` compares it
        with the listing.

        Raises:
            StorageError: The arbiter did not answer.
        """
        return None

    def ensure_directory(self, path: str) -> None:  # noqa: B027 - object stores have none
        """Make the directory and its parents. Does nothing on stores without directories."""

    def resolve_path(self, path: str) -> str:
        """Return the full form of a path, the same for all its spellings. Used in cache keys."""
        return path

    def open_read(self, path: str) -> BinaryIO:
        """Open a file as a seekable binary stream, to read a large checkpoint column by column.

        Stores with ranged reads override this. The default reads the whole file.

        The stream, or its `raw`, may have an attribute `identity`: a text that tells this version
        of the file from one that replaces it. It is the `etag` of listings, if these have one.
        """
        return io.BytesIO(self.read_bytes(path))

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """Create a file like `put_if_absent`, from a seekable local file. For checkpoints.

        Stores that can send a file piece by piece override this. The default reads it into memory.
        The file stays open, at an unspecified position.

        Raises:
            LogFileNotFoundError, ConfigError, StorageError: As `put_if_absent`.
        """
        file.seek(0)
        return self.put_if_absent(path, file.read())

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """Create a data file like `put_file_if_absent`. Nobody else uses its name.

        The condition is the same, because a request that arrives late or twice must not replace an
        existing file. But there are no rivals, so stores need not look for them first. `EXISTS` may
        mean the writer's own file (see `creation`).

        Raises:
            LogFileNotFoundError, ConfigError, StorageError: As `put_if_absent`.
        """
        return self.put_file_if_absent(path, file)

    def data_access(self, path: str) -> DataAccess | None:  # noqa: ARG002 - for overriding
        """Return the access to the data files below a table's path, with the store's credentials.

        None means that the scheme decides: local files, or its fsspec driver without options.

        Raises:
            ConfigError: Credentials are missing, or Arrow's file systems can't honour an option.
        """
        return None

    def data_origin(self, path: str) -> DataOrigin:
        """Return the origin of a table's path, which decides which URLs are in the same store.

        Only files of the same store are opened with the credentials of `data_access`, and by
        default a table's log may name no others (`optimist.paths.outsideTable`). This default knows
        the scheme and the host of the path itself. Stores that have several schemes override it. It
        makes no request.

        Raises:
            ConfigError: The path does not belong to the store.
        """
        return DataOrigin.of(path)

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """List the files below a directory at any depth, in no order. List none if it is absent.

        Stores whose `data_access` is one of Arrow's own file systems override this and
        `list_names`: the store finds and removes their data files (see `stored_files`).
        """
        raise NotImplementedError(f"{type(self).__name__} lists no data files")

    def list_names(self, directory: str) -> Iterator[str]:
        """List the names of files and directories in a directory, in no order."""
        raise NotImplementedError(f"{type(self).__name__} lists no data files")

    def delete_data_files(self, paths: Sequence[str]) -> None:
        """Remove data files of one table, each of which may be absent already.

        Stores that remove many files by one request override this. The default removes each by
        `delete`.

        Raises:
            StorageError: Some of the files may still be there.
        """
        for path in paths:
            self.delete(path)

    def abort_uploads(self, directory: str) -> None:  # noqa: B027 - most stores keep none
        """Abort unfinished uploads of data files below a directory.

        The engine calls this when a write has failed or one of its tasks ran again. Stores whose
        unfinished uploads cost money and do not expire override this. It must not raise.
        """

    def service_time_ms(self, path: str) -> int | None:  # noqa: ARG002 - for overriding
        """Return the time by the service's own clock, in epoch milliseconds, cut to whole seconds.

        None if its answers do not tell the time. `optimist doctor` compares it with this machine's.
        It costs one request that writes nothing, about the directory of `path`.

        Raises:
            StorageError, ConfigError: The service did not answer, or refused.
        """
        return None

    def describe(self) -> Mapping[str, str]:
        """Describe this store, and why it was chosen, as text without secrets.

        Stores add how one writer wins, and which other engines' writers that excludes.
        """
        return {
            "store": f"{type(self).__module__}:{type(self).__qualname__}",
            "chosen because": "; ".join(self.chosen_because) or "it was built by hand",
        }

    def read(self, path: str) -> list[str]:
        """Return the lines of a text file, trimmed (Delta's `read`)."""
        # Not splitlines(): it also splits at U+2028 and similar ones, which JSON text may hold.
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
