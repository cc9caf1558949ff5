"""Quoted texts in SQL of a table's log, which mean the same in every session.

Two confs of a session change how Spark reads a text in quotes. With
`spark.sql.ansi.doubleQuotedIdentifiers`, `"code"` is a column; with
`spark.sql.parser.escapedStringLiterals`, a backslash is a character like any other. The session
that stores SQL in a log is not the one that evaluates it. So it is read as in a session without
these confs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyspark.sql import SparkSession

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions import NotSqlError
from optimist.core.expressions.plain_text import tokens_between
from optimist.core.expressions.tokens import Token, read_text
from optimist.core.predicates.text import quote_literal
from optimist.core.protocol.properties import constraint_keys
from optimist.core.requests.table_definition import Column
from optimist.spark.session.conf import is_on
from optimist.spark.sql.unfit_sql import InvalidSqlError, UnsafeSqlError

__all__ = ["ensure_definition_reads_alike", "ensure_read_alike", "with_texts_for"]

_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"
_NO_ESCAPES = "spark.sql.parser.escapedStringLiterals"


def ensure_read_alike(spark: SparkSession, sql: str) -> None:
    """Refuse new SQL with a text that the session reads in another way than others.

    Raises:
        UnsafeSqlError: It holds such a text.
    """
    for token in _changed_texts(spark, sql):
        raise UnsafeSqlError(
            f"holds a text in quotes that {_NAMES} or {_NO_ESCAPES} gives another meaning in this "
            "session, so that it would change for others",
            token.text,
        )


def ensure_definition_reads_alike(
    spark: SparkSession, columns: Iterable[Column], properties: Mapping[str, str]
) -> None:
    """Refuse a new table whose SQL holds a text that the session reads in another way than others.

    Args:
        spark: The session.
        columns: The table's columns, with their defaults and generation expressions.
        properties: The table's properties; those of CHECK constraints hold SQL, too.

    Raises:
        SchemaError: There is such SQL (kind `OPTIMIST_UNSAFE_EXPRESSION`).
    """
    for what, name, sql in (*_sql_of_columns(columns), *_sql_of_constraints(properties)):
        try:
            ensure_read_alike(spark, sql)
        except UnsafeSqlError as error:
            raise SchemaError(
                f"The SQL of the {what} {shown(name)}, {quoted(sql)}, {error.reason}: "
                f"{quoted(error.part)}. Nothing was written. Put texts in single quotes and names "
                "in back-ticks, without escapes, or unset that conf.",
                kind="OPTIMIST_UNSAFE_EXPRESSION",
                name=name,
                expression=sql,
            ) from None
        except InvalidSqlError:
            continue  # it is no SQL, which is said elsewhere


def _sql_of_columns(columns: Iterable[Column]) -> Iterator[tuple[str, str, str]]:
    for column in columns:
        for sql in filter(None, (column.generated_as, column.default)):
            yield "column", column.name, sql


def _sql_of_constraints(properties: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, key in constraint_keys(properties).items():
        yield "CHECK constraint", name, properties[key]


def with_texts_for(spark: SparkSession, sql: str) -> str:
    """Return stored SQL with its texts in the form that the session reads as they are meant.

    Raises:
        InvalidSqlError: The session has no form for such a text.
    """
    pieces: list[str] = []
    end = 0
    for token in _changed_texts(spark, sql):
        pieces += sql[end : token.start], _quoted(spark, read_text(token))
        end = token.end
    return "".join([*pieces, sql[end:]])


def _changed_texts(spark: SparkSession, sql: str) -> Iterator[Token]:
    has_names, has_no_escapes = is_on(spark, _NAMES), is_on(spark, _NO_ESCAPES)
    if not (has_names or has_no_escapes):
        return
    try:
        tokens = tokens_between(sql, 0, len(sql))
    except NotSqlError as error:
        raise InvalidSqlError(str(error)) from None
    for token in tokens:
        if token.kind != "text":
            continue
        inner = token.text[1:-1]
        is_name = has_names and '"' in (token.text[0], token.text[-1])
        if is_name or (has_no_escapes and ("\\" in inner or token.text[-1] in inner)):
            yield token


def _quoted(spark: SparkSession, value: str) -> str:
    """Return a text in quotes, as the session reads it."""
    if not is_on(spark, _NO_ESCAPES):
        return quote_literal(value, "string")
    quote = '"' if "'" in value and not is_on(spark, _NAMES) else "'"
    has_open_end = (len(value) - len(value.rstrip("\\"))) % 2  # the quote would belong to it
    if quote in value or has_open_end:
        raise InvalidSqlError(f"with {_NO_ESCAPES} no text in quotes can be {value}")
    return f"{quote}{value}{quote}"
