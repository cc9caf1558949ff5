"""`spark.sql` of a Spark Connect client: statements of Delta, and queries over Delta tables.

1. A statement of Delta's (`core/sql/grammar.py`) is run here.
2. So is a statement of Spark's that makes or changes a Delta table, or shows facts about one.
3. In any other text that names Delta tables, their frames take the places of the names
   (`queries.py`).
4. All others go to the server as they are.

A table is named by its path, or by a name of the server's catalog, which is asked what it means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.errors import UsageError
from optimist.core.sql import (
    Command,
    PathRelation,
    PathStatement,
    TableName,
    names_of_relations,
    parse_command,
    parse_path_statement,
    path_relations,
)
from optimist.core.sql.spark_statements.shows import Show, parse_show
from optimist.core.sql.spark_statements.table_statements import CreateTable, Insert
from optimist.core.sql.statements import AlterTable, CreateLike, Delete, Merge, Update
from optimist.spark.commands.catalog.missing_tables import ensure_made
from optimist.spark.commands.catalog.server_entries import move_entry
from optimist.spark.commands.catalog.server_source import ensure_format_known
from optimist.spark.commands.tables import DeltaTable
from optimist.spark.drop_in.connect.computed_names import immediate, with_constant_names
from optimist.spark.drop_in.connect.descriptions import describe, description
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.connect.inserts import insert_rows
from optimist.spark.drop_in.connect.kept_views import make_view, query_of_view
from optimist.spark.drop_in.connect.parameters import Arguments, SentParameters
from optimist.spark.drop_in.connect.queries import with_frames
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.drop_in.connect.rows import change_rows
from optimist.spark.drop_in.connect.shows import show
from optimist.spark.drop_in.connect.statement_names import StatementNames
from optimist.spark.drop_in.connect.statements import (
    CachedQuery,
    Relocation,
    TemporaryView,
    cached_query,
    ensure_can_be_had,
    has_query,
    named_statement,
    relocation,
    temporary_view,
)
from optimist.spark.drop_in.connect.tables import create
from optimist.spark.drop_in.connect.variables import with_variables
from optimist.spark.drop_in.shared.tables_like import makes_delta_table
from optimist.spark.drop_in.statements import is_ours, run_command
from optimist.spark.session.callback_errors import original_errors

__all__ = ["connect_sql"]

_LETTERS = re.compile("delta|table_changes", re.IGNORECASE)
_OF_TEXTS = ("PARSE_SYNTAX_ERROR", "INVALID_SQL_ARG")
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
    sql = FormattedSql.of(spark, text, frames)
    if "${" in sql.text:
        sql = _with_variables(original, sql)
    answer = _answer(spark, original, sql, args)
    if answer is not None:
        return answer
    try:
        return original(text, args, **frames)
    except AnalysisException as error:
        # Another client may have made a Delta table of a name since the server was asked about it.
        answer = None if isinstance(error, ParseException) else _answer(spark, original, sql, args)
        if answer is None:
            raise
        return answer


def _answer(
    spark: SparkSession, original: _Original, sql: FormattedSql, args: Arguments | None
) -> DataFrame | None:
    """Return the answer of a statement, or None for one that is Spark's own."""
    parameters = None if args is None else SentParameters(spark=spark, args=args)
    inner = None
    with original_errors():
        if "identifier" in sql.text.lower():
            sql = replace(sql, text=with_constant_names(original, sql.text, parameters))
        if "immediate" in sql.text.lower():
            inner = immediate(original, sql.text, parameters)
    if inner is None or inner.text is None:
        return _Statement(spark, original, sql, args, StatementNames(spark)).run()
    whole = replace(sql, text=inner.text)
    statement = _Statement(spark, original, whole, None, StatementNames(spark))
    if inner.is_alone:
        return statement.run()
    # The name of what is truncated may be among the values.
    if "truncate" in inner.text.lower() or statement.is_over_delta:
        way_out = "Run the statement by itself, with spark.sql(text, args)."
        raise refused("A Delta table in EXECUTE IMMEDIATE with INTO or USING", way_out)
    return None


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement that is looked into.

    Attributes:
        spark: The client's session.
        original: Spark's own `sql` of this session.
        sql: The statement.
        args: The values of its parameters.
        names: What the names in it mean.
    """

    spark: SparkSession
    original: _Original
    sql: FormattedSql
    args: Arguments | None
    names: StatementNames

    def run(self) -> DataFrame | None:
        """Run the statement, or return None if it is Spark's own."""
        command = self._command()
        if command is not None:
            return _run_command(self.spark, command)
        run = self._own_run()
        return None if run is None else run()

    @property
    def is_over_delta(self) -> bool:
        """Whether the statement concerns a Delta table, and is not Spark's own."""
        return self._command() is not None or self._own_run() is not None

    def _own_run(self) -> Callable[[], DataFrame] | None:
        """Return what runs a statement over a Delta table, or None for one of the server's."""
        try:
            return self._looked_into()
        except UsageError as error:
            if error.kind in _OF_TEXTS and not self._names_delta:
                return None  # the server says what is wrong, or knows more than this grammar
            raise

    def _looked_into(self) -> Callable[[], DataFrame] | None:
        """Return what runs a statement over a Delta table, or None for any other."""
        moved = relocation(self.sql.text, self._parameters, self.names)
        if moved is not None:
            return partial(_relocate, self.spark, moved)
        asked = description(self.sql.text, self._parameters, self.names)
        if asked is not None:
            return partial(describe, self.spark, asked)
        statement = self._own_statement()
        if isinstance(statement, Show):
            return partial(show, self.spark, statement)
        if statement is not None:
            return partial(_run, self.spark, statement, self.sql, self.names)
        return self._queried()

    def _own_statement(self) -> PathStatement | Show | None:
        """Return a statement of Spark's over a Delta table, or None for another."""
        text, parameters = self.sql.text, self._parameters
        found = parse_path_statement(text, parameters, own_names=self.names)
        return found or parse_show(text, parameters, own_names=self.names)

    def _command(self) -> Command | None:
        """Return the statement as one of Delta's, or None for another."""
        text, spark = self.sql.text, self.spark
        is_of_spark = not self._names_delta
        command = parse_command(text, self._parameters, is_of_spark=lambda: is_of_spark)
        if isinstance(command, CreateLike) and not makes_delta_table(spark, command):
            return None
        return command if command is None or is_ours(spark, command) else None

    def _queried(self) -> Callable[[], DataFrame] | None:
        """Return what runs a statement with a query over Delta tables, or None without one."""
        spark, sql, text = self.spark, self.sql, self.sql.text
        relations = self._relations()
        query = query_of_view(text) if relations else None
        if query is not None:
            given = (sql, query, relations, self.names, self.args)
            return partial(_keep_view, spark, *given)
        ensure_can_be_had(text, relations)
        if not relations:
            return self._prepare_server()
        view = temporary_view(text)
        if view is not None:
            return partial(_make_view, spark, view, sql, self.args)
        cached = cached_query(text)
        if cached is not None:
            return partial(_cache, spark, cached, sql, self.args)
        return partial(with_frames, spark, self.original, sql, relations, self.args, self.names)

    def _relations(self) -> Sequence[PathRelation]:
        """Return the Delta tables that the statement reads."""
        text, takes_names = self.sql.text, has_query(self.sql.text)
        if takes_names:
            found = names_of_relations(text, self._parameters)
            self.names.learn(name for name in found if name[0] not in self.sql.frames)
        if not self._names_delta:
            return ()
        place_of = self.names.place_of if takes_names else None
        return path_relations(text, self._parameters, place_of)

    def _prepare_server(self) -> Callable[[], DataFrame] | None:
        """Let the server know the format of the table that its statement is about.

        Returns:
            None; or what runs the statement, if its table was made at this moment.

        Raises:
            AnalysisException: There is no such table to change. The server would say so, too; but
                if another client makes it meanwhile, the server would change its entry alone, or
                give another name to one whose table is not made yet.
            UsageError: The server can't run it (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
            TableNotFoundError: A name without a table would get another name.
        """
        named = named_statement(self.sql.text)
        table = None if named is None else self.names.known(named.table)
        if named is None:
            return None
        if table is None:
            is_changed = named.changes_table or named.is_rename
            is_new = is_changed and self.names.is_unknown(named.table)
            return self._looked_for_again(named.table) if is_new else None
        named.ensure_can_be_had()
        if named.is_rename and table.location is not None:
            # The catalog would move the files of a client that is making the table.
            ensure_made(self.spark, table)
        ensure_format_known(self.spark)
        return None

    def _looked_for_again(self, table: TableName) -> Callable[[], DataFrame] | None:
        """Return what runs a statement about a name that the session's catalog did not know."""
        _ = self.spark.table(str(table)).schema
        names = StatementNames(self.spark)
        return replace(self, names=names)._own_run() if names.known(table) else None

    @property
    def _names_delta(self) -> bool:
        return self.names.has_delta or _LETTERS.search(self.sql.text) is not None

    @property
    def _parameters(self) -> SentParameters | None:
        args = self.args
        return None if args is None else SentParameters(spark=self.spark, args=args)


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
def _run(
    spark: SparkSession, statement: PathStatement, sql: FormattedSql, names: StatementNames
) -> DataFrame:
    """Run a statement over a Delta table, and return its rows."""
    if isinstance(statement, Delete | Update | Merge):
        return change_rows(spark, statement, sql, names)
    if isinstance(statement, Insert):
        insert_rows(spark, statement, sql)
    elif isinstance(statement, CreateTable):
        create(spark, statement, sql)
    elif isinstance(statement, AlterTable):
        run_command(spark, statement)
    else:
        DeltaTable.forPath(spark, str(statement.table.path)).delete()
    return _no_rows(spark)


def _run_command(spark: SparkSession, command: Command) -> DataFrame:
    told = run_command(spark, command)
    return _no_rows(spark) if told is None else told


@original_errors()
def _relocate(spark: SparkSession, moved: Relocation) -> DataFrame:
    move_entry(spark, moved.table, moved.location)
    return _no_rows(spark)


def _keep_view(spark: SparkSession, *given: Any) -> DataFrame:
    make_view(spark, *given)
    return _no_rows(spark)


def _make_view(
    spark: SparkSession, view: TemporaryView, sql: FormattedSql, args: Arguments | None
) -> DataFrame:
    view.create(sql.query(spark, sql.text[view.query_start :], args))
    return _no_rows(spark)


def _cache(
    spark: SparkSession, cached: CachedQuery, sql: FormattedSql, args: Arguments | None
) -> DataFrame:
    """Make the view that a statement caches, and cache it."""
    _make_view(spark, cached.view, sql, args)
    try:
        spark.sql(cached.start)
    except PySparkException:
        spark.catalog.dropTempView(cached.view.name)
        raise
    return _no_rows(spark)


def _no_rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], StructType())
