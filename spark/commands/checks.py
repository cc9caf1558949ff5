"""The rules for written rows, enforced by Spark's own expressions (spec 10.3, 10.4).

The checks are part of a column that is written anyway, so an optimizer can't drop them. A row that
fails raises an error inside the task, and `violations_raised` turns Spark's error into one that
names the constraint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.row_rules import constraint_violated
from optimist.core.data.declared_text import declared_lengths
from optimist.core.data.partition_values import partition_schema
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.errors.kinds import NOT_NULL_VIOLATED
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.generated_columns import generation_expression, referenced_columns
from optimist.core.schema.types import DECLARED_TYPE, PrimitiveType, StructField, StructType
from optimist.core.values.foreign_json import parse_json
from optimist.spark.rows.identity_values import exhaustion_of
from optimist.spark.rows.row_shape import column_of
from optimist.spark.session.jvm import error_texts
from optimist.spark.spark_schema import VOID
from optimist.spark.sql.table_sql import TableSql

__all__ = ["RowCheck", "checked_rows", "columns_read", "violations_raised"]

_MARK = "OPTIMIST_ROW_CHECK"
_FAILED = re.compile(rf"{_MARK}:(?=\{{)")
_TOO_LONG = re.compile(
    r"DELTA_EXCEED_CHAR_VARCHAR_LIMIT: column (?P<column>.*?) is (?P<type>\w+\(\d+\))"
)
_INVARIANTS = "delta.invariants"
_STRING = PrimitiveType("string")
_TEXTS = (_STRING, PrimitiveType("binary"))
_NO_TEXT = "OPTIMIST_VALUE_DOES_NOT_FIT"


@dataclass(frozen=True, slots=True)
class RowCheck:
    """One rule for rows.

    Attributes:
        kind: Delta's error class for a violation.
        name: The constraint's or the column's name.
        sql: The rule as text; empty for NOT NULL.
        columns: The columns that the rule reads, whose values the error shows.
        condition: True for a row that obeys the rule; false and null are violations.
    """

    kind: str
    name: str
    sql: str
    columns: tuple[str, ...]
    condition: Column = field(compare=False)


def checked_rows(
    frame: DataFrame,
    sql: TableSql,
    metadata: Metadata,
    more: tuple[RowCheck, ...] = (),
    *,
    exempt: Column | None = None,
) -> DataFrame:
    """Return the rows for files, where a row that breaks a rule raises when it is computed.

    Args:
        frame: Rows in the table's shape.
        sql: The SQL of the table, with its schema.
        metadata: The table's metadata, with its properties and partitioning.
        more: More rules than the table's own.
        exempt: True for rows that need not obey the rules.

    Raises:
        SchemaError: A rule can't be used, because it is unsafe or not an expression.
    """
    texts = _partition_texts(sql.schema, metadata)
    # An empty string as partition value is null in the table, so constraints must see null.
    if texts:
        frame = frame.withColumns({n: _as_partition_value(column_of(n)) for n in texts})
    checks = _row_checks(sql, metadata)
    return _with_checks(_as_declared(frame, sql.schema), (*checks, *more), exempt)


@contextmanager
def violations_raised() -> Iterator[None]:
    """Turn a query's error about a checked row into one that names the broken rule.

    Raises:
        SchemaError: A row violates a constraint.
    """
    try:
        yield
    except Exception as error:
        violation = _violation_of(error)
        if violation is None:
            raise
        raise violation from None


def _violation_of(error: BaseException) -> SchemaError | None:
    """Return the error for a row that failed a check, or None for other failures."""
    for text in error_texts(error):
        if match := _FAILED.search(text):
            # The rest may repeat it, with the trace of a task.
            return _make_violation(json.JSONDecoder().raw_decode(text, match.end())[0])
        if exhausted := exhaustion_of(text):
            return exhausted
        if match := _TOO_LONG.search(text):
            return SchemaError(
                f"A value of the column {shown(match['column'])} is longer than "
                f"{shown(match['type'])} allows. Nothing was committed. Shorten the values.",
                kind="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
                column=match["column"],
                type=match["type"],
            )
    return None


def _row_checks(sql: TableSql, metadata: Metadata) -> tuple[RowCheck, ...]:
    """Return a table's rules: NOT NULL, invariants, CHECK constraints, generated columns.

    Strings and bytes in partition columns must also be UTF-8, because the log keeps them as text.
    """
    texts = _partition_texts(sql.schema, metadata)
    stored = [item for item in sql.schema if item.data_type != VOID]
    checks: list[RowCheck] = []
    for item in stored:
        checks.extend(_not_null_checks(item))
        checks.extend(_invariant_checks(item, sql, item.name))
        checks.extend(_generated_checks(item, sql, is_partition_text=item.name in texts))
        if item.name in metadata.partition_columns and item.data_type in _TEXTS:
            checks.append(_utf8_check(item.name))
    for name, text in TableMetadata.of(metadata).properties.constraints.items():
        checks.append(_constraint_check(name, text, sql.constraint(name, text), sql.schema))
    return tuple(checks)


def _partition_texts(schema: StructType, metadata: Metadata) -> frozenset[str]:
    """Return the partition columns in which an empty string is null."""
    fields = partition_schema(schema, metadata.partition_columns)
    return frozenset(item.name for item in fields if item.data_type == _STRING)


def _as_partition_value(text: Column) -> Column:
    """Return a string as a partition column has it."""
    return sf.nullif(text, sf.lit(""))


def _as_declared(frame: DataFrame, schema: StructType) -> DataFrame:
    """Pad values that are compared with `char(n)` columns, as queries of the table do."""
    declared = {
        item.name: column_of(item.name).alias(item.name, metadata={DECLARED_TYPE: text})
        for item in schema
        if (text := item.metadata.get(DECLARED_TYPE)) and declared_lengths(item)
    }
    if not declared:
        return frame
    return frame.select(*(declared.get(name, column_of(name)) for name in frame.columns))


def _with_checks(
    frame: DataFrame, checks: tuple[RowCheck, ...], exempt: Column | None
) -> DataFrame:
    """Return the same rows, where a row that fails a check raises when it is computed."""
    if not checks:
        return frame
    first, *rest = frame.schema.fields
    carrier = column_of(first.name)
    failure = sf.coalesce(*(_failure_column(check) for check in checks))
    if exempt is not None:
        failure = sf.when(~exempt, failure)
    raised = sf.raise_error(failure).cast(first.dataType)
    checked = sf.when(failure.isNull(), carrier).otherwise(raised).alias(first.name)
    return frame.select(checked, *(column_of(item.name) for item in rest))


def _make_violation(body: Mapping[str, str]) -> SchemaError:
    name, sql, values = body["name"], body["sql"], body["values"]
    if body["kind"] not in (NOT_NULL_VIOLATED, _NO_TEXT):
        return constraint_violated(name, sql, values, kind=body["kind"])
    if body["kind"] == NOT_NULL_VIOLATED:
        message = f"The column {shown(name)} is NOT NULL, and a row has no value for it."
    else:
        message = (
            f"A row has a value in the partition column {shown(name)} that is not UTF-8 text, the "
            "form in which the log holds partition values. Partition by "
            f"hex({shown(name)}) instead."
        )
    return SchemaError(
        f"{message} Nothing was committed. Correct the data, or leave such rows out.",
        kind=body["kind"],
        constraint=name,
        expression=sql,
        values=values,
    )


def _failure_column(check: RowCheck) -> Column:
    """Return null for a row that obeys, or its violation as JSON between marks."""
    columns = sf.struct(*(column_of(name) for name in check.columns))
    values = sf.to_json(columns, {"ignoreNullFields": "false"})
    body = sf.to_json(
        sf.struct(
            sf.lit(check.kind).alias("kind"),
            sf.lit(check.name).alias("name"),
            sf.lit(check.sql).alias("sql"),
            (values if check.columns else sf.lit("")).alias("values"),
        )
    )
    text = sf.concat(sf.lit(f"{_MARK}:"), body, sf.lit(f":{_MARK}"))
    return sf.when(sf.coalesce(check.condition, sf.lit(False)), sf.lit(None)).otherwise(text)


def _not_null_checks(item: StructField, *parents: str) -> Iterator[RowCheck]:
    """Yield NOT NULL checks of a field and its structs' fields, but not below arrays and maps.

    A null struct violates the NOT NULL of its fields.
    """
    path = (*parents, item.name)
    if not item.nullable:
        value = reduce(lambda outer, name: outer.getField(name), path[1:], column_of(path[0]))
        yield RowCheck(NOT_NULL_VIOLATED, ".".join(path), "", (), value.isNotNull())
    if isinstance(item.data_type, StructType):
        for inner in item.data_type:
            yield from _not_null_checks(inner, *path)


def _utf8_check(name: str) -> RowCheck:
    value = column_of(name)
    condition = value.isNull() | sf.is_valid_utf8(value.cast("string"))
    return RowCheck(_NO_TEXT, name, "", (name,), condition)


def _invariant_checks(item: StructField, sql: TableSql, path: str) -> Iterator[RowCheck]:
    """Yield invariants of a field and its structs' fields, but not below arrays and maps."""
    metadata = item.metadata.get(_INVARIANTS)
    if metadata is not None:
        text = _invariant_text(metadata, path)
        yield _constraint_check(path, text, sql.invariant(path, text), sql.schema)
    if isinstance(item.data_type, StructType):
        for inner in item.data_type:
            yield from _invariant_checks(inner, sql, f"{path}.{inner.name}")


