"""`${name}` in a statement of a Spark Connect client: the server says what stands for it.

Confs, and the environment and the properties of its JVM, are the server's. So it is asked, by texts
that hold nothing else; its own parser puts the values in, if the session's conf lets it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from optimist.spark.session.lost_server import is_of_lost_server

__all__ = ["with_variables"]

_VARIABLE = re.compile(r"\$\{(?:\w+?:)?[^\s'`]+?\}")
"""What Spark takes for a variable (`ConfigReader`), as far as a text and a name can hold it."""

_VALUE = "value"
_QUERIES = ("SELECT r'{name}' AS value", "SELECT 1 AS `{name}`", 'SELECT r"{name}" AS value')


def with_variables(sql: Callable[[str], DataFrame], text: str) -> str | None:
    """Return a statement with the values of its variables, or None if one is unknown.

    Args:
        sql: Runs a query on the server.
        text: The statement.
    """
    values: dict[str, str] = {}
    for name in set(_VARIABLE.findall(text)):
        value = _value(sql, name)
        if value is None:
            return None
        values[name] = value
    return _VARIABLE.sub(lambda found: values[found.group()], text)


def _value(sql: Callable[[str], DataFrame], name: str) -> str | None:
    """Return the value that two kinds of quotes agree on, or None."""
    answers: list[str | None] = []
    for query in _QUERIES:
        answer = _answer(sql, query.format(name=f"={name}"))
        # A value that two kinds of quotes agree on holds none of these quotes.
        if answer is not None and answer in answers:
            return answer.removeprefix("=")
        answers.append(answer)
    return None


def _answer(sql: Callable[[str], DataFrame], query: str) -> str | None:
    """Return the value, or the column's name, of a query that the server can read."""
    try:
        frame = sql(query)
        (name,) = frame.columns
        return str(frame.collect()[0][0]) if name == _VALUE else name
    except PySparkException as error:
        if is_of_lost_server(error):
            raise
        return None
