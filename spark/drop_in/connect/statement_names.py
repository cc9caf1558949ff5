"""`StatementNames`: what the names in one statement of a Spark Connect client mean.

The server is asked once for the names of a statement, and again for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import UsageError
from optimist.core.sql import (
    OwnNames,
    PathRelation,
    TableName,
    names_of_relations,
    parts_of_name,
    path_relations,
)
from optimist.spark.commands.catalog.names import is_delta, without_location
from optimist.spark.commands.catalog.server_names import (
    Name,
    ServerEntry,
    server_entries,
    server_entry,
)
from optimist.spark.commands.catalog.server_views import ServerView, server_view
from optimist.spark.rows.row_shape import quoted

__all__ = [
    "OpenedView",
    "StatementNames",
    "is_free_name",
    "no_versions",
    "place_of_name",
    "saved_table",
]

_MARK = "no place: "
_MAX_DEPTH = 100
"""As many views within each other as Spark resolves by default."""
_NO_SYNTAX = "PARSE_SYNTAX_ERROR"
_DEFAULT_FORMAT = "spark.sql.sources.default"


class StatementNames(OwnNames):
    """Tells the Delta tables among the names of one statement, and where they are.

    A view of the catalog that reads Delta tables counts as one where it is read: the client reads
    it by the names in its own text (`queries.py`).

    Args:
        spark: The client's session.
        within: For the query of a view: the catalog and the database of its names, among which no
            temporary view is.
        around: The views around these names, the outermost first.
        opened: The views of the statement that were met, None for those that read no Delta table.
    """

    def __init__(
        self,
        spark: SparkSession,
        within: Name = (),
        around: tuple[Name, ...] = (),
        opened: dict[Name, OpenedView | None] | None = None,
    ) -> None:
        self._spark = spark
        self._within = within
        self._around = around
        self._opened = {} if opened is None else opened
        self._asked: set[Name] = set()
        self._entries: dict[Name, ServerEntry] = {}
        self._views: dict[Name, OpenedView] = {}
        self._others: dict[Name, Name] = {}
        self._unknown: set[Name] = set()

    def learn(self, names: Iterable[Name]) -> None:
        """Ask the server for all of these names at once."""
        new = set(names) - self._asked
        if not new:
            return
        self._asked |= new
        full = {name: self._full(name) for name in new}
        found = server_entries(self._spark, full.values())
        for name in new:
            entry = found.get(full[name])
            if entry is None:
                self._unknown.add(name)
            if entry is not None and is_delta(entry.provider):
                self._entries[name] = entry
            elif entry is not None and entry.is_kept_view:
                self._open(name, entry)
            if self._within:
                self._others[name] = full[name] if entry is None else entry.parts

    def _full(self, name: Name) -> Name:
        """Return a name of a view's query with the database in which it is looked up."""
        return (*self._within, *name) if self._within and len(name) == 1 else name

    def _open(self, name: Name, entry: ServerEntry) -> None:
        """Keep a view that reads Delta tables; any other is the server's own."""
        if entry.parts in self._around or len(self._around) == _MAX_DEPTH:
            raise _too_deep(entry)
        if entry.parts not in self._opened:
            self._opened[entry.parts] = self._looked_into(entry)
        view = self._opened[entry.parts]
        if view is not None:
            self._views[name] = view

    def _looked_into(self, entry: ServerEntry) -> OpenedView | None:
        view = server_view(self._spark, entry.parts)
        if view is None:
            return None
        inner = StatementNames(self._spark, view.within, (*self._around, entry.parts), self._opened)
        try:
            inner.learn(names_of_relations(view.text))
            relations = path_relations(view.text, None, inner.place_of)
        except UsageError as error:
            if error.kind == _NO_SYNTAX:
                return None  # the server knows more than this grammar
            raise
        reads_paths = any(not item.name for item in relations)
        return OpenedView(view, inner) if inner.has_delta or reads_paths else None

    @property
    def has_delta(self) -> bool:
        """Whether one of the names asked about is that of a Delta table, or of a view of some."""
        return bool(self._entries or self._views)

    def tables(self) -> Iterator[ServerEntry]:
        """Return the Delta tables, and those that views read."""
        yield from self._entries.values()
        for view in self._views.values():
            yield from view.names.tables()

    def view(self, name: Name) -> OpenedView | None:
        """Return a view that reads Delta tables, or None for any other name."""
        self.learn((name,))
        return self._views.get(name)

    def known(self, table: TableName) -> TableName | None:
        """Return a Delta table with its place, or None for any other table."""
        if table.path is not None:
            return table
        self.learn((table.parts,))
        entry = self._entries.get(table.parts)
        return None if entry is None else replace(table, location=_location(entry))

    def is_unknown(self, table: TableName) -> bool:
        """Return whether the session's catalog has no such name, or it is another catalog's."""
        self.learn((table.parts,))
        return table.parts in self._unknown

    def made(self, table: TableName, provider: Callable[[], str | None]) -> TableName | None:
        """Return a table that is to be one of Delta, or None for any other."""
        if table.path is not None:
            return table
        asked = provider() or self._spark.conf.get(_DEFAULT_FORMAT)
        return table if is_delta(asked) else None

    def place_of(self, name: Name) -> str | None:
        """Return where a Delta table is, by one of the names that were asked about.

        A column may also have the whole name of its table before it, or the end of that. A name
        that was asked about means nothing else: its first part may be another catalog.

        What has no place of its own has a mark: a view that reads Delta tables, and, in the query
        of a view, each other table, whose name has to be written in full.
        """
        known = name if name in self._asked else self._by_end(name)
        if known is None:
            return None
        if known in self._entries:
            return _location(self._entries[known])
        is_own = known in self._views or known in self._others
        return f"{_MARK}{'.'.join(known)}" if is_own else None

    def view_of(self, relation: PathRelation) -> OpenedView | None:
        """Return the view that a relation is, or None for a table.

        Raises:
            AnalysisException: It is a view, of which an older version is asked for.
            UsageError: It is no table of ours, and its changes are asked for (kind
                `DELTA_TABLE_ONLY_OPERATION`).
        """
        if not relation.path.startswith(_MARK):
            return None
        if relation.changes:
            raise _no_changes(relation)
        view = self._views.get(relation.name)
        if view is not None and (relation.version or relation.timestamp):
            raise no_versions(view.view)
        return view

    def full_name(self, relation: PathRelation) -> Name | None:
        """Return the name to write for a table of others, in the query of a view."""
        return self._others[relation.name] if relation.path.startswith(_MARK) else None

    def _by_end(self, name: Name) -> Name | None:
        ends = [part.lower() for part in name]
        if len(ends) < 2:
            return None
        full = {given: entry.parts for given, entry in self._entries.items()}
        full |= {given: view.view.name for given, view in self._views.items()} | self._others
        alike = (
            given
            for given, parts in full.items()
            if [part.lower() for part in parts[-len(ends) :]] == ends
        )
        return next(alike, None)


