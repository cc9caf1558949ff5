"""The reader of a Spark Connect client for Delta tables, and the common part with writers.

Each method is given Spark's own as `original`, bound to the object, for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.requests.arguments import ensure_text
from optimist.core.sql import TableName, parts_of_name
from optimist.core.statements.missing_tables import as_missing_name
from optimist.spark.arrow.sent_scans import follow
from optimist.spark.commands.catalog.names import is_delta
from optimist.spark.commands.reading.read import ensure_table_at, read
from optimist.spark.drop_in.connect.queries import view_rows
from optimist.spark.drop_in.connect.statement_names import (
    OpenedView,
    StatementNames,
    no_versions,
)
from optimist.spark.drop_in.shared.options import only_path, read_options, schema_given

__all__ = ["READER", "Original", "asks_for_delta", "paths_of", "session_of"]

Original = Callable[..., Any]
_VERSIONS = {"versionasof", "timestampasof"}
_DEFAULT_FORMAT = "spark.sql.sources.default"


def session_of(owner: Any) -> SparkSession:
    """Return the session of a reader, a writer, a catalog or a `DeltaTable`."""
    # Of readers, writers and DeltaTable, writers of streams, and the catalog.
    names = ("_client", "_spark", "_session", "_sparkSession")
    session: SparkSession = next(getattr(owner, name) for name in names if hasattr(owner, name))
    return session


def asks_for_delta(owner: Any, source: str | None) -> bool:
    """Return whether a reader or writer is of Delta's format, perhaps by the conf."""
    return is_delta(source or session_of(owner).conf.get(_DEFAULT_FORMAT))


def paths_of(path: str | Sequence[str] | None, options: Mapping[str, Any]) -> list[str]:
    """Return the paths that are given, as such or by the option.

    Raises:
        ArgumentTypeError: One is no text, such as a path object, which Spark doesn't take either.
    """
    if path is None:
        return [str(value) for key, value in options.items() if key.lower() == "path"]
    given: list[Any] = [*path] if isinstance(path, list | tuple) else [path]
    for each in given:
        ensure_text(each, "path")
    return given


def _load(
    original: Original,
    reader: Any,
    path: str | Sequence[str] | None = None,
    format: str | None = None,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    if not asks_for_delta(reader, format or reader._format):
        frame: DataFrame = original(path, format, schema, **options)
        return frame
    if schema is not None or reader._schema:
        raise schema_given()
    given = {**reader._options, **options}
    rows = read(session_of(reader), only_path(paths_of(path, given)), **read_options(given))
    return follow(rows)


def _read_table(original: Original, reader: Any, tableName: str) -> DataFrame:
    spark, parts = session_of(reader), parts_of_name(tableName)
    names = StatementNames(spark)
    named = names.known(TableName(parts)) if parts else None
    view = names.view(parts) if parts and named is None else None
    if view is not None:
        return _view(reader, view, parts[-1])
    if named is None or named.path is None:
        frame: DataFrame = original(tableName)
        return frame
    rows = partial(read, spark, named.path, **read_options(reader._options))
    if named.location is None:
        return follow(rows())
    with as_missing_name(str(named)):
        ensure_table_at(spark, named.path)
        return follow(rows()).alias(named.parts[-1])


def _view(reader: Any, view: OpenedView, name: str) -> DataFrame:
    if {key.lower() for key in reader._options} & _VERSIONS:
        raise no_versions(view.view)
    return view_rows(session_of(reader), view).alias(name)


READER: Mapping[str, Callable[..., Any]] = MappingProxyType({"load": _load, "table": _read_table})