def _invariant_text(metadata: object, path: str) -> str:
    try:
        return str(parse_json(str(metadata))["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        raise SchemaError(
            f"The invariant of the column {shown(path)} can't be read: {quoted(metadata)}. Nothing "
            "was written. Correct the column's metadata with the engine that wrote it.",
            kind="OPTIMIST_MALFORMED_INVARIANT",
            column=path,
        ) from None


def _generated_checks(
    item: StructField, sql: TableSql, *, is_partition_text: bool
) -> Iterator[RowCheck]:
    text = generation_expression(item)
    if text is not None:
        rule = f"`{item.name}` <=> {text}"
        value = sql.generated(item.name, text)
        value = _as_partition_value(value) if is_partition_text else value
        condition = column_of(item.name).eqNullSafe(value)
        columns = (item.name, *columns_read(text, sql.schema))
        yield RowCheck("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", item.name, rule, columns, condition)


def _constraint_check(name: str, text: str, condition: Column, schema: StructType) -> RowCheck:
    columns = columns_read(text, schema)
    return RowCheck("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", name, text, columns, condition)


def columns_read(sql: str, schema: StructType) -> tuple[str, ...]:
    """Return the columns that an expression reads, or none if only Spark can parse it."""
    try:
        names = referenced_columns(sql)
    except SchemaError:
        return ()
    found = [schema.find(name) for name in names]
    return tuple(dict.fromkeys(item.name for item in found if item is not None))
