"""The meanings of a service's answers: one table per service, searched by an answer's names.

A store needs to know two things about an answer that is not a success. After a conditional put:
does the file exist, is it certain that nothing was written, or is neither known? After any other
request: which error is it, and can a retry help? A row answers both, and docs/outcomes.md shows
these same tables.

An answer has several names, from the most to the least exact: `409 BlobAlreadyExists`, `409`,
`4xx`. The row of the most exact name applies, so the order of the rows does not matter. The row
with `ANY_OTHER` takes all other answers. The text of an answer is never used.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from optimist.core.errors import StorageError
from optimist.core.errors.kinds import CLASS_OF_KIND

__all__ = ["ANY_OTHER", "CREATE", "AnswerRow", "AnswerTable", "PutMeaning", "error_of_row"]

ANY_OTHER = "any other"
"""The last name of every answer."""
CREATE = "create"
"""The attempted action whose error is raised only if nothing was written, as its message says."""


class PutMeaning(enum.Enum):
    """The meaning of an answer to a conditional put."""

    EXISTS = "the file was there already"
    NOTHING_WRITTEN = "certainly nothing was written"
    CONFLICT = "turned away because of another request; ask again"
    SLOW_DOWN = "not yet; wait, then ask again"
    UNKNOWN = "written or not, it can't be told"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """The meaning of some answers of a service.

    Attributes:
        answers: The names of its answers. A name is in only one row.
        put: Their meaning for a conditional put.
        kind: The kind of the error, if one is raised; a kind of `StorageError`.
        cause: The event, as half a sentence; `{service}` stands for the service.
        remedy: The advice, in whole sentences.
        retryable: True if the same call may succeed when repeated.
    """

    answers: tuple[str, ...]
    put: PutMeaning
    kind: str
    cause: str
    remedy: str
    retryable: bool = False


class AnswerTable:
    """The rows of one service, in the order in which the docs show them."""

    def __init__(self, *rows: AnswerRow) -> None:
        self._rows = rows
        self._by_name = {name: row for row in rows for name in row.answers}

    def __iter__(self) -> Iterator[AnswerRow]:
        return iter(self._rows)

    def find(self, names: Iterable[str]) -> AnswerRow:
        """Return the row of an answer.

        Args:
            names: The names of the answer, the most exact one first.
        """
        found = (self._by_name.get(name) for name in names)
        return next((row for row in found if row is not None), self._by_name[ANY_OTHER])


def error_of_row(
    row: AnswerRow, *, doing: str, path: str, service: str, said: str, **fields: object
) -> StorageError:
    """Return the error for an answer, in the class of its kind.

    Args:
        row: The meaning of the answer.
        doing: The action, for the message: `read`, `list`, `write`, or `CREATE`.
        path: The path as the caller gave it.
        service: The service: the account and container, the bucket, the endpoint.
        said: The answer itself: its status and code, or the name of an exception.
        fields: More fields of the error than `path` and `retryable`.
    """
    error_class = cast("type[StorageError]", CLASS_OF_KIND[row.kind])
    cause = row.cause.format(service=service)
    sentences = (
        f"Cannot {doing} {path}: {cause}{f' ({said})' if said else ''}.",
        "Nothing was written." if doing == CREATE else "",
        row.remedy,
    )
    message = " ".join(filter(None, sentences))
    return error_class(message, kind=row.kind, path=path, **fields, retryable=row.retryable)
