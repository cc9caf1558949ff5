"""CONVERT TO DELTA with Spark: the footers of many files are read on the executors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.data.parquet.parquet_footers import Footer, FooterWish
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import ICEBERG, PARQUET, ConvertRequest
from optimist.core.maintenance.convert.convert import convert, read_footers
from optimist.core.paths import name_of, parent_of
from optimist.core.predicates.text import quote_identifier
from optimist.core.requests.table_definition import Column
from optimist.core.schema.types import StructType
from optimist.core.sql import parse_command
from optimist.core.sql.statements import ColumnType, ConvertToDelta, TableName
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.catalog.named_tables import ensure_names_known
from optimist.spark.commands.maintenance.executors import on_executors
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.task_errors import portable_errors
from optimist.spark.spark_schema import sql_of_spark_type

__all__ = [
    "ConvertedPath",
    "SparkFooters",
    "convert_directory",
    "convert_named",
    "converted_path",
    "parsed_conversion",
    "partition_columns_of",
    "path_of_files",
]

_MANY_FILES = 20_000
_FILES_PER_TASK = 1000
_QUESTION = st.StructType().add("number", st.LongType()).add("path", st.StringType())
_ANSWER = st.StructType().add("number", st.LongType()).add("footer", st.StringType())
_ARROW_ANSWER = pa.schema([("number", pa.int64()), ("footer", pa.string())])


@dataclass(frozen=True, slots=True)
class ConvertedPath:
    """What a statement converts that names a path.

    Attributes:
        path: The table's directory.
        source_format: See `ConvertRequest`.
        metadata_file: See `ConvertRequest`.
    """

    path: str
    source_format: str = PARQUET
    metadata_file: str | None = None

    def request(self, request: ConvertRequest) -> ConvertRequest:
        """The request for what is at the path."""
        return replace(request, source_format=self.source_format, metadata_file=self.metadata_file)


def convert_directory(
    spark: SparkSession, path: str, request: ConvertRequest
) -> CommitResult | None:
    """Convert the files at a path; see `core.maintenance.convert.convert`."""
    txn = open_log(spark, path).start_transaction()
    return convert(txn, request, SparkFooters(spark))


def convert_named(spark: SparkSession, command: ConvertToDelta) -> None:
    """Convert a table of the session's catalog, whose entry becomes that of a Delta table.

    Raises:
        UsageError: The session knows no Delta tables by name (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`).
    """
    name = str(command.table)
    ensure_names_known(spark, name)
    text = f"CONVERT TO DELTA {name}"
    if command.partitioned_by:
        columns = (
            f"{quote_identifier(each.name)} {each.type_text.sql}" for each in command.partitioned_by
        )
        text += f" PARTITIONED BY ({', '.join(columns)})"
    with original_errors():
        spark.sql(text)


def parsed_conversion(
    identifier: str, partition_schema: str | st.StructType | None
) -> ConvertToDelta:
    """The statement that `DeltaTable.convertToDelta` stands for.

    Raises:
        UsageError: The identifier is no name, or the text no list of columns (kind
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


def converted_path(table: TableName) -> ConvertedPath | None:
    """The path that a statement names, as ``parquet.`/p` ``; None for a name.

    For ``iceberg.`/p` `` it may also be that of a metadata file, which says what the table is.

    Raises:
        UsageError: It is a path of another format (kind `DELTA_CONVERT_NON_PARQUET_TABLE`).
    """
    if not _is_path(table):
        return None
    found = path_of_files(table)
    if found is not None:
        return found
    if table.parts[0].lower() != "delta":
        raise UsageError(
            "CONVERT TO DELTA only supports tables of parquet and iceberg, but you are trying to "
            f"convert a {shown(table.parts[0])} source: {shown(str(table))}. Nothing was written. "
            "Read it with its own format, and write the rows to a new table.",
            kind="DELTA_CONVERT_NON_PARQUET_TABLE",
            format=table.parts[0],
        )
    return ConvertedPath(table.parts[1])


def path_of_files(table: TableName) -> ConvertedPath | None:
    """The path of files that ``parquet.`/p` `` or ``iceberg.`/p` `` names; None for other names."""
    source_format, path = table.parts[0].lower(), table.parts[-1]
    if not _is_path(table) or source_format not in (PARQUET, ICEBERG):
        return None
    if source_format == PARQUET:
        return ConvertedPath(path)
    is_file = path.endswith((".metadata.json", ".metadata.json.gz"))
    directory = parent_of(parent_of(path)) if is_file else path
    return ConvertedPath(directory, ICEBERG, name_of(path) if is_file else None)


def _is_path(table: TableName) -> bool:
    return len(table.parts) == 2 and ("/" in table.parts[1] or ":" in table.parts[1])


def partition_columns_of(columns: Iterable[ColumnType]) -> StructType:
    """The partition columns that a statement names.

    Raises:
        SchemaError: A text is no type.
    """
    return StructType(
        tuple(
            Column(each.name, each.type_text.sql, each.is_nullable, each.comment).field()
            for each in columns
        )
    )


@dataclass(frozen=True, slots=True)
class SparkFooters:
    """Reads footers: few in the driver, many on the executors."""

    spark: SparkSession

    def __call__(self, paths: Sequence[str], wish: FooterWish) -> Iterable[Footer]:
        """The footers, in the order of the paths."""
        if len(paths) < _MANY_FILES:
            return read_footers(paths, wish)
        return on_executors(lambda: self._by_job(paths, wish), lambda: read_footers(paths, wish))

    def _by_job(self, paths: Sequence[str], wish: FooterWish) -> Iterable[Footer]:
        num_tasks = -(-len(paths) // _FILES_PER_TASK)
        table = pa.table({"number": range(len(paths)), "path": list(paths)})
        rows = local_frame(self.spark, table, _QUESTION).repartition(num_tasks)
        answers = rows.mapInArrow(_FooterTask(wish), _ANSWER).toArrow().sort_by("number")
        return [Footer(**json.loads(text)) for text in answers["footer"].to_pylist()]


@dataclass(frozen=True, slots=True)
class _FooterTask:
    """What each task runs: its input holds the files that it looks at, and their numbers."""

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
