"""`OwnNames`: which tables of statements that Spark knows too are ours.

Without Spark all of them are, and beside Spark's own parser none is asked about. A Spark Connect
client looks the names up in the server's catalog.
"""

from __future__ import annotations

from collections.abc import Callable

from optimist.core.sql.statements import TableName

__all__ = ["ANY_NAME", "PATHS_ALONE", "OwnNames"]


class OwnNames:
    """Takes only tables that are named by their paths."""

    def known(self, table: TableName) -> TableName | None:
        """Return the table that a statement is about, or None for Spark's own."""
        return table if table.path is not None else None

    def made(self, table: TableName, provider: Callable[[], str | None]) -> TableName | None:
        """Return the table that a statement makes, or None for Spark's own.

        Args:
            table: The table.
            provider: Returns the format behind USING; None if the statement does not say.
        """
        del provider
        return table if table.path is not None else None


class _AnyName(OwnNames):
    def known(self, table: TableName) -> TableName | None:
        return table

    def made(self, table: TableName, provider: Callable[[], str | None]) -> TableName | None:
        del provider
        return table


PATHS_ALONE = OwnNames()
ANY_NAME: OwnNames = _AnyName()
"""Takes tables of any name."""
