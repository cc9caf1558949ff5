"""SQL of a table's log on Spark Connect, where the client judges a text by its tokens.

The server shows no tree before it analyses a text. So the text is judged here, token by token,
before it goes to the server. Only known tokens are accepted, and only those that Spark's lexer
reads alike under every setting:

1. Outside of quotes there are only ASCII words, numbers and some marks: no comments, no parameters,
   no `*` for columns.
2. A word must be a column, the name of a lambda's argument, the field of a struct, or on the list
   of words that neither call anything nor begin a query. Nobody can write a query with such words
   alone, in any order.
3. A word before a parenthesis calls a function, whose name must have one part. The server gives the
   class of its function of that name, and that class must be on the list. So a user's function
   under a builtin's name is refused.
4. At last, the server analyses the text over the table's columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from optimist.core.schema.types import StructType
from optimist.spark.session.conf import is_on
from optimist.spark.session.lost_server import is_of_lost_server
from optimist.spark.spark_schema import to_spark_schema
from optimist.spark.sql.allowed_expressions import is_allowed
from optimist.spark.sql.unfit_sql import InvalidSqlError, UnsafeSqlError

__all__ = ["judged_sent_sql"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<text>[rRxX]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*')
    |(?P<double>"[^"\\]*")
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<word>[A-Za-z0-9_]+)
    |(?P<mark>->|::|(?!--|/\*)[-+*/%=<>!|&^~()\[\],.])""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"\d+(?:e\d*)?(?:[lsyfd]|bd)?")
_DOUBLE_QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BEFORE_A_PARENTHESIS = _word_set(
    "and or not in is like ilike rlike regexp between case when then else div escape for"
)
_TYPES = _word_set(
    "boolean byte tinyint short smallint int integer long bigint float real double decimal dec "
    "numeric string binary date timestamp timestamp_ntz timestamp_ltz array map struct"
)
_UNITS = _word_set(
    "year years quarter quarters month months week weeks day days hour hours minute minutes second "
    "seconds millisecond milliseconds microsecond microseconds dayofyear dayofweek doy dow "
    "yearofweek"
)
_WORDS = (
    _BEFORE_A_PARENTHESIS
    | _TYPES
    | _UNITS
    | _word_set("null true false end distinct as both leading trailing interval to placing")
    | _word_set("current_date current_timestamp localtimestamp")
)
"""Words that may stand alone: none of them begins a query, names a table or calls a function."""

_QUERY_WORDS = _word_set("select values table using with lateral map reduce transform")
"""Every query needs one of these words, or `from`. They are refused as names of columns, too."""

# Functions whose arguments may contain the word `from`.
_WITH_FROM = _word_set("extract substring substr trim overlay")
_ONLY_IN_GRAMMAR = _word_set("try_cast timestampadd timestampdiff")
"""Calls that only Spark's parser knows, not its registry. None of them runs foreign code."""


def judged_sent_sql(spark: SparkSession, sql: str, columns: StructType) -> Column:
    """Return the text as a column, once it is judged safe.

    Args:
        spark: A session of Spark Connect.
        sql: The text.
        columns: The only columns that it may name.

    Raises:
        UnsafeSqlError: The text holds something that SQL of a table's log may not, or that can't be
            judged here.
        InvalidSqlError: Spark can't make an expression over these columns from the text.
    """
    tokens = _tokenize(sql)
    has_names = is_on(spark, _DOUBLE_QUOTED_NAMES)
    text = _Judged(tokens, frozenset(name.lower() for name in columns.names), has_names)
    text.judge()
    for name in sorted(text.calls - _ONLY_IN_GRAMMAR):
        _judge_function(spark, name)
    column = sf.expr(sql)
    bare = to_spark_schema(columns.without_field_keys(lambda _: True))
    try:
        _ = spark.createDataFrame([], bare).select(column).schema
    except PySparkException as error:
        if is_of_lost_server(error):
            raise
        raise InvalidSqlError(str(error)) from None
    return column


