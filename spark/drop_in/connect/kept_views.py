"""CREATE VIEW and ALTER VIEW ... AS of a Spark Connect client, over names of Delta tables.

Such a view outlives the session, so it is the server that makes it, of the user's own text. Our
clients read it by `queries.py`.

The server has to know the columns of the query before it makes a view, and the entries of our
tables have none. So those that the view reads get the columns of their logs first, as Delta's own
entries may have them. Nobody reads a table by these columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.sql import PathRelation
from optimist.core.sql.reader import Reader
from optimist.core.statements.missing_tables import as_missing_name
from optimist.spark.commands.catalog.server_entries import give_columns
from optimist.spark.commands.catalog.server_source import ensure_format_known
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.connect.parameters import Arguments
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.drop_in.connect.statement_names import StatementNames
from optimist.spark.session.conf import open_log

__all__ = ["make_view", "query_of_view"]

_WITH_COLUMNS = (
    "Use CREATE TEMPORARY VIEW. Or drop the name and create it again, if the table has a location "
    "of its own; on a metastore of Hive the server must also be Spark 4.1 or newer."
)
_WITH_NAMES = "Give the table a name, CREATE TABLE name USING delta LOCATION '/p', and use that."


def query_of_view(text: str) -> str | None:
    """Return the query of a view that outlives the session, or None for other statements."""
    reader = Reader(text)
    if reader.take("CREATE"):
        reader.take("OR", "REPLACE")
    elif not reader.take("ALTER"):
        return None
    if not reader.take("VIEW"):
        return None
    depth = 0
    while reader.peek().kind != "end":
        token = reader.advance()
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind == "word" and token.text.upper() == "AS":
            return text[reader.peek().start :]
    return None


def make_view(
    spark: SparkSession,
    sql: FormattedSql,
    query: str,
    relations: Sequence[PathRelation],
    names: StatementNames,
    args: Arguments | None,
) -> None:
    """Let the server make the view, or give it another query.

    Args:
        spark: The client's session.
        sql: The statement.
        query: The query in it.
        relations: The Delta tables, and the views of some, that the query names.
        names: What the names in it mean.
        args: The values of its parameters.

    Raises:
        UsageError: The server can't make it (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
        AnalysisException: The query or the statement has an error.
    """
    if sql.frames:
        raise refused("A view of a frame that outlives the session", "Save its rows as a table.")
    for relation in relations:
        if not relation.name and not relation.changes:
            raise refused("A view over a path that outlives the session", _WITH_NAMES)
        if relation.version or relation.timestamp or relation.changes:
            way_out = "Use CREATE TEMPORARY VIEW, or CREATE TABLE name SHALLOW CLONE table."
            raise refused("A view over a version that outlives the session", way_out)
    own: Any = type(spark).sql
    original = partial(own, spark)
    wanted = sql.query(spark, query, args).schema
    ensure_format_known(spark)
    if not _is_known(original, query, args, wanted):
        for entry in names.tables():
            log = open_log(spark, str(entry.location))
            with as_missing_name(entry.name):
                give_columns(spark, entry, log.snapshot().schema)
        if not _is_known(original, query, args, wanted):
            raise refused("A view over a table whose entry has other columns", _WITH_COLUMNS)
    original(sql.text, args)


def _is_known(
    original: Callable[..., DataFrame], query: str, args: Arguments | None, wanted: StructType
) -> bool:
    """Return whether the server knows the columns of the query already."""
    try:
        return _columns(original(query, args).schema) == _columns(wanted)
    except AnalysisException:
        return False  # it knows no columns, or it will say so again


def _columns(schema: StructType) -> list[tuple[str, str]]:
    return [(item.name, item.dataType.simpleString()) for item in schema]
