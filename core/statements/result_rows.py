"""Makes the rows that a statement answers with, of what its command has done."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from optimist.core.maintenance.copies.clone import ClonedTable
from optimist.core.maintenance.copies.restore import RestoredTable
from optimist.core.maintenance.vacuum.vacuum import Vacuumed
from optimist.core.paths import scheme_of, with_file_scheme
from optimist.core.statements.result_columns import (
    CLONED,
    MERGED,
    NO_COLUMNS,
    RESTORED,
    ROWS_AFFECTED,
    VACUUMED,
)

__all__ = [
    "NO_ROWS",
    "affected_rows",
    "cloned_rows",
    "merged_rows",
    "restored_rows",
    "vacuumed_rows",
]

NO_ROWS = NO_COLUMNS.empty_table()
"""The result of a statement that answers nothing."""
_UNKNOWN = -1


def restored_rows(done: RestoredTable | None) -> pa.Table:
    """Return one row of numbers, or no row if the table was at that version."""
    return _numbers(done, RESTORED)


def cloned_rows(done: ClonedTable | None) -> pa.Table:
    """Return one row of numbers, or no row if an existing table was kept."""
    return _numbers(done, CLONED)


def vacuumed_rows(done: Vacuumed, table_path: str, *, is_dry_run: bool) -> pa.Table:
    """Return the path of the table, or for a dry run the paths of its dead files."""
    paths = done.paths if is_dry_run else pa.array([table_path], pa.string())
    if scheme_of(table_path) == "":
        paths = pa.array(list(map(with_file_scheme, paths.to_pylist())), pa.string())
    return pa.table([paths.cast(pa.string())], schema=VACUUMED)


def affected_rows(count: int | None) -> pa.Table:
    """Return the row of DELETE and UPDATE, with -1 for an unknown number."""
    return pa.table([[_UNKNOWN if count is None else count]], schema=ROWS_AFFECTED)


def merged_rows(updated: int, deleted: int, inserted: int) -> pa.Table:
    """Return the row of MERGE."""
    counts = (updated + deleted + inserted, updated, deleted, inserted)
    return pa.table([[count] for count in counts], schema=MERGED)


def _numbers(done: ClonedTable | RestoredTable | None, columns: pa.Schema) -> pa.Table:
    if done is None:
        return columns.empty_table()
    numbers = asdict(done)
    return pa.table([[numbers[name]] for name in columns.names], schema=columns)
