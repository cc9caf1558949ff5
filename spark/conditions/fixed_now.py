"""One value of the current time for all of a command.

A command asks Spark more than once, and Spark takes the time anew for each question. So what asks
for the time is replaced by the time at which the command began, before any question is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from optimist.core.expressions.plain_text import tokens_between
from optimist.spark.conditions.connect_expressions import messages
from optimist.spark.session.jvm import Jvm, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["FixedNow"]

_MILLION = 1_000_000
_WORDS = ("current_timestamp", "current_date", "current_time", "localtimestamp")
"""These need no parentheses, where no column has the name."""
_CALLS = (*_WORDS, "now", "curdate", "unix_timestamp")
_DIGITS = tuple("0123456")
_NODES: Mapping[str, str] = {
    "CurrentTimestamp": "now",
    "Now": "now",
    "CurrentDate": "current_date",
    "LocalTimestamp": "localtimestamp",
    "CurrentTime": "current_time",
}
"""What Spark's parser makes of the words where they are reserved."""


@dataclass(frozen=True, slots=True)
class FixedNow:
    """Replaces what asks for the current time.

    Attributes:
        spark: The session.
        micros: The time, in microseconds since the epoch.
        columns: The names that columns have, in lower case.
    """

    spark: SparkSession
    micros: int
    columns: frozenset[str]

    def fixed(self, column: Column) -> Column:
        """The column with constants for the time; itself if it does not ask for the time."""
        if is_connect(self.spark):
            return self._sent(column)
        jvm = Jvm.of(self.spark)
        before = jvm.tree(column)
        after = self._replaced(jvm, before)
        return column if after is before else jvm.column(after)

    def _text(self, name: str, digits: str | None = None) -> str | None:
        """SQL for the time in the form that a function gives; None for another function.

        Args:
            name: The function.
            digits: How many digits of a second are wanted, where a function takes their number.
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

    def _is_word(self, name: str) -> bool:
        return name.lower() in _WORDS and name.lower() not in self.columns

    # In a classic session

    def _replaced(self, jvm: Jvm, tree: Any) -> Any:
        """Spark's tree with constants; the same object where nothing asks for the time."""
        children = list(iterate(tree.children()))
        name, digits = self._name(tree, len(children)), None
        if name is None and len(children) == 1 and str(children[0]).isdigit():
            name, digits = self._name(tree, 0), str(children[0])
        text = None if name is None else self._text(name, digits)
        if text is not None:
            return jvm.parsed(text)
        replaced = [self._replaced(jvm, child) for child in children]
        if all(map(_is_same, children, replaced)):
            return tree
        return tree.withNewChildren(jvm.seq(replaced))

    def _name(self, tree: Any, num_children: int) -> str | None:
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

    def _sent(self, column: Column) -> Column:
        inner: Any = column
        return type(column)(_sent_expression(inner._expr, self._rewrite))

    def _rewrite(self, message: Any) -> None:
        """Put constants into a message, in place."""
        for item in list(messages(message)):
            kind = item.WhichOneof("expr_type") if item.DESCRIPTOR.name == "Expression" else None
            text = None
            if kind == "unresolved_function":
                text = self._called(item.unresolved_function)
            elif kind == "unresolved_attribute":
                name = item.unresolved_attribute.unparsed_identifier
                text = self._text(name) if self._is_word(name) else None
            elif kind == "expression_string":
                text = self._in_text(item.expression_string.expression)
            if text is not None:
                item.expression_string.expression = text

    def _called(self, call: Any) -> str | None:
        if not call.arguments:
            return self._text(call.function_name)
        literal = call.arguments[0].literal
        is_number = len(call.arguments) == 1 and literal.WhichOneof("literal_type") == "integer"
        return self._text(call.function_name, str(literal.integer)) if is_number else None

    def _in_text(self, text: str) -> str:
        tokens = tokens_between(text, 0, len(text))
        pieces: list[str] = []
        end = 0
        for at, token in enumerate(tokens):
            is_name = token.kind == "word" and tokens[max(at - 1, 0)].text != "."
            if not is_name or token.text.lower() not in _CALLS:
                continue
            size, digits = _brackets([item.text for item in tokens[at + 1 : at + 4]])
            last, after = tokens[at + size], [item.text for item in tokens[at + size + 1 :][:1]]
            if after in (["."], ["("]) or not (size or self._is_word(token.text)):
                continue
            made = self._text(token.text, digits)
            if made is not None:
                pieces += text[end : token.start], made
                end = last.end
        return "".join([*pieces, text[end:]])


def _brackets(after: Sequence[str]) -> tuple[int, str | None]:
    """How many tokens behind a function's name are its brackets, and the digits within them."""
    if tuple(after[:2]) == ("(", ")"):
        return 2, None
    if len(after) == 3 and (after[0], after[2]) == ("(", ")") and after[1] in _DIGITS:
        return 3, after[1]
    return 0, None


def _is_same(one: object, other: object) -> bool:
    return one is other


def _sent_expression(expression: Any, rewrite: Callable[[Any], None]) -> Any:
    """An expression of Spark Connect whose message is rewritten before it is sent."""
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
