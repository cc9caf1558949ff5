"""New values of columns as Spark analysed them, as values that Python computes (spec 10.15).

It works on Catalyst's trees, never on a text. It takes only expressions that Python and Spark
surely compute alike: constants, columns, integers in ANSI arithmetic, `CASE`, `if`, `coalesce`,
`concat` of texts, and exact casts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from optimist.core.local.value_building import Sign, ValueBuilder
from optimist.core.predicates import Predicate
from optimist.core.predicates.functions.value import NULL, Value, typed_constant
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType, data_type_from_json
from optimist.spark.conditions.catalyst_expressions import CatalystPredicates, kind_of, type_name
from optimist.spark.rows.store_assignment import can_up_cast
from optimist.spark.session.jvm import iterate

__all__ = ["CatalystValues"]

_SIGNS: dict[str, Sign] = {"Add": "+", "Subtract": "-", "Multiply": "*"}


@dataclass(frozen=True, slots=True)
class CatalystValues:
    """A translation of expressions over some columns.

    Attributes:
        build: Builds values, and refuses those that it does not know.
        predicates: Translates the conditions in an expression, and its columns.
        folded: Brings a condition into the form that `predicates` understands.
    """

    build: ValueBuilder
    predicates: CatalystPredicates
    folded: Callable[[Any], Any]

    def value(self, expression: Any) -> Value:
        """Return the value of an expression.

        Raises:
            UsageError: Only Spark can compute it for certain (kind `OPTIMIST_NEEDS_SPARK`).
            SchemaError: A constant does not fit its type.
        """
        found = self._translate(expression)
        is_leaf = isinstance(found.data_type, (PrimitiveType, DecimalType))
        if (
            is_leaf
            and found is not NULL
            and str(found.data_type) != type_name(expression.dataType())
        ):
            raise self.build.refusal()
        return found

    def _translate(self, expression: Any) -> Value:
        kind = kind_of(expression)
        if kind == "Alias":
            return self._translate(expression.child())
        if kind == "Literal":
            return self._translate_constant(expression)
        if kind in ("AttributeReference", "GetStructField"):
            column = self.predicates.column(expression)
            if column is None:
                raise self.build.refusal("names a column that there is not")
            return self.build.column(column.path)
        if kind in _SIGNS and _is_ansi(expression):
            sides = (self.value(expression.left()), self.value(expression.right()))
            return self.build.arithmetic(_SIGNS[kind], *sides)
        if kind == "Coalesce":
            return self.build.coalesce(self._translate_all(expression.children()))
        if kind == "Concat":
            return self.build.concat(self._translate_all(expression.children()))
        return self._translate_choice_or_cast(kind, expression)

    def _translate_choice_or_cast(self, kind: str, expression: Any) -> Value:
        if kind == "If":
            branches = (self.value(expression.trueValue()), self.value(expression.falseValue()))
            return self.build.case([self._translate_condition(expression.predicate())], branches)
        if kind == "CaseWhen":
            pairs = list(iterate(expression.branches()))
            results = [self.value(pair._2()) for pair in pairs]
            default = expression.elseValue()
            results.append(self.value(default.get()) if default.isDefined() else NULL)
            return self.build.case(
                [self._translate_condition(pair._1()) for pair in pairs], results
            )
        if kind == "Cast":
            return self._translate_cast(expression)
        raise self.build.refusal()

    def _translate_all(self, expressions: Any) -> Sequence[Value]:
        return [self.value(item) for item in iterate(expressions)]

    def _translate_condition(self, expression: Any) -> Predicate:
        return self.predicates.predicate(self.folded(expression))

    def _translate_constant(self, expression: Any) -> Value:
        constant, data_type = self.predicates.literal(expression), _data_type(expression)
        if constant is None or data_type is None:
            raise self.build.refusal()
        return typed_constant(constant, data_type)

    def _translate_cast(self, expression: Any) -> Value:
        value, target = self.value(expression.child()), _data_type(expression)
        # Without ANSI, a value that does not fit becomes another value. Up-casts always fit.
        is_known = _is_ansi(expression) or can_up_cast(value.data_type, target or value.data_type)
        if target is None or not is_known:
            raise self.build.refusal()
        zone = expression.timeZoneId()
        build = replace(self.build, zone=str(zone.get())) if zone.isDefined() else self.build
        return build.cast(value, target)


def _is_ansi(expression: Any) -> bool:
    return str(expression.evalMode()) == "ANSI"


def _data_type(expression: Any) -> DataType | None:
    """Return the type of an expression, or None if our single values can't have it."""
    name = type_name(expression.dataType())
    if name == "void":
        return NULL.data_type
    try:
        found = data_type_from_json(name)
    except ValueError:
        return None
    return found if isinstance(found, (PrimitiveType, DecimalType)) else None
