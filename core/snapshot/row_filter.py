"""Evaluation of predicates row by row in this process, where it gives Spark's own answer."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.predicates import Predicate, ensure_columns, evaluate
from optimist.core.predicates.resolution import map_leaves, resolve_column
from optimist.core.predicates.tree import Comparison, In, Literal
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import StructType

__all__ = [
    "READ_WITH_SPARK",
    "ensure_exact",
    "is_exact",
    "known_predicate",
    "row_mask",
    "with_columns_of",
]

READ_WITH_SPARK = "Read with optimist.spark.read and filter there, or leave the part out."
"""The remedy for a predicate that this engine can't evaluate, in a command that only reads."""


def ensure_exact(
    predicate: Predicate, schema: StructType, *, remedy: str, zone: str = "UTC"
) -> None:
    """Refuse a predicate with a part that this engine can't evaluate row by row.

    Args:
        predicate: The predicate, its columns in the schema's spelling.
        schema: The columns of the rows.
        remedy: The end of the message: what to do instead.
        zone: The session's time zone.

    Raises:
        UsageError: The predicate has such a part (kind `OPTIMIST_NEEDS_SPARK`, field `part`).
    """
    for part in predicate.conjuncts():
        if not is_exact(part, schema, zone=zone):
            raise _needs_spark(part, remedy)


def is_exact(predicate: Predicate, schema: StructType, *, zone: str = "UTC") -> bool:
    """Return whether the predicate's value is known for every row of these columns.

    Args:
        predicate: The predicate, its columns in the schema's spelling.
        schema: The columns of the rows.
        zone: The session's time zone.
    """
    columns = [resolve_column(path, schema) for path in predicate.columns()]
    if not all(column is None or column.has_plain_order for column in columns):
        return False
    empty = to_arrow_schema(schema).empty_table()
    return evaluate(predicate, empty, zone=zone) is not None


def known_predicate(predicate: Predicate, schema: StructType) -> Predicate | None:
    """Return a predicate of another library's filter, or None if its value is not known here.

    Args:
        predicate: The predicate, which may name columns that the schema lacks.
        schema: The columns of the rows.
    """
    try:
        resolved = ensure_columns(predicate, schema)
    except UsageError:
        return None
    plain = map_leaves(resolved, lambda leaf: _with_wall_times(leaf, schema))
    if any(_depends_on_zone(leaf, schema) for leaf in plain.walk()):
        return None
    return plain if is_exact(plain, schema) else None


def _with_wall_times(leaf: Predicate, schema: StructType) -> Predicate:
    """Return the leaf with times without a zone for a column of such times."""
    if not isinstance(leaf, (Comparison, In)) or _type_of(leaf, schema) != "timestamp_ntz":
        return leaf

    def wall_time(item: Literal) -> Literal:
        is_wall = isinstance(item.value, dt.datetime) and item.value.tzinfo is None
        return Literal(item.value, "timestamp_ntz") if is_wall else item

    if isinstance(leaf, In):
        return replace(leaf, values=tuple(map(wall_time, leaf.values)))
    return replace(leaf, right=wall_time(leaf.right)) if isinstance(leaf.right, Literal) else leaf


def _depends_on_zone(leaf: Predicate, schema: StructType) -> bool:
    """Tell whether a time is compared with a constant of another kind, which Spark does in a zone.

    Other libraries have no session, and so no zone.
    """
    if not isinstance(leaf, (Comparison, In)):
        return False
    kind = _type_of(leaf, schema)
    constants = leaf.values if isinstance(leaf, In) else (leaf.right,)
    literals = [item for item in constants if isinstance(item, Literal) and item.value is not None]
    if kind == "timestamp":
        return any(getattr(item.value, "tzinfo", None) is None for item in literals)
    if kind == "timestamp_ntz":
        return any(item.kind != kind for item in literals)
    return kind == "date" and any(isinstance(item.value, dt.datetime) for item in literals)


def _type_of(leaf: Comparison | In, schema: StructType) -> str | None:
    column = leaf.column if isinstance(leaf, In) else leaf.left
    found = resolve_column(column.path, schema)
    return None if found is None else str(found.data_type)


def row_mask(
    predicate: Predicate,
    rows: pa.RecordBatch | pa.Table,
    *,
    zone: str = "UTC",
    remedy: str = READ_WITH_SPARK,
) -> pa.BooleanArray:
    """Return the predicate's value for each row: true, false or null.

    Raises:
        UsageError: The value is unknown (kind `OPTIMIST_NEEDS_SPARK`; see `ensure_exact`).
    """
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    mask = evaluate(predicate, table, zone=zone)
    if mask is None:
        raise _needs_spark(predicate, remedy)
    return mask


def with_columns_of(predicate: Predicate, wanted: StructType, schema: StructType) -> StructType:
    """Return the wanted columns, and after them those that only the predicate names."""
    names = {path[0].lower() for path in predicate.columns()}
    missing = (item for item in schema if item.name.lower() in names)
    return StructType((*wanted, *(item for item in missing if wanted.find(item.name) is None)))


def _needs_spark(part: Predicate, remedy: str) -> UsageError:
    return UsageError(
        f"The part {str(part)!r} of the predicate can be evaluated row by row only by Spark. "
        f"{remedy}",
        kind="OPTIMIST_NEEDS_SPARK",
        part=str(part),
    )
