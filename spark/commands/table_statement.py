"""CREATE TABLE as SQL, for tables with a name in Spark's catalog."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.text import quote_identifier, quote_literal, quote_path
from optimist.core.requests.table_definition import Column, CreateMode, TableDefinition
from optimist.core.schema.types import DECLARED_TYPE, StructField
from optimist.spark.commands.names import is_enabled, name_parts
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import sql_of_spark_type, to_spark_type

__all__ = ["VERBS", "create_named", "create_statement", "ensure_names_known"]

VERBS = {
    CreateMode.CREATE: "CREATE TABLE",
    CreateMode.CREATE_IF_NOT_EXISTS: "CREATE TABLE IF NOT EXISTS",
    CreateMode.REPLACE: "REPLACE TABLE",
    CreateMode.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE",
}
"""How SQL begins a statement that makes a table."""


def create_named(
    spark: SparkSession, name: str, definition: TableDefinition, location: str | None
) -> None:
    """Make or replace a table by its name; the session's catalog decides where it is.

    Raises:
        UsageError: The session knows no Delta tables by name (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`).
    """
    ensure_names_known(spark, name)
    with original_errors():
        spark.sql(
            create_statement(quote_path(tuple(name_parts(spark, name))), definition, location)
        )


def ensure_names_known(spark: SparkSession, name: str) -> None:
    """Refuse to make a table of a name where the catalog takes none.

    Raises:
        UsageError: See `create_named`.
    """
    if is_connect(spark):
        raise _no_names(name, "is a name in the server's catalog, where no client can put a table")
    if not is_enabled(spark):
        raise _no_names(name, "is a name in the catalog, where this session has no Delta tables")


def create_statement(name: str, definition: TableDefinition, location: str | None) -> str:
    """The statement that makes a table, laid out as Spark shows such statements.

    Args:
        name: The table's name as SQL.
        definition: The table.
        location: Where it is to be; None leaves that to the catalog.
    """
    return "\n".join(_clauses(name, definition, location))


def _clauses(name: str, definition: TableDefinition, location: str | None) -> Iterator[str]:
    columns = ",\n  ".join(map(_column, definition.columns))
    yield f"{VERBS[definition.mode]} {name}" + (f" (\n  {columns})" if columns else "")
    yield "USING delta"
    if definition.partition_by:
        yield f"PARTITIONED BY ({', '.join(map(quote_identifier, definition.partition_by))})"
    if definition.cluster_by:
        yield f"CLUSTER BY ({', '.join(map(quote_path, definition.clustering_paths))})"
    if location is not None:
        yield f"LOCATION {_text(location)}"
    if definition.comment is not None:
        yield f"COMMENT {_text(definition.comment)}"
    if definition.properties:
        items = sorted(definition.properties.items())
        pairs = ",\n  ".join(f"{_text(key)} = {_text(value)}" for key, value in items)
        yield f"TBLPROPERTIES (\n  {pairs})"


def _column(column: Column) -> str:
    item, rule = column.field(), column.identity
    parts = [quote_identifier(item.name), _type(column, item)]
    if not column.nullable:
        parts.append("NOT NULL")
    if column.generated_as is not None:
        parts.append(f"GENERATED ALWAYS AS ({column.generated_as})")
    if rule is not None:
        how = "ALWAYS" if rule.always else "BY DEFAULT"
        sequence = f"START WITH {rule.start} INCREMENT BY {rule.step}"
        parts.append(f"GENERATED {how} AS IDENTITY ({sequence})")
    if column.default is not None:
        parts.append(f"DEFAULT {column.default}")
    comment = item.metadata.get("comment")
    if comment is not None:
        parts.append(f"COMMENT {_text(str(comment))}")
    return " ".join(parts)


def _type(column: Column, item: StructField) -> str:
    """The type of a column as SQL, with the lengths of texts that were declared."""
    declared = item.metadata.get(DECLARED_TYPE)
    if declared is None:
        return sql_of_spark_type(to_spark_type(item.data_type))
    return column.data_type if isinstance(column.data_type, str) else str(declared)


def _text(text: str) -> str:
    return quote_literal(text, "string")


def _no_names(name: str, problem: str) -> UsageError:
    return UsageError(
        f"The name {shown(name)} {problem}. Nothing was written. Call optimist.spark.enable(spark) "
        "in a classic session first, or give the table's path by location(path) alone.",
        kind="OPTIMIST_CATALOG_NAMES_UNSUPPORTED",
        name=name,
    )
