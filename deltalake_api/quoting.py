r"""SQL with deltalake's quotes, as SQL with Spark's.

| | deltalake | Spark |
|---|---|---|
| `"a b"` | a name | a text |
| `'it''s'` | a text; two quotes are one | a text |
| `'a\n'` | a backslash and an `n` | an escape |
| `` `a b` `` | a name | a name |

A predicate that was written for deltalake would mean other rows if Spark's rules read it. So names
in double quotes get back-ticks, and texts keep each of their characters. All else is Spark's SQL.
"""

from __future__ import annotations

import re

__all__ = ["in_spark_sql", "optional_spark_sql"]

_QUOTED = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
"""A text, a name, or a comment, in which quotes mean nothing."""


def in_spark_sql(sql: str) -> str:
    """Return SQL of deltalake with the quotes that mean the same in Spark.

    A quote without its end stays as it is, and the parser then refuses the text.
    """
    return _QUOTED.sub(lambda found: _translated(found.group()), sql)


def optional_spark_sql(sql: str | None) -> str | None:
    """Return SQL as `in_spark_sql` does, or None for None."""
    return sql if not isinstance(sql, str) else in_spark_sql(sql)


def _translated(token: str) -> str:
    quote, inside = token[0], token[1:-1]
    if quote not in "'\"":
        return token
    plain = inside.replace(quote * 2, quote)
    if quote == '"':
        return "`" + plain.replace("`", "``") + "`"
    return "'" + plain.replace("\\", "\\\\").replace("'", "\\'") + "'"
