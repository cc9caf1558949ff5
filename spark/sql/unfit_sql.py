"""Errors for a text of SQL that is refused."""

from __future__ import annotations

__all__ = ["InvalidSqlError", "UnsafeSqlError"]


class UnsafeSqlError(Exception):
    """The text uses something that is forbidden in the SQL of a log.

    `TableSql` adds whose text it is.

    Attributes:
        reason: The problem, as the rest of a sentence that begins with the text.
        part: The unsafe part of the text, itself foreign text; empty for the whole.
    """

    def __init__(self, reason: str, part: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.part = part


class InvalidSqlError(Exception):
    """Spark can't make an expression over the table's columns from the text, and says why."""
