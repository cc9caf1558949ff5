"""The assignments of UPDATE and MERGE: columns and struct fields to new values.

1. A target is a column of the table, or a field at any depth below one. A qualifier before it can
   only be the table's alias.
2. A value sees the row before the change. `DEFAULT` is the column's default.
3. A value is cast to the target's type by `spark.sql.storeAssignmentPolicy`. Structs are matched by
   the names of their fields, which must be the same on both sides.
4. If fields of a struct are assigned, the struct is built again, and its other fields keep their
   values. If the struct that the new fields come from is known, the result is null only where both
   structs are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.requests.assigned_paths import ensure_apart
from optimist.core.schema.types import ArrayType, DataType, MapType, StructField, StructType
from optimist.spark.rows.row_shape import Reshaping, column_of, with_declared_length
from optimist.spark.rows.row_values import drawn_values, ensure_row_values
from optimist.spark.rows.store_assignment import StoreAssignment
from optimist.spark.session.conf import is_on
from optimist.spark.spark_schema import VOID, type_of_values
from optimist.spark.sql.table_sql import TableSql

__all__ = ["Assignments", "is_default"]

_Path = tuple[str, ...]
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class _Value:
    """A new value.

    Attributes:
        column: The value.
        data_type: Its type before the cast; None for a type that no table can hold.
        is_drawn: It may differ each time that it is computed.
    """

    column: Column
    data_type: DataType | None
    is_drawn: bool


@dataclass(frozen=True, slots=True)
class Assignments:
    """Resolved assignments.

    Attributes:
        values: The new values by the paths of their targets, in the table's spelling.
        shaping: Converts them to values of their columns.
        frame: The rows on which they are computed.
        partial: Maps structs whose fields are assigned to the structs that the values come from.
    """

    values: Mapping[_Path, _Value]
    shaping: Reshaping
    frame: DataFrame
    partial: Mapping[_Path, Column] = field(default_factory=dict)

    @classmethod
    def resolve(
        cls,
        frame: DataFrame,
        given: Mapping[str, Column | str],
        sql: TableSql,
        alias: str | None,
        *,
        may_lack_fields: bool = False,
        partial: Mapping[_Path, Column] | None = None,
    ) -> Assignments:
        """Find the targets and let Spark resolve the values, without reading rows.

        Args:
            frame: The table's rows, under its alias if it has one.
            given: Maps names of columns or struct fields to new values, SQL text or columns.
            sql: The SQL of the table, with its schema.
            alias: The table's alias.
            may_lack_fields: Structs may lack fields of their targets; those become null.
            partial: See the attribute of that name.

        Raises:
            UsageError: Nothing is assigned; a target is a field of something that is not a struct,
                or is assigned twice; or a value does not depend on its row alone.
            SchemaError: A target does not exist (kind `DELTA_COLUMN_NOT_FOUND`), a struct has other
                fields than its target, the target is a void column, or a needed default can't be
                used.
            pyspark.errors.AnalysisException: Spark can't resolve a value.
        """
        if not given:
            raise UsageError(
                "The update sets no column. Nothing was written. Name at least one column and its "
                "new value.",
                kind="OPTIMIST_EMPTY_UPDATE",
            )
        targets = [_find_target(name, sql.schema, alias, frame.sparkSession) for name in given]
        ensure_apart([tuple(field.name for field in target) for target in targets])
        columns = [
            _column_of_value(value, target[-1], sql)
            for target, value in zip(targets, given.values(), strict=True)
        ]
        named = [column.alias(f"value{at}") for at, column in enumerate(columns)]
        selected = frame.select(*named)
        types = [type_of_values(field) for field in selected.schema.fields]
        ensure_row_values(frame, named, selected)
        drawn = drawn_values(frame, named, selected)
        values = {}
        for target, column, data_type, is_drawn in zip(targets, columns, types, drawn, strict=True):
            path = tuple(field.name for field in target)
            _ensure_storable(data_type, target[-1].data_type, ".".join(path), may_lack_fields)
            values[path] = _Value(column, data_type, is_drawn)
        shaping = Reshaping(StoreAssignment.of(frame.sparkSession), sql)
        return cls(values, shaping, frame, partial or {})

    def mapped(self, change: Callable[[Column], Column]) -> Assignments:
        """Return the assignments with changed values, which keep their types."""
        changed = {
            path: replace(value, column=change(value.column)) for path, value in self.values.items()
        }
        return replace(self, values=changed)

    def selected(self) -> DataFrame:
        """Return the new values, before their conversion, in the order of `values`."""
        given = enumerate(self.values.values())
        return self.frame.select(*(value.column.alias(f"value{at}") for at, value in given))

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns that change, in whole or in part."""
        return frozenset(path[0] for path in self.values)

    def new_value(self, field: StructField, current: Column | None = None) -> Column:
        """Return the value after the update of a column that is one of `columns`.

        Args:
            field: The column.
            current: Its value before the update, of the same type; None for the column of that
                name.
        """
        current = column_of(field.name) if current is None else current
        built = self._build_value((field.name,), field, current)
        is_drawn = any(one.is_drawn for path, one in self.values.items() if path[0] == field.name)
        return _compute_once(
            built, lambda value: with_declared_length(value, field), is_drawn=is_drawn
        )

    def _build_value(self, path: _Path, field: StructField, current: Column) -> Column:
        value = self.values.get(path)
        if value is not None:
            source, target = value.data_type, field.data_type

            def reshaped(column: Column) -> Column:
                return self.shaping.reshaped(column, source, target, path)

            return _compute_once(value.column, reshaped, is_drawn=value.is_drawn)
        has_targets_below = any(other[: len(path)] == path for other in self.values)
        if not has_targets_below or not isinstance(field.data_type, StructType):
            return current
        parts = [
            self._build_value((*path, inner.name), inner, current.getField(inner.name)).alias(
                inner.name
            )
            for inner in field.data_type
        ]
        built, origin = sf.struct(*parts), self.partial.get(path)
        return built if origin is None else sf.when(~(current.isNull() & origin.isNull()), built)


