"""Values cast for their columns by `spark.sql.storeAssignmentPolicy`, as in Delta's UPDATE.

| policy | a value of another type |
|---|---|
| `ANSI`, the default | is cast, and is an error if it does not fit, also without `ansi.enabled` |
| `LEGACY` | is cast as Spark did before: what does not fit becomes null, or overflows |
| `STRICT` | is refused unless no value of its type can be lost |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import VOID, to_spark_type

__all__ = ["StoreAssignment", "can_up_cast"]

_POLICY = "spark.sql.storeAssignmentPolicy"
_PRECEDENCE = ("byte", "short", "integer", "long", "float", "double")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_WHOLE = tuple(map(PrimitiveType, _DIGITS))
_TIMES = {
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp_ntz", "timestamp"),
    ("timestamp", "timestamp_ntz"),
    ("timestamp", "long"),
    ("long", "timestamp"),
}


@dataclass(frozen=True, slots=True)
class StoreAssignment:
    """The casts by which a session stores values.

    Attributes:
        spark: The session.
        policy: `ansi`, `legacy` or `strict`.
    """

    spark: SparkSession
    policy: str = "ansi"

    @classmethod
    def of(cls, spark: SparkSession) -> StoreAssignment:
        """Return the casts by the session's conf."""
        return cls(spark, str(spark.conf.get(_POLICY, "ANSI")).strip().lower())

    def cast(self, value: Column, source: DataType | None, target: DataType, column: str) -> Column:
        """Cast a value to the column's type.

        Args:
            value: The value.
            source: Its type; None for a type that no table can hold, such as an interval.
            target: The column's type.
            column: The column's name, as SQL writes it, for errors.

        Raises:
            SchemaError: The policy is `strict` and values could be lost (kind
                `CANNOT_UP_CAST_DATATYPE`).
        """
        if source == target:
            return value
        if self.policy == "strict" and not can_up_cast(source, target):
            raise SchemaError(
                f"A value of type {shown(source or 'interval')} can't be stored in the column "
                f"{shown(column)} of type {shown(target)}: {_POLICY} is STRICT, and values could "
                "be lost. Nothing was written. Cast the value, or set the policy to ANSI.",
                kind="CANNOT_UP_CAST_DATATYPE",
                column=column,
                source=str(source),
                target=str(target),
            )
        cast = self._cast_with_mode(value, target, "legacy" if self.policy == "legacy" else "ansi")
        may_overflow = target in _WHOLE or isinstance(target, DecimalType)
        is_checked = may_overflow and self.policy != "legacy" and not can_up_cast(source, target)
        if not is_checked or is_connect(self.spark):
            return cast
        return Jvm.of(self.spark).checked_cast(cast, column)

    def _cast_with_mode(self, value: Column, target: DataType, mode: str) -> Column:
        """Make a cast that does not depend on `spark.sql.ansi.enabled`."""
        data_type = to_spark_type(target)
        if not is_connect(self.spark):
            return Jvm.of(self.spark).cast(value, data_type, mode)
        # PySpark has no cast with a mode, so one of its casts gets another mode.
        plain: Any = value.try_cast(data_type)
        expression = type(plain._expr)(plain._expr._expr, data_type, mode)
        column: Column = type(plain)(expression)
        return column


def can_up_cast(source: DataType | None, target: DataType) -> bool:
    """Check whether a cast between leaf types keeps every value, by Spark's rules."""
    is_leaf = not isinstance(source, (StructType, ArrayType, MapType))
    if source in (target, VOID) or (is_leaf and target == PrimitiveType("string")):
        return True
    if isinstance(target, DecimalType):
        digits = _as_decimal(source)
        return digits is not None and _holds_decimal(target, digits)
    if isinstance(source, DecimalType):
        limit = _DIGITS.get(str(target), 0)
        return source.scale == 0 and source.precision < limit
    names = (str(source), str(target))
    if all(name in _PRECEDENCE for name in names):
        return _PRECEDENCE.index(names[0]) <= _PRECEDENCE.index(names[1])
    return names in _TIMES


def _as_decimal(source: DataType | None) -> DecimalType | None:
    if isinstance(source, DecimalType):
        return source
    digits = _DIGITS.get(str(source))
    return None if digits is None else DecimalType(digits, 0)


def _holds_decimal(target: DecimalType, source: DecimalType) -> bool:
    whole = target.precision - target.scale >= source.precision - source.scale
    return whole and target.scale >= source.scale
