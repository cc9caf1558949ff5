"""The text of CREATE TABLE, as SHOW CREATE TABLE gives it."""

from __future__ import annotations

from collections.abc import Iterator

from optimist.core.errors import UsageError
from optimist.core.expressions.tokens import next_token, read_text
from optimist.core.predicates.text import quote_identifier, quote_literal, quote_path
from optimist.core.requests.table_definition import Column, TableDefinition
from optimist.core.schema.types import DECLARED_TYPE, StructField
from optimist.core.statements.type_texts import full_type_text

__all__ = ["create_statement"]


def create_statement(name: str, definition: TableDefinition, location: str | None) -> str:
    """Return the statement that makes a table, laid out as Spark shows such statements.

    Args:
        name: The table's name as SQL.
        definition: The table.
        location: Its location; None leaves it to the catalog.
    """
    return "\n".join(_clauses(name, definition, location))


def _clauses(name: str, definition: TableDefinition, location: str | None) -> Iterator[str]:
    columns = ",\n  ".join(map(_column_sql, definition.columns))
    yield f"CREATE TABLE {name}" + (f" (\n  {columns})" if columns else "")
    yield "USING delta"
    if definition.partition_by:
        yield f"PARTITIONED BY ({', '.join(map(quote_identifier, definition.partition_by))})"
    if definition.cluster_by:
        yield f"CLUSTER BY ({', '.join(map(quote_path, definition.clustering_paths))})"
    if location is not None:
        yield f"LOCATION {_text_literal(location)}"
    if definition.comment is not None:
        yield f"COMMENT {_text_literal(definition.comment)}"
    if definition.properties:
        items = sorted(definition.properties.items())
        pairs = ",\n  ".join(
            f"{_text_literal(key)} = {_text_literal(value)}" for key, value in items
        )
        yield f"TBLPROPERTIES (\n  {pairs})"


def _column_sql(column: Column) -> str:
    item, rule = column.field(), column.identity
    parts = [quote_identifier(item.name), _type_sql(column, item)]
    if not column.nullable:
        parts.append("NOT NULL")
    if column.generated_as is not None:
        parts.append(f"GENERATED ALWAYS AS ({_safe_expression(column.generated_as)})")
    if rule is not None:
        how = "ALWAYS" if rule.always else "BY DEFAULT"
        sequence = f"START WITH {rule.start} INCREMENT BY {rule.step}"
        parts.append(f"GENERATED {how} AS IDENTITY ({sequence})")
    if column.default is not None:
        parts.append(f"DEFAULT {_safe_expression(column.default)}")
    comment = item.metadata.get("comment")
    if comment is not None:
        parts.append(f"COMMENT {_text_literal(str(comment))}")
    return " ".join(parts)


def _type_sql(column: Column, item: StructField) -> str:
    """Return the type of a column as SQL, with the declared lengths of texts."""
    declared = item.metadata.get(DECLARED_TYPE)
    if declared is None:
        return full_type_text(item.data_type)
    return column.data_type if isinstance(column.data_type, str) else str(declared)


def _text_literal(text: str) -> str:
    return quote_literal(text, "string")


def _safe_expression(sql: str) -> str:
    """Return SQL that can stand in a statement: without `${`, and with its comments ended."""
    pieces: list[str] = []
    end = start = 0
    try:
        while (token := next_token(sql, start)).kind != "end":
            if token.kind == "text" and "${" in token.text:
                pieces += sql[end : token.start], _text_literal(read_text(token))
                end = token.end
            start = token.end
    except UsageError:
        return sql  # another engine's SQL
    ended = "\n" if "--" in sql else ""
    return "".join([*pieces, sql[end:], ended])
