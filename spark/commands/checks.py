"""What every written row must satisfy, enforced by Spark's own expressions (spec 10.3, 10.4).

The checks ride on a column that is written anyway, so no optimizer can drop them. A row that fails
raises inside the task; `violation_of` turns what Spark makes of that into one error that names the
constraint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.generated_columns import generation_expression, referenced_columns
from optimist.core.schema.types import StructField, StructType
from optimist.spark.rows.row_shape import column_of
from optimist.spark.session.jvm import error_texts
from optimist.spark.spark_schema import VOID

__all__ = ["RowCheck", "row_checks", "violation_of", "with_checks"]

_MARK = "OPTIMIST_ROW_CHECK"
_FAILED = re.compile(rf"{_MARK}:(?P<body>\{{.*\}}):{_MARK}", re.DOTALL)
_TOO_LONG = re.compile(
    r"DELTA_EXCEED_CHAR_VARCHAR_LIMIT: column (?P<column>.*?) is (?P<type>\w+\(\d+\))"
)
_INVARIANTS = "delta.invariants"
_MAX_SHOWN = 500


@dataclass(frozen=True, slots=True)
class RowCheck:
    """One rule for rows.

    Attributes:
        kind: Delta's error class for a violation.
        name: The constraint's or the column's name.
        sql: The rule as text; empty for NOT NULL.
        columns: The columns it reads, whose values the error shows.
        condition: True for a row that is fine; false and null are violations.
    """

    kind: str
    name: str
    sql: str
    columns: tuple[str, ...]
    condition: Column = field(compare=False)


def row_checks(schema: StructType, configuration: Mapping[str, str]) -> tuple[RowCheck, ...]:
    """NOT NULL, invariants, CHECK constraints and generated columns of a table."""
    stored = [item for item in schema if item.data_type != VOID]
    checks: list[RowCheck] = []
    for item in stored:
        checks.extend(_not_null(item, column_of(item.name), item.name))
        checks.extend(_invariant(item, schema))
        checks.extend(_generated(item, schema))
    for name, sql in TableProperties.from_configuration(configuration).constraints.items():
        checks.append(_check(name, sql, schema))
    return tuple(checks)


def with_checks(frame: DataFrame, checks: tuple[RowCheck, ...]) -> DataFrame:
    """The same rows; a row that fails a check raises when it is computed."""
    if not checks:
        return frame
    first, *rest = frame.schema.fields
    carrier = column_of(first.name)
    failure = sf.coalesce(*(_failure(check) for check in checks))
    raised = sf.raise_error(failure).cast(first.dataType)
    checked = sf.when(failure.isNull(), carrier).otherwise(raised).alias(first.name)
    return frame.select(checked, *(column_of(item.name) for item in rest))


def violation_of(error: BaseException) -> SchemaError | None:
    """The error to raise for a row that failed a check, or None if that is not what went wrong."""
    for text in error_texts(error):
        if match := _FAILED.search(text):
            return _violation(json.loads(match["body"]))
        if match := _TOO_LONG.search(text):
            return SchemaError(
                f"A value of the column {match['column']} is longer than {match['type']} allows. "
                "Nothing "
                "was committed. Shorten the values.",
                kind="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
                column=match["column"],
                type=match["type"],
            )
    return None


def _violation(body: Mapping[str, str]) -> SchemaError:
    name, sql, values = body["name"], body["sql"], body["values"]
    if body["kind"] == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED":
        message = f"The column {name} is NOT NULL, and a row has no value for it."
    else:
        shown = values if len(values) <= _MAX_SHOWN else values[:_MAX_SHOWN] + "..."
        message = f"A row violates the constraint {name} ({sql}): {shown}."
    return SchemaError(
        f"{message} Nothing was committed. Mend the data, or leave such rows out.",
        kind=body["kind"],
        constraint=name,
        expression=sql,
        values=values,
    )


def _failure(check: RowCheck) -> Column:
    """Null for a row that is fine, else the text of its violation, as JSON between marks."""
    values = sf.to_json(sf.struct(*(column_of(name) for name in check.columns)))
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


def _not_null(item: StructField, value: Column, path: str) -> Iterator[RowCheck]:
    """Also for fields of structs, where a null parent violates it; not below arrays and maps."""
    if not item.nullable:
        yield RowCheck("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", path, "", (), value.isNotNull())
    if isinstance(item.data_type, StructType):
        for inner in item.data_type:
            yield from _not_null(inner, value.getField(inner.name), f"{path}.{inner.name}")


def _invariant(item: StructField, schema: StructType) -> Iterator[RowCheck]:
    text = item.metadata.get(_INVARIANTS)
    if text is None:
        return
    try:
        sql = str(json.loads(str(text))["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        raise SchemaError(
            f"The invariant of the column {item.name} can't be read: {text!r}. Nothing was "
            "written.",
            kind="OPTIMIST_MALFORMED_INVARIANT",
            column=item.name,
        ) from None
    yield _check(item.name, sql, schema)


def _generated(item: StructField, schema: StructType) -> Iterator[RowCheck]:
    sql = generation_expression(item)
    if sql is not None:
        rule = f"`{item.name}` <=> {sql}"
        condition = column_of(item.name).eqNullSafe(sf.expr(sql))
        columns = (item.name, *_columns(sql, schema))
        yield RowCheck("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", item.name, rule, columns, condition)


def _check(name: str, sql: str, schema: StructType) -> RowCheck:
    columns = _columns(sql, schema)
    return RowCheck("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", name, sql, columns, sf.expr(sql))


def _columns(sql: str, schema: StructType) -> tuple[str, ...]:
    try:
        names = referenced_columns(sql)
    except SchemaError:
        return ()  # Spark understands more than we parse; then the error shows no values
    found = [schema.find(name) for name in names]
    return tuple(dict.fromkeys(item.name for item in found if item is not None))