def _judge_function(spark: SparkSession, name: str) -> None:
    try:
        kind = spark.catalog.getFunction(f"`{name}`").className
    except PySparkException as error:
        if is_of_lost_server(error):
            raise
        kind = ""  # the server has no function of that name
    if not is_allowed(kind):
        raise UnsafeSqlError("calls a function that is not on the list of safe ones", name)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    @property
    def name(self) -> str:
        """The name of a word or a quoted name, in lower case."""
        plain = self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text
        return plain.lower()


_END = _Token("end", "")


def _tokenize(sql: str) -> tuple[_Token, ...]:
    found, at = [], 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None:
            raise UnsafeSqlError("holds text that can't be checked", sql[at : at + 20])
        found.append(_Token(str(match.lastgroup), match[0]))
        at = match.end()
    return tuple(token for token in found if token.kind != "space")


@dataclass(slots=True)
class _Judged:
    """One pass over the tokens of a text.

    Attributes:
        tokens: The tokens.
        columns: Names of columns, in lower case.
        has_double_quoted_names: True if `"x"` is a name in this session, and not a text.
        calls: The functions that the text calls, found so far.
    """

    tokens: tuple[_Token, ...]
    columns: frozenset[str]
    has_double_quoted_names: bool
    calls: set[str] = field(default_factory=set)
    _open: list[str] = field(default_factory=list)

    def judge(self) -> None:
        known = self.columns | frozenset(self._arguments_of_lambdas())
        for before, token, after in zip(
            (_END, *self.tokens), self.tokens, (*self.tokens[1:], _END), strict=False
        ):
            if token.kind in ("word", "quoted"):
                self._judge_name(before, token, after, known)
            elif token.kind == "double":
                if self.has_double_quoted_names or after.text == "(":
                    raise UnsafeSqlError("holds a name in double quotes", token.text)
            elif token.text == "(":
                self._open.append(before.name if before.kind in ("word", "quoted") else "")
            elif token.text == ")" and self._open:
                self._open.pop()
            elif token.text == "*" and before.text in ("", "(", ",", "."):
                raise UnsafeSqlError("names all columns", token.text)

    def _judge_name(
        self, before: _Token, token: _Token, after: _Token, known: frozenset[str]
    ) -> None:
        is_plain = token.kind == "word"
        if after.text == "(":
            if is_plain and self._may_stand_before_a_parenthesis(before, token):
                return
            if before.text == ".":
                raise UnsafeSqlError("calls a function of a catalog", token.text)
            self.calls.add(token.name)
        elif is_plain and token.name in _QUERY_WORDS:
            if not self._is_type(before, token):
                raise UnsafeSqlError("holds a keyword of queries", token.text)
        elif is_plain and token.name == "from":
            if not self._may_be_from(before):
                raise UnsafeSqlError("holds a keyword of queries", token.text)
        elif before.text != "." and token.name not in known and not self._is_known(token):
            raise UnsafeSqlError("names something that is not a column of the table", token.text)

    def _may_stand_before_a_parenthesis(self, before: _Token, token: _Token) -> bool:
        is_list = token.name in ("any", "all", "some") and before.name in ("like", "ilike")
        return is_list or token.name in _BEFORE_A_PARENTHESIS or self._is_type(before, token)

    def _is_type(self, before: _Token, token: _Token) -> bool:
        is_after_as = before.text.lower() == "as" and self._open[-1:] in (["cast"], ["try_cast"])
        return token.name in _TYPES and (is_after_as or before.text == "::")

    def _is_known(self, token: _Token) -> bool:
        if token.kind == "quoted":
            return False
        return token.name in _WORDS or _NUMBER.fullmatch(token.name) is not None

    def _may_be_from(self, before: _Token) -> bool:
        is_within = self._open[-1:] != [] and self._open[-1] in _WITH_FROM and before.text != "("
        return is_within or before.text.lower() == "distinct"

    def _arguments_of_lambdas(self) -> Iterable[str]:
        for at, token in enumerate(self.tokens):
            if token.text != "->" or at == 0:
                continue
            first = at - 1
            if self.tokens[first].text == ")":
                while first > 0 and self.tokens[first].text != "(":
                    first -= 1
            yield from (
                item.name for item in self.tokens[first:at] if item.kind in ("word", "quoted")
            )
