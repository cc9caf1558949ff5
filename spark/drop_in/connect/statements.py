"""Statements over Delta tables that a client can't have, and the views that it can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from optimist.core.sql.own_names import OwnNames
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.relations import PathRelation
from optimist.core.sql.statements import TableName
from optimist.spark.drop_in.connect.refusals import refused

__all__ = [
    "CachedQuery",
    "NamedStatement",
    "Relocation",
    "TemporaryView",
    "cached_query",
    "ensure_can_be_had",
    "has_query",
    "named_statement",
    "relocation",
    "temporary_view",
]

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "MAP", "REDUCE", "EXPLAIN")
_SCRIPTS = ("BEGIN", "DECLARE", "EXECUTE", "SET")
_PATH = re.compile(r"delta\s*\.\s*`", re.IGNORECASE)
_TRUNCATE = re.compile(r"\bTRUNCATE\b", re.IGNORECASE)
_COMPUTED = re.compile(r"\b(?:IDENTIFIER|EXECUTE)\b", re.IGNORECASE)
_OTHER_WAY = "Use the methods of DeltaTable.forPath(spark, path), or a classic session."
_MADE_OF_DELTA = {
    "INSERT OVERWRITE [LOCAL] DIRECTORY": "Use CREATE OR REPLACE TABLE delta.`/path` AS SELECT ...",
    "CREATE [OR] [REPLACE] TEMPORARY VIEW": "Use CREATE TEMPORARY VIEW name AS SELECT ...",
    "CREATE [OR] [REPLACE] TEMP VIEW": "Use CREATE TEMPORARY VIEW name AS SELECT ...",
}
"""What names the format and no table that is there, and what to say instead."""
_WITH_QUERIES = ("CREATE", "REPLACE", "INSERT", "CACHE", "MERGE", "DELETE", "UPDATE")
_DESCRIBED = frozenset(
    (verb, word) for verb in ("DESCRIBE", "DESC") for word in ("QUERY", "SELECT", "WITH")
)
_MAY_HAVE_QUERIES = frozenset((*_DESCRIBED, ("ALTER", "VIEW")))
_ABOUT_NAMES = (
    "DROP TABLE",
    "ALTER TABLE",
    "TRUNCATE TABLE",
    "ANALYZE TABLE",
    "CACHE LAZY TABLE",
    "CACHE TABLE",
    "UNCACHE TABLE",
    "DESCRIBE TABLE EXTENDED",
    "DESCRIBE TABLE FORMATTED",
    "DESCRIBE TABLE",
    "DESCRIBE EXTENDED",
    "DESCRIBE FORMATTED",
    "DESC TABLE EXTENDED",
    "DESC TABLE FORMATTED",
    "DESC TABLE",
    "DESC EXTENDED",
    "DESC FORMATTED",
    "MSCK REPAIR TABLE",
    "REFRESH TABLE",
    "REPAIR TABLE",
    "SHOW PARTITIONS",
    "SHOW CREATE TABLE",
    "SHOW COLUMNS IN",
    "SHOW COLUMNS FROM",
    "SHOW TBLPROPERTIES",
    "DESCRIBE",
    "DESC",
)
_OTHER_THINGS = ("QUERY", "FUNCTION", "DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "PROCEDURE")
"""What DESCRIBE may be about besides tables, where a name follows."""
_OF_THE_TABLE = ("ALTER TABLE", "TRUNCATE TABLE")
_OF_THE_CATALOG = ("DROP TABLE", "REFRESH TABLE", "UNCACHE TABLE")
_NOT_OF_PATHS = ("SHOW", "DESCRIBE", "DESC", "ALTER", "DROP", "ANALYZE", "MSCK", "REFRESH")


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """`CREATE [OR REPLACE] TEMPORARY VIEW name [(columns)] AS query`.

    Attributes:
        name: Its name.
        columns: The names of its columns; none if they are the query's.
        replaces: A view of this name may be there.
        query_start: Where the query begins in the text.
    """

    name: str
    columns: Sequence[str]
    replaces: bool
    query_start: int

    def create(self, rows: DataFrame) -> None:
        """Make the view."""
        named = rows.toDF(*self.columns) if self.columns else rows
        if self.replaces:
            named.createOrReplaceTempView(self.name)
        else:
            named.createTempView(self.name)


def temporary_view(text: str) -> TemporaryView | None:
    """Return the temporary view that a statement makes, or None for other statements."""
    reader = Reader(text)
    if not reader.take("CREATE"):
        return None
    replaces = reader.take("OR", "REPLACE")
    if not (reader.take("TEMPORARY", "VIEW") or reader.take("TEMP", "VIEW")):
        return None
    name = reader.name("the name of a view")
    columns: tuple[str, ...] = ()
    if reader.take("("):
        columns = reader.listed(lambda: reader.name("a column"))
        reader.expect(")")
    reader.expect("AS")
    return TemporaryView(name, columns, replaces, reader.peek().start)


@dataclass(frozen=True, slots=True)
class CachedQuery:
    """`CACHE [LAZY] TABLE name [OPTIONS (...)] [AS] query`, which makes a temporary view.

    Attributes:
        view: The view.
        start: The statement up to the query, which caches the view once it is there.
    """

    view: TemporaryView
    start: str


def cached_query(text: str) -> CachedQuery | None:
    """Return the query that a statement caches, or None for a name or another statement."""
    reader = Reader(text)
    if not reader.take("CACHE"):
        return None
    reader.take("LAZY")
    reader.expect("TABLE")
    name = reader.name("the name of a view")
    if reader.take("OPTIONS"):
        reader.expect("(")
        reader.sql("options")
        reader.expect(")")
    if reader.is_at(".") or reader.peek().kind == "end":
        return None
    start = text[: reader.peek().start]
    reader.take("AS")
    view = TemporaryView(name, (), replaces=False, query_start=reader.peek().start)
    return CachedQuery(view, start)


@dataclass(frozen=True, slots=True)
class NamedStatement:
    """A statement of Spark's about a name in its catalog.

    Attributes:
        verb: Its words before the name.
        table: The name.
        is_of_catalog: The server can run it, since it changes the entry alone, or drops it.
        is_rename: It gives the table another name.
    """

    verb: str
    table: TableName
    is_of_catalog: bool
    is_rename: bool = False

    @property
    def changes_table(self) -> bool:
        """Whether it changes the table itself, so that the server must never see one of Delta."""
        return self.verb in _OF_THE_TABLE and not self.is_rename

    def ensure_can_be_had(self) -> None:
        """Refuse the statement over a Delta table, which the server would take for another.

        Raises:
            UsageError: It is refused (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
        """
        if not self.is_of_catalog:
            raise refused(f"{self.verb} over a Delta table", _OTHER_WAY)


def named_statement(text: str) -> NamedStatement | None:
    """Return a statement about a name, or None for any other."""
    reader = Reader(text)
    verb = next((words for words in _ABOUT_NAMES if reader.take(*words.split())), None)
    if verb is None:
        return None
    reader.take("IF", "EXISTS")
    is_other = reader.is_at_any(*_OTHER_THINGS) and reader.peek(1).kind in ("word", "name")
    if is_other or reader.peek().kind not in ("word", "name"):
        return None
    table = reader.table()
    is_rename = verb == "ALTER TABLE" and reader.is_at("RENAME", "TO")
    return NamedStatement(verb, table, is_rename or verb in _OF_THE_CATALOG, is_rename)


@dataclass(frozen=True, slots=True)
class Relocation:
    """`ALTER TABLE name SET LOCATION 'path'`.

    Attributes:
        table: The table.
        location: Its other place.
    """

    table: TableName
    location: str


def relocation(text: str, parameters: Parameters | None, own_names: OwnNames) -> Relocation | None:
    """Return the other place of a Delta table, or None for any other statement."""
    reader = Reader(text, parameters, own_names=own_names)
    if not reader.take("ALTER", "TABLE"):
        return None
    table = reader.own_table()
    if table is None or not reader.take("SET", "LOCATION"):
        return None
    location = reader.text("a location")
    reader.end()
    return Relocation(table, location)


def has_query(text: str) -> bool:
    """Return whether a statement may read tables by a query."""
    reader = Reader(text)
    first = reader.peek().text.upper()
    is_query = (first, reader.peek(1).text.upper()) in _MAY_HAVE_QUERIES
    return first in (*_QUERIES, *_WITH_QUERIES, *_SCRIPTS) or is_query


def ensure_can_be_had(text: str, relations: Sequence[PathRelation]) -> None:
    """Refuse what would end in an error of the server's, or in a table without a place.

    Args:
        text: A statement that is not run by us.
        relations: The tables that it names by their paths.

    Raises:
        UsageError: The statement is one of those (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    if any(relation.is_target for relation in relations):
        raise refused("INSERT into several tables at once", "Run an INSERT for each of them.")
    if _truncates_any_name(text):
        way_out = "Write the name itself into the statement: TRUNCATE TABLE name."
        raise refused("TRUNCATE of a name that is not in the statement itself", way_out)
    reader = Reader(text)
    first = reader.peek().text.upper()
    if first in _QUERIES or (first, reader.peek(1).text.upper()) in _DESCRIBED:
        return
    if relations and first == "CACHE" and cached_query(text) is None:
        raise refused("CACHE TABLE of a path", "Cache rows: CACHE TABLE name AS SELECT ...")
    for made, way_out in _MADE_OF_DELTA.items():
        if _makes_of_delta(Reader(text), made.split()):
            named = " ".join(word for word in made.split() if not word.startswith("["))
            raise refused(f"{named} ... USING delta", way_out)
    if first in _SCRIPTS and (relations or _PATH.search(text)):
        raise refused(f"A Delta table within {first}", "Run the statement by itself.")
    if first in _NOT_OF_PATHS and _PATH.search(text):
        raise refused(f"{first} over a path", _OTHER_WAY)
    if not relations or temporary_view(text) is not None:
        return
    if first == "CREATE" and Reader(text).peek(1).text.upper() != "TABLE":
        way_out = "Use CREATE TEMPORARY VIEW, or CREATE VIEW."
        raise refused("A global temporary view over a Delta table", way_out)
    if first not in ("CREATE", "INSERT", "CACHE", "MERGE", "DELETE", "UPDATE"):
        raise refused(f"{first} over a Delta table", _OTHER_WAY)


def _truncates_any_name(text: str) -> bool:
    """Return whether the server may empty the directory of a Delta table, and so remove its log."""
    reader = Reader(text)
    if reader.take("TRUNCATE", "TABLE"):
        return reader.is_at("IDENTIFIER", "(") and not reader.is_at_table()
    if reader.is_at("EXECUTE", "IMMEDIATE"):
        return _TRUNCATE.search(text) is not None
    # A script may put the name, or the whole statement, together as it runs.
    may_compute = reader.is_at("BEGIN") and _COMPUTED.search(text) is not None
    return may_compute and _TRUNCATE.search(text) is not None


def _makes_of_delta(reader: Reader, words: Sequence[str]) -> bool:
    """Return whether a statement begins with these words, of which those in brackets may lack."""
    for word in words:
        if not reader.take(word.strip("[]")) and not word.startswith("["):
            return False
    return _is_of_delta(reader)


def _is_of_delta(reader: Reader) -> bool:
    while reader.peek().kind != "end":
        if reader.take("USING", "DELTA"):
            return True
        reader.advance()
    return False
