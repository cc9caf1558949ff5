"""What names mean in the catalog of a Spark Connect server, which a client asks it.

Only SHOW TABLE EXTENDED tells a client the format and the place of a table. It also lists the
temporary views that a name of one part means first. Nothing is remembered: another client may drop
a table, and make another one of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import TableError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import PARQUET
from optimist.core.statements.conversions import format_of_files
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.conf import is_on
from optimist.spark.session.pyspark_versions import knows_session_views

__all__ = [
    "Name",
    "ServerEntry",
    "not_of_session",
    "raise_unknown",
    "server_entries",
    "server_entry",
]

Name: TypeAlias = tuple[str, ...]
_VIEW = "VIEW"
_OWN_CATALOG = "spark_catalog"
_MAX_PARTS = 3
_OF_VIEWS = ("session",)
"""The database whose names may be those of temporary views (`knows_session_views`)."""
_FACT = re.compile("[A-Z][A-Za-z ]*:(?: |$)")
_ODD = re.compile(r"[^A-Za-z0-9_]")
_CASE = "spark.sql.caseSensitive"
_DROPPED = "TABLE_OR_VIEW_NOT_FOUND"
_NO_DATABASE = ("SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")
_MAX_TRIES = 4


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """An entry of the session catalog, or a temporary view.

    Attributes:
        parts: The catalog, the database and the name; the name alone for a temporary view.
        kind: `MANAGED`, `EXTERNAL` or `VIEW`.
        provider: The format; None for a view.
        location: The path; None for a view.
        owner: The owner; may be empty.
        serde: The class with which Hive reads a table of its own, or None.
    """

    parts: Name
    kind: str
    provider: str | None = None
    location: str | None = None
    owner: str = ""
    serde: str | None = None

    @property
    def is_parquet(self) -> bool:
        """Whether it is a table of Parquet files."""
        return format_of_files(self.provider or "", self.serde).lower() == PARQUET

    @property
    def name(self) -> str:
        """The name with all parts, as SQL writes it."""
        return ".".join(map(quoted, self.parts))

    @property
    def is_kept_view(self) -> bool:
        """Whether it is a view that outlives the session."""
        return self.kind == _VIEW and len(self.parts) == _MAX_PARTS

    @property
    def shown_name(self) -> str:
        """The name without quotes."""
        return ".".join(self.parts)


def server_entry(spark: SparkSession, name: Name) -> ServerEntry | None:
    """Return the entry of one name (`server_entries`)."""
    return server_entries(spark, (name,)).get(name)


def server_entries(spark: SparkSession, names: Iterable[Name]) -> Mapping[Name, ServerEntry]:
    """Return the entries of names, without those that the session catalog does not know.

    The server is asked once for all names of a database.

    Args:
        spark: A Spark Connect client.
        names: The parts of each name.

    Raises:
        TableError: An entry has no clear location (kind `OPTIMIST_TABLE_WITHOUT_LOCATION`).
    """
    by_namespace: dict[Name, list[str]] = {}
    for name in sorted(set(names)):
        if 0 < len(name) <= _MAX_PARTS:
            by_namespace.setdefault(name[:-1], []).append(name[-1])
    found: dict[Name, ServerEntry] = {}
    for namespace, tables in by_namespace.items():
        rows = _listed(spark, namespace, tables)
        takes_views = not namespace or _may_have_views(spark, namespace)
        for table in tables:
            row = _row_of(spark, rows, table, takes_views=takes_views)
            entry = None if row is None else _entry(row)
            if entry is not None:
                name = (*namespace, table)
                found[name] = entry
    return found


def raise_unknown(spark: SparkSession, name: str) -> NoReturn:
    """Raise the error that Spark has for a name that it does not know."""
    frames: Any = spark
    _ = frames.table(name).schema
    raise not_of_session(name)


def not_of_session(name: str) -> UsageError:
    """Return the error for a new table in another catalog than the session's."""
    return UsageError(
        f"The name {shown(name)} is in a catalog that Optimist does not know. Nothing was "
        "written. Name a table of the session's catalog, or give a path.",
        kind="DELTA_NOT_A_DELTA_TABLE",
        name=name,
    )


def _may_have_views(spark: SparkSession, namespace: Name) -> bool:
    """Return whether a name with this before it may be that of a temporary view."""
    return tuple(part.lower() for part in namespace) == _OF_VIEWS and knows_session_views(spark)


