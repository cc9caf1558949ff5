"""The Arbiter decides who owns version N of a table, for stores that can't decide it (spec 4).

For each file of the log there is one entry. It is created atomically and names the staged bytes
(`temp_path`) that the file will have. The writer that creates the entry owns the version. Any
writer that finds an incomplete entry finishes it. Correctness never depends on a clock: an
incomplete entry never expires.

To check an arbiter, subclass `optimist.core.testing.ArbiterSuite` in its tests.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.errors.kinds import ARBITER_ENTRY_DAMAGED
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.secrets import Options
from optimist.core.values.field_types import LARGEST_LONG

__all__ = ["Arbiter", "CommitEntry", "damaged_entry", "parse_commit_entry"]

_FILE_NAME = re.compile(r"(?!\.{1,2}\Z)[^/\\\x00-\x1f\x7f]{1,255}")
_STAGED_SUFFIX = re.compile(r"[0-9A-Za-z-]{1,64}")
_STAGED_BY_DELTA_RS = re.compile(r"_commit_[0-9A-Za-z-]{1,64}\.json\.tmp")
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE]\+?[0-9]{1,2})?")


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """One entry of an arbiter (spec 4.2).

    An entry comes from a database that others write to, and the engine reads, copies and deletes
    the files that it names. So building an entry raises if its names could lead out of the log's
    directory, or to another file than its key names.

    Attributes:
        table_path: The table's root, without user info and trailing slash. All writers of the table
            must spell it the same, byte for byte.
        file_name: The final component of the file, for example `00000000000000000007.json`.
        temp_path: The staged bytes, relative to `_delta_log`: `.tmp/<file name>.<unique>`, or
            `_commit_<unique>.json.tmp` for a commit of delta-rs.
        complete: Whether the file certainly exists.
        expire_time_s: Epoch seconds after which a complete entry may be dropped. None until then.

    Raises:
        StorageError: A value has another form (kind `OPTIMIST_ARBITER_ENTRY_DAMAGED`).
    """

    table_path: str
    file_name: str
    temp_path: str
    complete: bool
    expire_time_s: int | None = None

    def __post_init__(self) -> None:
        fault = _fault_of(self)
        if fault is not None:
            raise damaged_entry(self.table_path, self.file_name, fault)

    def completed(self, expire_time_s: int) -> CommitEntry:
        """Return a copy of the entry that is marked complete, for a file that exists."""
        return replace(self, complete=True, expire_time_s=expire_time_s)


def parse_commit_entry(
    fields: Mapping[str, object], *, table_path: str, file_name: str, keeper: str
) -> CommitEntry:
    """Make an entry from the stored values of an arbiter, which anyone may have written.

    Args:
        fields: The stored values by the names of spec 4.2: `tempPath`; `complete`, as a boolean,
            its text, 0 or 1; `expireTime`, as a number, its text, or absent. The function ignores
            others.
        table_path: The table that the caller asks for.
        file_name: The file that the entry's key names.
        keeper: The arbiter that holds the entry, for the error, for example `the SQL table
            delta_log`.

    Raises:
        StorageError: The fields are not a valid entry (kind `OPTIMIST_ARBITER_ENTRY_DAMAGED`).
    """
    try:
        return CommitEntry(
            table_path,
            file_name,
            _parse_text(fields.get("tempPath")),
            complete=_parse_flag(fields.get("complete")),
            expire_time_s=_parse_seconds(fields.get("expireTime")),
        )
    except ValueError as error:
        fault = str(error)
    except StorageError as error:
        fault = str(error.fields["fault"])
    raise damaged_entry(table_path, file_name, fault, keeper=keeper)


def damaged_entry(
    table_path: object, file_name: object, fault: str, *, keeper: str = "the arbiter"
) -> StorageError:
    """Return the error for an entry that nobody may act on.

    Args:
        table_path: The table of the entry.
        file_name: The file of the entry.
        fault: The fault, as a phrase, for example `its tempPath ...`.
        keeper: The arbiter that holds it.
    """
    return StorageError(
        f"The entry of {quoted(file_name)} of the table {quoted(table_path)} in {keeper} is "
        f"damaged or forged: {fault}. The entry was not acted on, and nothing was committed. Find "
        "out who wrote it, and correct or delete it.",
        kind=ARBITER_ENTRY_DAMAGED,
        table_path=shown(table_path),
        file_name=shown(file_name),
        fault=fault,
        keeper=keeper,
        retryable=False,
    )


def _fault_of(entry: CommitEntry) -> str | None:
    if not isinstance(entry.table_path, str) or not isinstance(entry.file_name, str):
        return "its key is not text"
    if not _FILE_NAME.fullmatch(entry.file_name):
        return "its fileName is not the plain name of a file"
    if not isinstance(entry.temp_path, str) or not _is_staged(entry.temp_path, entry.file_name):
        return (
            f"its tempPath {quoted(entry.temp_path)} is neither .tmp/{shown(entry.file_name)}.<id> "
            "nor, for a commit, _commit_<id>.json.tmp"
        )
    if type(entry.complete) is not bool:
        return "its complete is neither true nor false"
    if entry.expire_time_s is not None and not _is_time(entry.expire_time_s):
        return "its expireTime is not a time"
    return None


def _is_staged(temp_path: str, file_name: str) -> bool:
    """Return whether the path has one of the two legal forms, for exactly this file (spec 4.2)."""
    prefix = f".tmp/{file_name}."
    if temp_path.startswith(prefix):
        return _STAGED_SUFFIX.fullmatch(temp_path[len(prefix) :]) is not None
    is_commit = file_name[:-5].isdecimal() and file_name.endswith(".json")
    return is_commit and _STAGED_BY_DELTA_RS.fullmatch(temp_path) is not None


def _is_time(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_LONG


def _parse_text(value: object) -> str:
    if value is None:
        raise ValueError("it has no tempPath, so its commit can't be finished")
    if not isinstance(value, str):
        raise ValueError("its tempPath is not text")  # noqa: TRY004 - content, not a call
    return value


def _parse_flag(value: object) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower())
    elif type(value) is int and value in (0, 1):
        value = bool(value)
    if not isinstance(value, bool):
        raise ValueError("its complete is neither true nor false")  # noqa: TRY004 - likewise
    return value


def _parse_seconds(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        numerator, denominator = Decimal(value).as_integer_ratio()  # DynamoDB's may have exponents
        value = numerator if denominator == 1 else None
    if not isinstance(value, int) or not _is_time(value):
        raise ValueError("its expireTime is not a time")
    return value


class Arbiter(ABC):
    """A keeper of the entries of any number of tables. Threads may share it.

    Its constructor takes one argument: the options, a plain mapping. Every read must see every
    write that has returned, whoever made it.

    Attributes:
        entry_ttl_s: How many seconds after its completion an entry expires. Stores compute its
            `expire_time_s` from this. An arbiter that lets users choose it returns their choice.
    """

    entry_ttl_s: int = 86_400

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.options: Mapping[str, str] = Options(options)

    @abstractmethod
    def create(self, entry: CommitEntry) -> PutOutcome:
        """Create the entry if its table and file have none: the commit point.

        Returns:
            `CREATED` for exactly one of the callers, each of which brings its own `temp_path`, and
            `EXISTS` for the others. `UNKNOWN` if the answer was lost; `get` then shows the owner of
            the entry by its `temp_path`. A call that repeats the `temp_path` that has already won
            gets `CREATED` again, because a network may deliver one request twice.

        Raises:
            StorageError: The arbiter refused, and certainly created no entry. An arbiter that is
                not certain returns `UNKNOWN` instead.
        """

    @abstractmethod
    def get(self, table_path: str, file_name: str) -> CommitEntry | None:
        """Return the entry of a file, or None if the file has none.

        Raises:
            StorageError: The arbiter could not be asked.
        """

    @abstractmethod
    def latest(self, table_path: str) -> CommitEntry | None:
        """Return the table's entry with the greatest file name (compared as bytes), or None.

        Raises:
            StorageError: The arbiter could not be asked.
        """

    @abstractmethod
    def complete(self, entry: CommitEntry) -> None:
        """Mark the entry as complete, with its `expire_time_s`. Doing so twice is harmless.

        It never overwrites an entry of the same file with another `temp_path`, and never recreates
        an entry that is gone. It keeps other values that others have stored with the entry.

        Raises:
            StorageError: The arbiter failed. The entry may or may not be complete. Call it again.
        """

    def describe(self) -> Mapping[str, str]:
        """Describe this arbiter as text without secrets."""
        return {"arbiter": f"{type(self).__module__}:{type(self).__qualname__}"}
