"""Rows of a table in its files' form: physical names, with ids for Parquet (spec 10.8).

1. Void columns and fields, which no file holds (spec 6.3), are left out.
2. Every column and field may be null in a file, as in delta-spark's files. NOT NULL is a rule for
   written rows, and a struct that is null has no values for its fields (spec 10.1). Only the two
   binaries of a variant are always present.
"""

from __future__ import annotations

import pyarrow as pa

from optimist.core.data.column_shape import conform_column, is_text_dictionary
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.column_mapping import file_schema, is_mapped
from optimist.core.schema.types import PrimitiveType, StructType, holds_type
from optimist.core.schema.void_columns import holds_void, without_void

__all__ = ["StoredRows"]

_VARIANT = PrimitiveType("variant")


class StoredRows:
    """The conversion of one table's rows to the form of its files, for all writers.

    Args:
        schema: The table's schema.
    """

    def __init__(self, schema: StructType) -> None:
        kept = without_void(schema)
        nullable = kept.as_nullable()
        stored = file_schema(nullable)
        arrow_fields = to_arrow_schema(stored)
        self._is_unchanged = not (
            is_mapped(schema)
            or holds_void(schema)
            or nullable != kept
            or holds_type(schema, _VARIANT)
        )
        self._void = frozenset(schema.names) - frozenset(kept.names)
        self._columns = {
            item.name: (column, field)
            for item, column, field in zip(kept, stored, arrow_fields, strict=True)
        }

    def of(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the names and ids of files, at every depth, without void columns.

        Args:
            rows: Columns of the table, in its types; texts may be numbers into a dictionary. Other
                columns stay unchanged.
        """
        if self._is_unchanged:
            return rows
        fields, columns = [], []
        for given, values in zip(rows.schema, rows.columns, strict=True):
            if given.name in self._void:
                continue
            column, field = self._columns.get(given.name, (None, given))
            if column is not None and is_text_dictionary(values.type):
                field = field.with_type(values.type)
            elif column is not None:
                parts = (conform_column(part, column.data_type) for part in values.chunks)
                values = pa.chunked_array(parts, type=field.type)
            fields.append(field)
            columns.append(values)
        # Types compare equal without their ids, and only this schema certainly has the ids.
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))
