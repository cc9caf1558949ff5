"""What a key of Spark's conf answers, and which values it takes, by trying."""

from __future__ import annotations

from pyspark.sql import SparkSession

__all__ = ["answers"]

_TRIED = (
    "Xy",
    "true",
    "-1",
    "0",
    "1",
    "9",
    "10",
    "0.5",
    "1.5",
    "10kb",
    "5m",
    "parquet",
    "4" + "0" * 9,
)


def answers(spark: SparkSession, key: str) -> dict[str, str | None]:
    """The default of a key, as `""`, and what comes of setting each of some values."""
    told = {"": spark.conf.get(key)}
    for value in _TRIED:
        try:
            spark.conf.set(key, value)
            spark.conf.unset(key)
            told[value] = "taken"
        except Exception as error:  # noqa: BLE001 - any may come, and the caller compares it
            condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
            told[value] = condition.partition(".")[0]
    return told
