"""SHOW and DESCRIBE TABLE of a Spark Connect client, over paths: what the log says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from optimist.core.predicates.text import quote_path
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.snapshot import Snapshot
from optimist.core.sql import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import TableName
from optimist.spark.commands.reading.read import open_version
from optimist.spark.drop_in.classic.partitions import all_partitions
from optimist.spark.drop_in.classic.shown_statement import shown_properties, statement_text
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.rows.row_shape import quoted
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["Show", "parse_show", "show"]

_Rows = Sequence[Sequence[str | None]]


@dataclass(frozen=True, slots=True)
class Show:
    """A statement that tells something of a table.

    Attributes:
        what: Its words before the table.
        table: The table.
        key: The property that SHOW TBLPROPERTIES asks for.
    """

    what: str
    table: TableName
    key: str | None = None

    @property
    def name(self) -> str:
        """The table's name, as SQL writes it."""
        return f"delta.{quoted(str(self.table.path))}"


def parse_show(text: str, parameters: Parameters | None = None) -> Show | None:
    """The statement, if it is one of these and its table is a path; else None.

    So it is for a form with more words, such as DESCRIBE of a column, which a client has not.

    Raises:
        UsageError: The table, or the property, is no name.
    """
    reader = Reader(text, parameters)
    what = next((words for words in (*_SHOWN, _PARTITIONS) if reader.take(*words.split())), None)
    if what is None or not reader.is_at_table():
        return None
    table = reader.table()
    if table.path is None:
        return None
    key = None
    if what == "SHOW TBLPROPERTIES" and reader.take("("):
        key = reader.text("a property") if reader.peek().kind == "text" else _key(reader)
        reader.expect(")")
    return Show(what, table, key) if reader.is_at_end() else None


def show(spark: SparkSession, statement: Show) -> DataFrame:
    """The rows that a statement tells."""
    snapshot = open_version(spark, str(statement.table.path)).snapshot
    if statement.what == _PARTITIONS:
        return all_partitions(spark, snapshot, statement.name)
    names, rows = _SHOWN[statement.what]
    found = rows(snapshot, statement)
    columns = list(zip(*found, strict=True)) or [()] * len(names)
    table = pa.table(
        {name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)}
    )
    return local_frame(
        spark, table, StructType([StructField(name, StringType()) for name in names])
    )


def _properties(snapshot: Snapshot, statement: Show) -> _Rows:
    shown = shown_properties(snapshot)
    key = statement.key
    if key is None:
        return sorted(shown.items())
    missing = f"Table {statement.name} does not have property: {key}"
    return [(key, shown.get(key, missing))]


def _statement(snapshot: Snapshot, statement: Show) -> _Rows:
    return [(statement_text(snapshot, statement.name, None),)]


def _columns(snapshot: Snapshot, _: Show) -> _Rows:
    return [(name,) for name in snapshot.schema.names]


def _description(snapshot: Snapshot, _: Show) -> _Rows:
    fields = {
        item.name: (item.name, item.dataType.simpleString(), item.metadata.get("comment"))
        for item in to_spark_schema(snapshot.schema).fields
    }
    rows = list(fields.values())
    clustered = clustering_columns(snapshot.domain_metadata, snapshot.schema) or ()
    parts = (
        ("Partition", [fields[name] for name in snapshot.partition_columns]),
        ("Clustering", [_clustered(snapshot, path) for path in clustered]),
    )
    for title, part in parts:
        if part:
            rows += [(f"# {title} Information", "", ""), ("# col_name", "data_type", "comment")]
            rows += part
    return rows


def _clustered(snapshot: Snapshot, path: tuple[str, ...]) -> tuple[str, str, str | None]:
    items = [to_spark_schema(snapshot.schema)[path[0]]]
    for name in path[1:]:
        inner: Any = items[-1].dataType
        items.append(inner[name])
    last = items[-1]
    return quote_path(path), last.dataType.simpleString(), last.metadata.get("comment")


def _key(reader: Reader) -> str:
    return ".".join(reader.path("a property"))


_PARTITIONS = "SHOW PARTITIONS"
_DESCRIBED = (("col_name", "data_type", "comment"), _description)
_LISTED = (("col_name",), _columns)
_SHOWN: Mapping[str, tuple[tuple[str, ...], Callable[[Snapshot, Show], _Rows]]] = MappingProxyType(
    {
        "SHOW TBLPROPERTIES": (("key", "value"), _properties),
        "SHOW CREATE TABLE": (("createtab_stmt",), _statement),
        "SHOW COLUMNS IN": _LISTED,
        "SHOW COLUMNS FROM": _LISTED,
        "DESCRIBE TABLE": _DESCRIBED,
        "DESC TABLE": _DESCRIBED,
        "DESCRIBE": _DESCRIBED,
        "DESC": _DESCRIBED,
    }
)
