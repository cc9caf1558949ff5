"""SQL for a table's log, in a form that every engine can read.

1. It is an expression of Spark's grammar, and names only columns of the table.
2. It stays as it was written, except for parts that other engines read differently or not at all:
   comments are removed, names get the schema's spelling, strings get single quotes without escapes
   if possible, adjacent strings become one, `==` becomes `=`, `!` becomes `NOT`, and `LONG`,
   `SHORT` and `BYTE` become `BIGINT`, `SMALLINT` and `TINYINT`. A call without parentheses gets
   them, since it would be a column once a column has its name. A space separates two tokens that
   would otherwise be read as other tokens.
3. If no Spark is there to know the functions, each function must be one of Spark's, with a valid
   number of arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from optimist.core.commands.alter.row_checks import not_boolean
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.functions import (
    AGGREGATES,
    GENERATORS,
    NON_DETERMINISTIC,
    WINDOWS,
    wrong_call,
)
from optimist.core.expressions.names import free_names
from optimist.core.expressions.plain_text import tokens_between
from optimist.core.expressions.tokens import Token, read_name, read_text
from optimist.core.expressions.tree import (
    ARITHMETIC,
    Call,
    Cast,
    Expression,
    Interval,
    Lambda,
    Name,
    Number,
    Operation,
    Text,
    Typed,
    walk,
)
from optimist.core.predicates.text import quote_identifier
from optimist.core.schema.column_paths import spelled_path, type_of_column
from optimist.core.schema.generated_columns import unknown_columns
from optimist.core.schema.types import GENERATION_EXPRESSION, PrimitiveType, StructField, StructType

__all__ = ["canonical_schema", "canonical_sql", "ensure_constraint_sound"]

_BEYOND_THE_ROW = {
    "an aggregate": AGGREGATES,
    "a function that generates rows": GENERATORS,
    "a window function": WINDOWS,
    "a function that is not deterministic": NON_DETERMINISTIC,
}
_TYPES = {"BYTE": "TINYINT", "SHORT": "SMALLINT", "LONG": "BIGINT"}


def canonical_sql(sql: str, schema: StructType, *, keeps_texts: bool = False) -> str:
    """Return the SQL for the log, or the text itself if it is not an expression.

    Args:
        sql: The expression.
        schema: The columns that it may name; empty for a default.
        keeps_texts: Whether quoted strings stay as they are, since the session that wrote them may
            read quotes and escapes in its own way.
    """
    try:
        parsed = parse_expression(sql)
    except NotSqlError:
        return sql
    tokens = tokens_between(sql, 0, len(sql))
    changes = dict(_replace_marks(tokens)) | dict(_respell_names(parsed, sql, schema))
    changes |= dict(_replace_types(parsed, sql))
    if not keeps_texts:
        changes |= dict(_requote_texts(tokens)) | dict(_join_texts(parsed, sql))
    return _apply_changes(sql, tokens, changes)


def canonical_schema(schema: StructType, *, keeps_texts: bool) -> StructType:
    """Return the schema with its columns' SQL in the form for the log (see `canonical_sql`)."""
    named = {GENERATION_EXPRESSION: schema, "CURRENT_DEFAULT": StructType(())}

    def canonicalize(item: StructField) -> StructField:
        texts = {key: str(item.metadata[key]) for key in named if key in item.metadata}
        found = {
            key: canonical_sql(text, named[key], keeps_texts=keeps_texts)
            for key, text in texts.items()
        }
        return replace(item, metadata={**item.metadata, **found}) if found != texts else item

    return StructType(tuple(map(canonicalize, schema)))


def ensure_constraint_sound(name: str, sql: str, schema: StructType, *, is_local: bool) -> None:
    """Refuse a CHECK constraint that is not a condition on a row of the table.

    Args:
        name: The constraint's name.
        sql: The constraint's text.
        schema: The table's columns.
        is_local: Whether no Spark will check the functions.

    Raises:
        SchemaError: It is not an expression over the columns (kind `OPTIMIST_INVALID_EXPRESSION`),
            it needs more than the row (`OPTIMIST_UNSAFE_EXPRESSION`), or its value is not a boolean
            or null (`DELTA_NON_BOOLEAN_CHECK_CONSTRAINT`).
    """
    missing = unknown_columns(sql, schema)
    parsed = parse_expression(sql)
    called = {node.name for node in walk(parsed) if isinstance(node, Call)}
    beyond = next((what for what, names in _BEYOND_THE_ROW.items() if names & called), None)
    wrong = wrong_call(parsed) if is_local else None
    if missing:
        reason = f"reads columns that the table does not have: {listed(missing)}"
    elif beyond is not None:
        reason = f"holds {beyond}"
    elif wrong is not None:
        reason = wrong
    else:
        _ensure_may_be_boolean(name, sql, parsed, schema)
        return
    raise SchemaError(
        f"The CHECK constraint {shown(name)} ({quoted(sql)}) {reason}. Nothing was written. Use a "
        "condition on the columns of one row.",
        kind="OPTIMIST_INVALID_EXPRESSION" if beyond is None else "OPTIMIST_UNSAFE_EXPRESSION",
        expression=sql,
    )


