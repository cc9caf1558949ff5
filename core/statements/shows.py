"""SHOW and DESCRIBE TABLE: facts about a table, from its log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from optimist.core.commands.create.existing_definition import definition_of
from optimist.core.predicates.text import quote_path
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features
from optimist.core.schema.types import StructField, StructType
from optimist.core.snapshot import Snapshot
from optimist.core.sql.spark_statements.shows import Show
from optimist.core.statements.context import OpenTable, StatementContext
from optimist.core.statements.create_text import create_statement
from optimist.core.statements.partitions import ensure_partitioned, partition_rows
from optimist.core.statements.type_texts import short_type_text

__all__ = ["CREATE_STATEMENT", "show", "shown_properties", "shown_rows", "statement_text"]

_Rows = Sequence[Sequence[str | None]]
CREATE_STATEMENT = pa.schema([pa.field("createtab_stmt", pa.string(), nullable=False)])


def show(context: StatementContext, log: OpenTable, statement: Show) -> pa.Table:
    """Run SHOW ... or DESCRIBE TABLE."""
    return shown_rows(log.snapshot(), statement, context.zone_of(log))


def shown_rows(snapshot: Snapshot, statement: Show, zone: str) -> pa.Table:
    """Return the facts that a statement asks for about a version.

    Args:
        snapshot: The version.
        statement: The statement.
        zone: The time zone of partition values that were written without one.
    """
    if statement.what == "SHOW PARTITIONS":
        ensure_partitioned(snapshot, statement.name, {})
        return partition_rows(snapshot, {}, zone)
    names, rows = _SHOWN[statement.what]
    found = rows(snapshot, statement)
    columns = list(zip(*found, strict=True)) or [()] * len(names)
    return pa.table(
        {name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)}
    )


def statement_text(snapshot: Snapshot, name: str, location: str | None) -> str:
    """Return the statement that makes a table like an existing one, under any name.

    Spark's own would leave out what is generated and what may not be null. CHECK constraints are
    among the properties, as Delta shows them.

    Args:
        snapshot: The version.
        name: The name of the table, as SQL writes it.
        location: The path for LOCATION; None without one.
    """
    return create_statement(name, definition_of(snapshot), location)


def shown_properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties as Delta shows them, with protocol, comment and clustering."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    shown = dict(metadata.configuration)
    clustered = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    if clustered:
        shown["clusteringColumns"] = json.dumps(clustered, separators=(",", ":"))
    shown["delta.minReaderVersion"] = str(protocol.min_reader_version)
    shown["delta.minWriterVersion"] = str(protocol.min_writer_version)
    if protocol.min_writer_version >= 7:
        for feature in implied_features(protocol):
            shown[f"delta.feature.{feature}"] = "supported"
    if metadata.description is not None:
        shown["comment"] = metadata.description
    return shown


def _properties(snapshot: Snapshot, statement: Show) -> _Rows:
    shown = {key: text for key, text in shown_properties(snapshot).items() if key != "comment"}
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
    fields = {item.name: _described(item.name, item) for item in snapshot.schema}
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


def _described(name: str, item: StructField) -> tuple[str, str, str | None]:
    comment = item.metadata.get("comment")
    return name, short_type_text(item), comment if isinstance(comment, str) else None


def _clustered(snapshot: Snapshot, path: tuple[str, ...]) -> tuple[str, str, str | None]:
    level, item = snapshot.schema, None
    for name in path:
        item = level.find(name)
        level = item.data_type if item and isinstance(item.data_type, StructType) else StructType()
    return (quote_path(path), "", None) if item is None else _described(quote_path(path), item)


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
