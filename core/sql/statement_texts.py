"""`parse_statement`: every statement that this grammar knows, for engines without Spark."""

from __future__ import annotations

from typing import TypeAlias

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.sql.grammar import parse_command
from optimist.core.sql.own_names import ANY_NAME
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.spark_statements.path_statements import parse_path_statement
from optimist.core.sql.spark_statements.shows import Show, parse_show
from optimist.core.sql.spark_statements.table_statements import PathStatement
from optimist.core.sql.statements import Command

__all__ = ["Statement", "parse_statement"]

Statement: TypeAlias = Command | PathStatement | Show
_SHOWN_LENGTH = 60


def parse_statement(text: str, parameters: Parameters | None = None) -> Statement:
    """Parse a statement over a table of any name.

    Args:
        text: The statement; it may end with semicolons.
        parameters: The values of its parameters.

    Raises:
        UsageError: The text is no statement of this grammar, such as a query (kind
            `OPTIMIST_UNSUPPORTED_STATEMENT`); or it begins like a statement and goes on otherwise
            (kind `PARSE_SYNTAX_ERROR`, with `line`, `column` and `fragment`).
    """
    found = (
        parse_command(text, parameters)
        or parse_path_statement(text, parameters, own_names=ANY_NAME)
        or parse_show(text, parameters, own_names=ANY_NAME)
    )
    if found is None:
        raise UsageError(
            f"The text {shown(text[:_SHOWN_LENGTH])} is no statement that runs without Spark. "
            "Nothing was run. Read rows with DeltaLog.to_arrow, or run the text with spark.sql.",
            kind="OPTIMIST_UNSUPPORTED_STATEMENT",
            statement=text,
        )
    return found
