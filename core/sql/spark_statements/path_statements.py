"""`parse_path_statement`: Spark's own statements over a path or a name that is ours.

They are read where Spark's parser is not at hand. Queries, conditions and values in them stay the
user's text: Spark reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from optimist.core.sql.first_words import begin_of
from optimist.core.sql.own_names import PATHS_ALONE, OwnNames
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.spark_statements.column_changes import alter_table, comment_on, truncation
from optimist.core.sql.spark_statements.inserts import insert
from optimist.core.sql.spark_statements.row_changes import parse_row_change
from optimist.core.sql.spark_statements.table_creations import creation
from optimist.core.sql.spark_statements.table_statements import PathStatement

__all__ = ["parse_path_statement"]

_STATEMENTS: Mapping[str, Callable[[Reader], PathStatement | None]] = MappingProxyType(
    {
        "INSERT": insert,
        "WITH": insert,
        "CREATE": creation,
        "REPLACE": creation,
        "ALTER": alter_table,
        "COMMENT": comment_on,
        "TRUNCATE": truncation,
    }
)
_FIRST_WORDS = re.compile(rf"(?:{'|'.join(_STATEMENTS)})\b", re.IGNORECASE)


def parse_path_statement(
    text: str, parameters: Parameters | None = None, *, own_names: OwnNames = PATHS_ALONE
) -> PathStatement | None:
    """Parse a statement of Spark's over a table of ours, by default one named by its path.

    Args:
        text: The statement; it may end with semicolons.
        parameters: The values of its parameters.
        own_names: Which names of tables are ours.

    Returns:
        The statement; None for any other, such as one over a name.

    Raises:
        UsageError: The statement begins like one of these and goes on otherwise (kind
            `PARSE_SYNTAX_ERROR`, with `line`, `column` and `fragment`).
    """
    change = parse_row_change(text, parameters, own_names=own_names)
    if change is not None:
        return change
    start = begin_of(text, _FIRST_WORDS)
    if start is None:
        return None
    reader = Reader(text, parameters, start, own_names=own_names)
    statement = _STATEMENTS[reader.peek().text.upper()](reader)
    if statement is not None:
        reader.end()
    return statement
