"""The assignments of UPDATE and MERGE without Spark: columns and struct fields get new values.

1. A target is a column of the table, or a field at any depth below one.
2. A value is computed from the row as it was, and cast to the target's type; see `stored_values`.
3. If fields of a struct are assigned, a new struct is built, and its other fields stay.
4. Generated columns are computed again from the new values, or checked if they are assigned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.row_tracking import with_ids_of
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.argument_types import ensure_mapping
from optimist.core.errors.foreign_text import shown
from optimist.core.expressions.moments import Moment
from optimist.core.local.generated_columns import GeneratedColumns
from optimist.core.local.nested_values import shaped_as
from optimist.core.local.stored_values import Value
from optimist.core.local.values import parse_assigned
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.resolution import ResolvedColumn, column_not_found, resolve_column
from optimist.core.requests.assigned_paths import ensure_apart
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import PrimitiveType, StructType

__all__ = ["LocalAssignments"]

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalAssignments:
    """Resolved assignments.

    Attributes:
        schema: The table's schema.
        values: The new values by the paths of their targets, in the table's spelling.
        partial: Structs of which fields are assigned, with the structs that the new values come
            from: the result is null only where both are.
        generated: The generated columns, which are computed again; None if there are none.
    """

    schema: StructType
    values: Mapping[_Path, Value]
    partial: Mapping[_Path, Value] = field(default_factory=dict)
    generated: GeneratedColumns | None = None

    @classmethod
    def of(
        cls,
        given: Mapping[str, object],
        schema: StructType,
        *,
        seen: StructType | None = None,
        zone: str = "UTC",
        may_lack_fields: bool = False,
        moment: Moment | None = None,
    ) -> LocalAssignments:
        """Resolve assignments.

        Args:
            given: Names of columns or struct fields to new values; see `parse_assigned`.
            schema: The table's schema.
            seen: The columns that the values may name, under their aliases; None for the table's
                columns.
            zone: The time zone for timestamps without one.
            may_lack_fields: Whether structs may lack fields of their targets; those become null.
            moment: When the statement began; None refuses functions of the moment.

        Raises:
            UsageError: Nothing is assigned, or something twice, or only Spark can compute a value
                (kind `OPTIMIST_NEEDS_SPARK`).
            SchemaError: A target does not exist, or a constant does not fit it.
        """
        ensure_mapping(given, "set", "a dict of columns and their new values")
        if not given:
            raise UsageError(
                "The update sets no column. Nothing was written. Name at least one column and its "
                "new value.",
                kind="OPTIMIST_EMPTY_UPDATE",
            )
        values: dict[_Path, Value] = {}
        for name, value in given.items():
            target = _resolve_target(name, schema)
            ensure_apart([*values, target.path])
            if moment is not None and isinstance(value, str):
                value = moment.fixed(value, (seen or schema).names)
            parsed = parse_assigned(value, seen or schema, zone=zone)
            values[target.path] = shaped_as(
                parsed, target.data_type, name, may_lack_fields=may_lack_fields, zone=zone
            )
        return cls(schema, values, generated=GeneratedColumns.of(schema, moment))

    @property
    def targets(self) -> frozenset[str]:
        """The top-level columns that change, in whole or in part."""
        return frozenset(path[0] for path in self.values)

    @property
    def changed(self) -> frozenset[str]:
        """The columns that may change in `updated` rows: the targets, and generated ones.

        Equal arrays would not tell: to Arrow, -0.0 equals 0.0.
        """
        computed = () if self.generated is None else self.generated.values
        return self.targets.union(computed)

    @property
    def whole(self) -> frozenset[str]:
        """The columns that are set as a whole."""
        return frozenset(path[0] for path in self.values if len(path) == 1)

    def updated(self, current: pa.Table, rows: pa.Table) -> pa.Table:
        """Return the rows with their new values.

        Args:
            current: The table's columns in order, possibly followed by the row id columns.
            rows: The same rows, with the columns that the values name.
        """
        columns = [self._build_column((name,), current[name], rows) for name in self.schema.names]
        found = pa.table(columns, schema=to_arrow_schema(self.schema))
        if self.generated is not None:
            found = self.generated.completed(found, self.targets)
        return with_ids_of(current, found)

    def _build_column(self, path: _Path, current: Any, rows: pa.Table) -> Any:
        value = self.values.get(path)
        if value is not None:
            return value.compute(rows)
        if not any(target[: len(path)] == path for target in self.values):
            return current
        parts = [
            self._build_column((*path, inner.name), pc.struct_field(current, [at]), rows)
            for at, inner in enumerate(current.type)
        ]
        pieces = [_one_array(part) for part in parts]
        origin = self.partial.get(path)
        mask = None
        if origin is not None:
            mask = _one_array(pc.and_(pc.is_null(current), pc.is_null(origin.compute(rows))))
        return pa.StructArray.from_arrays(pieces, fields=list(current.type), mask=mask)


def _one_array(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _resolve_target(name: str, schema: StructType) -> ResolvedColumn:
    path = parse_column_path(name)
    found = resolve_column(path, schema)
    if found is None:
        raise column_not_found(path, schema, f"The column {shown(name)} can't be set")
    if found.data_type == PrimitiveType("void"):
        raise SchemaError(
            f"The column {shown(name)} is void, so it can't hold values. Nothing was written. Give "
            "it a type first: in plain Python by alter.replace_columns, on Spark by a write that "
            "has the option mergeSchema.",
            kind="OPTIMIST_VOID_COLUMN",
            column=name,
        )
    return found
