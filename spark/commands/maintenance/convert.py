"""CONVERT TO DELTA with Spark, whose executors read the footers of many files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.data.parquet.parquet_footers import Footer, FooterWish
from optimist.core.maintenance.convert.convert import read_footers
from optimist.core.paths import parent_of
from optimist.core.predicates.text import quote_identifier
from optimist.core.sql import parse_command
from optimist.core.sql.statements import ConvertToDelta
from optimist.spark.commands.maintenance.executors import on_executors
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.session.job_scope import described
from optimist.spark.session.task_errors import portable_errors
from optimist.spark.spark_schema import sql_of_spark_type

__all__ = [
    "SparkFooters",
    "parsed_conversion",
]

_MANY_FILES = 20_000
_FILES_PER_TASK = 1000
_QUESTION = st.StructType().add("number", st.LongType()).add("path", st.StringType())
_ANSWER = st.StructType().add("number", st.LongType()).add("footer", st.StringType())
_ARROW_ANSWER = pa.schema([("number", pa.int64()), ("footer", pa.string())])


def parsed_conversion(
    identifier: str, partition_schema: str | st.StructType | None
) -> ConvertToDelta:
    """Return the statement for the arguments of `DeltaTable.convertToDelta`.

    Raises:
        UsageError: The identifier is not a name, or the text is not a list of columns (kind
            `PARSE_SYNTAX_ERROR`).
    """
    if isinstance(partition_schema, st.StructType):
        partition_schema = ", ".join(
            f"{quote_identifier(item.name)} {sql_of_spark_type(item.dataType)}"
            for item in partition_schema
        )
    clause = f" PARTITIONED BY ({partition_schema})" if partition_schema else ""
    command = parse_command(f"CONVERT TO DELTA {identifier}{clause}")
    if not isinstance(command, ConvertToDelta):
        raise TypeError(identifier)
    return command


@dataclass(frozen=True, slots=True)
class SparkFooters:
    """A reader of footers: few in the driver, many on the executors."""

    spark: SparkSession

    def __call__(self, paths: Sequence[str], wish: FooterWish) -> Iterable[Footer]:
        """Return the footers, in the order of the paths."""
        if len(paths) < _MANY_FILES:
            return read_footers(paths, wish)
        return on_executors(lambda: self._by_job(paths, wish), lambda: read_footers(paths, wish))

    def _by_job(self, paths: Sequence[str], wish: FooterWish) -> Iterable[Footer]:
        num_tasks = -(-len(paths) // _FILES_PER_TASK)
        table = pa.table({"number": range(len(paths)), "path": list(paths)})
        rows = local_frame(self.spark, table, _QUESTION).repartition(num_tasks)
        with described(self.spark, "CONVERT", parent_of(paths[0])):
            answers = rows.mapInArrow(_FooterTask(wish), _ANSWER).toArrow().sort_by("number")
        return [Footer(**json.loads(text)) for text in answers["footer"].to_pylist()]


@dataclass(frozen=True, slots=True)
class _FooterTask:
    """The function of each task, whose input holds files and their numbers."""

    wish: FooterWish

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                found = [
                    json.dumps({"schema": each.schema, "stats": each.stats})
                    for each in read_footers(batch.column(1).to_pylist(), self.wish)
                ]
                texts = pa.array(found, pa.string())
                yield pa.RecordBatch.from_arrays([batch.column(0), texts], schema=_ARROW_ANSWER)
