"""VACUUM USING INVENTORY: the caller's list of files instead of a listing (spec 10.12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.storage.listed_files import LISTED_SCHEMA
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import listed
from optimist.core.maintenance.vacuum.kept_paths import path_below

__all__ = ["INVENTORY_SCHEMA", "inventory_pages"]

INVENTORY_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("length", pa.int64()),
        ("isDir", pa.bool_()),
        ("modificationTime", pa.int64()),
    ]
)
"""The columns of an inventory, as in Delta. Times are in epoch milliseconds."""


def inventory_pages(given: Iterable[pa.RecordBatch], paths: DataPaths) -> Iterator[pa.RecordBatch]:
    """Convert an inventory to rows of a listing, without files outside the table.

    Args:
        given: Batches with the columns of `INVENTORY_SCHEMA` and possibly others. Paths are full,
            or relative to the table, and not percent-encoded.
        paths: The table's paths.

    Raises:
        UsageError: A column is missing, or has another type (kind
            `DELTA_INVALID_INVENTORY_SCHEMA`).
    """
    for batch in given:
        _ensure_columns(batch.schema)
        rows = batch.select(INVENTORY_SCHEMA.names)
        texts = rows.column("path").cast(pa.string()).to_pylist()
        below = [path_below(text, paths) if text else None for text in texts]
        found = pa.array([path or None for path in below], pa.string())
        columns = [
            found,
            pc.fill_null(rows.column("length").cast(pa.int64()), 0),
            pc.fill_null(rows.column("modificationTime").cast(pa.int64()), 0),
            pc.fill_null(rows.column("isDir"), False),
        ]
        page = pa.RecordBatch.from_arrays(columns, schema=LISTED_SCHEMA)
        yield page.filter(found.is_valid())


def _ensure_columns(schema: pa.Schema) -> None:
    wrong = [name for name in INVENTORY_SCHEMA.names if not _has_column(schema, name)]
    if wrong:
        raise UsageError(
            f"The inventory of a VACUUM has no columns {listed(wrong)} of the right types. Nothing "
            "was deleted. Give path (string), length (bigint), isDir (boolean) and "
            "modificationTime (bigint).",
            kind="DELTA_INVALID_INVENTORY_SCHEMA",
            columns=tuple(wrong),
        )


def _has_column(schema: pa.Schema, name: str) -> bool:
    index = schema.get_field_index(name)
    if index < 0:
        return False
    given, wanted = schema.field(index).type, INVENTORY_SCHEMA.field(name).type
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(given) or pa.types.is_large_string(given))
    return bool(pa.types.is_integer(given) if pa.types.is_integer(wanted) else given == wanted)
