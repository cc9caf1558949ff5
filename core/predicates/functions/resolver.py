"""Expressions of Spark's SQL, resolved to typed values by the table of functions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from optimist.core.errors.foreign_text import shown
from optimist.core.expressions.tree import (
    ARITHMETIC,
    Call,
    Case,
    Cast,
    Expression,
    Field,
    Interval,
    Name,
    Number,
    Operation,
    Subscript,
    Text,
    Unit,
)
from optimist.core.predicates.functions import choices
from optimist.core.predicates.functions.casts import cast_value
from optimist.core.predicates.functions.collections import field_of, struct_of
from optimist.core.predicates.functions.failures import UnknownMeaningError
from optimist.core.predicates.functions.moved_times import moved_by_interval
from optimist.core.predicates.functions.table import call
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGERS,
    NULL,
    STRING,
    Arguments,
    Value,
    constant_of,
    integer_of,
    typed_constant,
)
from optimist.core.predicates.parsing import (
    NAMES_OF_THE_MOMENT,
    literal_of,
    type_name_of,
)
from optimist.core.predicates.tree import Literal
from optimist.core.schema.types import DataType, PrimitiveType, data_type_from_json

__all__ = ["Resolver"]

_TYPED_INTEGERS = ("byte", "short", "long")
_CASTS = {
    **dict.fromkeys(("date", "to_date"), DATE),
    "string": STRING,
    "boolean": BOOLEAN,
    **dict.fromkeys(("timestamp", "to_timestamp"), PrimitiveType("timestamp")),
    "double": DOUBLE,
    "float": PrimitiveType("float"),
    **dict(
        zip(("tinyint", "smallint", "int", "bigint"), map(PrimitiveType, INTEGERS), strict=True)
    ),
}
"""The functions that are casts."""
_PARTS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "weekofyear",
    "DAY": "day",
    "DOY": "dayofyear",
    "HOUR": "hour",
    "MINUTE": "minute",
}
"""The functions that `extract` and `date_part` stand for."""
_OF_DAYS = ("date", "timestamp", "timestamp_ntz")
_TRIMS = {
    "BOTH": "btrim",
    "LEADING": "trim(LEADING ...)",
    "TRAILING": "trim(TRAILING ...)",
}
_TRUTHS = {"IS TRUE": True, "IS FALSE": False}


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves the parts of one expression.

    Attributes:
        text: The expression, for errors.
        column: Returns a column or a field of a struct, or None if there is none.
        condition: Returns the value of a condition that predicates know, or None.
        zone: The time zone of the session.
    """

    text: str
    column: Callable[[tuple[str, ...]], Value | None]
    condition: Callable[[Expression], Value | None]
    zone: str = "UTC"

    def value(self, node: Expression) -> Value:
        """Return the value of an expression.

        Raises:
            UnknownMeaningError: A part of it can be computed only by Spark.
        """
        typed = _typed_integer(node)
        if typed is not None:
            return typed
        if isinstance(node, Cast):
            return self._cast(node)
        constant = literal_of(node)
        if constant is not None:
            found = constant_of(constant, self.zone)
            return replace(found, is_written=True) if isinstance(node, Number) else found
        return self._column(node) if isinstance(node, Name) else self._compute(node)

    def _column(self, name: Name) -> Value:
        found = self.column(name.path)  # before the function of that name, as in Spark
        if found is not None:
            return found
        if name.is_call:
            raise UnknownMeaningError("calls a function that only Spark has")
        raise UnknownMeaningError("names a column that there is not")

    def _compute(self, node: Expression) -> Value:
        if isinstance(node, Operation):
            known = None if node.operator in ARITHMETIC else self.condition(node)
            return known or self._operation(node)
        if isinstance(node, Case):
            return self._case(node)
        if isinstance(node, Subscript):
            return self._apply("[]", [self.value(node.base), self.value(node.index)])
        if isinstance(node, Field):
            return self._field(self.value(node.base), node.name)
        if isinstance(node, Call) and node.is_plain and not node.qualifiers:
            known = self.condition(node)
            return known or self._call(node.name, node.arguments)
        raise UnknownMeaningError("can be computed row by row only by Spark")

    def _field(self, base: Value, name: str) -> Value:
        found = field_of(base, name)
        if found is None:
            raise UnknownMeaningError(f"takes {shown(name)} out of a value, as only Spark can do")
        return found

    def _operation(self, node: Operation) -> Value:
        operator, operands = node.operator, node.operands
        if operator == "BETWEEN":
            value, low, high = map(self.value, operands)
            sides = [self._apply(">=", [value, low]), self._apply("<=", [value, high])]
            return self._apply("AND", sides)
        if operator == "IS DISTINCT FROM":
            return self._apply("NOT", [self._apply("<=>", self._all(operands))])
        intervals = [item for item in operands if isinstance(item, Interval)]
        if intervals and len(operands) == 2 and operator in ("+", "-"):
            return self._moved(operator, operands, intervals[0])
        if operator in _TRUTHS:
            truth = constant_of(Literal(_TRUTHS[operator], "boolean"))
            return self._apply("<=>", [self.value(operands[0]), truth])
        return self._apply(operator, self._all(operands))

    def _moved(self, operator: str, operands: Sequence[Expression], interval: Interval) -> Value:
        """Return a date or a time plus or minus an interval, which stands behind a minus."""
        others = [item for item in operands if item is not interval]
        found: Value | None = None
        if len(others) == 1 and (operator == "+" or operands[1] is interval):
            given = Arguments([self.value(others[0])], self.text, self.zone)
            found = moved_by_interval(1 if operator == "+" else -1, interval, given)
        if found is None:
            raise UnknownMeaningError("moves a value by an interval, as only Spark can do")
        return found

    def _call(self, name: str, nodes: Sequence[Expression]) -> Value:
        if name == "if" and len(nodes) == 3:
            condition, *results = self._all(nodes)
            return self._chosen([condition], results)
        if any(isinstance(node, Unit) for node in nodes):
            return self._call_with_word(name, nodes)
        if name in ("date_part", "datepart") and len(nodes) == 2 and isinstance(nodes[0], Text):
            part = _PARTS.get(nodes[0].value.upper())
            if part is not None:
                return self._apply(part, [self.value(nodes[1])])
        if name == "struct" and all(isinstance(node, Name) for node in nodes):
            return self._struct([node.path[-1] for node in nodes if isinstance(node, Name)], nodes)
        target = _CASTS.get(name)
        if target is not None and len(nodes) == 1:
            return self._cast_to(self.value(nodes[0]), target)
        if name == "isnotnull":
            return self._apply("NOT", [self._apply("IS NULL", self._all(nodes))])
        return self._apply(name, self._all(nodes))

    def _struct(self, names: Sequence[str], nodes: Sequence[Expression]) -> Value:
        values = self._all(nodes)
        is_plain = all(value.is_plain for value in values)
        found = struct_of(names, Arguments(values, self.text, self.zone)) if is_plain else None
        if found is None:
            raise UnknownMeaningError("makes a struct of values, as only Spark can do")
        return found

    def _call_with_word(self, name: str, nodes: Sequence[Expression]) -> Value:
        """Return the value of `extract(YEAR FROM d)`, or of `trim(BOTH 'x' FROM s)`."""
        first, *others = nodes
        word = first.word if isinstance(first, Unit) else ""
        if name == "extract" and word in _PARTS:
            return self._apply(_PARTS[word], self._all(others))
        if name == "trim" and word in _TRIMS and others:
            *characters, text = self._all(others)
            return self._apply(_TRIMS[word], [text, *characters])
        raise UnknownMeaningError("can be computed row by row only by Spark")

    def _all(self, nodes: Sequence[Expression]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def _apply(self, name: str, values: Sequence[Value]) -> Value:
        found = call(name, Arguments(values, self.text, self.zone))
        if found is None:
            types = ", ".join(str(value.data_type) for value in values)
            raise UnknownMeaningError(
                f"has {shown(name)} of {shown(types)}, which only Spark can compute"
            )
        return replace(found, is_written=False) if found.is_written else found

    def _case(self, node: Case) -> Value:
        results = self._all(node.results)
        results.append(NULL if node.default is None else self.value(node.default))
        conditions = self._all(node.conditions)
        if node.value is not None:
            value = self.value(node.value)
            conditions = [self._apply("=", [value, item]) for item in conditions]
        return self._chosen(conditions, results)

    def _chosen(self, conditions: Sequence[Value], results: Sequence[Value]) -> Value:
        found = choices.chosen(conditions, Arguments(results, self.text, self.zone))
        if found is None:
            raise UnknownMeaningError("chooses among values of types that only Spark unites")
        is_plain = all(item.is_plain for item in results)
        return found if is_plain else replace(found, is_plain=False)

    def _cast(self, node: Cast) -> Value:
        name = type_name_of(node.target)
        word = node.value.value.strip().lower() if isinstance(node.value, Text) else ""
        if name is None or (word in NAMES_OF_THE_MOMENT and name in _OF_DAYS):
            raise UnknownMeaningError("casts to a type to which only Spark casts")
        target, literal = data_type_from_json(name), literal_of(node)
        if literal is None and isinstance(node.value, Text) and name.startswith("timestamp"):
            raise UnknownMeaningError("reads a time of a rare form, as only Spark can do")
        inner = self.value(node.value)
        if literal is not None and _is_of_type(literal, name):
            return typed_constant(literal, target)
        return self._cast_to(inner, target, is_try=node.is_try)

    def _cast_to(self, inner: Value, target: DataType, *, is_try: bool = False) -> Value:
        found = cast_value(Arguments([inner], self.text, self.zone), target, is_try=is_try)
        if found is None or not inner.is_plain:
            raise UnknownMeaningError(
                f"casts {shown(inner.data_type)} to {shown(target)}, which only Spark can do"
            )
        return replace(found, is_written=False) if found.is_written else found


def _is_of_type(literal: Literal, name: str) -> bool:
    if literal.kind == "integer":
        return name in INTEGERS
    is_zoned = not (literal.kind == "timestamp" and isinstance(literal.value, dt.datetime))
    return is_zoned and literal.kind == name.partition("(")[0]


def _typed_integer(node: Expression) -> Value | None:
    """Return the constant of `3L`, `2S` or `4Y`, possibly with signs before it."""
    if isinstance(node, Number) and node.kind in _TYPED_INTEGERS:
        found = typed_constant(Literal(int(node.text), "integer"), PrimitiveType(node.kind))
        return replace(found, is_written=True)
    sign = 1
    while isinstance(node, Operation) and node.operator in ("-x", "+x"):
        sign, node = -sign if node.operator == "-x" else sign, node.operands[0]
    if not isinstance(node, Number) or node.kind not in _TYPED_INTEGERS:
        return None
    return integer_of(sign * int(node.text), node.kind)
