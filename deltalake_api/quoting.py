r"""SQL with deltalake's quotes, as SQL with Spark's.

| | deltalake | Spark |
|---|---|---|
| `"a b"` | a name | a text |
| `'it''s'` | a text; two quotes are one | a text |
| `'a\n'` | a backslash and an `n` | an escape |
| `` `a b` `` | a name | a name |

A predicate that was written for deltalake would mean other rows if Spark's rules read it. So names
in double quotes get back-ticks, and texts keep each of their characters. All else is Spark's SQL;
`dialect` says what of it is translated or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["in_spark_sql", "tokens"]

_QUOTED = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
"""A text, a name, or a comment, in which quotes mean nothing."""


def in_spark_sql(sql: str) -> str:
    """Return SQL of deltalake with the quotes that mean the same in Spark.

    A quote without its end stays as it is, and the parser then refuses the text.
    """
    return _QUOTED.sub(lambda found: _translated(found.group()), sql)


def tokens(sql: str) -> Iterator[re.Match[str]]:
    """Yield the texts, the names in quotes and the comments of SQL with their places."""
    return _QUOTED.finditer(sql)


def _translated(token: str) -> str:
    quote, inside = token[0], token[1:-1]
    if quote not in "'\"":
        return token
    plain = inside.replace(quote * 2, quote)
    if quote == '"':
        return "`" + plain.replace("`", "``") + "`"
    return "'" + plain.replace("\\", "\\\\").replace("'", "\\'") + "'"