@dataclass(frozen=True, slots=True)
class OpenedView:
    """A view of the catalog that reads Delta tables, and what the names in its query mean."""

    view: ServerView
    names: StatementNames


def no_versions(view: ServerView) -> AnalysisException:
    """Return the error for an older version of a view, which has none."""
    name = ".".join(map(quoted, view.name))
    return AnalysisException(
        f"{name} is a view, which has no versions. Nothing was read. Name the version behind a "
        "table of the view's query.",
        errorClass="UNSUPPORTED_FEATURE.TIME_TRAVEL",
        messageParameters={"relationId": name},
    )


def _no_changes(relation: PathRelation) -> UsageError:
    name = relation.path.removeprefix(_MARK)
    return UsageError(
        f"{name} is not a Delta table, so that table_changes can't read it. Nothing was read. Name "
        "a Delta table.",
        kind="DELTA_TABLE_ONLY_OPERATION",
        name=name,
    )


def _location(entry: ServerEntry) -> str:
    if entry.location is None:
        raise without_location(entry.name)
    return entry.location


def _too_deep(entry: ServerEntry) -> AnalysisException:
    return AnalysisException(
        f"The view {entry.name} stands below {_MAX_DEPTH} others, or a view reads itself. Nothing "
        "was read. Create one of these views again, over tables.",
        errorClass="VIEW_EXCEED_MAX_NESTED_DEPTH",
        messageParameters={"viewName": entry.name, "maxNestedDepth": str(_MAX_DEPTH)},
    )


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


def is_free_name(spark: SparkSession, name: str) -> bool:
    """Return whether no table, view or temporary view has a name."""
    return server_entry(spark, parts_of_name(name)) is None
