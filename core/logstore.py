"""The LogStore: the one plug point through which the engine touches a log directory (spec 3.1).

A store gives three guarantees for the files of a log:

1. **Atomic visibility.** A file is whole or absent, unless `is_partial_write_visible` says
   otherwise.
2. **Mutual exclusion.** Of all `put_if_absent` calls for one path, by any number of threads,
   processes
   and machines, at most one is ever `CREATED`, and the bytes that readers then see are its bytes.
3. **Consistent listing.** Once a write has returned, `list_from` shows the file.

A store that cannot keep 2 must refuse to write with a `ConfigError`; it must never guess.
`optimist.core.testing.LogStoreSuite` checks all three on any store that subclasses it.
"""

from __future__ import annotations

import enum
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from optimist.core.data.access import DataAccess
from optimist.core.errors import LogFileExistsError, StorageError

__all__ = ["FileStatus", "LogStore", "PutOutcome"]


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
    """One entry of a listing: full path, size in bytes, modification time in epoch milliseconds."""

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The final component of the path."""
        return self.path.rpartition("/")[2]


class LogStore(ABC):
    """Moves the bytes of a log. Subclass it, name it in the conf, and the engine uses it.

    A store is built with one argument, the options (a plain mapping, for example the entries of a
    Spark
    conf), and may be shared by threads.

    Attributes:
        chosen_because: Why the registry chose this store: conf keys or defaults, one for each way
            in which it was found. Empty for a store that was built by hand.
    """

    chosen_because: tuple[str, ...] = ()

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.options: Mapping[str, str] = options or {}

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create the file with exactly these bytes, if and only if it is absent.

        Never an existence check followed by a write: two writers pass the check together. An error
        that
        says for certain that nothing was written is raised; where the store can't tell, the answer
        is
        `UNKNOWN` and the engine reads the file back.

        Raises:
            LogFileNotFoundError: The parent directory does not exist (stores with directories).
            ConfigError: The store cannot guarantee that one writer wins.
            StorageError: The write failed and nothing of it is there.
        """

    @abstractmethod
    def put_overwrite(self, path: str, data: bytes) -> None:
        """Write the file whatever was there before; for hints such as `_last_checkpoint`."""

    @abstractmethod
    def read_bytes(self, path: str) -> bytes:
        """The whole file.

        Raises:
            LogFileNotFoundError: There is no such file.
        """

    @abstractmethod
    def list_from(self, path: str) -> Iterator[FileStatus]:
        """Files beside `path` whose name is not smaller than its name, sorted by name.

        The file named need not exist. Not recursive; directories are left out. Lazy where the store
        pages.

        Raises:
            LogFileNotFoundError: The directory does not exist (on the call or the first item).
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; one that is absent already is fine. Only cleanup calls this."""

    @abstractmethod
    def is_partial_write_visible(self, path: str) -> bool:
        """Whether a file at `path` can be seen before it is whole; commits then take the lock."""

    def ensure_directory(self, path: str) -> None:  # noqa: B027 - object stores have none
        """Make the directory and its parents; nothing to do on stores without directories."""

    def resolve_path(self, path: str) -> str:
        """The full form of a path, equal for all spellings of one place; for cache keys."""
        return path

    def open_read(self, path: str) -> BinaryIO:
        """A seekable binary file for column-wise reading of large checkpoints.

        Stores with ranged reads override this; the default fetches the whole file.
        """
        return io.BytesIO(self.read_bytes(path))

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """As `put_if_absent`, with the whole content of a seekable local file; for checkpoints.

        Stores that can send a file piece by piece override this; the default reads it into memory.
        Where the file stands afterwards is not said; it stays open.

        Raises:
            LogFileNotFoundError, ConfigError, StorageError: As `put_if_absent`.
        """
        file.seek(0)
        return self.put_if_absent(path, file.read())

    def data_access(self, path: str) -> DataAccess | None:  # noqa: ARG002 - for overriding
        """How data files below a table's path are reached, with the store's own credentials.

        None leaves it to the scheme: local files, or its fsspec driver without options.

        Raises:
            ConfigError: There are no credentials, or options that Arrow's file systems can't
                honour.
        """
        return None

    def abort_uploads(self, directory: str) -> None:  # noqa: B027 - most stores keep none
        """Give up uploads of data files below a directory that were begun and never finished.

        Called when a write has failed or a task of it was run again. Where unfinished uploads are
        paid for and do not expire, the store overrides this; it must not raise.
        """

    def describe(self) -> Mapping[str, str]:
        """Which store this is, why it was chosen, what it promises, as text without secrets."""
        return {
            "store": f"{type(self).__module__}:{type(self).__qualname__}",
            "chosen because": "; ".join(self.chosen_because) or "it was built by hand",
        }

    def read(self, path: str) -> list[str]:
        """The lines of a text file, trimmed (Delta's `read`)."""
        # Not splitlines(): JSON text may hold U+2028 and its kin, which end no line of a log.
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
                f"{path} exists already.", kind="DELTA_FILE_ALREADY_EXISTS", path=path
            )
        if outcome is PutOutcome.UNKNOWN:
            raise StorageError(
                f"The store gave no answer while creating {path}; it may or may not be there.",
                kind="OPTIMIST_WRITE_OUTCOME_UNKNOWN",
                path=path,
                retryable=False,
            )
