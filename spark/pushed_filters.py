"""What both kinds of filters that Spark pushes have in common: names of operators, constants."""

from __future__ import annotations

import math
from decimal import Decimal

from optimist.core.predicates.tree import ComparisonOp, Literal

__all__ = ["COMPARISONS", "plain_literal"]

COMPARISONS: dict[str, ComparisonOp] = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


def plain_literal(value: object) -> Literal | None:
    """A number, text or truth value as a constant; None for whatever else, NaN and infinity too."""
    if isinstance(value, bool):
        return Literal(value, "boolean")
    if isinstance(value, int):
        return Literal(value, "integer")
    if isinstance(value, float):
        return Literal(value, "double") if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return Literal(value, "decimal") if value.is_finite() else None
    return Literal(value, "string") if isinstance(value, str) else None
