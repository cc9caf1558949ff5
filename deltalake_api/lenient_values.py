"""Values that become null where they do not fit: `error_on_type_mismatch=False`."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.resolution import resolve_column
from optimist.core.schema.types import DecimalType, PrimitiveType, StructType

__all__ = ["null_where_unfit"]

_CAST = frozenset({"byte", "short", "integer", "long", "float", "double", "boolean", "date"})
"""The types to which TRY_CAST casts here, besides decimals. All values fit in a text."""


def null_where_unfit(
    values: Mapping[str, object], schema: StructType, alias: str | None = None
) -> dict[str, object]:
    """Return SQL by column in which a value is null if its column can't hold it.

    Only numbers, booleans and dates are cast so. A value of another type is an error, as ever.

    Args:
        values: SQL or other values by column. Others than SQL stay as they are.
        schema: The table's columns.
        alias: What the names may call the table.
    """
    return {name: _lenient(name, value, schema, alias) for name, value in values.items()}


def _lenient(name: str, value: object, schema: StructType, alias: str | None) -> object:
    if not isinstance(value, str) or value.strip().upper() == "DEFAULT":
        return value
    path = parse_column_path(name)
    found = resolve_column(path, schema)
    if found is None and alias is not None and path[0].lower() == alias.lower():
        found = resolve_column(path[1:], schema) if path[1:] else None
    if found is None:
        return value
    wanted = found.data_type
    is_cast = isinstance(wanted, DecimalType) or (
        isinstance(wanted, PrimitiveType) and wanted.name in _CAST
    )
    # A comment at the end of the SQL ends with the line.
    return f"TRY_CAST(({value}\n) AS {wanted})" if is_cast else value
