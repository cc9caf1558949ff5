"""Answers to the session's catalog: names and paths of Delta tables, opened for a statement."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

from pyspark.sql import SparkSession

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.statements.missing_tables import as_missing_name, as_no_delta_table
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.commands.reading.read import open_rows, open_version
from optimist.spark.drop_in.classic.relations import path_name, version_table
from optimist.spark.session.arguments import version_number
from optimist.spark.session.conf import open_log

__all__ = ["drop", "exists", "load", "refuse_another_format"]


def load(spark: SparkSession, identifier: Any, more: Any) -> Any:
    """Return the table of a name or a path, a Java `DeltaTable`.

    Args:
        spark: The session.
        identifier: The name within the catalog; for a table by its path, the path.
        more: The `CatalogTable`, or None for a path; then how the table is opened: None, a version
            as text, a time in microseconds, or a set of what a writer may do; then whether the
            table may be missing, since the writer is about to make it; then whether it is a path
            that a statement is about, rather than a query.

    Returns:
        None if it is missing and may be.

    Raises:
        TableNotFoundError: There is no table.
    """
    entry, how, may_be_missing, is_looked_at = more
    found = None if entry is None else CatalogTable.of(spark, entry)
    name = path_name(str(identifier.name())) if found is None else found.name
    path = str(identifier.name()) if found is None else found.path
    version = _version(how) if isinstance(how, str) else None
    millis = how // 1000 if isinstance(how, int) else None
    told = as_missing_name(name) if found else as_no_delta_table(path) if is_looked_at else None
    is_read = how is None or isinstance(how, str | int)
    try:
        with told or nullcontext():
            opened = (open_rows if is_read else open_version)(spark, path, version, millis)
    except TableNotFoundError:
        if may_be_missing:
            return None
        raise
    return version_table(spark, opened, name, found)


def exists(spark: SparkSession, identifier: Any, _: Any) -> bool:
    """Return whether there is a table at a path."""
    return open_log(spark, str(identifier.name())).table_exists()


def drop(spark: SparkSession, identifier: Any, _: Any) -> bool:
    """Refuse to drop a table by its path, as Delta does, or return False without one.

    Raises:
        UsageError: There is a table (kind `OPTIMIST_NOT_FOR_A_PATH`).
    """
    if not exists(spark, identifier, None):
        return False
    path = str(identifier.name())
    raise UsageError(
        f"DROP TABLE is not allowed for a path. Nothing was dropped. Delete the rows of "
        f"{path_name(shown(path))}, or remove its directory.",
        kind="OPTIMIST_NOT_FOR_A_PATH",
        path=path,
    )


def refuse_another_format(spark: SparkSession, identifier: Any, _: Any) -> NoReturn:
    """Refuse to overwrite a Delta table by `saveAsTable` of another format.

    Spark would drop the table with its files first, so rows that are read from it would be lost.

    Raises:
        UsageError: Always (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    del spark
    raise UsageError(
        f"saveAsTable of another format over the Delta table {shown(str(identifier.name()))} is "
        "not supported, because Spark drops the table before it reads the rows. Nothing was "
        'written or dropped. Write with format("delta"), or drop the table first.',
        kind="OPTIMIST_UNSUPPORTED_STATEMENT",
        statement="saveAsTable of another format over a Delta table",
    )


def _version(text: str) -> int:
    version = version_number(text)
    if version is None:
        raise UsageError(
            f"VERSION AS OF takes a version number, not {text!r}. Nothing was read.",
            kind="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            value=text,
        )
    return version
