"""The Arbiter: who owns version N of a table, for stores that can't tell by themselves (spec 4).

One entry per file of the log, created atomically, names the staged bytes (`temp_path`) that the
file will have. Whoever creates the entry owns the version; whoever finds an entry that is not
complete finishes it. Correctness never depends on a clock: an incomplete entry never expires.

`optimist.core.testing.ArbiterSuite` checks an arbiter that subclasses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

from optimist.core.logstore import PutOutcome

__all__ = ["Arbiter", "CommitEntry"]


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """One entry (spec 4.2).

    Attributes:
        table_path: The table's root as all writers spell it, without user info and trailing slash;
            it must be the same to the byte for every writer of the table.
        file_name: The final component of the file, for example `00000000000000000007.json`.
        temp_path: The staged bytes, relative to `_delta_log`.
        complete: Whether the file is there for certain.
        expire_time_s: Epoch seconds after which a complete entry may be dropped; None until then.
    """

    table_path: str
    file_name: str
    temp_path: str
    complete: bool
    expire_time_s: int | None = None

    def completed(self, expire_time_s: int) -> CommitEntry:
        """The same entry once its file is there."""
        return replace(self, complete=True, expire_time_s=expire_time_s)


class Arbiter(ABC):
    """Keeps the entries of any number of tables. Threads may share it.

    It is built with one argument, the options, a plain mapping. Every read sees every write that
    has returned, by whomever.

    Attributes:
        entry_ttl_s: How many seconds a store lets pass between completing an entry and its
            `expire_time_s`; an arbiter whose users set it says what they set.
    """

    entry_ttl_s: int = 86_400

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.options: Mapping[str, str] = options or {}

    @abstractmethod
    def create(self, entry: CommitEntry) -> PutOutcome:
        """Create the entry if there is none for its table and file: the commit point.

        Returns:
            `CREATED` to exactly one of all that come with a `temp_path` of their own, `EXISTS` to
            the others, `UNKNOWN` where the answer was lost; then `get` tells, by the entry's
            `temp_path`, whose it is. Who comes again with the `temp_path` that has won already
            hears `CREATED` again: a network may deliver one request twice.

        Raises:
            StorageError: The arbiter refused; no entry was created. Whoever is not certain of that
                answers `UNKNOWN`.
        """

    @abstractmethod
    def get(self, table_path: str, file_name: str) -> CommitEntry | None:
        """The entry of a file, or None.

        Raises:
            StorageError: The arbiter could not be asked.
        """

    @abstractmethod
    def latest(self, table_path: str) -> CommitEntry | None:
        """The entry with the greatest file name of the table (compared as bytes), or None.

        Raises:
            StorageError: The arbiter could not be asked.
        """

    @abstractmethod
    def complete(self, entry: CommitEntry) -> None:
        """Store the entry as complete, with its `expire_time_s`; saying it twice is fine.

        An entry of another `temp_path` under the same name is never overwritten, one that is gone
        never made anew, and what else others store with the entry is kept.

        Raises:
            StorageError: The arbiter failed; the entry may or may not be complete. Say it again.
        """

    def describe(self) -> Mapping[str, str]:
        """Which arbiter this is, as text without secrets."""
        return {"arbiter": f"{type(self).__module__}:{type(self).__qualname__}"}
