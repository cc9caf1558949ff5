"""One value of the current time for a whole command.

A command runs several queries, and Spark takes the current time anew for each. So before the first
query, calls for the current time are replaced by the time at which the command began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from optimist.core.expressions.plain_text import tokens_between
from optimist.core.expressions.tokens import Token
from optimist.spark.conditions.connect_expressions import messages
from optimist.spark.session.jvm import Jvm, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["FixedNow"]

_MILLION = 1_000_000
_DAYS: Mapping[str, int] = {"now": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
"""Texts that Spark casts to times by the clock, and how many days from today they are."""
_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_CASTS: Mapping[str, str] = {
    "date": "DATE",
    "to_date": "DATE",
    "timestamp": "TIMESTAMP",
    "to_timestamp": "TIMESTAMP",
}
"""Functions that cast a text, and the type that they cast it to."""
_WORDS = ("current_timestamp", "current_date", "current_time", "localtimestamp")
"""Functions that need no parentheses, unless a column has the name."""
_CALLS = (*_WORDS, "now", "curdate", "unix_timestamp")
_DIGITS = tuple("0123456")
_NODES: Mapping[str, str] = {
    "CurrentTimestamp": "now",
    "Now": "now",
    "CurrentDate": "current_date",
    "LocalTimestamp": "localtimestamp",
    "CurrentTime": "current_time",
}
"""The nodes that Spark's parser makes of these words where they are reserved."""


@dataclass(frozen=True, slots=True)
class FixedNow:
    """A fixed time that replaces calls for the current time.

    Attributes:
        spark: The session.
        micros: The time, in microseconds since the epoch.
        columns: The names of columns, in lower case.
    """

    spark: SparkSession
    micros: int
    columns: frozenset[str]

    def fixed(self, column: Column) -> Column:
        """Replace calls for the current time in a column by constants.

        A column without such calls is returned unchanged.
        """
        if is_connect(self.spark):
            return self._replace_in_sent(column)
        jvm = Jvm.of(self.spark)
        before = jvm.tree(column)
        after = self._replace_in_tree(jvm, before)
        return column if after is before else jvm.column(after)

    def _sql_of_time(self, name: str, digits: str | None = None) -> str | None:
        """Return SQL for the time in the form of a function, or None for another function.

        Args:
            name: The function.
            digits: The number of digits of a second, if a function takes it.
        """
        moment = f"timestamp_micros({self.micros}L)"
        name = name.lower()
        if name == "current_time":
            return f"CAST({moment} AS TIME({digits or 6}))"
        if digits is not None:
            return None
        if name in ("current_timestamp", "now"):
            return moment
        if name in ("current_date", "curdate"):
            return f"CAST({moment} AS DATE)"
        if name == "localtimestamp":
            return f"CAST({moment} AS TIMESTAMP_NTZ)"
        return f"{self.micros // _MILLION}L" if name == "unix_timestamp" else None

    def _sql_of_text(self, cast: _CastOfText) -> str:
        """Return SQL for what a text means that is cast to a date or a time."""
        moment = f"timestamp_micros({self.micros}L)"
        if cast.text == "now" and cast.data_type != "DATE":
            return f"CAST({moment} AS {cast.data_type})"
        day = f"date_add(CAST({moment} AS DATE), {_DAYS[cast.text]})"
        return day if cast.data_type == "DATE" else f"CAST({day} AS {cast.data_type})"

    def _is_word(self, name: str) -> bool:
        return name.lower() in _WORDS and name.lower() not in self.columns

    # In a classic session

    def _replace_in_tree(self, jvm: Jvm, tree: Any) -> Any:
        """Put constants into Spark's tree, and return the same object if nothing changes."""
        children = list(iterate(tree.children()))
        name, digits = self._function_name(tree, len(children)), None
        if name is None and len(children) == 1 and str(children[0]).isdigit():
            name, digits = self._function_name(tree, 0), str(children[0])
        text = None if name is None else self._sql_of_time(name, digits)
        if text is not None:
            return jvm.parsed(text)
        replaced = [self._replace_in_tree(jvm, child) for child in children]
        if all(map(_is_same, children, replaced)):
            return tree
        return tree.withNewChildren(jvm.seq(replaced))

    def _function_name(self, tree: Any, num_children: int) -> str | None:
        kind = str(tree.getClass().getSimpleName())
        if kind in _NODES:
            return _NODES[kind]
        if num_children or kind not in ("UnresolvedFunction", "UnresolvedAttribute"):
            return None
        parts = [str(part) for part in iterate(tree.nameParts())]
        if len(parts) != 1 or (kind == "UnresolvedAttribute" and not self._is_word(parts[0])):
            return None
        return parts[0]

    # In Spark Connect

    def _replace_in_sent(self, column: Column) -> Column:
        inner: Any = column
        return type(column)(_sent_expression(inner._expr, self._replace_in_message))

    def _replace_in_message(self, message: Any) -> None:
        """Put constants into a message, in place."""
        for item in list(messages(message)):
            kind = item.WhichOneof("expr_type") if item.DESCRIPTOR.name == "Expression" else None
            text = None
            if kind == "unresolved_function":
                text = self._sql_of_call(item.unresolved_function)
            elif kind == "unresolved_attribute":
                name = item.unresolved_attribute.unparsed_identifier
                text = self._sql_of_time(name) if self._is_word(name) else None
            elif kind == "expression_string":
                text = self._replace_in_text(item.expression_string.expression)
            if text is not None:
                item.expression_string.expression = text

    def _sql_of_call(self, call: Any) -> str | None:
        if not call.arguments:
            return self._sql_of_time(call.function_name)
        literal = call.arguments[0].literal
        is_number = len(call.arguments) == 1 and literal.WhichOneof("literal_type") == "integer"
        return self._sql_of_time(call.function_name, str(literal.integer)) if is_number else None

    def _replace_in_text(self, text: str) -> str:
        tokens = tokens_between(text, 0, len(text))
        pieces: list[str] = []
        end = 0
        for at, token in enumerate(tokens):
            if token.start < end:
                continue
            cast = _cast_of_text(tokens[at : at + 6], tokens[at - 1].text if at else "")
            if cast is not None:
                last = tokens[at + cast.num_tokens - 1]
                pieces += text[end : token.start], self._sql_of_text(cast)
                end = last.end
                continue
            is_name = token.kind == "word" and tokens[max(at - 1, 0)].text != "."
            if not is_name or token.text.lower() not in _CALLS:
                continue
            size, digits = _brackets([item.text for item in tokens[at + 1 : at + 4]])
            last, after = tokens[at + size], [item.text for item in tokens[at + size + 1 :][:1]]
            if after in (["."], ["("]) or not (size or self._is_word(token.text)):
                continue
            time_sql = self._sql_of_time(token.text, digits)
            if time_sql is not None:
                pieces += text[end : token.start], time_sql
                end = last.end
        return "".join([*pieces, text[end:]])


