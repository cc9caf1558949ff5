"""Spark Connect's columns as our predicates, read from the messages that clients send.

Only expressions on the lists below are understood. All others are opaque and match every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from optimist.core.expressions.functions import NON_DETERMINISTIC
from optimist.core.predicates.constants import date_of_days, time_of_micros
from optimist.core.predicates.translation import Operation, Operator, Translation
from optimist.core.predicates.tree import Column, Literal, Opaque, Predicate
from optimist.spark.conditions.condition_reading import Obstacle
from optimist.spark.conditions.connect_text import SentTexts

__all__ = [
    "NAMING_NO_OTHERS",
    "SentExpressions",
    "attribute_path",
    "messages",
    "own_expressions",
    "parts",
]

_OPERATORS: dict[str, Operator] = {
    "and": "AND",
    "or": "OR",
    "not": "NOT",
    "!": "NOT",
    "=": "=",
    "==": "=",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
    "in": "IN",
    "isnull": "IS NULL",
    "isnotnull": "IS NOT NULL",
    "startswith": "STARTS WITH",
    "endswith": "ENDS WITH",
    "contains": "CONTAINS",
    "like": "LIKE",
}
_INTEGERS = ("byte", "short", "integer", "long")
_NAME_PART = re.compile(r"(?:`((?:[^`]|``)*)`|([^.`]+))(?:\.|$)")
NAMING_NO_OTHERS = frozenset(
    {
        "literal",
        "unresolved_function",
        "alias",
        "cast",
        "lambda_function",
        "unresolved_named_lambda_variable",
        "unresolved_extract_value",
        "update_fields",
        "common_inline_user_defined_function",
        "call_function",
        "named_argument_expression",
    }
)
"""Kinds of expressions that read only columns that their inner messages name."""


@dataclass(frozen=True, slots=True)
class SentExpressions(Translation[Any]):
    """A translation of Spark Connect's `Expression` messages over one table's columns.

    Attributes:
        texts: Reads the texts inside messages by the table's columns.
        shown: The text that opaque parts show.
    """

    texts: SentTexts
    shown: str

    def obstacle(self, message: Any) -> Obstacle | None:
        """Find a part that no command accepts, as far as a client can see, or return None."""
        for item in messages(message):
            found = self._obstacle_of_one(item)
            if found is not None:
                return found
        return None

    def names(self, message: Any) -> frozenset[str]:
        """Return the columns that an expression reads, and perhaps more, in lower case."""
        found: set[str] = set()
        for item in messages(message):
            names = (
                self._names_of_one(item) if item.DESCRIPTOR.name == "Expression" else frozenset()
            )
            if names is None:
                return frozenset(field.name.lower() for field in self.texts.schema)
            found |= names
        return frozenset(found)

    def operation(self, term: Any) -> Operation[Any] | None:
        """See `Translation.operation`."""
        if term.WhichOneof("expr_type") != "unresolved_function":
            return None
        call = term.unresolved_function
        operator = _OPERATORS.get(call.function_name.lower())
        return None if operator is None else (operator, list(call.arguments))

    def column(self, term: Any) -> Column | None:
        """See `Translation.column`."""
        if term.WhichOneof("expr_type") != "unresolved_attribute":
            return None
        path = attribute_path(term.unresolved_attribute.unparsed_identifier)
        return self.texts.column(path) if path else None

    def literal(self, term: Any) -> Literal | None:
        """See `Translation.literal`."""
        return _read_constant(term.literal) if term.WhichOneof("expr_type") == "literal" else None

    def opaque(self, term: Any) -> Opaque:
        """See `Translation.opaque`."""
        return self.texts.opaque(self.shown, self.names(term))

    def applied(self, term: Any, operation: Operation[Any] | None) -> Predicate:
        """See `Translation.applied`.

        Texts inside messages are separate conditions.
        """
        if term.WhichOneof("expr_type") == "expression_string":
            return self.texts.predicate(term.expression_string.expression)
        return Translation.applied(self, term, operation)

    def _names_of_one(self, message: Any) -> frozenset[str] | None:
        """Return the columns that one expression itself names, or None if they are unknown.

        The server judges a name that the table does not have.
        """
        kind = message.WhichOneof("expr_type")
        if kind == "expression_string":
            return self.texts.names(message.expression_string.expression)
        if kind == "unresolved_attribute":
            column = self.column(message)
            return None if column is None else frozenset({column.path[0].lower()})
        return frozenset() if kind in NAMING_NO_OTHERS else None

    def _obstacle_of_one(self, message: Any) -> Obstacle | None:
        name = message.DESCRIPTOR.name
        if name == "SubqueryExpression":
            return "subquery"
        if name in ("UnresolvedStar", "UnresolvedRegex"):
            return "star"
        if name == "ExpressionString":
            return self.texts.obstacle(message.expression)
        is_random = (
            name in ("UnresolvedFunction", "CallFunction")
            and message.function_name.lower() in NON_DETERMINISTIC
        ) or (name == "CommonInlineUserDefinedFunction" and not message.deterministic)
        return "non-deterministic" if is_random else None


def messages(message: Any) -> Iterator[Any]:
    """Yield a protobuf message and all messages in it."""
    yield message
    for item in parts(message):
        yield from messages(item)


def parts(message: Any) -> Iterator[Any]:
    """Yield the messages directly inside a protobuf message."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            yield from (value,) if hasattr(value, "ListFields") else _inner_messages(value)


def own_expressions(message: Any) -> Iterator[Any]:
    """Yield the expressions directly below a message, not those of other relations."""
    for item in parts(message):
        if item.DESCRIPTOR.name == "Expression":
            yield item
        elif item.DESCRIPTOR.name != "Relation":
            yield from own_expressions(item)


def _inner_messages(value: Any) -> list[Any]:
    listed = list(value.values()) if hasattr(value, "values") else list(value)
    return [item for item in listed if hasattr(item, "ListFields")]


def attribute_path(text: str) -> tuple[str, ...]:
    """Split the names in an attribute as Spark does: at dots, except inside back-ticks."""
    parts = [quoted.replace("``", "`") or plain for quoted, plain in _NAME_PART.findall(text)]
    return tuple(parts)


def _read_constant(literal: Any) -> Literal | None:
    """Return a constant by its type, or None if the type is not on the list."""
    kind = literal.WhichOneof("literal_type")
    if kind in _INTEGERS:
        return Literal(getattr(literal, kind), "integer")
    if kind in ("boolean", "string"):
        return Literal(getattr(literal, kind), kind)
    if kind == "decimal":
        return Literal(Decimal(literal.decimal.value), "decimal")
    if kind == "date":
        return date_of_days(literal.date)
    if kind in ("timestamp", "timestamp_ntz"):
        return time_of_micros(getattr(literal, kind), kind)
    return None
