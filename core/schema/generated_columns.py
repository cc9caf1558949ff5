"""Checks of generation expressions (spec 10.4).

A generation expression is SQL in a field's metadata (`delta.generationExpression`). Every engine
that writes to the table computes it. So it may use only the columns of its own row, and must always
give the same value within one statement.
"""

from __future__ import annotations

from dataclasses import replace

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.functions import (
    AGGREGATES,
    GENERATORS,
    NON_DETERMINISTIC,
    WINDOWS,
    wrong_call,
)
from optimist.core.expressions.names import free_names
from optimist.core.expressions.tree import (
    ARITHMETIC,
    Call,
    Expression,
    Operation,
    Parameter,
    Subquery,
    Text,
    Unit,
    walk,
)
from optimist.core.schema.column_paths import type_of_column
from optimist.core.schema.generated_rules import RuleKind, generation_rule
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.types import (
    GENERATION_EXPRESSION,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = [
    "called_without_brackets",
    "ensure_functions_known",
    "ensure_generated_columns_valid",
    "ensure_type_is_of_expression",
    "generation_expression",
    "referenced_columns",
    "referenced_paths",
    "unknown_columns",
    "without_expressions",
]

_BOOLEAN = PrimitiveType("boolean")
_VARIANT = PrimitiveType("variant")
_PARTS_OF_TIMES: tuple[RuleKind, ...] = ("year", "month", "day", "hour")
_RULE_TYPES: dict[RuleKind, DataType] = {
    "date": PrimitiveType("date"),
    "format": PrimitiveType("string"),
    **dict.fromkeys(_PARTS_OF_TIMES, PrimitiveType("integer")),
}


def generation_expression(item: StructField) -> str | None:
    """Return the SQL that computes the column, or None for an ordinary column."""
    value = item.metadata.get(GENERATION_EXPRESSION)
    return None if value is None else str(value)


def without_expressions(schema: StructType) -> StructType:
    """Return the schema with its generated columns as ordinary ones."""
    if not any(GENERATION_EXPRESSION in item.metadata for item in schema):
        return schema
    return StructType(tuple(map(_as_ordinary, schema)))


def referenced_columns(sql: str) -> tuple[str, ...]:
    """Return the top-level columns that an expression reads, in order, each once.

    Raises:
        SchemaError: The text is not an SQL expression (kind `OPTIMIST_INVALID_EXPRESSION`), or
            holds a subquery, a parameter or `*` (`OPTIMIST_UNSAFE_EXPRESSION`).
    """
    return tuple(dict.fromkeys(path[0] for path in referenced_paths(sql)))


def referenced_paths(sql: str) -> tuple[tuple[str, ...], ...]:
    """Return the paths of the columns and struct fields that an expression reads.

    Raises:
        SchemaError: As `referenced_columns`.
    """
    return tuple(dict.fromkeys(name.path for name in free_names(_parse(sql))))


def called_without_brackets(sql: str) -> frozenset[str]:
    """Return the functions that an expression calls by name alone: `current_date`.

    The names are in lower case. A text that does not parse has none.
    """
    try:
        return frozenset(name.path[0].lower() for name in free_names(_parse(sql)) if name.is_call)
    except SchemaError:
        return frozenset()


def unknown_columns(sql: str, schema: StructType) -> tuple[str, ...]:
    """Return the names in an expression that are neither columns nor calls without brackets.

    Returns:
        The first name of each. For a field that its struct lacks, or that is taken out of a value
        without parts, all names up to it.

    Raises:
        SchemaError: As `referenced_columns`.
    """
    names = (name for name in free_names(_parse(sql)) if not name.is_call)
    missing = (_find_missing_name(name.path, schema) for name in names)
    return tuple(dict.fromkeys(name for name in missing if name is not None))


def _find_missing_name(path: tuple[str, ...], schema: StructType) -> str | None:
    level: DataType = schema
    for depth, name in enumerate(path):
        if not isinstance(level, StructType):
            # Spark takes parts of an array of structs, and of a map, in its own way.
            has_parts = isinstance(level, ArrayType | MapType) or level == _VARIANT
            return None if has_parts else ".".join(path[: depth + 1])
        found = level.find(name)
        if found is None:
            return ".".join(path[: depth + 1])
        level = found.data_type
    return None


def ensure_generated_columns_valid(
    schema: StructType, *, previous: StructType | None = None
) -> None:
    """Refuse a schema with a generation expression that one row alone can't compute.

    Functions with unknown names pass: only the engine that computes them knows which exist. So do
    types that only that engine knows. If the text alone shows a type, it must be the column's.

    Args:
        schema: The schema.
        previous: The table's schema until now. Its generated columns keep their types.

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
        except SchemaError as error:
            raise _invalid_expression(
                item,
                sql,
                f"is not one that a row computes ({error.args[0]})",
                "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
            ) from None
        _ensure_row_wise(item, sql, tree)
        _ensure_references_valid(item, sql, schema, generated)
        if not _is_as_before(item, previous):
            _ensure_type_fits(item, sql, schema)


def ensure_functions_known(item: StructField, sql: str) -> None:
    """Refuse a generation expression with a call that Spark can't make (see `wrong_call`).

    Raises:
        SchemaError: It has such a call (kind `DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN`).
    """
    wrong = wrong_call(_parse(sql))
    if wrong is not None:
        raise _invalid_expression(item, sql, wrong, "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN")


def _parse(sql: str) -> Expression:
    try:
        parsed = parse_expression(sql)
    except NotSqlError as error:
        raise _not_an_expression(sql, str(error)) from None
    if any(isinstance(node, Subquery | Parameter) or _has_star(node) for node in walk(parsed)):
        what = "it holds a subquery, a parameter or *"
        raise _not_an_expression(sql, what, kind="OPTIMIST_UNSAFE_EXPRESSION")
    return parsed


def _has_star(node: Expression) -> bool:
    """Return whether it is a call with `*`, which names no column. Aggregates may have one."""
    if not isinstance(node, Call) or node.name in AGGREGATES:
        return False
    return any(isinstance(item, Unit) and item.word == "*" for item in node.arguments)


def _not_an_expression(
    sql: str, reason: str, kind: str = "OPTIMIST_INVALID_EXPRESSION"
) -> SchemaError:
    return SchemaError(
        f"The text {quoted(sql)} is not a SQL expression over columns: {shown(reason)}. Nothing "
        "was written. Correct the SQL, and put unusual names in back-ticks.",
        kind=kind,
        sql=sql,
    )


def _as_ordinary(item: StructField) -> StructField:
    metadata = {key: value for key, value in item.metadata.items() if key != GENERATION_EXPRESSION}
    return replace(item, metadata=metadata)


def _ensure_may_be_generated(item: StructField) -> None:
    sql = generation_expression(item) or ""
    if is_identity_column(item):
        raise _invalid_expression(
            item,
            sql,
            "belongs to an identity column, which generates its own values",
            "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
        )
    if item.data_type == PrimitiveType("variant"):
        raise _invalid_expression(
            item,
            sql,
            "belongs to a variant column, whose values can't be compared",
            "DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN",
        )


def _ensure_row_wise(item: StructField, sql: str, tree: Expression) -> None:
    calls = [node for node in walk(tree) if isinstance(node, Call)]
    names = {call.name for call in calls}
    if names & AGGREGATES:
        raise _invalid_expression(
            item, sql, "holds an aggregate", "DELTA_AGGREGATE_IN_GENERATED_COLUMN"
        )
    if names & (WINDOWS | GENERATORS):
        raise _invalid_expression(
            item,
            sql,
            "holds a window function or a function that generates rows",
            "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        )
    if names & NON_DETERMINISTIC:
        raise _invalid_expression(
            item,
            sql,
            "is not deterministic",
            "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
        )


def _ensure_references_valid(
    item: StructField, sql: str, schema: StructType, generated: set[str]
) -> None:
    missing = unknown_columns(sql, schema)
    for name in (*missing, *referenced_columns(sql)):
        if name in missing:
            reason = f"reads {shown(name)}, which does not exist"
        elif name.lower() == item.name.lower():
            reason = "reads the column itself"
        elif name.lower() in generated:
            reason = f"reads {shown(name)}, which is a generated column, too"
        else:
            continue
        raise _invalid_expression(
            item, sql, reason, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES", reference=name
        )


def _is_as_before(item: StructField, previous: StructType | None) -> bool:
    known = previous.find(item.name) if previous is not None else None
    return (
        known is not None
        and known.data_type == item.data_type
        and generation_expression(known) == generation_expression(item)
    )


def ensure_type_is_of_expression(item: StructField, schema: StructType) -> None:
    """Refuse another type for a generated column, unless its expression surely has that type.

    The expression had the column's type when the column was made, and the columns that it reads
    keep their types. An ordinary column passes.

    Args:
        item: The column with its other type.
        schema: The table's columns.

    Raises:
        SchemaError: The expression may have another type (kind
            `DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH`).
    """
    sql = generation_expression(item)
    if sql is not None and _type_of_expression(sql, schema) != item.data_type:
        raise _invalid_expression(
            item,
            sql,
            f"is not of the type {shown(item.data_type)}",
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
        )


def _type_of_expression(sql: str, schema: StructType) -> DataType | None:
    """Return the type of an expression, or None if its text does not show it."""
    try:
        rule = generation_rule(sql)
        if rule is None:
            return _type_of_shape(_parse(sql))
    except SchemaError:
        return None
    if rule.kind == "identity":
        return type_of_column(rule.path, schema)
    return _RULE_TYPES.get(rule.kind)


def _ensure_type_fits(item: StructField, sql: str, schema: StructType) -> None:
    found = _type_of_expression(sql, schema)
    # Types with parts may differ in nullability, which does not matter here.
    if isinstance(found, PrimitiveType | DecimalType) and found != item.data_type:
        raise _invalid_expression(
            item,
            sql,
            f"is of the type {shown(found)}, and the column of the type {shown(item.data_type)}",
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
        )


def _type_of_shape(parsed: Expression) -> DataType | None:
    """Return the type that the outermost part of an expression has for all operands."""
    if isinstance(parsed, Text):
        return PrimitiveType("string")
    if isinstance(parsed, Operation):
        return None if parsed.operator in ARITHMETIC else _BOOLEAN
    return None


def _invalid_expression(
    item: StructField, sql: str, reason: str, kind: str, **fields: object
) -> SchemaError:
    return SchemaError(
        f"The generation expression of the column {shown(item.name)}, {quoted(sql)}, {reason}. "
        "Nothing was written. Use an expression over ordinary columns of the same row.",
        kind=kind,
        column=item.name,
        expression=sql,
        **fields,
    )
