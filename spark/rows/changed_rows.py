"""Rows with their kinds of change, for commands that record changes (spec 10.11).

Each row is repeated once for each of its kinds: null for the table, any other for a change file,
see `optimist.core.data.change_files`. Its values are computed before that, so all copies are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.data.change_files import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
)
from optimist.spark.rows.row_shape import column_of

__all__ = ["DELETED", "INSERTED", "KEPT", "UPDATED", "kinds_of", "with_changes"]

KEPT = (None,)
"""The kinds of a row of the table that has not changed."""
DELETED = (DELETE,)
"""The kinds of a row that is no longer in the table."""
INSERTED = (None, INSERT)
"""The kinds of a row that is new in the table."""
UPDATED = (None, UPDATE_PREIMAGE, UPDATE_POSTIMAGE)
"""The kinds of a row of the table that has other values than before."""


def kinds_of(kinds: Sequence[str | None]) -> Column:
    """Return kinds as an array."""
    return sf.array(*(sf.lit(kind).cast("string") for kind in kinds))


def with_changes(
    rows: DataFrame, names: Sequence[str], kinds: Column, before: Mapping[str, str] | None = None
) -> DataFrame:
    """Repeat each row for each of its kinds, with the kind as last column, `_change_type`.

    Args:
        rows: The rows after the change.
        names: The columns to write.
        kinds: The kinds of each row, an array.
        before: Maps columns that may have changed to the columns with their old values.
    """
    repeated = rows.select("*", sf.explode(kinds).alias(CHANGE_TYPE))
    is_before = column_of(CHANGE_TYPE).isin(UPDATE_PREIMAGE, DELETE)

    def value(name: str) -> Column:
        after = column_of(name)
        if before is None or name not in before:
            return after
        return sf.when(is_before, column_of(before[name])).otherwise(after).alias(name)

    return repeated.select(*map(value, names), column_of(CHANGE_TYPE))
