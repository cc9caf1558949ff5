"""Answers to Spark's aggregates from the log alone (docs/skipping.md, spec 9.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_args

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.options.engine import EngineOptions
from optimist.core.schema.types import StructType
from optimist.core.skipping.aggregates import Function, Wanted, aggregated
from optimist.spark.native.index import index_of_key
from optimist.spark.session.conf import engine_options, is_on
from optimist.spark.session.jvm import Jvm, analyzed_plan, frame_of_rows
from optimist.spark.spark_schema import to_spark_type

__all__ = ["answer_from_log"]

_LEAVING_ROWS_OUT = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
"""Confs with which Spark counts only the rows of the files that it can read."""


def answer_from_log(jvm: Jvm, scans: Any, functions: str) -> Any:
    """Return the plan of the rows that an aggregate gives, or None if files must be read.

    Args:
        jvm: The session's handles.
        scans: What `java/CountedFiles.java` has found below the aggregate, a Java list.
        functions: A `Function` for each column of the answer.
    """
    if not _may_answer(jvm.spark):
        return None
    parts, wanted = [], []
    for key, filters, names in scans:
        index = index_of_key(key)
        if index is None:
            return None
        each = _wanted(functions.split(), names.split("\0"), index.schema)
        files = index.counted_files(filters, each)
        if files is None:
            return None
        parts.append(files)
        wanted.append(each)
    found = aggregated(parts, wanted)
    if found is None:
        return None
    schema = st.StructType(
        [
            st.StructField(name, _spark_type(each, parts[0].statistics.schema))
            for name, each in zip(found.column_names, wanted[0], strict=True)
        ]
    )
    return analyzed_plan(frame_of_rows(jvm, found, schema))


def _may_answer(spark: SparkSession) -> bool:
    """Check the conf of the query's session, which may not be that of the frame below it."""
    if any(is_on(spark, key) for key in _LEAVING_ROWS_OUT):
        return False
    return EngineOptions.from_options(engine_options(spark)).answers_from_log


def _wanted(
    functions: Sequence[str], stored_names: Sequence[str], schema: StructType
) -> list[Wanted]:
    """Return the columns of the answer, by the table's names for the names in its files."""
    known = {field.physical_name: field.name for field in schema}
    return [
        Wanted(cast(Function, function), known.get(name, ""))
        for function, name in zip(functions, stored_names, strict=True)
        if function in get_args(Function)
    ]


def _spark_type(wanted: Wanted, schema: StructType) -> st.DataType:
    field = schema.find(wanted.column)
    if wanted.function in ("rows", "count") or field is None:
        return st.LongType()
    return to_spark_type(field.data_type)
