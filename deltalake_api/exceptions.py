"""The errors of deltalake.

A call fails with an error of the core, and `errors_translated` turns that into the class that
deltalake has for it. The message, `kind` and `fields` stay, and `__cause__` is the error itself.

| here | what failed |
|---|---|
| `TableNotFoundError` | there is no table |
| `CommitFailedError` | the commit did not land, and can be tried again |
| `SchemaMismatchError` | the data, the schema or a column's name does not fit |
| `DeltaProtocolError` | the table needs a feature that is not there |
| `DeltaUsageError` | the call is wrong; it is a `ValueError`, too |
| `NotSupportedError` | that part of deltalake is not here; it is a `NotImplementedError`, too |
| `DeltaError` | all else, a commit of unknown outcome included |

A `CommitFailedError` means that nothing was committed. A commit of unknown outcome is none, so that
no caller writes the rows twice by trying again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NoReturn

from optimist.core import errors as core

__all__ = [
    "CommitFailedError",
    "DeltaError",
    "DeltaProtocolError",
    "DeltaUsageError",
    "NotSupportedError",
    "SchemaMismatchError",
    "TableNotFoundError",
    "errors_translated",
    "not_supported",
    "refuse_given",
]


class DeltaError(Exception):
    """The root of the errors of this module.

    Attributes:
        kind: The precise cause (docs/errors.md).
        fields: The facts of the message, as values.
    """

    def __init__(self, message: str, *, kind: str, **fields: object) -> None:
        super().__init__(message)
        self.kind = kind
        self.fields: Mapping[str, object] = MappingProxyType(fields)

    def __str__(self) -> str:
        return f"[{self.kind}] {self.args[0]}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would call the class with `args` alone, without the keywords that it requires.
        return _rebuild, (type(self), self.args[0], self.kind, dict(self.fields))


class TableNotFoundError(DeltaError, FileNotFoundError):
    """There is no Delta table at the path."""


class CommitFailedError(DeltaError):
    """Nothing was committed: another commit conflicts, or others won again and again."""


class SchemaMismatchError(DeltaError, ValueError):
    """The schema, the data or a name does not fit the table. Nothing was written."""


class DeltaProtocolError(DeltaError):
    """The table needs a feature that this engine lacks, or a change of it is not allowed."""


class DeltaUsageError(DeltaError, ValueError):
    """The call can't run as it is written. Nothing was written."""


class NotSupportedError(DeltaError, NotImplementedError):
    """A part of deltalake is not here. Nothing was written."""


_CLASSES: tuple[tuple[type[core.OptimistError], type[DeltaError]], ...] = (
    (core.TableNotFoundError, TableNotFoundError),
    (core.DeltaConcurrentModificationException, CommitFailedError),
    (core.MaxCommitAttemptsExceededError, CommitFailedError),
    (core.SchemaError, SchemaMismatchError),
    (core.ProtocolError, DeltaProtocolError),
    (core.UsageError, DeltaUsageError),
)
"""The class for each class of the core. The first that fits counts."""


@contextmanager
def errors_translated() -> Iterator[None]:
    """Raise errors of the core as those of this module."""
    try:
        yield
    except core.OptimistError as error:
        wanted = (ours for theirs, ours in _CLASSES if isinstance(error, theirs))
        cls = next(wanted, DeltaError)
        raise cls(str(error.args[0]), kind=error.kind, **error.fields) from error


def not_supported(what: str, remedy: str) -> NotSupportedError:
    """Return the error for a part of deltalake that is not here, with what to do instead."""
    return NotSupportedError(
        f"{what} is not a part of optimist.deltalake. Nothing was written. {remedy}",
        kind="OPTIMIST_NOT_BUILT_YET",
        command=what,
    )


def refuse_given(argument: str, value: object, remedy: str) -> None:
    """Refuse an argument of deltalake that has no counterpart here, if a value is given."""
    if value is not None and value is not False:
        _refuse(argument, remedy)


def _rebuild(
    cls: type[DeltaError], message: str, kind: str, fields: dict[str, object]
) -> DeltaError:
    return cls(message, kind=kind, **fields)


def _refuse(argument: str, remedy: str) -> NoReturn:
    raise not_supported(f"The argument {argument}", remedy)
