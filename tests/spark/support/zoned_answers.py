"""Records Spark's answers to the expressions of `zoned_times` in several zones.

Run it with the folders of tests/core/support and tests/spark/support on the path, to write
tests/core/predicates/zoned_answers.json.gz again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from odd_columns import as_texts
from spark_answers import Answer, write_record
from zoned_times import EXPRESSIONS, ZONED_ROWS, ZONES

__all__ = ["ZONED_RECORD", "zoned_answers"]

ZONED_RECORD = Path(__file__).parents[2] / "core" / "predicates" / "zoned_answers.json.gz"
_ZONE = "spark.sql.session.timeZone"


def zoned_answers(
    spark: SparkSession, texts: Sequence[str], zone: str, set_conf: Callable[[str, str], None]
) -> dict[str, Answer]:
    """Return the type and the answer for each row, in a zone."""
    set_conf(_ZONE, "UTC")  # in which the wall-clock times become a frame
    rows = spark.createDataFrame(ZONED_ROWS).coalesce(1)
    rows = rows.withColumn("w", rows["w"].cast("timestamp_ntz"))
    set_conf(_ZONE, zone)
    frame = rows.selectExpr(*(f"{text} AS `{at}`" for at, text in enumerate(texts)))
    types = [item.dataType.simpleString() for item in frame.schema.fields]
    table = frame.toArrow()
    return {
        text: (name, as_texts(column.combine_chunks()))
        for text, name, column in zip(texts, types, table.columns, strict=True)
    }


def _record() -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "true")
        .getOrCreate()
    )
    found = {zone: zoned_answers(spark, EXPRESSIONS, zone, spark.conf.set) for zone in ZONES}
    write_record(ZONED_RECORD, found)
    spark.stop()


if __name__ == "__main__":
    _record()
