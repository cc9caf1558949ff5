"""Data filters of Spark as predicates of ours, for skipping files by statistics (spec 9.5).

What Spark itself can translate to `sources.Filter` is read from that: its texts leave out casts,
its trees do not. What it can't translate is looked at as Catalyst has it: comparisons of casts,
patterns, and the connectives around them. Whatever is on neither list is no predicate, and skips
nothing; Spark filters the rows again anyway.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

from optimist.core.errors import UsageError
from optimist.core.predicates.casts import without_cast
from optimist.core.predicates.constants import session_zone
from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.text import like_parts
from optimist.core.predicates.tree import (
    FLIPPED,
    CastComparison,
    Column,
    ComparisonOp,
    Like,
    Literal,
    Predicate,
)
from optimist.core.schema.types import StructType
from optimist.spark.pushed_filters import COMPARISONS
from optimist.spark.scan.source_filters import MAX_IN_VALUES, SourceFilters
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["data_predicate"]

_STRATEGY = "org.apache.spark.sql.execution.datasources.DataSourceStrategy$"
_EPOCH = dt.datetime(1970, 1, 1)
_INTEGERS = frozenset({"byte", "short", "integer", "long"})


def data_predicate(jvm: Jvm, filters: Any, schema: StructType) -> Predicate:
    """Those filters (a Scala `Seq[Expression]`) that are understood, conjoined; TRUE of none.

    Args:
        jvm: The session's handles.
        filters: What Spark gave; columns by their physical names.
        schema: The table's schema; the predicate has its names.
    """
    translation = _Catalyst(jvm, schema)
    found = [translation.predicate(expression) for expression in iterate(filters)]
    understood = [item for item in found if item is not None]
    return reduce(and_, understood) if understood else Predicate.TRUE


class _Catalyst:
    """Catalyst's expressions over the columns of one table; None for what is not understood."""

    def __init__(self, jvm: Jvm, schema: StructType) -> None:
        self._jvm = jvm
        self._strategy = jvm.module(_STRATEGY)
        self._schema = schema
        self._sources = SourceFilters(schema)

    def predicate(self, expression: Any) -> Predicate | None:
        """What an expression says; parts of a conjunction may be missing."""
        return self._read(expression, is_whole=False)

    def _read(self, expression: Any, *, is_whole: bool) -> Predicate | None:
        name = expression.getClass().getSimpleName()
        if name in ("And", "Or"):
            return self._connected(name, expression, is_whole=is_whole)
        if name == "Not":
            # Half of an And is enough to keep a file, but not of a negated one: all or nothing.
            child = self._read(expression.child(), is_whole=True)
            return None if child is None else ~child
        translated = self._strategy.translateFilter(expression, True)
        if translated.isDefined():
            return self._sources.predicate(translated.get())
        if name in COMPARISONS:
            return self._cast_comparison(COMPARISONS[name], expression)
        rule = _RULES.get(name)
        return None if rule is None else rule(self, expression)

    def _connected(self, name: str, expression: Any, *, is_whole: bool) -> Predicate | None:
        # A chain of a thousand ORs leans to one side: walk it, don't recurse.
        pending, found = [expression], []
        while pending:
            item = pending.pop()
            if item.getClass().getSimpleName() == name:
                pending += [item.right(), item.left()]
            else:
                found.append(self._read(item, is_whole=is_whole))
        known = [item for item in found if item is not None]
        if not known or (len(known) < len(found) and (is_whole or name == "Or")):
            return None
        return reduce(and_ if name == "And" else or_, known)

    def _column(self, expression: Any) -> Column | None:
        """A column or the field of a struct, by the name that Spark would push."""
        probe = self._jvm.catalyst.expressions.IsNotNull(expression)
        translated = self._strategy.translateFilter(probe, True)
        return self._sources.column(translated.get()) if translated.isDefined() else None

    def _cast_comparison(self, op: ComparisonOp, expression: Any) -> Predicate | None:
        left, right = expression.left(), expression.right()
        if _is_literal(left):
            left, right, op = right, left, FLIPPED[op]
        return self._compared(left, [_constant(right)], op) if _is_literal(right) else None

    def _cast_in(self, expression: Any) -> Predicate | None:
        items = list(iterate(expression.list()))
        if not all(_is_literal(item) for item in items):
            return None
        return self._compared(expression.value(), [_constant(item) for item in items])

    def _cast_in_set(self, expression: Any) -> Predicate | None:
        cast = expression.child()
        name = _type_name(cast.dataType())
        if expression.hset().size() > MAX_IN_VALUES:
            return None
        values = list(iterate(expression.hset()))
        return self._compared(cast, [_internal(value, name) for value in values])

    def _compared(
        self, cast: Any, values: Iterable[Literal | None], op: ComparisonOp = "="
    ) -> Predicate | None:
        """`CAST(column AS type) op value` for one of the values, as conditions on the column."""
        if cast.getClass().getSimpleName() != "Cast":
            return None
        column = self._column(cast.child())
        resolved = None if column is None else resolve_column(column.path, self._schema)
        zone = _zone_of(cast)
        if column is None or resolved is None or not resolved.has_plain_order or zone is None:
            return None
        target = _type_name(cast.dataType())
        found = [
            None
            if value is None
            else without_cast(CastComparison(op, column, target, value), resolved.data_type, zone)
            for value in values
        ]
        known = [item for item in found if item is not None]
        return reduce(or_, known) if known and len(known) == len(found) else None

    def _like(self, expression: Any) -> Predicate | None:
        column = self._column(expression.left())
        pattern = expression.right()
        if column is None or not _is_literal(pattern):
            return None
        constant = _constant(pattern)
        if constant is None or not isinstance(constant.value, str):
            return None
        parts = like_parts(constant.value, str(expression.escapeChar()))
        return None if parts is None else Like(column, parts)


