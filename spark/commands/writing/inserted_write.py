"""`write_inserted`: write rows that were shaped for a table, if it still has these columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.inserted_rows import InsertedRows
from optimist.spark.commands.writing.write import BegunWrite, ensure_may_create, write_rows
from optimist.spark.commands.writing.write_options import WriteRequest

__all__ = ["write_inserted"]


def write_inserted(
    inserted: InsertedRows, rows: DataFrame, path: str, request: WriteRequest
) -> CommitResult | None:
    """Write the rows of an INSERT, which took the table's names by the position of its columns.

    Args:
        inserted: What the rows were shaped by.
        rows: The shaped rows.
        path: The table.
        request: The rest of the write's arguments.

    Raises:
        TableError: The table has been replaced or changed meanwhile, so that a value could be in
            the column of another one (kind `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
        TableNotFoundError: See `ensure_may_create`.
        OptimistError: See `write`.
    """
    begun = BegunWrite.on(open_target(inserted.spark, path, request.filesystem_options))
    ensure_may_create(begun.txn, request)
    _ensure_same_places(inserted, begun.txn.snapshot)
    return write_rows(rows, path, request, begun=begun)


def _ensure_same_places(inserted: InsertedRows, newest: Snapshot) -> None:
    """Refuse a version whose first columns are not those of the one that the rows fit.

    Columns that are new stand behind them.
    """
    known, found = _columns(inserted.snapshot.schema), _columns(newest.schema)
    if found[: len(known)] != known:
        raise TableError(
            f"The columns of {shown(inserted.name)} have changed after version "
            f"{inserted.snapshot.version}, for which the rows were made, or another client has "
            "made the table anew. Nothing was written. Run the statement again.",
            kind="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
            version=inserted.snapshot.version,
        )


def _columns(schema: StructType) -> Sequence[tuple[str, str]]:
    return [(item.name, str(item.data_type)) for item in schema]
