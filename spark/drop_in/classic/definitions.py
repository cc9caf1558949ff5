"""Definitions of CREATE and REPLACE TABLE, from Spark's columns, transforms and properties."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import UNKNOWN_TYPE
from optimist.core.requests.table_definition import Column, Identity
from optimist.core.schema.char_types import replace_char_varchar
from optimist.core.schema.types import StructType, schema_from_json
from optimist.spark.session.call_options import PROPERTY_PREFIX
from optimist.spark.session.jvm import Jvm, text_map
from optimist.spark.sql.quoted_texts import ensure_definition_reads_alike

__all__ = ["Definition"]

_IDENTITY = "identity"
_BUCKET = "bucket"
_CLUSTER_BY = "cluster_by"
_OPTION = "option."
_PLAIN_COLLATION = '"string collate UTF8_BINARY"'
_OF_THE_CATALOG = frozenset(
    {"location", "provider", "comment", "owner", "external", "is_managed_location", "path"}
)
"""Properties by which Spark tells a catalog other things than table properties."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A table as a statement defines it.

    Attributes:
        columns: Its columns; none where they are those of a query, or of the table that is there.
        partition_by: The names of the partition columns.
        cluster_by: The paths of the columns to cluster by.
        properties: The table properties.
        options: What stands in OPTIONS: options of the write.
        location: Where the table is to be; None if the statement does not say.
        comment: What the table is, for people.
    """

    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    cluster_by: tuple[tuple[str, ...], ...]
    properties: Mapping[str, str]
    options: Mapping[str, str]
    location: str | None
    comment: str | None

    @classmethod
    def of(cls, jvm: Jvm, columns: Any, transforms: Any, properties: Any) -> Definition:
        """Read what Spark hands to a catalog.

        Args:
            jvm: The session's handles.
            columns: Java `Column`s.
            transforms: Java `Transform`s.
            properties: A Java map.

        Raises:
            SchemaError: A column is of a type that no table can hold (kind
                `DELTA_UNSUPPORTED_DATA_TYPES`), or the table is to be bucketed (kind
                `DELTA_OPERATION_NOT_ALLOWED_DETAIL`), or partitioned by an expression (kind
                `DELTA_OPERATION_NOT_ALLOWED`); or see `ensure_definition_reads_alike`.
        """
        given = text_map(jvm.spark, properties)
        options = {
            key.removeprefix(_OPTION): value
            for key, value in given.items()
            if key.startswith(_OPTION)
        }
        partition_by, cluster_by = _layout(transforms)
        defined = tuple(_columns(jvm, list(columns)))
        own = {key: text for key, text in given.items() if _is_property(key, options)}
        ensure_definition_reads_alike(jvm.spark, defined, own)
        return cls(
            columns=defined,
            partition_by=partition_by,
            cluster_by=cluster_by,
            properties=own,
            options={key: text for key, text in options.items() if key not in _OF_THE_CATALOG},
            location=given.get("location"),
            comment=given.get("comment"),
        )


def _is_property(key: str, options: Mapping[str, str]) -> bool:
    """Return whether Spark means a table property, and not an option under two names."""
    if key in _OF_THE_CATALOG or key.startswith(_OPTION):
        return False
    return key not in options or key.startswith(PROPERTY_PREFIX)


def _columns(jvm: Jvm, columns: Iterable[Any]) -> Iterable[Column]:
    schema = _schema(jvm, columns)
    for field, column in zip(schema, columns, strict=True):
        identity, default = column.identityColumnSpec(), column.defaultValue()
        metadata = json.loads(column.metadataInJSON() or "{}")
        yield Column(
            field.name,
            field.data_type,
            nullable=field.nullable,
            comment=column.comment(),
            generated_as=column.generationExpression(),
            identity=None
            if identity is None
            else Identity(
                identity.getStart(),
                identity.getStep(),
                always=not identity.isAllowExplicitInsert(),
            ),
            default=None if default is None else default.getSql(),
            metadata={**metadata, **field.metadata},
        )


def _schema(jvm: Jvm, columns: Iterable[Any]) -> StructType:
    """Return the columns' names and types, with declarations such as `char(n)`."""
    schema = jvm.root.org.apache.spark.sql.types.StructType()
    for column in columns:
        schema = schema.add(column.name(), column.dataType(), column.nullable())
    # Spark says the collation where a statement does, even that of all strings of a table.
    text = str(schema.json()).replace(_PLAIN_COLLATION, '"string"')
    try:
        return schema_from_json(replace_char_varchar(text))
    except SchemaError as error:
        if error.kind != UNKNOWN_TYPE:
            raise
        raise SchemaError(
            f"A column can't be in a Delta table: {error.args[0]} Nothing was written. Give it "
            "another type.",
            kind="DELTA_UNSUPPORTED_DATA_TYPES",
            **error.fields,
        ) from None


def _layout(transforms: Any) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the partition columns, and the columns to cluster by."""
    partition_by: list[str] = []
    cluster_by: list[tuple[str, ...]] = []
    for transform in transforms:
        name = str(transform.name())
        paths = [tuple(reference.fieldNames()) for reference in transform.references()]
        if name == _CLUSTER_BY:
            cluster_by += paths
        elif name == _IDENTITY and all(len(path) == 1 for path in paths):
            partition_by += [name for (name,) in paths]
        else:
            raise _unsupported_layout(transform)
    return tuple(partition_by), tuple(cluster_by)


def _unsupported_layout(transform: Any) -> SchemaError:
    is_bucketing = _BUCKET in str(transform.name())
    what = "Bucketing" if is_bucketing else "Partitioning by expressions"
    # Not all of the classes of transforms are public, and what those have can't be called.
    text = str(transform.toString())
    return SchemaError(
        f"{what} is not supported for Delta tables: {shown(text)}. Nothing was written. "
        "Partition by columns, which may be generated, or use CLUSTER BY.",
        kind="DELTA_OPERATION_NOT_ALLOWED_DETAIL"
        if is_bucketing
        else "DELTA_OPERATION_NOT_ALLOWED",
        operation=what,
    )
