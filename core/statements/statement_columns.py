"""Which columns each statement answers with. Only this needs the statements, which load slowly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from optimist.core.sql.statements import (
    Clone,
    Delete,
    DescribeDetail,
    DescribeHistory,
    Merge,
    Optimize,
    Reorg,
    Restore,
    Update,
    Vacuum,
)
from optimist.core.statements.result_columns import (
    CLONED,
    DETAIL,
    HISTORY,
    MERGED,
    NO_COLUMNS,
    OPTIMIZED,
    RESTORED,
    ROWS_AFFECTED,
    VACUUMED,
)

__all__ = ["columns_of"]

_COLUMNS: Mapping[type, pa.Schema] = MappingProxyType(
    {
        Clone: CLONED,
        Delete: ROWS_AFFECTED,
        DescribeDetail: DETAIL,
        DescribeHistory: HISTORY,
        Merge: MERGED,
        Optimize: OPTIMIZED,
        Reorg: OPTIMIZED,
        Restore: RESTORED,
        Update: ROWS_AFFECTED,
        Vacuum: VACUUMED,
    }
)


def columns_of(statement: object) -> pa.Schema:
    """Return the columns that a statement answers with, which most statements have none of.

    Those of SHOW and DESCRIBE TABLE depend on the table (`shows`).
    """
    return _COLUMNS.get(type(statement), NO_COLUMNS)
