"""Records Spark's answers to the expressions of `function_cases` over the odd columns.

Run it with the folders of tests/core/support and tests/spark/support on the path, to write
tests/core/predicates/spark_answers.json.gz again. It asks only for new expressions, or for all of
them with the argument `all`.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.classic.column import Column as ClassicColumn

from function_cases import SCHEMA, expressions
from odd_columns import ERROR, ODD_ROWS, as_texts
from optimist.core.errors import UsageError
from optimist.core.local.values import parse_value

__all__ = ["CONFS", "Answer", "spark_answers", "write_record"]

CONFS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.subexpressionElimination.enabled": "false",  # it would leave a TryEval
}
RECORD = Path(__file__).parents[2] / "core" / "predicates" / "spark_answers.json.gz"
_TOGETHER = 100
Answer = tuple[str, list[str | bool | None]]


def spark_answers(spark: SparkSession, texts: Sequence[str]) -> dict[str, Answer]:
    """Return the type and the answer for each row, for expressions that Spark resolves.

    An error in a row is `ERROR`; `CONFS` are set.
    """
    rows = spark.createDataFrame(ODD_ROWS).coalesce(1)
    for name in ("w1", "w2"):  # which Spark takes for times with a zone
        rows = rows.withColumn(name, rows[name].cast("timestamp_ntz"))
    found: dict[str, Answer] = {}
    for start in range(0, len(texts), _TOGETHER):
        found.update(_answers(spark, rows, texts[start : start + _TOGETHER]))
    return found


def _answers(spark: SparkSession, rows: DataFrame, texts: Sequence[str]) -> dict[str, Answer]:
    try:
        frame = rows.select(*(_caught(spark, text).alias(str(i)) for i, text in enumerate(texts)))
        types = [item.dataType["v"].dataType.simpleString() for item in frame.schema.fields]
    except PySparkException:
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return {**_answers(spark, rows, texts[:half]), **_answers(spark, rows, texts[half:])}
    table = frame.toArrow()
    return {
        text: (name, _in_row_order(column.combine_chunks()))
        for text, name, column in zip(texts, types, table.columns, strict=True)
    }


def _caught(spark: SparkSession, text: str) -> Column:
    """Return a struct of the value; it is null if the expression fails."""
    jvm = spark._jvm
    made = jvm.org.apache.spark.sql.classic.ExpressionUtils
    expression = made.expression(sf.expr(f"named_struct('v', {text})")._jc)
    caught = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(expression)
    return ClassicColumn(made.column(caught))


def _in_row_order(structs: object) -> list[str | bool | None]:
    values = as_texts(structs.field(0))  # type: ignore[attr-defined]
    valid = structs.is_valid().to_pylist()  # type: ignore[attr-defined]
    return [value if is_there else ERROR for value, is_there in zip(values, valid, strict=True)]


def _known() -> Iterator[str]:
    for text in dict.fromkeys(expressions()):
        try:
            parse_value(text, SCHEMA)
        except UsageError:
            continue
        yield text


def write_record(path: Path, found: Mapping[str, Any]) -> None:
    """Write answers as JSON, an answer per line, packed to the same bytes each time."""
    text = json.dumps(found, separators=(",\n", ":"))
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as file:
        file.write(text.encode())


def _record() -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for key, value in CONFS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    texts = list(_known())
    before = {} if "all" in sys.argv else json.loads(gzip.decompress(RECORD.read_bytes()))
    asked = spark_answers(spark, [text for text in texts if text not in before])
    found = {text: {**before, **asked}[text] for text in texts if text in before or text in asked}
    write_record(RECORD, found)
    spark.stop()


if __name__ == "__main__":
    _record()
