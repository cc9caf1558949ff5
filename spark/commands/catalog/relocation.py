"""ALTER TABLE ... SET LOCATION: whether a name may mean the table at another place."""

from __future__ import annotations

from pyspark.sql import SparkSession

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.schema_merge import without_internal_metadata
from optimist.spark.session.conf import open_log

__all__ = ["ensure_movable", "not_of_paths"]


def ensure_movable(spark: SparkSession, name: str, own_path: str, location: str) -> None:
    """Refuse a place that holds no table, or one with other columns.

    Args:
        spark: The session.
        name: The name, for the error.
        own_path: The present place.
        location: The other place.

    Raises:
        SchemaError: The other table has other columns (kind `DELTA_SET_LOCATION_SCHEMA_MISMATCH`).
        TableNotFoundError: No table is at the other place.
    """
    other, own = open_log(spark, location).snapshot(), open_log(spark, own_path)
    columns = own.snapshot().schema if own.table_exists() else other.schema
    if without_internal_metadata(columns) != without_internal_metadata(other.schema):
        raise SchemaError(
            f"The table at {shown(location)} has other columns than {name}: {other.schema} "
            f"and not {columns}. Nothing was changed. Drop the name, and create it again.",
            kind="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            path=location,
        )


def not_of_paths(path: str) -> UsageError:
    """Return the error for a table that is named by its path."""
    return UsageError(
        f"The table {shown(path)} is named by its path, which SET LOCATION can't change. Nothing "
        "was changed. Name the other path.",
        kind="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
    )
