"""`StatementNames`: what the names in one statement of a Spark Connect client mean.

The server is asked once for the names of a statement, and again for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pyspark.sql import SparkSession

from optimist.core.sql import OwnNames, TableName, parts_of_name
from optimist.spark.commands.catalog.names import is_delta, without_location
from optimist.spark.commands.catalog.server_names import (
    ServerEntry,
    server_entries,
    server_entry,
)

__all__ = ["StatementNames", "is_free_name", "place_of_name", "saved_table"]

_DEFAULT_FORMAT = "spark.sql.sources.default"


class StatementNames(OwnNames):
    """Tells the Delta tables among the names of one statement, and where they are."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._asked: set[tuple[str, ...]] = set()
        self._entries: dict[tuple[str, ...], ServerEntry] = {}

    def learn(self, names: Iterable[tuple[str, ...]]) -> None:
        """Ask the server for all of these names at once."""
        new = set(names) - self._asked
        if new:
            self._asked |= new
            found = server_entries(self._spark, new)
            self._entries |= {
                name: entry for name, entry in found.items() if is_delta(entry.provider)
            }

    @property
    def has_delta(self) -> bool:
        """Whether one of the names asked about is that of a Delta table."""
        return bool(self._entries)

    def known(self, table: TableName) -> TableName | None:
        """Return a Delta table with its place, or None for any other table."""
        if table.path is not None:
            return table
        self.learn((table.parts,))
        place = self.place_of(table.parts)
        return None if place is None else replace(table, location=place)

    def made(self, table: TableName, provider: Callable[[], str | None]) -> TableName | None:
        """Return a table that is to be one of Delta, or None for any other."""
        if table.path is not None:
            return table
        asked = provider() or self._spark.conf.get(_DEFAULT_FORMAT)
        return table if is_delta(asked) else None

    def place_of(self, name: tuple[str, ...]) -> str | None:
        """Return where a Delta table is, by one of the names that were asked about.

        A column may also have the whole name of its table before it, or the end of that. A name
        that was asked about means nothing else: its first part may be another catalog.
        """
        entry = self._entries.get(name) if name in self._asked else self._by_end(name)
        if entry is None:
            return None
        if entry.location is None:
            raise without_location(entry.name)
        return entry.location

    def _by_end(self, name: tuple[str, ...]) -> ServerEntry | None:
        ends = [part.lower() for part in name]
        if len(ends) < 2:
            return None
        alike = (
            entry
            for entry in self._entries.values()
            if [part.lower() for part in entry.parts[-len(ends) :]] == ends
        )
        return next(alike, None)


def place_of_name(spark: SparkSession, name: str) -> TableName | None:
    """Return the Delta table that a text names, with its place; None for any other text."""
    parts = parts_of_name(name)
    return StatementNames(spark).known(TableName(parts)) if parts else None


def saved_table(spark: SparkSession, name: str) -> TableName | None:
    """Return the Delta table that a text names for `saveAsTable`, to which views mean nothing."""
    found, parts = place_of_name(spark, name), parts_of_name(name)
    if found is not None or len(parts) != 1:
        return found
    hidden = TableName((spark.catalog.currentDatabase(), *parts))
    return StatementNames(spark).known(hidden)


def is_free_name(spark: SparkSession, name: str, *, may_be_hidden: bool) -> bool:
    """Return whether no table or view of the catalog has a name.

    Args:
        spark: A Spark Connect client.
        name: The name.
        may_be_hidden: A temporary view may have it.
    """
    entry = server_entry(spark, parts_of_name(name))
    return entry is None or (may_be_hidden and len(entry.parts) == 1)
