"""Predicates of Spark's connector API as ours, for scans on PySpark 4.0 (spec 9.5).

Later versions give scans Catalyst's own expressions. The connector's predicates have no casts and
no patterns, but the same constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from optimist.core.predicates.translation import Operation, Operator, Translation
from optimist.core.predicates.tree import Column, Literal, Opaque
from optimist.core.schema.types import StructType
from optimist.spark.conditions.catalyst_expressions import constant_of, kind_of

__all__ = ["ConnectorPredicates"]

_OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        **{name: name for name in ("AND", "OR", "NOT", "=", "<=>", "<", "<=", ">", ">=", "IN")},
        "IS_NULL": "IS NULL",
        "IS_NOT_NULL": "IS NOT NULL",
        "STARTS_WITH": "STARTS WITH",
        "ENDS_WITH": "ENDS WITH",
        "CONTAINS": "CONTAINS",
    }
)
_PREDICATES = ("Predicate", "And", "Or", "Not")


@dataclass(frozen=True, slots=True)
class ConnectorPredicates(Translation[Any]):
    """A translation of predicates over the columns of one table.

    Attributes:
        schema: The table's schema.
        named: Returns the table's names for a path; see `CatalystPredicates`.
        unknown: Makes the placeholder for a predicate that we can't translate.
    """

    schema: StructType
    named: Callable[[tuple[str, ...], StructType], tuple[str, ...] | None]
    unknown: Callable[[Any], Opaque]

    def operation(self, term: Any) -> Operation[Any] | None:
        """See `Translation.operation`."""
        operator = _OPERATORS.get(str(term.name())) if kind_of(term) in _PREDICATES else None
        return None if operator is None else (operator, _to_list(term.children()))

    def column(self, term: Any) -> Column | None:
        """See `Translation.column`."""
        if kind_of(term) != "FieldReference":
            return None
        path = self.named(tuple(map(str, _to_list(term.fieldNames()))), self.schema)
        return None if path is None else Column(path)

    def literal(self, term: Any) -> Literal | None:
        """See `Translation.literal`."""
        return constant_of(term) if kind_of(term) == "LiteralValue" else None

    def opaque(self, term: Any) -> Opaque:
        """See `Translation.opaque`."""
        return self.unknown(term)


def _to_list(array: Any) -> Sequence[Any]:
    return list(array)
