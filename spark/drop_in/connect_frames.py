"""The reader and the writers of a Spark Connect client, where a Delta table is meant.

Each method is given Spark's own as `original`, bound to the object, for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.sql import TableName, parse_command
from optimist.core.sql.statements import DescribeDetail
from optimist.spark.commands.read import read
from optimist.spark.commands.write import write
from optimist.spark.drop_in.connect_refusals import refused
from optimist.spark.drop_in.options import only_path, read_options, schema_given, write_options

__all__ = ["READER", "WRITER", "WRITER_TO", "path_of_name", "session_of"]

_Original = Callable[..., Any]
_NAMES = "Use format('delta') with the table's path, or delta.`path`."


def session_of(owner: Any) -> SparkSession:
    """The session of a reader or a writer."""
    session: SparkSession = owner._client if hasattr(owner, "_client") else owner._spark
    return session


def path_of_name(name: object) -> str | None:
    """The path in a name such as ``delta.`/p` ``; None for other names."""
    if not isinstance(name, str) or "delta" not in name.lower():
        return None
    try:
        command = parse_command(f"DESCRIBE DETAIL {name}")
    except UsageError:
        return None
    table = command.table if isinstance(command, DescribeDetail) else TableName(("",))
    return None if table.is_text else table.path


def _load(
    original: _Original,
    reader: Any,
    path: str | Sequence[str] | None = None,
    format: str | None = None,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    if not _is_delta(format or reader._format):
        frame: DataFrame = original(path, format, schema, **options)
        return frame
    if schema is not None or reader._schema:
        raise schema_given()
    given = {**reader._options, **options}
    return read(session_of(reader), only_path(_paths(path, given)), **read_options(given))


def _read_table(original: _Original, reader: Any, tableName: str) -> DataFrame:
    path = path_of_name(tableName)
    if path is None:
        frame: DataFrame = original(tableName)
        return frame
    return read(session_of(reader), path, **read_options(reader._options))


def _save(
    original: _Original,
    writer: Any,
    path: str | None = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: str | Sequence[str] | None = None,
    **options: Any,
) -> None:
    asked = writer._write
    if not _is_delta(format or asked.source):
        original(path, format, mode, partitionBy, **options)
        return
    if asked.bucket_cols or asked.sort_cols:
        raise refused("bucketBy and sortBy", "Leave them out: Delta tables have no buckets.")
    if asked.clustering_cols:
        raise refused("clusterBy of a writer", "Make the table with DeltaTable.create first.")
    given = {**asked.options, **options}
    columns = partitionBy or list(asked.partitioning_cols) or None
    known = write_options(given)
    chosen = mode or asked.mode or "error"
    write(_rows(writer), only_path(_paths(path, given)), mode=chosen, partitionBy=columns, **known)


def _save_as_table(
    original: _Original,
    writer: Any,
    name: str,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: str | Sequence[str] | None = None,
    **options: Any,
) -> None:
    path = path_of_name(name)
    if path is not None:
        _save(original, writer, path, "delta", mode, partitionBy, **options)
    elif _is_delta(format or writer._write.source):
        raise refused(f"saveAsTable to the name {name} with format delta", _NAMES)
    else:
        original(name, format, mode, partitionBy, **options)


def _insert_into(
    original: _Original, _writer: Any, tableName: str, overwrite: bool | None = None
) -> None:
    if path_of_name(tableName) is None:
        original(tableName, overwrite)
        return
    raise refused(
        f"insertInto the path {tableName}",
        "Use df.write.format('delta').mode('append').save(path), which goes by names.",
    )


def _write_to(mode: str) -> Callable[..., None]:
    """A last method of `writeTo`, as a mode of `write`."""

    def run(original: _Original, writer: Any, condition: Column | None = None) -> None:
        path = path_of_name(writer._table_name)
        asked = writer._write
        if path is None:
            if _is_delta(asked.provider):
                raise refused(f"writeTo the name {writer._table_name} with using delta", _NAMES)
            original(*([] if condition is None else [condition]))
            return
        if condition is not None:
            raise refused(
                "writeTo(...).overwrite(condition)",
                "Use df.write.format('delta').mode('overwrite').option('replaceWhere', ...).",
            )
        if mode in ("replace", "create_or_replace"):
            raise refused(f"writeTo(...).{mode}", "Use DeltaTable.replace(), then append.")
        known = write_options(asked.options)
        if mode == "overwrite":
            known["partitionOverwriteMode"] = "dynamic"
        write(_rows(writer), path, mode=mode, **{**known, **asked.table_properties})

    return run


def _is_delta(source: object) -> bool:
    return isinstance(source, str) and source.lower() == "delta"


def _rows(writer: Any) -> DataFrame:
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    frame: DataFrame = ConnectFrame(writer._df, writer._spark)
    return frame


def _paths(path: str | Sequence[str] | None, options: Mapping[str, Any]) -> list[str]:
    """The paths that are given, as such or by the option."""
    if path is None:
        return [str(value) for key, value in options.items() if key.lower() == "path"]
    return [path] if isinstance(path, str) else list(path)


READER: Mapping[str, Callable[..., Any]] = MappingProxyType({"load": _load, "table": _read_table})
WRITER: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"save": _save, "saveAsTable": _save_as_table, "insertInto": _insert_into}
)
WRITER_TO: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "create": _write_to("error"),
        "append": _write_to("append"),
        "overwritePartitions": _write_to("overwrite"),
        "overwrite": _write_to("overwrite"),
        "replace": _write_to("replace"),
        "createOrReplace": _write_to("create_or_replace"),
    }
)
