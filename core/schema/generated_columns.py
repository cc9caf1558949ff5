"""Checks generation expressions (spec 10.4).

A generation expression is SQL in a field's metadata (`delta.generationExpression`). Every engine
that writes to the table computes it. So it may use only the columns of its own row, and must give
the same value wherever and whenever it is computed within one statement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from optimist.core.errors import SchemaError
from optimist.core.foreign_text import quoted, shown
from optimist.core.schema.generated_rules import RuleKind, generation_rule
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.sql_functions import NON_DETERMINISTIC_FUNCTIONS, function_names
from optimist.core.schema.types import (
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = [
    "GENERATION_EXPRESSION",
    "ensure_generated_columns_valid",
    "generation_expression",
    "referenced_columns",
    "referenced_paths",
    "without_expressions",
]

GENERATION_EXPRESSION = "delta.generationExpression"
_DIALECT = "databricks"
_PARTS_OF_TIMES: tuple[RuleKind, ...] = ("year", "month", "day", "hour")
_RULE_TYPES: dict[RuleKind, DataType] = {
    "date": PrimitiveType("date"),
    "format": PrimitiveType("string"),
    **dict.fromkeys(_PARTS_OF_TIMES, PrimitiveType("integer")),
}
_SUBQUERY_NODES = (exp.Subquery, exp.Select, exp.Exists)
_AGGREGATE_NODES = (exp.AggFunc,)
_ROWSET_NODES = (exp.Window, exp.UDTF, exp.Explode)


def generation_expression(item: StructField) -> str | None:
    """The SQL that computes the column, or None for an ordinary column."""
    value = item.metadata.get(GENERATION_EXPRESSION)
    return None if value is None else str(value)


def without_expressions(schema: StructType) -> StructType:
    """The schema with its generated columns as ordinary ones."""
    if not any(GENERATION_EXPRESSION in item.metadata for item in schema):
        return schema
    return StructType(tuple(map(_as_ordinary, schema)))


def referenced_columns(sql: str) -> tuple[str, ...]:
    """The top-level columns that an expression reads, in order, each once.

    Raises:
        SchemaError: The text is not an SQL expression (kind `OPTIMIST_INVALID_EXPRESSION`).
    """
    return tuple(dict.fromkeys(path[0] for path in referenced_paths(sql)))


def referenced_paths(sql: str) -> tuple[tuple[str, ...], ...]:
    """The columns and fields of structs that an expression reads, by the names on the way to them.

    Raises:
        SchemaError: As `referenced_columns`.
    """
    paths = (_path_from(column) for column in _parse(sql).find_all(exp.Column))
    return tuple(dict.fromkeys(paths))


def ensure_generated_columns_valid(
    schema: StructType, *, previous: StructType | None = None
) -> None:
    """Refuse a schema with a generation expression that can't be computed row by row.

    Functions with unknown names pass: only the engine that computes them knows which exist. So do
    types that only that engine knows; those that the text alone tells must be the columns'.

    Args:
        schema: The schema.
        previous: The table's schema until now. What it has already keeps its type.

    Raises:
        SchemaError: An expression can't be parsed or holds a subquery or a window
            (`DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN`), reads its own column, another
            generated column or a column that does not exist
            (`DELTA_INVALID_GENERATED_COLUMN_REFERENCES`), is not deterministic
            (`DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN`), holds an aggregate
            (`DELTA_AGGREGATE_IN_GENERATED_COLUMN`), is not of the column's type
            (`DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH`); or the column can't be generated, being
            an identity column (`DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION`) or a variant
            (`DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN`). Field `column`.
    """
    generated = {item.name.lower() for item in schema if generation_expression(item) is not None}
    for item in schema:
        sql = generation_expression(item)
        if sql is None:
            continue
        _ensure_may_be_generated(item)
        try:
            tree = _parse(sql)
        except SchemaError:
            raise _invalid(
                item,
                sql,
                "is not a SQL expression",
                "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
            ) from None
        _ensure_row_wise(item, sql, tree)
        _ensure_references_valid(item, sql, schema, generated)
        if not _is_as_before(item, previous):
            _ensure_type_fits(item, sql, schema)


def _parse(sql: str) -> exp.Expression:
    try:
        return cast("exp.Expression", parse_one(sql, dialect=_DIALECT))
    except (SqlglotError, RecursionError) as error:
        raise SchemaError(
            f"The text {quoted(sql)} is not a SQL expression: {shown(error)}.",
            kind="OPTIMIST_INVALID_EXPRESSION",
            sql=sql,
        ) from None


def _as_ordinary(item: StructField) -> StructField:
    metadata = {key: value for key, value in item.metadata.items() if key != GENERATION_EXPRESSION}
    return replace(item, metadata=metadata)


def _path_from(column: exp.Column) -> tuple[str, ...]:
    """The names of a column, and of the fields that the expression takes out of it."""
    names = [part.name for part in column.parts]
    inner: exp.Expr = column
    while isinstance(inner.parent, exp.Dot) and inner.parent.this is inner:
        inner = inner.parent
        if not isinstance(inner.expression, exp.Identifier):
            break
        names.append(inner.expression.name)
    return tuple(names)


def _ensure_may_be_generated(item: StructField) -> None:
    sql = generation_expression(item) or ""
    if is_identity_column(item):
        raise _invalid(
            item,
            sql,
            "belongs to an identity column, which generates its own values",
            "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
        )
    if item.data_type == PrimitiveType("variant"):
        raise _invalid(
            item,
            sql,
            "belongs to a variant column, whose values can't be compared",
            "DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN",
        )


def _ensure_row_wise(item: StructField, sql: str, tree: exp.Expression) -> None:
    if tree.find(*_SUBQUERY_NODES) or tree.find(*_ROWSET_NODES):
        raise _invalid(
            item,
            sql,
            "holds a subquery, a window function or a function that generates rows",
            "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        )
    if tree.find(*_AGGREGATE_NODES):
        raise _invalid(item, sql, "holds an aggregate", "DELTA_AGGREGATE_IN_GENERATED_COLUMN")
    if any(function_names(node) & NON_DETERMINISTIC_FUNCTIONS for node in tree.find_all(exp.Func)):
        raise _invalid(
            item,
            sql,
            "is not deterministic",
            "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
        )


def _ensure_references_valid(
    item: StructField, sql: str, schema: StructType, generated: set[str]
) -> None:
    for name in referenced_columns(sql):
        if schema.find(name) is None:
            reason = f"reads the column {shown(name)}, which does not exist"
        elif name.lower() == item.name.lower():
            reason = "reads the column itself"
        elif name.lower() in generated:
            reason = f"reads {shown(name)}, which is a generated column, too"
        else:
            continue
        raise _invalid(
            item, sql, reason, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES", reference=name
        )


def _is_as_before(item: StructField, previous: StructType | None) -> bool:
    known = previous.find(item.name) if previous is not None else None
    return (
        known is not None
        and known.data_type == item.data_type
        and generation_expression(known) == generation_expression(item)
    )


def _ensure_type_fits(item: StructField, sql: str, schema: StructType) -> None:
    rule = generation_rule(sql)
    if rule is None:
        return
    found = _type_at(rule.path, schema) if rule.kind == "identity" else _RULE_TYPES.get(rule.kind)
    # Types with parts may differ in what may be null, which does not matter here.
    if isinstance(found, PrimitiveType | DecimalType) and found != item.data_type:
        raise _invalid(
            item,
            sql,
            f"is of the type {shown(found)}, and the column of the type {shown(item.data_type)}",
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
        )


def _type_at(path: tuple[str, ...], schema: StructType) -> DataType | None:
    level: DataType = schema
    for name in path:
        found = level.find(name) if isinstance(level, StructType) else None
        if found is None:
            return None
        level = found.data_type
    return level


def _invalid(item: StructField, sql: str, reason: str, kind: str, **fields: object) -> SchemaError:
    return SchemaError(
        f"The generation expression of the column {shown(item.name)}, {quoted(sql)}, {reason}. "
        "Nothing was written. Use an expression over ordinary columns of the same row.",
        kind=kind,
        column=item.name,
        expression=sql,
        **fields,
    )
