"""Why a text of SQL from a table's log is not used."""

from __future__ import annotations

__all__ = ["InvalidSqlError", "UnsafeSqlError"]


class UnsafeSqlError(Exception):
    """The text holds something that SQL of a log may not; `TableSql` adds whose text it is.

    Attributes:
        reason: What is wrong with the text, as the rest of a sentence that begins with the text.
        part: The part of the text that is meant, itself foreign text; empty for the whole.
    """

    def __init__(self, reason: str, part: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.part = part


class InvalidSqlError(Exception):
    """Spark can't make an expression over the table's columns from the text; it says why."""
