"""Versions of tables and their changes as tables of Spark's analyzer.

By the options of a reader and by the table functions for changes; names come from the catalog
(`catalog.py`). The rows of all of them are the frames of `read`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.secrets import Options
from optimist.core.statements.missing_tables import as_missing_name, as_no_delta_table
from optimist.spark.commands.catalog.names import CatalogTable, table_path
from optimist.spark.commands.reading.change_feed import OptionValue
from optimist.spark.commands.reading.read import TableVersion, open_rows, read
from optimist.spark.drop_in.classic.opened_table import OpenedTable
from optimist.spark.drop_in.shared.options import only_path, read_options, schema_given
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES
from optimist.spark.session.conf import open_log
from optimist.spark.session.jvm import analyzed_plan, text_map
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["changes", "path_name", "read_format", "version_table"]

_MICROS = "micros:"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def path_name(path: str) -> str:
    """Return the name of the table at a path, as SQL writes it."""
    return f"delta.{quoted(path)}"


def version_table(
    spark: SparkSession, version: TableVersion, name: str, entry: CatalogTable | None = None
) -> Any:
    """Return a version for Spark's analyzer, a Java `DeltaTable`.

    Partitions that a path names are such a version, too, so that their frames follow the table.
    """
    table = OpenedTable(spark, version.log, name, version=version, entry=entry)
    return table.java(to_spark_schema(version.snapshot.schema))


def read_format(spark: SparkSession, options: Any, given_schema: Any) -> Any:
    """Return the table that a reader of the format names, a Java `DeltaTable`.

    Options that concern neither the version nor the file system are ignored, as Delta does.

    Args:
        spark: The session.
        options: A Java map, in the user's spelling.
        given_schema: The schema that the user gave, a Java object; else None.

    Raises:
        UsageError: There is no path, or more than one, or a schema is given.
    """
    given = text_map(spark, options)
    if given_schema is not None:
        raise schema_given()
    chosen = read_options(given)
    path = only_path(_paths(given))
    if all(key.startswith(FILESYSTEM_PREFIXES) for key in chosen):
        found = open_rows(spark, path, filesystem=Options(chosen))
        return version_table(spark, found, path_name(path))
    return _table_of_frames(spark, path_name(path), path, lambda: read(spark, path, **chosen))


def changes(spark: SparkSession, function: str, arguments: Any) -> Any:
    """Return the plan of `table_changes(name, ...)` or `table_changes_by_path(path, ...)`.

    Args:
        spark: The session.
        function: Which of the two.
        arguments: A Java array: numbers are versions, text is a time.

    Raises:
        UsageError: There are fewer arguments than two or more than three, or one is no constant.
    """
    values = list(arguments)
    is_constant = all(isinstance(value, str | int) for value in values)
    if not 2 <= len(values) <= 3 or not is_constant or not isinstance(values[0], str):
        raise UsageError(
            f"The function {function} takes a table, a start and, if wanted, an end; start and end "
            "are version numbers or timestamps, and all are constants. Nothing was read.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=function,
        )
    path = values[0] if function.endswith("_by_path") else table_path(spark, values[0])
    bounds: dict[str, Any] = {}
    for side, value in zip(("starting", "ending"), values[1:], strict=False):
        bounds[f"{side}{'Version' if isinstance(value, int) else 'Timestamp'}"] = _bound(value)
    by_path = function.endswith("_by_path")
    with as_no_delta_table(path) if by_path else as_missing_name(values[0]):
        return analyzed_plan(read(spark, path, readChangeFeed=True, **bounds))


def _table_of_frames(
    spark: SparkSession, name: str, path: str, make: Callable[[], DataFrame]
) -> Any:
    """Make a table whose rows are frames, the first of which tells the columns."""
    first = [make()]
    schema = first[0].schema
    table = OpenedTable(
        spark, open_log(spark, path), name, rows=lambda: first.pop() if first else make()
    )
    return table.java(schema)


def _bound(value: str | int) -> OptionValue:
    if isinstance(value, str) and value.startswith(_MICROS):
        return _EPOCH + dt.timedelta(microseconds=int(value.removeprefix(_MICROS)))
    return value


def _paths(options: Mapping[str, str]) -> list[str]:
    """Return the paths that a reader was given, as such or as a list."""
    by_folded = {key.lower(): value for key, value in options.items()}
    paths = json.loads(by_folded.get("paths", "[]"))
    return [*paths, by_folded["path"]] if "path" in by_folded else paths
