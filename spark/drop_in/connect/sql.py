"""`spark.sql` of a Spark Connect client: statements of Delta, and queries over paths.

1. A statement of Delta's (`core/sql/grammar.py`) is run here.
2. So is a statement of Spark's that changes a table, if that is a path.
3. In any other text that names tables by paths, the frames of these tables take the places of the
   names; the rest stays the user's own text. The server gets the frames along with the statement,
   so that no view stays behind.
4. All others go to the server as they are. A text without the letters `delta` or `table_changes` is
   not looked into.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.sql import (
    PathRelation,
    PathStatement,
    RowNeeds,
    markers_of,
    parse_command,
    parse_path_statement,
    path_relations,
    query_needs,
)
from optimist.core.sql.spark_statements.shows import parse_show
from optimist.core.sql.spark_statements.table_statements import CreateTable, Insert
from optimist.core.sql.statements import AlterTable, CreateLike, Delete, Merge, Span, Update
from optimist.spark.commands.tables import DeltaTable
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.connect.inserts import insert_rows
from optimist.spark.drop_in.connect.parameters import Arguments, SentParameters
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.drop_in.connect.relations import RelationFrames
from optimist.spark.drop_in.connect.rows import change_rows
from optimist.spark.drop_in.connect.shows import show
from optimist.spark.drop_in.connect.statements import (
    CachedQuery,
    cached_query,
    ensure_can_be_had,
    temporary_view,
)
from optimist.spark.drop_in.connect.tables import create
from optimist.spark.drop_in.connect.variables import with_variables
from optimist.spark.drop_in.shared.tables_like import makes_delta_table
from optimist.spark.drop_in.statements import run_command
from optimist.spark.session.callback_errors import original_errors

__all__ = ["connect_sql"]

_LETTERS = re.compile("delta|table_changes", re.IGNORECASE)
_Original = Callable[..., DataFrame]


@original_errors(is_own_call=False)
def connect_sql(
    spark: SparkSession,
    original: _Original,
    text: str,
    args: Arguments | None,
    frames: Mapping[str, Any],
) -> DataFrame:
    """Run a statement.

    Args:
        spark: The client's session.
        original: Spark's own `sql` of this session.
        text: The statement.
        args: The values of its parameters, by name or by place.
        frames: What stands for `{name}` in the text.
    """
    parameters = None if args is None else SentParameters(spark=spark, args=args)
    sql = FormattedSql.of(spark, text, frames)
    if "${" in sql.text:
        sql = _with_variables(original, sql)
    names_delta = _LETTERS.search(sql.text) is not None
    command = parse_command(sql.text, parameters, is_of_spark=lambda: not names_delta)
    if isinstance(command, CreateLike) and not makes_delta_table(spark, command):
        command = None
    if command is not None:
        told = run_command(spark, command)
        return _no_rows(spark) if told is None else told
    if not names_delta:
        return original(text, args, **frames)
    statement = parse_path_statement(sql.text, parameters)
    if statement is not None:
        return _run(spark, statement, sql)
    asked = parse_show(sql.text, parameters)
    if asked is not None:
        return show(spark, asked)
    relations = path_relations(sql.text, parameters)
    ensure_can_be_had(sql.text, relations)
    if not relations:
        return original(text, args, **frames)
    view = temporary_view(sql.text)
    if view is not None:
        view.create(sql.query(spark, sql.text[view.query_start :], args))
        return _no_rows(spark)
    cached = cached_query(sql.text)
    if cached is not None:
        _cache(spark, cached, sql, args)
        return _no_rows(spark)
    return _with_frames(spark, original, sql, relations, args)


@original_errors()
def _with_variables(original: _Original, sql: FormattedSql) -> FormattedSql:
    """Put the values of variables into the statement, except those only the server reads."""
    meant = with_variables(original, sql.text)
    if meant is not None:
        return replace(sql, text=meant)
    if _LETTERS.search(sql.text) is None:
        return sql
    way_out = "Write the value into the statement."
    raise refused("A variable whose value has several kinds of quotes", way_out)


@original_errors()
def _run(spark: SparkSession, statement: PathStatement, sql: FormattedSql) -> DataFrame:
    """Run a statement over a path, and return its rows."""
    if isinstance(statement, Delete | Update | Merge):
        return change_rows(spark, statement, sql)
    if isinstance(statement, Insert):
        insert_rows(spark, statement, sql)
    elif isinstance(statement, CreateTable):
        create(spark, statement, sql)
    elif isinstance(statement, AlterTable):
        run_command(spark, statement)
    else:
        DeltaTable.forPath(spark, str(statement.table.path)).delete()
    return _no_rows(spark)


def _cache(
    spark: SparkSession, cached: CachedQuery, sql: FormattedSql, args: Arguments | None
) -> None:
    """Make the view that a statement caches, and cache it."""
    cached.view.create(sql.query(spark, sql.text[cached.view.query_start :], args))
    try:
        spark.sql(cached.start)
    except PySparkException:
        spark.catalog.dropTempView(cached.view.name)
        raise


def _no_rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], StructType())


def _with_frames(
    spark: SparkSession,
    original: _Original,
    sql: FormattedSql,
    relations: Sequence[PathRelation],
    args: Arguments | None,
) -> DataFrame:
    """Run a statement with the frames of tables in the places of their names."""
    parameters = None if args is None else SentParameters(spark=spark, args=args)
    text = sql.text
    needs = query_needs(text, relations, parameters)
    tables = RelationFrames(spark, needs.mentions)
    qualifiers = {relation.path for relation in relations if relation.is_qualifier}
    opened: dict[tuple[PathRelation, RowNeeds], str] = {}
    by_path: dict[str, str] = {}
    by_span: dict[Span, str] = {}
    views = dict(sql.frames)
    for relation in relations:
        if not relation.is_qualifier:
            # A table that is named before a column is one frame, whichever rows are needed where.
            rows = RowNeeds() if relation.path in qualifiers else needs.rows_of(relation)
            key = (relation, rows)
            if key not in opened:
                opened[key] = f"optimist_table_{len(opened)}"
                views[opened[key]] = tables.frame(relation, rows)
            by_path[relation.path] = by_span[relation.span] = opened[key]
    pieces: list[str] = []
    end = 0
    for relation in relations:
        name = by_path[relation.path] if relation.is_qualifier else by_span[relation.span]
        pieces += sql.template(text[end : relation.span.start]), f"{{{name}}}"
        end = relation.span.end
    pieces.append(sql.template(text[end:]))
    return original("".join(pieces), _args_left(text, relations, args), **views)


def _args_left(
    text: str,
    relations: Sequence[PathRelation],
    args: Arguments | None,
) -> Arguments | None:
    """Return the values without those whose markers `?` stand in replaced relations."""
    if args is None or isinstance(args, dict):
        return args
    spans = [relation.span for relation in relations]
    return [
        value
        for value, marker in zip(args, markers_of(text), strict=False)
        if not any(span.start <= marker.start < span.end for span in spans)
    ] or None
