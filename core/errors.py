"""One tree of errors, cut by what the caller can do about it.

| class | what to do |
|---|---|
| `DeltaConcurrentModificationException` | read the table again and run the operation again |
| `CommitOutcomeUnknownError` | settle the outcome first, with `DeltaLog.resolve_commit` |
| `MaxCommitAttemptsExceededError` | run it again later, or with a larger budget |
| `StorageError` | look at the store; `retryable` says whether trying again can help |
| `ProtocolError` | use an engine that knows the feature |
| `UsageError`, and under it `ConfigError` and `SchemaError` | mend the call, the conf, or the data
|
| `TableError` | the table is missing or damaged: repair it, or name another version |

The precise cause is `kind`, which is the name of Delta's error class where Delta has one. Kinds are
only ever added. What a program may want to know stands in `fields`, not in the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

__all__ = [
    "NOTHING_COMMITTED",
    "CommitOutcomeUnknownError",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConfigError",
    "Conflict",
    "DeltaConcurrentModificationException",
    "LeaseLapsedError",
    "LogFileExistsError",
    "LogFileNotFoundError",
    "MaxCommitAttemptsExceededError",
    "MetadataChangedException",
    "OptimistError",
    "PostCommitHookError",
    "ProtocolChangedException",
    "ProtocolError",
    "SchemaError",
    "StorageError",
    "TableError",
    "TableNotFoundError",
    "UsageError",
]


class OptimistError(Exception):
    """The root of everything that Optimist raises on purpose.

    Attributes:
        kind: The precise cause, by the name of Delta's error class where one exists.
        fields: What the message says, as values.
    """

    def __init__(self, message: str, *, kind: str, **fields: object) -> None:
        super().__init__(message)
        self.kind = kind
        self.fields: Mapping[str, object] = MappingProxyType(fields)

    def __str__(self) -> str:
        return f"[{self.kind}] {self.args[0]}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args[0], self.kind, dict(self.fields))


def _rebuild(
    cls: type[OptimistError], message: str, kind: str, fields: dict[str, object]
) -> OptimistError:
    error = cls.__new__(cls)
    OptimistError.__init__(error, message, kind=kind, **fields)
    return error


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why one winning commit stands in the way of ours.

    Attributes:
        check: The name of the row of the conflict table that was violated.
        winning_version: The version that landed first.
        winning_operation: Its operation as its commitInfo names it, or None without commitInfo.
        winning_engine: Its `engineInfo`, or None.
        winning_timestamp_ms: When it was made, by its commitInfo; None without one.
        paths: The files both sides touch, as they stand in the log (at most a few, see
            `num_paths`).
        num_paths: How many files there are altogether.
        partition: `[col=value, ...]` of the first of them, or None for a table without partitions.
        predicate: Our read predicate that the winner's files may match, as text, or None.
        subject: The application id or metadata domain both sides claim, where that is the conflict.
        remedy: What to do, in plain words.
    """

    check: str
    winning_version: int
    winning_operation: str | None
    winning_engine: str | None
    winning_timestamp_ms: int | None = None
    paths: tuple[str, ...] = ()
    num_paths: int = 0
    partition: str | None = None
    predicate: str | None = None
    subject: str | None = None
    remedy: str = (
        "Nothing of this transaction was committed. Read the table again and run it again."
    )


class DeltaConcurrentModificationException(OptimistError):  # noqa: N818 - the field's own name
    """Another commit landed first and ours does not go together with it; nothing was committed.

    Remedy: read the table again and run the operation again.
    """

    @property
    def conflict(self) -> Conflict:
        """The conflict as a value: who won, what it touched, and what to do."""
        value = self.fields["conflict"]
        assert isinstance(value, Conflict)
        return value


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """A commit that may not be rebased lost the race for its version (spec 1.16)."""


class MetadataChangedException(DeltaConcurrentModificationException):
    """The winner changed the table's metadata (spec 2.4)."""


class ProtocolChangedException(DeltaConcurrentModificationException):
    """The winner changed the table's protocol (spec 2.3)."""


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """The winner added files that this transaction should have read (spec 2.8)."""


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """The winner removed a file that this transaction read (spec 2.9)."""


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """Both sides remove the same file (spec 2.10)."""


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """Both sides advance the same application id or metadata domain (spec 2.5, 2.6)."""


class CommitOutcomeUnknownError(OptimistError):
    """The store gave no answer and could not be asked: the commit may or may not be in the table.

    Fields: `txn_id`, `version`. Do not write again before `DeltaLog.resolve_commit(txn_id)` has
        told.
    """

    @property
    def txn_id(self) -> str:
        """The transaction whose outcome is open."""
        return str(self.fields["txn_id"])

    @property
    def version(self) -> int:
        """The version that was being created when the answer was lost."""
        value = self.fields["version"]
        assert isinstance(value, int)
        return value


class MaxCommitAttemptsExceededError(OptimistError):
    """Other writers kept winning until the attempts or the time budget were used up.

    Fields: `attempts`, `start_version`, `failed_version`, `num_actions`, `elapsed_ms`.
    """


class PostCommitHookError(OptimistError):
    """A post-commit hook failed **after** the commit succeeded. Fields: `hook`, `version`."""


class StorageError(OptimistError):
    """The store failed. Field `retryable` says whether trying again can help."""

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed when made again."""
        return bool(self.fields.get("retryable", False))


class LogFileExistsError(StorageError, FileExistsError):
    """`write(..., overwrite=False)` found the file there already. Field `path`."""


class LogFileNotFoundError(StorageError, FileNotFoundError):
    """A file or directory of the log does not exist. Field `path`."""


class LeaseLapsedError(StorageError):
    """A lease ran out before the work was done; another may hold it. Fields `name`, `owner`."""


class ProtocolError(OptimistError):
    """The table needs a feature that this engine does not have, or an illegal protocol change."""


class UsageError(OptimistError, ValueError):
    """The call cannot be carried out as it stands; nothing was written."""


class ConfigError(UsageError):
    """An option or conf key is wrong, contradicts another, or asks for what can't be given."""


class SchemaError(UsageError):
    """Schema, partitioning, metadata or data do not fit the table; nothing was written."""


class TableError(OptimistError):
    """The log of the table is damaged, or does not hold what was asked for."""


class TableNotFoundError(TableError, FileNotFoundError):
    """There is no Delta table at the path. Field `path`."""


NOTHING_COMMITTED: tuple[type[OptimistError], ...] = (
    DeltaConcurrentModificationException,
    MaxCommitAttemptsExceededError,
    ProtocolError,
    StorageError,
    TableError,
    UsageError,
)
"""Out of a commit, these say for certain that it is not in the table: its files may be removed."""
