"""Rules and generated columns that read a column and so prevent its change (spec 10.8, 10.9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.column_paths import path_of_sql
from optimist.core.schema.generated_columns import (
    generation_expression,
    referenced_paths,
    unknown_columns,
)
from optimist.core.schema.schema_edits import Path, is_inside, path_text
from optimist.core.schema.types import StructType, walk_fields

__all__ = ["ensure_not_read"]

_INVARIANTS = "delta.invariants"


def ensure_not_read(table: TableMetadata, path: Path, what: str) -> None:
    """Refuse to change a column that a constraint, an invariant or a generated column reads.

    SQL that can't be parsed here, or that names something that is not a column, counts as reading
    every column.

    Args:
        table: The table's metadata.
        path: The path of the column or nested field.
        what: The intended change, for the message, such as "renamed".

    Raises:
        SchemaError: A rule reads it (kind `DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE` or
            `DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE`; fields `column`, `reader`,
            `expression`).
    """
    for reader in _find_readers(table):
        if _reads_column(reader.sql, path, table.declared_schema):
            raise SchemaError(
                f"The column {shown(path_text(path))} can't be {what}, because the "
                f"{reader.what} {shown(reader.name)} ({shown(reader.sql)}) reads it. Nothing was "
                f"written. Drop the {reader.what} first.",
                kind=reader.kind,
                column=path_text(path),
                reader=reader.name,
                expression=reader.sql,
            )


@dataclass(frozen=True, slots=True)
class _Reader:
    """SQL of a table that reads columns, with its kind and name."""

    what: str
    kind: str
    name: str
    sql: str


_constraint = partial(_Reader, "constraint", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE")
_invariant = partial(_Reader, "invariant", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE")
_generated = partial(_Reader, "generated column", "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE")


def _find_readers(table: TableMetadata) -> Iterator[_Reader]:
    for name, sql in table.properties.constraints.items():
        yield _constraint(name, sql)
    for path, item in walk_fields(table.declared_schema):
        expression = generation_expression(item)
        if expression is not None:
            yield _generated(path_text(path), expression)
        if _INVARIANTS in item.metadata:
            # Its JSON is not a SQL expression, so it counts as one that may read any column.
            yield _invariant(path_text(path), str(item.metadata[_INVARIANTS]))


def _reads_column(sql: str, path: Path, schema: StructType) -> bool:
    try:
        read = [path_of_sql(named, schema) for named in referenced_paths(sql)]
        unknown = unknown_columns(sql, schema)
    except SchemaError:
        return True
    return bool(unknown) or any(is_inside(path, each) or is_inside(each, path) for each in read)