@dataclass(frozen=True, slots=True)
class _CastOfText:
    """A text such as `'now'` that an expression casts.

    Attributes:
        text: The text, in lower case.
        data_type: The type that it is cast to.
        num_tokens: How many tokens the cast has.
    """

    text: str
    data_type: str
    num_tokens: int


def _cast_of_text(tokens: Sequence[Token], before: str) -> _CastOfText | None:
    """Return the cast of a text by the clock that begins here, or None for anything else."""
    words = [token.text.upper() for token in tokens]
    if before == ".":
        return None
    if words[:1] and words[0] in _TYPES and len(words) > 1 and tokens[1].kind == "text":
        return _cast(tokens[1], words[0], 2)  # TIMESTAMP 'now'
    if words[0] in ("CAST", "TRY_CAST") and words[1:2] == ["("] and words[3:4] == ["AS"]:
        is_whole = len(words) == 6 and words[5] == ")"
        return _cast(tokens[2], words[4], 6) if is_whole else None
    if tokens[0].kind == "text" and words[1:2] == ["::"] and len(words) > 2:
        return _cast(tokens[0], words[2], 3)
    target = _CASTS.get(words[0].lower())
    if target is not None and words[1:2] == ["("] and words[3:4] == [")"]:
        return _cast(tokens[2], target, 4)
    return None


def _cast(text: Token, data_type: str, num_tokens: int) -> _CastOfText | None:
    said = text.text[1:-1].strip().lower()
    is_by_clock = text.kind == "text" and said in _DAYS and data_type in _TYPES
    return _CastOfText(said, data_type, num_tokens) if is_by_clock else None


def _brackets(after: Sequence[str]) -> tuple[int, str | None]:
    """Return how many tokens after a function's name are its brackets, and the digits in them."""
    if tuple(after[:2]) == ("(", ")"):
        return 2, None
    if len(after) == 3 and (after[0], after[2]) == ("(", ")") and after[1] in _DIGITS:
        return 3, after[1]
    return 0, None


def _is_same(one: object, other: object) -> bool:
    return one is other


def _sent_expression(expression: Any, rewrite: Callable[[Any], None]) -> Any:
    """Return a Spark Connect expression whose message is rewritten before it is sent."""
    # The classes of Spark Connect can't be imported where its packages are not installed.
    kind = next(item for item in type(expression).__mro__ if item.__name__ == "Expression")

    def to_plan(_: Any, session: Any) -> Any:
        message = expression.to_plan(session)
        rewrite(message)
        return message

    members = {
        "to_plan": to_plan,
        "children": property(lambda _: expression.children),
        "__repr__": lambda _: repr(expression),
    }
    return type("TimedExpression", (kind,), members)()
