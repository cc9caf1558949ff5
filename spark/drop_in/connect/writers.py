"""The writers of a Spark Connect client, where a Delta table is meant.

Each method is given Spark's own as `original`, bound to the object, for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError, TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.requests.table_definition import CreateMode, TableDefinition
from optimist.core.sql import TableName, parts_of_name, path_in_name
from optimist.spark.commands.catalog.names import is_delta, named_table
from optimist.spark.commands.catalog.server_names import server_entry
from optimist.spark.commands.reading.read import open_target, open_version
from optimist.spark.commands.writing.clustered_write import write_clustered
from optimist.spark.commands.writing.create_as_select import create_as_select
from optimist.spark.commands.writing.inserted_rows import InsertedRows
from optimist.spark.commands.writing.inserted_write import write_inserted
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.conditions.connect_condition import sent_message
from optimist.spark.drop_in.connect.frames import (
    Original,
    asks_for_delta,
    paths_of,
    session_of,
)
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.drop_in.connect.statement_names import place_of_name, saved_table
from optimist.spark.drop_in.connect.tables import create_named_as_select
from optimist.spark.drop_in.shared.options import only_path, write_options
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log

__all__ = ["WRITER", "WRITER_TO"]

_COMMENT = "comment"


def _save(
    original: Original,
    writer: Any,
    path: str | None = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: str | Sequence[str] | None = None,
    **options: Any,
) -> None:
    if not asks_for_delta(writer, format or writer._write.source):
        original(path, format, mode, partitionBy, **options)
        return
    with original_errors():
        request = _request(writer, mode, partitionBy, options)
        where = only_path(paths_of(path, {**writer._write.options, **options}))
        write_clustered(_rows(writer), where, list(writer._write.clustering_cols), request)


def _save_as_table(
    original: Original,
    writer: Any,
    name: str,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: str | Sequence[str] | None = None,
    **options: Any,
) -> None:
    session, given = session_of(writer), {**writer._write.options, **options}
    named, source = saved_table(session, name), format or writer._write.source
    asks, wanted = asks_for_delta(writer, source), str(mode or writer._write.mode).lower()
    if named is not None and named.location is not None and source is not None and not asks:
        _ensure_not_changed(named, source, wanted)
        if wanted == "ignore":
            # The server of Spark 4.0 has an error where it has nothing to do.
            _ = _rows(writer).schema  # an error of the query is one here, too
        else:
            original(name, format, mode, partitionBy, **options)
        return
    if named is None and not asks:
        save = partial(original, name, format, partitionBy=partitionBy, **options)
        if wanted == "overwrite":
            _overwrite_other(save, writer, name, source, mode)
        else:
            save(mode=mode)
        return
    if named is None and wanted == "append":
        _ensure_of_delta(session, name)
    with original_errors():
        request = _request(writer, mode, partitionBy, options)
        if named is None or named.location is not None:
            _save_by_name(writer, name, named, request, paths_of(None, given))
            return
        where = only_path(paths_of(named.path, given))
        rows = _fitting(writer, where, name, request)
        write_clustered(rows, where, list(writer._write.clustering_cols), request)


def _overwrite_other(
    save: Callable[..., None], writer: Any, name: str, source: str | None, mode: str | None
) -> None:
    """Let the server overwrite a table of another format, or make it.

    To overwrite a table, the server drops it, also one of Delta that is made at this moment. So the
    table has to be new first. If the server refuses that, because the name or a place with files is
    taken, only what is known then is overwritten; any other error, the server tells again.

    Raises:
        UsageError: See `_ensure_not_changed`.
    """
    asked = writer._write.mode
    is_made = False
    try:
        with suppress(AnalysisException):
            save(mode="error")
            is_made = True
    finally:
        writer._write.mode = asked
    if is_made:
        return
    named = saved_table(session_of(writer), name)
    if named is not None:
        _ensure_not_changed(named, source, "overwrite")
    save(mode=mode)


def _ensure_not_changed(table: TableName | None, source: str | None, mode: str) -> None:
    """Refuse rows of another format for a Delta table, unless the server says that it exists.

    To overwrite the table, the server would drop it, even where the rows are its own.

    Raises:
        AnalysisException: The mode is append, and Spark refuses it, too.
        UsageError: The mode is overwrite (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    if mode == "overwrite":
        raise refused(
            f"saveAsTable of the format {shown(source)} over the Delta table {shown(str(table))}",
            'Write with format("delta"), or drop the table first.',
        )
    if mode == "append":
        raise _other_format(str(table), "delta", str(source))


def _ensure_of_delta(spark: SparkSession, name: str) -> None:
    """Refuse to append to a table of another format, or to a view of the catalog.

    The server is not asked to save rows as a table of Delta. It would make an entry, and drop it as
    it fails: with the files of another client that makes a table of the name at this moment.

    Raises:
        AnalysisException: As Spark refuses it.
    """
    entry = server_entry(spark, parts_of_name(name))
    if entry is None or len(entry.parts) == 1:
        return
    if entry.is_kept_view:
        raise AnalysisException(
            f"{entry.name} is a view, and not a table. Nothing was written. Choose another name.",
            errorClass="_LEGACY_ERROR_TEMP_1158",
            messageParameters={},
        )
    raise _other_format(entry.shown_name, str(entry.provider), "delta")


def _other_format(table: str, existing: str, asked: str) -> AnalysisException:
    return AnalysisException(
        f"The format of the existing table {table} is `{existing}`. It doesn't match the specified "
        f'format `{asked}`. Nothing was written. Write with format("{existing}").',
        errorClass="_LEGACY_ERROR_TEMP_1159",
        messageParameters={
            "tableName": table,
            "existingProvider": existing,
            "specifiedProvider": asked,
        },
    )


def _save_by_name(
    writer: Any,
    name: str,
    table: TableName | None,
    request: WriteRequest,
    paths: Sequence[str],
) -> None:
    """Write to a table of the catalog, or make it."""
    session, clustering = session_of(writer), tuple(writer._write.clustering_cols)
    path = None if table is None else table.path
    is_there = path is not None and open_log(session, path).table_exists()
    if path is not None and is_there and request.mode in ("append", "overwrite"):
        _, entry = named_table(session, str(table))
        rows = _fitting(writer, path, name, request)
        request = replace(request, needs_table=True)
        if request.is_overwrite and entry is not None:
            request = replace(request, saves_managed_table=entry.is_managed)
        write_clustered(rows, path, clustering, request)
        return
    modes = {"ignore": CreateMode.CREATE_IF_NOT_EXISTS, "overwrite": CreateMode.CREATE_OR_REPLACE}
    definition = TableDefinition(
        partition_by=request.partition_by or (),
        cluster_by=clustering,
        properties=request.properties,
        mode=modes.get(request.mode, CreateMode.CREATE),
    )
    made = replace(request, mode="overwrite" if request.is_overwrite else "error")
    create_named_as_select(
        _rows(writer), name, definition, made, only_path(paths) if paths else None
    )


def _request(
    writer: Any,
    mode: str | None,
    partition_by: str | Sequence[str] | None,
    options: Mapping[str, Any],
) -> WriteRequest:
    """Return the request of a writer, by its methods and the last one's arguments."""
    asked = writer._write
    if asked.bucket_cols or asked.sort_cols:
        raise refused("bucketBy and sortBy", "Leave them out: Delta tables have no buckets.")
    columns = partition_by or list(asked.partitioning_cols) or None
    given = write_options({**asked.options, **options})
    return WriteRequest.of(mode or asked.mode or "error", columns, given)


def _fitting(writer: Any, path: str, name: str, request: WriteRequest) -> DataFrame:
    """Return the rows for a named table, cast to its types.

    Raises:
        UsageError: The name means an older version; see `TableVersion.ensure_whole_table`.
    """
    rows, session = _rows(writer), session_of(writer)
    try:
        found = open_version(session, path)
    except TableNotFoundError:
        return rows
    found.ensure_whole_table("saveAsTable", name)
    if request.mode != "append":
        return rows
    return InsertedRows.of(session, found.log, name, request, found.snapshot).cast(rows)


def _insert_into(
    original: Original, writer: Any, tableName: str, overwrite: bool | None = None
) -> None:
    """Append rows, or replace others by them, with columns by their position."""
    named = place_of_name(session_of(writer), tableName)
    if named is None:
        named = _made_meanwhile(writer, tableName, partial(original, tableName, overwrite))
        if named is None:
            return
    path = str(named.path)
    replaces = writer._write.mode == "overwrite" if overwrite is None else overwrite
    with original_errors():
        _insert(writer, path, tableName, "overwrite" if replaces else "append")


def _insert(writer: Any, path: str, name: str, mode: str) -> None:
    asked, session = writer._write, session_of(writer)
    if asked.partitioning_cols:
        raise UsageError(
            "insertInto() can't be used together with partitionBy(): the table has its partition "
            "columns already. Nothing was written. Leave partitionBy() out.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="partitionBy",
        )
    request = WriteRequest.of(mode, None, write_options(asked.options))
    request = replace(request, needs_table=True)
    inserted = InsertedRows.of(session, open_target(session, path), name, request)
    write_inserted(inserted, inserted.by_position(_rows(writer)), path, request)


def _made_meanwhile(writer: Any, name: str, run_on_server: Callable[[], None]) -> TableName | None:
    """Let the server write, or return the Delta table that another client has made of the name.

    Raises:
        AnalysisException: The server refuses to write.
    """
    try:
        run_on_server()
    except AnalysisException:
        named = place_of_name(session_of(writer), name)
        if named is None or named.location is None:
            raise
        return named
    return None


def _changing(mode: str, **options: object) -> Callable[..., None]:
    """Return a last method of `writeTo` that needs a table."""

    def run(original: Original, writer: Any, condition: Column | str | None = None) -> None:
        named = place_of_name(session_of(writer), writer._table_name)
        is_path = named is not None and named.location is None
        if named is None or (is_path and not _may_be_delta(writer)):
            run_on_server = partial(original, *([] if condition is None else [condition]))
            named = _made_meanwhile(writer, writer._table_name, run_on_server)
            if named is None:
                return
        with original_errors():
            _change(writer, str(named.path), mode, condition, options)

    return run


def _change(
    writer: Any,
    path: str,
    mode: str,
    condition: Column | str | None,
    options: Mapping[str, object],
) -> None:
    asked = writer._write
    given = {**write_options(asked.options), **options}
    if getattr(asked, "with_schema_evolution", False):
        given["mergeSchema"] = True
    request = WriteRequest.of(mode, None, given)
    if condition is not None:
        column = sf.col(condition) if isinstance(condition, str) else condition
        request = request.replacing(column)
    session, name = session_of(writer), str(writer._table_name)
    request = replace(request, needs_table=True)
    inserted = InsertedRows.of(session, open_target(session, path), name, request)
    write_inserted(inserted, inserted.cast(_rows(writer)), path, request)


def _creating(mode: CreateMode) -> Callable[..., None]:
    """Return a last method of `writeTo` that makes or replaces a table with its rows."""

    def run(original: Original, writer: Any) -> None:
        path = path_in_name(writer._table_name)
        is_ours = _may_be_delta(writer) if path else asks_for_delta(writer, writer._write.provider)
        if not is_ours:
            original()
            return
        with original_errors():
            _create(writer, path, mode)

    return run


def _create(writer: Any, path: str | None, mode: CreateMode) -> None:
    asked, session = writer._write, session_of(writer)
    request = WriteRequest.of("error", None, write_options(asked.options))
    properties = {**asked.table_properties, **request.properties}
    definition = TableDefinition(
        partition_by=tuple(_partition_column(session, item) for item in _partitioning(asked)),
        cluster_by=tuple(getattr(asked, "clustering_columns", ())),
        comment=properties.pop(_COMMENT, None),
        properties=properties,
        mode=mode,
    )
    if path is None:
        create_named_as_select(_rows(writer), writer._table_name, definition, request)
    else:
        create_as_select(_rows(writer), open_target(session, path), definition, request)


def _may_be_delta(writer: Any) -> bool:
    """Return whether `writeTo` a path asks for no other format."""
    provider = writer._write.provider
    return provider is None or is_delta(provider)


def _partitioning(asked: Any) -> Sequence[Column]:
    return asked.partitioning_columns or ()


def _partition_column(session: Any, column: Column) -> str:
    """Return the name of a column that `partitionedBy` was given."""
    message = sent_message(session.range(0), column)
    name = message.unresolved_attribute.unparsed_identifier
    path = parse_column_path(name) if name else ()
    if len(path) != 1:
        raise SchemaError(
            f"Partitioning by expressions is not supported for Delta tables: {shown(column)}. "
            "Nothing was written. Partition by columns, which may be generated, or use clusterBy.",
            kind="DELTA_OPERATION_NOT_ALLOWED",
            operation="Partitioning by expressions",
        )
    return path[0]


def _rows(writer: Any) -> DataFrame:
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    frame: DataFrame = ConnectFrame(writer._df, writer._spark)
    return frame


WRITER: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"save": _save, "saveAsTable": _save_as_table, "insertInto": _insert_into}
)
WRITER_TO: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "create": _creating(CreateMode.CREATE),
        "replace": _creating(CreateMode.REPLACE),
        "createOrReplace": _creating(CreateMode.CREATE_OR_REPLACE),
        "append": _changing("append"),
        "overwrite": _changing("overwrite"),
        "overwritePartitions": _changing("overwrite", partitionOverwriteMode="dynamic"),
    }
)
