"""What the answers of a service mean: one table per service, searched by an answer's names.

A store asks two things of an answer that is not a success. After a conditional put: is the file
there, is it certain that nothing was written, or is neither known? After anything else: which error
is it, and can trying again help? A row answers both, so the tables of docs/outcomes.md are the
code's own.

An answer has several names, from the most exact to the least: `409 BlobAlreadyExists`, `409`,
`4xx`. The row of the most exact one holds, so the order of the rows means nothing. The row with
`ANY_OTHER` takes all the rest. The text of an answer is never looked at.
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
"""What is tried where an error is raised only if nothing was written; its message says so."""


class PutMeaning(enum.Enum):
    """What an answer says about a conditional put."""

    EXISTS = "the file was there already"
    NOTHING_WRITTEN = "certainly nothing was written"
    CONFLICT = "turned away because of another request; ask again"
    SLOW_DOWN = "not yet; wait, then ask again"
    UNKNOWN = "written or not, it can't be told"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What some answers of a service mean.

    Attributes:
        answers: The names of the answers that it holds for. A name stands in one row only.
        put: What they say about a conditional put.
        kind: The kind of the error that is raised where one is raised, one of a `StorageError`.
        cause: What happened, as half a sentence; `{place}` stands for what was asked.
        remedy: What to do, in whole sentences.
        retryable: Whether the same call may succeed when made again.
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
        """The row that holds for an answer.

        Args:
            names: The names of the answer, the most exact one first.
        """
        found = (self._by_name.get(name) for name in names)
        return next((row for row in found if row is not None), self._by_name[ANY_OTHER])


def error_of_row(
    row: AnswerRow, *, doing: str, path: str, place: str, said: str, **fields: object
) -> StorageError:
    """The error for an answer; its class is the one that its kind belongs to.

    Args:
        row: What the answer means.
        doing: What was tried, for the message: `read`, `list`, `write`, or `CREATE`.
        path: The path as the caller gave it.
        place: What was asked: the account and container, the bucket, the endpoint.
        said: The answer itself: its status and code, or the name of an exception.
        fields: More fields of the error, beside `path` and `retryable`.
    """
    error_class = cast("type[StorageError]", CLASS_OF_KIND[row.kind])
    cause = row.cause.format(place=place)
    sentences = (
        f"Cannot {doing} {path}: {cause}{f' ({said})' if said else ''}.",
        "Nothing was written." if doing == CREATE else "",
        row.remedy,
    )
    message = " ".join(filter(None, sentences))
    return error_class(message, kind=row.kind, path=path, **fields, retryable=row.retryable)
