"""The ids and commit versions of rows that a command writes to another file (spec 6.5)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sf

from optimist.spark.rows.row_shape import column_of

__all__ = ["moved_row_ids"]


def moved_row_ids(carried: Sequence[str], is_changed: Column) -> list[Column]:
    """Return the ids of moved rows, and their versions unless the rows change now.

    Args:
        carried: The names of the two columns, id first; empty for a table that tracks no rows.
        is_changed: True for a row that gets new values; never null.
    """
    if not carried:
        return []
    row_id, version = carried
    return [column_of(row_id), sf.when(~is_changed, column_of(version)).alias(version)]