def _compute_once(value: Column, make: Callable[[Column], Column], *, is_drawn: bool) -> Column:
    """Compute a column from a value, and draw a random value only once for it."""
    computed = make(value)
    return (
        sf.transform(sf.array(value), make)[0] if is_drawn and computed is not value else computed
    )


def _find_target(
    name: str, schema: StructType, alias: str | None, spark: SparkSession
) -> tuple[StructField, ...]:
    """Return the fields on the path to the target that a name means, the column first.

    As in Spark, a first name that can be the table's alias is the alias, not a column, and
    `spark.sql.caseSensitive` requires the exact spelling.
    """
    path = parse_column_path(name)
    is_qualified = alias is not None and len(path) > 1 and path[0].lower() == alias.lower()
    if is_qualified and schema.find(path[1]) is not None:
        path = path[1:]
    fields: list[StructField] = []
    level: DataType = schema
    for part in path:
        if not isinstance(level, StructType):
            raise _not_a_struct(fields, name)
        field = level.find(part)
        if field is None or (field.name != part and _is_case_sensitive(spark)):
            raise _column_not_found(name, level, tuple(item.name for item in fields))
        fields.append(field)
        level = field.data_type
    return tuple(fields)


def _is_case_sensitive(spark: SparkSession) -> bool:
    return is_on(spark, "spark.sql.caseSensitive")


def _column_not_found(name: str, level: StructType, above: _Path) -> SchemaError:
    where = (
        f"struct {shown('.'.join(above))} has no such field"
        if above
        else "table has no such column"
    )
    what = "fields" if above else "columns"
    return SchemaError(
        f"The column {shown(name)} can't be updated: the {where}. Its {what} are "
        f"{listed(level.names)}. Nothing was written. Use one of these.",
        kind="DELTA_COLUMN_NOT_FOUND",
        column=name,
        candidates=level.names,
    )


def _not_a_struct(fields: list[StructField], name: str) -> UsageError:
    column = ".".join(field.name for field in fields)
    return UsageError(
        f"The field {shown(name)} can't be updated: {shown(column)} is of type "
        f"{shown(fields[-1].data_type)}, and only fields of structs can be updated by themselves. "
        f"Nothing was written. Set {shown(column)} as a whole.",
        kind="DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT",
        column=column,
    )


def _column_of_value(given: Column | str, field: StructField, sql: TableSql) -> Column:
    if not isinstance(given, str):
        return given
    return sql.default(field) if is_default(given, sql.schema) else sf.expr(given)


def is_default(text: str, schema: StructType) -> bool:
    """Return whether a value is the word DEFAULT, and no column of that name."""
    return text.strip().lower() == _DEFAULT and schema.find(_DEFAULT) is None


def _ensure_storable(
    source: DataType | None, target: DataType, column: str, may_lack_fields: bool
) -> None:
    """Refuse a value that would lose a field of a struct, or that a void column gets."""
    for data_type, stored in _pair_types(source, target):
        if stored == VOID and data_type != VOID:
            raise SchemaError(
                f"The column {shown(column)} is void, so it can't hold values. Nothing was "
                "written. Give it a type first, with a write that has the option mergeSchema.",
                kind="OPTIMIST_VOID_COLUMN",
                column=column,
            )
        if isinstance(data_type, StructType) and isinstance(stored, StructType):
            given = {field.name.lower() for field in data_type}
            wanted = {field.name.lower() for field in stored}
            if not given <= wanted or (given < wanted and not may_lack_fields):
                raise SchemaError(
                    f"The value for {shown(column)} is of type {shown(data_type)}, but the column "
                    f"is of type {shown(stored)}: the fields of structs must have the same names. "
                    "Nothing was written. Build the value with all fields, or assign single fields "
                    "of the column.",
                    kind="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                    column=column,
                )


def _pair_types(
    source: DataType | None, target: DataType
) -> Iterator[tuple[DataType | None, DataType]]:
    """Yield the two types, and the corresponding types inside them."""
    yield source, target
    if isinstance(source, StructType) and isinstance(target, StructType):
        for field in target:
            inner = source.find(field.name)
            if inner is not None:
                yield from _pair_types(inner.data_type, field.data_type)
    elif isinstance(source, ArrayType) and isinstance(target, ArrayType):
        yield from _pair_types(source.element_type, target.element_type)
    elif isinstance(source, MapType) and isinstance(target, MapType):
        yield from _pair_types(source.key_type, target.key_type)
        yield from _pair_types(source.value_type, target.value_type)
