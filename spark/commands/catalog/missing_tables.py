"""Opens tables that must exist, and tells of missing names as Delta does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.snapshot.one_version import table_not_found
from optimist.core.sql import TableName
from optimist.core.statements.missing_tables import as_missing_name, as_no_delta_table, marked
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.session.conf import open_log

__all__ = [
    "as_no_table_of_that_name",
    "ensure_made",
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
    """Return the table at a path.

    Args:
        spark: The session.
        path: The table.
        hadoop_conf: Options for the file system.

    Raises:
        TableNotFoundError: The path has no table (kind `DELTA_MISSING_DELTA_TABLE`).
    """
    log = open_log(spark, path, hadoop_conf)
    with as_no_delta_table(path):
        log.snapshot()
    return log


def ensure_made(spark: SparkSession, table: TableName) -> None:
    """Refuse a name of the catalog whose table was not made yet, or is gone.

    Raises:
        TableNotFoundError: There is no table (kind `DELTA_TABLE_NOT_FOUND`).
    """
    log = open_log(spark, str(table.path))
    with as_missing_name(str(table)):
        if not log.table_exists():
            raise table_not_found(log.table)


@contextmanager
def as_no_table_of_that_name(name: str) -> Iterator[None]:
    """Turn errors of Spark's catalog for a name into "not a Delta table".

    Raises:
        TableNotFoundError: The name does not exist, or is not a table's (kind
            `DELTA_MISSING_DELTA_TABLE`).
    """
    try:
        yield
    except (AnalysisException, UsageError) as error:
        kind = error.kind if isinstance(error, UsageError) else error.getCondition()
        if kind not in _NO_TABLES:
            raise
        raise TableNotFoundError(
            f"{marked(name)} is not a Delta table: {_NO_TABLES[kind]}. Nothing was read or "
            "written. Name a Delta table, or give its path.",
            kind="DELTA_MISSING_DELTA_TABLE",
            name=name,
        ) from None
