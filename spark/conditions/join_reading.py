"""What is known of a condition that joins a table with other rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession

from optimist.core.predicates import Predicate

__all__ = ["JoinKey", "JoinReading"]


@dataclass(frozen=True, slots=True)
class JoinKey:
    """An equality between the two sides.

    Attributes:
        spark: The session.
        own: The side of the table's rows.
        other: The side of the other rows, bound to them; its values compare as those of `own` do.
        is_null_safe: It is `<=>`, for which null equals null.
    """

    spark: SparkSession
    own: Column
    other: Column
    is_null_safe: bool


@dataclass(frozen=True, slots=True)
class JoinReading:
    """What is understood of a condition; the rest may be true for any row.

    Attributes:
        own: What it says of the table's rows alone.
        keys: The equalities.
        other: What it says of the other rows alone, bound to them; None for nothing. Spark need not
            evaluate a key where it is not true, so nobody else may.
    """

    own: Predicate = Predicate.TRUE
    keys: tuple[JoinKey, ...] = ()
    other: Column | None = None