_RULES: dict[str, Callable[[_Catalyst, Any], Predicate | None]] = {
    "In": _Catalyst._cast_in,
    "InSet": _Catalyst._cast_in_set,
    "Like": _Catalyst._like,
}


def _is_literal(expression: Any) -> bool:
    return bool(expression.getClass().getSimpleName() == "Literal")


def _type_name(data_type: Any) -> str:
    """Delta names types as Spark's JSON does."""
    return str(data_type.json()).strip('"')


def _zone_of(cast: Any) -> dt.tzinfo | None:
    """The zone by which times become dates; UTC where the cast needs none."""
    name = cast.timeZoneId()
    try:
        return session_zone(str(name.get())) if name.isDefined() else dt.timezone.utc
    except UsageError:
        return None


def _constant(literal: Any) -> Literal | None:
    return _internal(literal.value(), _type_name(literal.dataType()))


def _internal(value: Any, name: str) -> Literal | None:
    """A constant from Catalyst's own form of it; None for what is not on the list."""
    if value is None:
        return None
    if name in _INTEGERS:
        return Literal(int(value), "integer")
    if name in ("float", "double"):
        return Literal(float(value), "double")
    if name == "string":
        return Literal(str(value.toString()), "string")
    if name.startswith("decimal"):
        return Literal(Decimal(f"{Decimal(str(value.toString())):f}"), "decimal")
    try:
        if name == "date":
            return Literal((_EPOCH + dt.timedelta(days=value)).date(), "date")
        if name == "timestamp_ntz":
            return Literal(_EPOCH + dt.timedelta(microseconds=value), "timestamp_ntz")
        if name == "timestamp":
            moment = _EPOCH + dt.timedelta(microseconds=value)
            return Literal(moment.replace(tzinfo=dt.timezone.utc), "timestamp")
    except OverflowError:
        return None  # years outside 1..9999 exist in Spark, not in Python
    return None