def _listed(spark: SparkSession, namespace: Name, tables: Sequence[str]) -> Sequence[Any]:
    """Return the rows about some names, and perhaps about others that are much like them.

    Raises:
        AnalysisException: The session catalog does not tell. That is no answer: a statement over
            the name of a Delta table would reach the server as one over another table.
    """
    within = f"IN {'.'.join(map(quoted, namespace))} " if namespace else ""
    pattern = "|".join(_ODD.sub(".", table) for table in tables)
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            return _rows(spark, f"SHOW TABLE EXTENDED {within}LIKE '{pattern}'")
        except AnalysisException as error:
            if error.getCondition() == _DROPPED and tries_left:
                continue  # one was dropped after the server found it
            if error.getCondition() in _NO_DATABASE or not _is_of_session(spark, namespace):
                break
            raise
    return ()


def _is_of_session(spark: SparkSession, namespace: Name) -> bool:
    """Return whether names are in the session catalog, and not in one of which we know nothing."""
    first = namespace[0].lower() if namespace else None
    if len(namespace) > 1:
        return first == _OWN_CATALOG
    if first is not None and first != _OWN_CATALOG:
        catalogs = {str(row["catalog"]).lower() for row in _rows(spark, "SHOW CATALOGS")}
        if first in catalogs:
            return False
    current: str = spark.catalog.currentCatalog()
    return current.lower() == _OWN_CATALOG


def _rows(spark: SparkSession, text: str) -> Sequence[Any]:
    # Spark's own `sql`: ours would look for names of tables in the text.
    ask: Any = type(spark).sql
    rows: Sequence[Any] = ask(spark, text).collect()
    return rows


def _row_of(spark: SparkSession, rows: Sequence[Any], table: str, *, takes_views: bool) -> Any:
    """Return the row of a name, by the case of its letters only if the session says so."""
    known = [row for row in rows if takes_views or not row["isTemporary"]]
    same = [row for row in known if row["tableName"] == table]
    if not same:
        alike = [row for row in known if row["tableName"].lower() == table.lower()]
        same = alike if alike and not is_on(spark, _CASE) else []
    return next((row for row in same if row["isTemporary"]), same[0] if same else None)


def _entry(row: Any) -> ServerEntry | None:
    """Read a row, or return None for a table of another catalog."""
    if row["isTemporary"]:
        return ServerEntry((row["tableName"],), _VIEW)
    facts = _Facts(str(row["information"]).split("\n"))
    if facts.first("Catalog") != _OWN_CATALOG:
        return None
    parts = (_OWN_CATALOG, str(row["namespace"]), str(row["tableName"]))
    kind = facts.first("Type") or ""
    if kind == _VIEW:
        return ServerEntry(parts, _VIEW)
    provider, owner = facts.first("Provider"), facts.first("Owner") or ""
    location, serde = facts.location(".".join(parts)), facts.first("Serde Library")
    return ServerEntry(parts, kind, provider, location, owner, serde)


@dataclass(frozen=True, slots=True)
class _Facts:
    """The lines `name: value` about an entry. Users' own texts may be lines among them."""

    lines: Sequence[str]

    def first(self, name: str) -> str | None:
        """Return the first fact of this name, or None: users' texts may come after it."""
        return next(self._all(name), None)

    def location(self, table: str) -> str | None:
        """Return the location, which stands behind the table's comment and properties.

        Raises:
            TableError: It is not clear (kind `OPTIMIST_TABLE_WITHOUT_LOCATION`).
        """
        found = list(self._all("Location"))
        if len(found) > 1:
            raise _unclear(table, "says more than one location, because its comment or a property")
        if found and not self._ends_with_its_line("Location"):
            raise _unclear(table, "has a location that we can't read, because its path")
        return found[0] if found else None

    def _ends_with_its_line(self, name: str) -> bool:
        """Return whether the line of a fact is the whole fact: another one follows, or nothing."""
        at = next(at for at, line in enumerate(self.lines) if line.startswith(f"{name}: "))
        following = self.lines[at + 1 :]
        return not any(following) or _FACT.match(following[0]) is not None

    def _all(self, name: str) -> Iterator[str]:
        start = f"{name}: "
        return (line[len(start) :].rstrip("\r") for line in self.lines if line.startswith(start))


def _unclear(table: str, problem: str) -> TableError:
    return TableError(
        f"The catalog's entry {shown(table)} {problem} has several lines. Nothing was read or "
        "written. Give the table's path, or change the entry.",
        kind="OPTIMIST_TABLE_WITHOUT_LOCATION",
        name=table,
    )
