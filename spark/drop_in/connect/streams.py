"""The readers and writers of streams of a Spark Connect client, where a Delta table is meant.

Each method is given Spark's own as `original`, bound to the object, for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from optimist.core.errors import UsageError
from optimist.core.requests.arguments import ensure_text
from optimist.core.requests.table_definition import CreateMode, TableDefinition, columns_of
from optimist.core.sql import TableName
from optimist.core.streams.options import STREAM_OPTIONS, StreamOptions
from optimist.spark.commands.catalog.named_tables import create_named
from optimist.spark.commands.catalog.names import is_delta
from optimist.spark.commands.reading.read import epoch_millis
from optimist.spark.drop_in.connect.frames import Original, asks_for_delta, paths_of, session_of
from optimist.spark.drop_in.connect.statement_names import is_free_name, place_of_name
from optimist.spark.drop_in.shared.options import only_path, schema_given, write_options
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.spark_schema import from_spark_schema
from optimist.spark.streams.connect_source import read_stream, streamed_paths
from optimist.spark.streams.sink import StreamSink
from optimist.spark.streams.source_table import open_source
from optimist.spark.streams.write_stream import batch_function

__all__ = ["STREAM_READER", "STREAM_WRITER"]

_CHECKPOINT = "checkpointLocation"
_TIME = "startingtimestamp"


def _load(
    original: Original,
    reader: Any,
    path: str | None = None,
    format: str | None = None,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    if not asks_for_delta(reader, format or reader._format):
        frame: DataFrame = original(path, format, schema, **options)
        return frame
    if schema is not None or reader._schema:
        raise schema_given()
    given = {key: str(value) for key, value in {**reader._options, **options}.items()}
    return _stream(reader, only_path(paths_of(path, given)), given)


def _table(original: Original, reader: Any, tableName: str) -> DataFrame:
    table = _table_in(reader, tableName)
    if table is None:
        frame: DataFrame = original(tableName)
        return frame
    return _stream(reader, str(table.path), dict(reader._options))


def _stream(reader: Any, path: str, given: Mapping[str, str]) -> DataFrame:
    spark = session_of(reader)
    files = {key: text for key, text in given.items() if key.startswith(FILESYSTEM_PREFIXES)}
    log = open_source(spark, path, files)
    parsed = StreamOptions.parse(given, partial(epoch_millis, spark))
    known = {name.lower() for name in STREAM_OPTIONS}
    sent = {key: text for key, text in given.items() if key.lower() in known - {_TIME}}
    if parsed.starting_ms is not None:
        sent["startingTimestamp"] = str(parsed.starting_ms)
    return read_stream(spark, log, sent, parsed)


def _start(
    original: Original,
    writer: Any,
    path: str | None = None,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: str | list[str] | None = None,
    *more: Any,
    **options: Any,
) -> Any:
    asked = writer._write_proto
    if asked.HasField("foreach_batch") or not asks_for_delta(writer, format or asked.format):
        return original(path, format, outputMode, partitionBy, *more, **options)
    return _begin(original, writer, path, outputMode, partitionBy, *more, **options)


def _begin(
    start: Original,
    writer: Any,
    path: str | None,
    outputMode: str | None = None,
    partitionBy: str | list[str] | None = None,
    *more: Any,
    needs_table: bool = False,
    **options: Any,
) -> Any:
    """Start a query into a Delta table, with Spark's own `start`.

    The table of a name is not made by a batch: if it is gone, so may be its name.
    """
    asked = writer._write_proto
    given = {**dict(asked.options), **options}
    checkpoint = next((v for k, v in given.items() if k.lower() == _CHECKPOINT.lower()), None)
    if checkpoint is None:
        raise UsageError(
            "A stream into a Delta table needs the option checkpointLocation on Spark Connect. "
            "Nothing was started.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=_CHECKPOINT,
        )
    columns = partitionBy or list(asked.partitioning_column_names)
    mode = outputMode or asked.output_mode or "append"
    sink = StreamSink.of(
        only_path(paths_of(path, given)),
        mode,
        write_options(given),
        partition_by=(columns,) if isinstance(columns, str) else tuple(columns),
        cluster_by=tuple(getattr(asked, "clustering_column_names", ())),
        needs_table=needs_table,
    )
    for name in ("format", "partitioning_column_names", "clustering_column_names"):
        if name in asked.DESCRIPTOR.fields_by_name:
            asked.ClearField(name)
    asked.options.pop("path", None)
    spark = session_of(writer)
    target = open_log(spark, sink.path, sink.request.filesystem_options).table_path
    reads_target = target in streamed_paths(writer._write_stream._child.plan(spark.client))
    writer.foreachBatch(batch_function(sink, str(checkpoint), reads_target=reads_target))
    return start(None, None, mode, None, *more, **options)


def _to_table(
    original: Original,
    writer: Any,
    tableName: str,
    format: str | None = None,
    *args: Any,
    **named: Any,
) -> Any:
    table, source = _table_in(writer, tableName), format or writer._write_proto.format
    if (
        table is None
        and asks_for_delta(writer, source)
        and is_free_name(session_of(writer), tableName)
    ):
        with original_errors():
            _make_table(writer, tableName, args[1:2] or (named.get("partitionBy"),))
        table = _table_in(writer, tableName)
    if table is None:
        return original(tableName, format, *args, **named)
    if source and not is_delta(source):
        raise _other_format(tableName, source)
    with original_errors():
        # With its function set, Spark's own method starts the query.
        needs_table = table.location is not None
        return _begin(writer.start, writer, table.path, *args, needs_table=needs_table, **named)


def _make_table(writer: Any, name: str, given: tuple[Any, ...]) -> None:
    """Make the table of the catalog that a stream is to write to, as Spark does."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    asked, session = writer._write_proto, session_of(writer)
    rows: DataFrame = ConnectFrame(writer._write_stream._child, session)  # type: ignore[arg-type]
    columns = given[0] or list(asked.partitioning_column_names)
    definition = TableDefinition(
        columns=columns_of(from_spark_schema(rows.schema).as_nullable()),
        partition_by=(columns,) if isinstance(columns, str) else tuple(columns),
        cluster_by=tuple(getattr(asked, "clustering_column_names", ())),
        mode=CreateMode.CREATE_IF_NOT_EXISTS,
    )
    create_named(session, name, definition, None)


def _other_format(name: str, source: str) -> AnalysisException:
    return AnalysisException(
        f"The input source({source}) is different from the table {name}'s data source "
        "provider(delta). Nothing was started. Leave the format out.",
        errorClass="_LEGACY_ERROR_TEMP_1192",
        messageParameters={"source": source, "tableName": name, "provider": "delta"},
    )


def _table_in(owner: Any, name: str) -> TableName | None:
    ensure_text(name, "tableName")
    return place_of_name(session_of(owner), name)


STREAM_READER: Mapping[str, Callable[..., Any]] = MappingProxyType({"load": _load, "table": _table})
STREAM_WRITER: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"start": _start, "toTable": _to_table}
)
