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

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.errors import UsageError
from optimist.core.predicates.builder import literal
from optimist.core.predicates.text import quote_literal
from optimist.core.sql import (
    Parameters,
    PathRelation,
    PathStatement,
    SqlText,
    markers_of,
    parse_command,
    parse_path_statement,
    path_relations,
)
from optimist.core.sql.statements import Delete, Merge, Update
from optimist.core.sql.table_statements import AlterTable, CreateTable, Insert
from optimist.spark.commands.read import read
from optimist.spark.commands.tables import DeltaTable
from optimist.spark.drop_in.connect_inserts import insert_rows
from optimist.spark.drop_in.connect_refusals import refused
from optimist.spark.drop_in.connect_rows import change_rows
from optimist.spark.drop_in.connect_statements import ensure_can_be_had, temporary_view
from optimist.spark.drop_in.connect_tables import alter, create
from optimist.spark.drop_in.statements import run_command
from optimist.spark.session.callback_errors import original_errors

__all__ = ["connect_sql"]

_LETTERS = re.compile("delta|table_changes", re.IGNORECASE)
_WHOLE_NUMBER = re.compile(r"'?([0-9]{1,19})'?")
_TEXT = re.compile(r"'([^'\\]*)'")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_Original = Callable[..., DataFrame]
Arguments: TypeAlias = dict[str, Any] | list[Any]


@original_errors()
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
    parameters = None if args is None else _parameters(args)
    command = parse_command(text, parameters)
    if command is not None:
        told = run_command(spark, command)
        return _no_rows(spark) if told is None else told
    if _LETTERS.search(text) is None:
        return original(text, args, **frames)
    statement = parse_path_statement(text, parameters)
    if statement is not None:
        with original_errors():
            return _run(spark, statement, frames)
    relations = path_relations(text, parameters)
    ensure_can_be_had(text, relations)
    if not relations:
        return original(text, args, **frames)
    view = temporary_view(text)
    if view is not None:
        view.create(spark.sql(text[view.query_start :], args, **frames))
        return _no_rows(spark)
    return _with_frames(spark, original, text, relations, args, frames)


def _run(spark: SparkSession, statement: PathStatement, frames: Mapping[str, Any]) -> DataFrame:
    """Run a statement over a path; its rows, which most statements have none of."""
    if isinstance(statement, Delete | Update | Merge):
        return change_rows(spark, statement)
    if isinstance(statement, Insert):
        insert_rows(spark, statement, frames)
    elif isinstance(statement, CreateTable):
        create(spark, statement, frames)
    elif isinstance(statement, AlterTable):
        alter(spark, statement)
    else:
        DeltaTable.forPath(spark, str(statement.table.path)).delete()
    return _no_rows(spark)


def _no_rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], StructType())


def _parameters(args: Arguments) -> Parameters:
    """The values as SQL; one that has no SQL is left out, and missed only where it is needed."""
    if isinstance(args, dict):
        named = {name: _sql_of(value) for name, value in args.items()}
        return Parameters(named={name: sql for name, sql in named.items() if sql is not None})
    return Parameters(positional=[_sql_of(value) or "?" for value in args])


def _sql_of(value: object) -> str | None:
    try:
        constant = literal(value)
    except UsageError:
        return None
    return quote_literal(constant.value, constant.kind)


def _with_frames(
    spark: SparkSession,
    original: _Original,
    text: str,
    relations: Sequence[PathRelation],
    args: Arguments | None,
    frames: Mapping[str, Any],
) -> DataFrame:
    """Run a statement with the frames of tables in the places of their names."""
    opened: dict[PathRelation, str] = {}
    names: dict[str, str] = {}
    views = dict(frames)
    for relation in relations:
        if not relation.is_qualifier and relation not in opened:
            name = f"optimist_table_{len(opened)}"
            opened[relation] = names[relation.path] = name
            views[name] = _frame(spark, relation)
    pieces: list[str] = []
    end = 0
    for relation in relations:
        name = names[relation.path] if relation.is_qualifier else opened[relation]
        pieces += _kept(text[end : relation.span.start], frames), f"{{{name}}}"
        end = relation.span.end
    pieces.append(_kept(text[end:], frames))
    return original("".join(pieces), _args_left(text, relations, args), **views)


def _kept(text: str, frames: Mapping[str, Any]) -> str:
    """A piece of the user's text; with frames of the user's own, it is a format already."""
    return text if frames else text.replace("{", "{{").replace("}", "}}")


def _args_left(
    text: str,
    relations: Sequence[PathRelation],
    args: Arguments | None,
) -> Arguments | None:
    """The values without those that go by their place and stand in what is taken out."""
    if args is None or isinstance(args, dict):
        return args
    spans = [relation.span for relation in relations]
    return [
        value
        for value, marker in zip(args, markers_of(text), strict=False)
        if not any(span.start <= marker.start < span.end for span in spans)
    ] or None


def _frame(spark: SparkSession, relation: PathRelation) -> DataFrame:
    if relation.changes:
        bounds: dict[str, Any] = {}
        for side, sql in zip(("starting", "ending"), relation.changes, strict=False):
            number = _WHOLE_NUMBER.fullmatch(sql.sql)
            value = int(number[1]) if number and sql.sql[0] != "'" else _time(spark, sql)
            bounds[f"{side}{'Version' if isinstance(value, int) else 'Timestamp'}"] = value
        return read(spark, relation.path, readChangeFeed=True, **bounds)
    if relation.version is not None:
        return read(spark, relation.path, versionAsOf=_version(relation.version))
    if relation.timestamp is not None:
        return read(spark, relation.path, timestampAsOf=_time(spark, relation.timestamp))
    return read(spark, relation.path)


def _version(sql: SqlText) -> int:
    number = _WHOLE_NUMBER.fullmatch(sql.sql)
    if number is None:
        raise refused(f"The version {sql.sql}", "Give the number itself, or a parameter.")
    return int(number[1])


def _time(spark: SparkSession, sql: SqlText) -> str | dt.datetime:
    """The time that an expression means: that of a text is read as `read` does."""
    text = _TEXT.fullmatch(sql.sql)
    if text is not None:
        return text[1]
    query = f"SELECT unix_micros(CAST(({sql.sql}) AS TIMESTAMP)) AS micros"
    micros = spark.sql(query).collect()[0]["micros"]
    if micros is None:
        raise UsageError(
            f"The time {sql.sql} is null. Nothing was read. Give a time.",
            kind="DELTA_TIMESTAMP_INVALID",
            value=sql.sql,
        )
    return _EPOCH + dt.timedelta(microseconds=micros)