def _ensure_may_be_boolean(name: str, sql: str, parsed: Expression, schema: StructType) -> None:
    found: object = None
    if isinstance(parsed, Name):
        found = type_of_column(parsed.path, schema)
    is_other = isinstance(parsed, Number | Text | Typed | Interval | Lambda) or (
        isinstance(parsed, Operation) and parsed.operator in ARITHMETIC
    )
    if is_other or found not in (None, PrimitiveType("boolean")):
        raise not_boolean(name, sql)


def _replace_marks(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    for token in tokens:
        if token.kind == "mark" and token.text == "==":
            yield token.start, "="
        elif token.kind == "mark" and token.text == "!":
            yield token.start, "NOT "


def _requote_texts(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    for token in tokens:
        if token.kind == "text" and _is_plain(value := read_text(token)):
            yield token.start, f"'{value}'"


def _join_texts(parsed: Expression, sql: str) -> Iterator[tuple[int, str]]:
    """Yield one string for several adjacent ones, which few engines read as one."""
    for node in walk(parsed):
        if not isinstance(node, Text) or not _is_plain(node.value):
            continue
        between = tokens_between(sql, node.start, node.end)
        starts = [token.start for token in between if token.kind == "text"]
        if len(starts) > 1:
            yield starts[0], f"'{node.value}'"
            yield from ((start, "") for start in starts[1:])


def _is_plain(value: str) -> bool:
    """Tell whether a string in single quotes means the same to all engines."""
    return value.isprintable() and not any(mark in value for mark in "'\\")


def _respell_names(parsed: Expression, sql: str, schema: StructType) -> Iterator[tuple[int, str]]:
    for name in free_names(parsed):
        if name.is_call:
            yield from _rewrite_bare_call(name, sql, schema)
            continue
        tokens = [item for item in _tokens_of(name, sql) if item.kind in ("word", "name")]
        for token, spelled in zip(tokens, spelled_path(name.path, schema), strict=True):
            if read_name(token) != spelled:
                yield token.start, quote_identifier(spelled)


def _rewrite_bare_call(name: Name, sql: str, schema: StructType) -> Iterator[tuple[int, str]]:
    """Rewrite a call without parentheses, so that a later column of its name can't replace it."""
    column = schema.find(name.path[0])
    token = next(item for item in _tokens_of(name, sql) if item.kind == "word")
    if column is not None:
        yield token.start, quote_identifier(column.name)
    elif len(schema):
        yield token.start, f"{token.text}()"


def _tokens_of(name: Name, sql: str) -> list[Token]:
    return tokens_between(sql, name.start, name.end)


def _replace_types(parsed: Expression, sql: str) -> Iterator[tuple[int, str]]:
    for node in walk(parsed):
        if isinstance(node, Cast) and not node.target.fields:
            for token in tokens_between(sql, node.value.end, node.end):
                if token.kind == "word" and token.text.upper() in _TYPES:
                    yield token.start, _TYPES[token.text.upper()]


def _apply_changes(sql: str, tokens: list[Token], changes: Mapping[int, str]) -> str:
    pieces: list[str] = []
    end = tokens[0].start if tokens else 0
    for token in tokens:
        between, piece = sql[end : token.start], changes.get(token.start, token.text)
        end = token.end
        if not piece:
            continue
        if between.strip() or (pieces and not between and _runs_on(pieces[-1], piece)):
            between = " "
        pieces += (between, piece)
    return "".join(pieces)


def _runs_on(piece: str, following: str) -> bool:
    """Tell whether two pieces would be read as other tokens without a space between them."""
    apart = [token.text for one in (piece, following) for token in _all_tokens(one)]
    return [token.text for token in _all_tokens(piece + following)] != apart


def _all_tokens(sql: str) -> list[Token]:
    return tokens_between(sql, 0, len(sql))
