"""Errors for a place without a table, with Delta's conditions and sentences.

Reads say that a path or a table does not exist; `DeltaTable` and the statements about a table say
that it is not one. Scripts check both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.session.conf import open_log

__all__ = [
    "as_missing_name",
    "as_no_delta_table",
    "as_no_table_of_that_name",
    "as_wrong_for",
    "open_existing",
]

_NO_TABLES: Mapping[str | None, str] = MappingProxyType(
    {
        "DELTA_TABLE_ONLY_OPERATION": "it is a view, or of another format or catalog",
        "SCHEMA_NOT_FOUND": "Spark's catalog has no such schema",
        "TABLE_OR_VIEW_NOT_FOUND": "Spark's catalog has no such name",
        "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY": "it is neither a path nor a name",
    }
)


def open_existing(
    spark: SparkSession, path: str, hadoop_conf: Mapping[str, str] | None = None
) -> DeltaLog:
    """The table at a path.

    Args:
        spark: The session.
        path: The table.
        hadoop_conf: Options for the file system.

    Raises:
        TableNotFoundError: There is none (kind `DELTA_MISSING_DELTA_TABLE`).
    """
    log = open_log(spark, path, hadoop_conf)
    with as_no_delta_table(path):
        log.snapshot()
    return log


@contextmanager
def as_no_delta_table(name: str) -> Iterator[None]:
    """Wrap what opens a table that a caller names.

    Raises:
        TableNotFoundError: There is none (kind `DELTA_MISSING_DELTA_TABLE`).
    """
    try:
        yield
    except TableNotFoundError as error:
        raise TableNotFoundError(
            f"{_marked(name)} is not a Delta table. {error.args[0]}",
            kind="DELTA_MISSING_DELTA_TABLE",
            **error.fields,
        ) from None


@contextmanager
def as_no_table_of_that_name(name: str) -> Iterator[None]:
    """Wrap the search for a name in Spark's catalog, as `as_no_delta_table`.

    Raises:
        TableNotFoundError: There is no such name, or it is one of something else (kind
            `DELTA_MISSING_DELTA_TABLE`).
    """
    try:
        yield
    except (AnalysisException, UsageError) as error:
        told = error.kind if isinstance(error, UsageError) else error.getCondition()
        if told not in _NO_TABLES:
            raise
        raise TableNotFoundError(
            f"{_marked(name)} is not a Delta table: {_NO_TABLES[told]}. Nothing was read or "
            "written. Name a Delta table, or give its path.",
            kind="DELTA_MISSING_DELTA_TABLE",
            name=name,
        ) from None


@contextmanager
def as_wrong_for(statement: str, name: str) -> Iterator[None]:
    """Wrap a statement that only Delta tables know.

    Raises:
        UsageError: There is no table (kind `DELTA_TABLE_ONLY_OPERATION`).
    """
    try:
        yield
    except TableNotFoundError as error:
        raise UsageError(
            f"{_marked(name)} is not a Delta table. {statement} is only supported for Delta "
            f"tables. {error.args[0]}",
            kind="DELTA_TABLE_ONLY_OPERATION",
            **error.fields,
        ) from None


@contextmanager
def as_missing_name(name: str) -> Iterator[None]:
    """Wrap what opens a table that Spark's catalog names: its files may be gone.

    Raises:
        TableNotFoundError: They are (kind `DELTA_TABLE_NOT_FOUND`).
    """
    try:
        yield
    except TableNotFoundError as error:
        raise TableNotFoundError(
            f"Delta table {shown(name)} doesn't exist. {error.args[0]}",
            kind="DELTA_TABLE_NOT_FOUND",
            **error.fields,
        ) from None


def _marked(name: str) -> str:
    text = shown(name)
    return text if text.startswith("`") else f"`{text}`"
