"""The tree of errors: each class stands for one thing that the caller can do.

| class | what to do |
|---|---|
| `DeltaConcurrentModificationException` | read the table again and run the operation again |
| `CommitOutcomeUnknownError` | settle the outcome first, with `DeltaLog.resolve_commit` |
| `MaxCommitAttemptsExceededError` | run it again later, or with a larger budget |
| `StorageError` | look at the store; `retryable` says whether trying again can help |
| `ProtocolError` | use an engine that knows the feature |
| `UsageError`, `ConfigError`, `SchemaError` | fix the call, the conf, or the data |
| `TableError` | the table is missing or damaged: repair it, or name another version |

The precise cause is `kind`: the name of Delta's error class where Delta has one. A new version may
add kinds, but it never renames one. A program reads the facts of an error from `fields`, not from
the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from optimist.core.errors.foreign_text import bounded, bounded_value, on_one_line
from optimist.core.errors.html_repr import html_page, or_no_html
from optimist.core.secrets import without_secrets

__all__ = [
    "NOTHING_COMMITTED",
    "ArgumentTypeError",
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


_MAX_MESSAGE_LENGTH = 8_000

_Field = TypeVar("_Field")


class OptimistError(Exception):
    """The root of all errors that Optimist raises on purpose.

    Attributes:
        kind: The precise cause; the name of Delta's error class where one exists.
        fields: The facts of the message, as values. Passwords and signatures are removed from URLs
            in both. Neither grows with the table: long texts and tuples are cut, and the message is
            one line without control characters (see `foreign_text`).
    """

    def __init__(self, message: str, *, kind: str, **fields: object) -> None:
        super().__init__(bounded(on_one_line(without_secrets(message)), _MAX_MESSAGE_LENGTH))
        self.kind = kind
        self.fields: Mapping[str, object] = MappingProxyType(
            {name: bounded_value(_without_secrets(value)) for name, value in fields.items()}
        )

    def __str__(self) -> str:
        return f"[{self.kind}] {self.args[0]}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would call the class with `args` alone, without the keywords that it requires.
        return _rebuild, (type(self), self.args[0], self.kind, dict(self.fields))


def _typed_field(error: OptimistError, name: str, expected: type[_Field]) -> _Field:
    value = error.fields[name]
    if not isinstance(value, expected):
        raise TypeError(f"The field {name} of {type(error).__name__} is a {type(value).__name__}.")
    return value


def _without_secrets(value: object) -> object:
    """Mask secrets in a field, since a path may be a URL with a password or signature."""
    if isinstance(value, str):
        return without_secrets(value)
    if type(value) is tuple:
        return tuple(map(_without_secrets, value))
    return value


def _rebuild(
    cls: type[OptimistError], message: str, kind: str, fields: dict[str, object]
) -> OptimistError:
    error = cls.__new__(cls)
    OptimistError.__init__(error, message, kind=kind, **fields)
    return error


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a commit that landed before ours conflicts with it.

    Attributes:
        check: The name of the row of the conflict table that was violated.
        winning_version: The version that landed first.
        winning_operation: Its operation as its commitInfo names it, or None without commitInfo.
        winning_engine: Its `engineInfo`, or None.
        winning_timestamp_ms: When it was made, according to its commitInfo; None without one.
        paths: The files that both sides touch, as in the log (at most a few, see `num_paths`).
        num_paths: The number of all files that both sides touch.
        partition: `[col=value, ...]` of the first of the files, or None for a table without
            partitions.
        predicate: Our read predicate that the winner's files may match, as text, or None.
        subject: The application id or metadata domain that both sides claim, if that is the
            conflict.
        remedy: The remedy, in plain words.
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
    """Another commit landed first and conflicts with ours, so nothing was committed.

    Remedy: read the table again and run the operation again.
    """

    @property
    def conflict(self) -> Conflict:
        """The conflict as a value: who won, what it touched, and what to do."""
        return _typed_field(self, "conflict", Conflict)

    @or_no_html
    def _repr_html_(self) -> str:
        """Return who won, what both touched, and what to do, for notebooks."""
        found = self.conflict
        facts = {
            "what": self.args[0],
            "winner": f"version {found.winning_version}",
            "operation": found.winning_operation,
            "engine": found.winning_engine,
            "both touch": None if not found.num_paths else f"{found.num_paths:,} files",
            "partition": found.partition,
            "we read": found.predicate,
            "both claim": found.subject,
            "what to do": found.remedy,
        }
        return html_page(f"{type(self).__name__} [{self.kind}]", facts)


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
    """The store did not answer, so the commit may or may not be in the table.

    Fields: `txn_id`, `version`. Do not write again before `DeltaLog.resolve_commit(txn_id,
    version)` has told you whether the commit is in the table.
    """

    @property
    def txn_id(self) -> str:
        """The transaction whose outcome is unknown."""
        return str(self.fields["txn_id"])

    @property
    def version(self) -> int:
        """The version that the transaction was creating when the answer was lost."""
        return _typed_field(self, "version", int)


class MaxCommitAttemptsExceededError(OptimistError):
    """Other writers won until the attempts or the time budget were used up.

    Fields: `attempts`, `start_version`, `failed_version`, `num_actions`, `elapsed_ms`.
    """


class PostCommitHookError(OptimistError):
    """A post-commit hook failed **after** the commit succeeded. Fields: `hook`, `version`."""


class StorageError(OptimistError):
    """The store failed. Field `retryable` says whether trying again can help."""

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed at another attempt."""
        return bool(self.fields.get("retryable", False))


class LogFileExistsError(StorageError, FileExistsError):
    """`write(..., overwrite=False)` found the file there already. Field `path`."""


class LogFileNotFoundError(StorageError, FileNotFoundError):
    """A file or directory of the log does not exist. Field `path`."""


class LeaseLapsedError(StorageError):
    """A lease ran out before the work was done. Fields `name`, `owner`."""


class ProtocolError(OptimistError):
    """The table needs a feature that this engine lacks, or a protocol change is not allowed."""


class UsageError(OptimistError, ValueError):
    """The call can't run as it is written, so nothing was written."""


class ArgumentTypeError(UsageError, TypeError):
    """An argument has the wrong type, so nothing was written. Field `argument`."""


class ConfigError(UsageError):
    """An option or conf key is wrong, contradicts another, or asks for something impossible."""


class SchemaError(UsageError):
    """The schema, partitioning, metadata or data does not fit the table. Nothing was written."""


class TableError(OptimistError):
    """The log of the table is damaged, or lacks the version or file that the call needs."""


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
"""A commit that raises one of these is certainly not in the table: its files may be removed."""
