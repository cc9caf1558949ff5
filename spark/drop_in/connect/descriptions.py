"""DESCRIBE EXTENDED, and DESCRIBE of one column, of a Spark Connect client, over Delta tables.

The answers are those of a classic session, which Spark makes of a table's columns and properties.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from optimist.core.predicates.text import quote_path
from optimist.core.schema.types import StructField
from optimist.core.snapshot import Snapshot
from optimist.core.sql import TableName
from optimist.core.sql.own_names import OwnNames
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.spark_statements.shows import Show
from optimist.core.sql.statements import ColumnPath
from optimist.core.statements.shows import shown_properties, shown_rows
from optimist.core.statements.type_texts import short_type_text
from optimist.spark.commands.catalog.names import CatalogTable, named_table
from optimist.spark.drop_in.connect.shows import snapshot_of
from optimist.spark.rows.local_rows import local_frame, spark_columns
from optimist.spark.session.conf import session_zone_name

__all__ = ["Description", "describe", "description"]

_OTHER_THINGS = ("QUERY", "FUNCTION", "DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "PROCEDURE")
_OF_PATHS = "delta"
_FACTS = ("col_name", "data_type", "comment")
_OF_COLUMNS = ("info_name", "info_value")
_NAMES = ("word", "name")


@dataclass(frozen=True, slots=True)
class Description:
    """`DESCRIBE [TABLE] [EXTENDED] table [column]`.

    Attributes:
        table: The table.
        is_extended: Facts about the table itself are wanted, too.
        column: The column that is asked for; None for all.
    """

    table: TableName
    is_extended: bool
    column: ColumnPath | None


def description(
    text: str, parameters: Parameters | None, own_names: OwnNames
) -> Description | None:
    """Return what a statement asks about a Delta table, or None for any other statement."""
    reader = Reader(text, parameters, own_names=own_names)
    if not (reader.take("DESCRIBE") or reader.take("DESC")):
        return None
    if reader.is_at_any(*_OTHER_THINGS) and reader.peek(1).kind in _NAMES:
        return None
    reader.take("TABLE")
    is_extended = reader.is_at_any("EXTENDED", "FORMATTED") and reader.peek(1).kind in _NAMES
    if is_extended:
        reader.advance()
    table = reader.own_table()
    if table is None or reader.is_at("PARTITION", "(") or reader.is_at("AS", "JSON"):
        return None
    column = None if reader.is_at_end() else reader.path("a column")
    reader.end()
    return Description(table, is_extended, column) if is_extended or column else None


def describe(spark: SparkSession, asked: Description) -> DataFrame:
    """Return the rows of the statement.

    Raises:
        AnalysisException: The table has no such column, or the column is a field of another.
        TableNotFoundError: The name, or the path, has no table.
    """
    snapshot = snapshot_of(spark, asked.table)
    if asked.column is not None:
        rows = pa.table([*zip(*_of_column(snapshot, asked.column), strict=True)], _OF_COLUMNS)
    else:
        shown = shown_rows(snapshot, Show("DESCRIBE", asked.table), session_zone_name(spark))
        more = pa.table([*zip(*_of_table(spark, asked.table, snapshot), strict=True)], _FACTS)
        rows = pa.concat_tables([shown, more])
    return local_frame(spark, rows, spark_columns(rows.schema))


def _of_table(
    spark: SparkSession, table: TableName, snapshot: Snapshot
) -> Iterator[tuple[str, str, str]]:
    properties = shown_properties(snapshot)
    yield "", "", ""
    yield "# Detailed Table Information", "", ""
    for name, value in _facts(spark, table, properties.pop("comment", None)):
        yield name, value, ""
    listed = ",".join(f"{key}={value}" for key, value in sorted(properties.items()))
    yield "Table Properties", f"[{listed}]", ""


def _facts(spark: SparkSession, table: TableName, comment: str | None) -> Iterator[tuple[str, str]]:
    path, entry = named_table(spark, str(table))
    catalog, namespace, name = (_OF_PATHS, "", path) if entry is None else entry.parts
    yield from (("Catalog", catalog), ("Namespace", namespace), ("Database", namespace))
    yield "Table", name
    yield "Type", "MANAGED" if entry is None or entry.is_managed else "EXTERNAL"
    if comment is not None:
        yield "Comment", comment
    yield from (("Location", path), ("Provider", "delta"))
    if entry is not None:
        yield from _of_entry(entry)


def _of_entry(entry: CatalogTable) -> Iterator[tuple[str, str]]:
    if entry.owner:
        yield "Owner", entry.owner
    if entry.is_managed:
        yield "Is_managed_location", "true"


def _of_column(snapshot: Snapshot, path: ColumnPath) -> Iterator[tuple[str, str]]:
    item = _column(snapshot, path)
    yield "col_name", item.name
    yield "data_type", short_type_text(item)
    comment = item.metadata.get("comment")
    yield "comment", comment if isinstance(comment, str) else "NULL"


def _column(snapshot: Snapshot, path: ColumnPath) -> StructField:
    found = snapshot.schema.find(path[0])
    name = quote_path(path)
    if found is None:
        proposal = ", ".join(quote_path((other,)) for other in snapshot.schema.names)
        raise AnalysisException(
            f"A column, variable, or function parameter with name {name} cannot be resolved. "
            f"Did you mean one of the following? [{proposal}]. Nothing was run.",
            errorClass="UNRESOLVED_COLUMN.WITH_SUGGESTION",
            messageParameters={"objectName": name, "proposal": proposal},
        )
    if path[1:]:
        raise AnalysisException(
            f"DESC TABLE COLUMN does not support nested column: {name}. Nothing was run. Ask for "
            f"the column {quote_path(path[:1])}.",
            errorClass="_LEGACY_ERROR_TEMP_1060",
            messageParameters={"command": "DESC TABLE COLUMN", "column": name},
        )
    return found
