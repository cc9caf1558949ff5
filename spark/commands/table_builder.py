"""`DeltaTableBuilder`: names and signatures of `delta.tables`, to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.commands.create.create import create_table
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.expressions import NotSqlError, parse_type
from optimist.core.requests.table_definition import (
    Column,
    CreateMode,
    Identity,
    TableDefinition,
    columns_of,
)
from optimist.core.sql import path_in_name
from optimist.core.statements.creations import one_place
from optimist.spark.commands.catalog.named_tables import create_named
from optimist.spark.commands.reading.read import open_target
from optimist.spark.session.arguments import ensure_exactly
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.pyspark_versions import ensure_supported
from optimist.spark.spark_schema import from_spark_schema
from optimist.spark.sql.quoted_texts import ensure_definition_reads_alike

if TYPE_CHECKING:
    from optimist.spark.commands.tables import DeltaTable

__all__ = ["DeltaTableBuilder", "IdentityGenerator"]


@dataclass
class IdentityGenerator:
    """The numbers that the engine assigns to a column.

    Attributes:
        start: The first number.
        step: The difference between two numbers; not 0.
    """

    start: int = 1
    step: int = 1


class DeltaTableBuilder:
    """A table that is to be created or replaced.

    Get one with `DeltaTable.create`, `createIfNotExists`, `replace` or `createOrReplace`. Each
    method sets a part of the definition and returns the builder; `execute` creates the table.
    """

    def __init__(
        self, spark: SparkSession | None, mode: CreateMode, tables: type[DeltaTable]
    ) -> None:
        self._spark = _given_or_active_session(spark)
        self._tables = tables
        self._definition = TableDefinition(mode=mode)
        self._name: str | None = None
        self._location: str | None = None

    def tableName(self, identifier: str) -> DeltaTableBuilder:
        """Set the table's name in Spark's catalog, or its path as ``delta.`/path` ``."""
        ensure_exactly(identifier, (str,), "Identifier", "str")
        self._name = identifier
        return self

    def location(self, location: str) -> DeltaTableBuilder:
        """Set the table's path."""
        ensure_exactly(location, (str,), "Location", "str")
        self._location = location
        return self

    def comment(self, comment: str) -> DeltaTableBuilder:
        """Set the table's comment."""
        ensure_exactly(comment, (str,), "Table comment", "str")
        return self._with(comment=comment)

    def addColumn(
        self,
        colName: str,
        dataType: str | st.DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder:
        """Add a column.

        Args:
            colName: Its name.
            dataType: Its type, SQL text or a type of PySpark.
            nullable: True if it may hold nulls.
            generatedAlwaysAs: SQL that computes it from other columns of the row, or the numbers
                that the engine always assigns.
            generatedByDefaultAs: The numbers that the engine assigns if a write has none.
            comment: A description for people.

        Raises:
            ArgumentTypeError: An argument has the wrong type; this is a `TypeError`, too.
            UsageError: Both ways to generate values are given, a step is 0, or a text is not an SQL
                type (kind `PARSE_SYNTAX_ERROR`).
            SchemaError: A table can't have the type.
        """
        ensure_exactly(colName, (str,), "Column name", "str")
        if not isinstance(dataType, st.DataType):
            ensure_exactly(dataType, (str,), "Column data type", "str or DataType")
        ensure_exactly(nullable, (bool,), "Column nullable", "bool")
        identity = _parse_identity(generatedAlwaysAs, generatedByDefaultAs)
        if comment is not None:
            ensure_exactly(comment, (str,), "Column comment", "str")
        column = replace(
            _make_column(colName, dataType),
            nullable=nullable,
            comment=comment,
            generated_as=generatedAlwaysAs if isinstance(generatedAlwaysAs, str) else None,
            identity=identity,
        )
        column.field()  # refuses an unknown type here, where it is given
        return self._with(columns=(*self._definition.columns, column))

    def addColumns(self, cols: st.StructType | list[st.StructField]) -> DeltaTableBuilder:
        """Add the columns of a schema, such as a DataFrame's."""
        if isinstance(cols, list):
            for item in cols:
                ensure_exactly(item, (st.StructField,), "Column in existing schema", "StructField")
            cols = st.StructType(cols)
        ensure_exactly(cols, (st.StructType,), "Schema", "StructType or a list of StructField")
        added = columns_of(from_spark_schema(cols))
        return self._with(columns=(*self._definition.columns, *added))

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder:
        """Partition by these columns."""
        names = _parse_names(cols, "Partitioning column")
        return self._with(partition_by=(*self._definition.partition_by, *names))

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder:
        """Cluster by these columns, at most four, where ``s.`f.g` `` is a field of a struct."""
        names = _parse_names(cols, "Clustering column")
        return self._with(cluster_by=(*self._definition.cluster_by, *names))

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """Set a table property."""
        for text in (key, value):
            ensure_exactly(text, (str,), "Key and value of property", "string")
        return self._with(properties={**self._definition.properties, key: value})

    @original_errors()
    def execute(self) -> DeltaTable:
        """Create or replace the table, in one commit.

        Returns:
            The table.

        Raises:
            UsageError: Neither name nor location is given; a table or other files exist at the
                location; or the name is a catalog's and the session does not know Delta tables by
                name (kind `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`).
            TableNotFoundError: The table to replace does not exist.
            SchemaError, ConfigError, ProtocolError: The columns or properties are not valid.
            DeltaConcurrentModificationException: Another commit came first; nothing was written.
        """
        given = self._definition
        ensure_definition_reads_alike(self._spark, given.columns, given.properties)
        path = None if self._name is None else path_in_name(self._name)
        if self._name is not None and path is None:
            create_named(self._spark, self._name, self._definition, self._location)
            return self._tables.forName(self._spark, self._name)
        log = open_target(self._spark, one_place(path, self._location))
        create_table(log.start_transaction, self._definition)
        return self._tables.forPath(self._spark, log.table_path)

    def _with(self, **changes: Any) -> DeltaTableBuilder:
        self._definition = replace(self._definition, **changes)
        return self


def _given_or_active_session(given: SparkSession | None) -> SparkSession:
    session = given or SparkSession.getActiveSession()
    if session is None:
        raise UsageError(
            "There is no active session, and none is given. Nothing was written. Give the session.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="sparkSession",
        )
    ensure_supported(session)
    return session


def _make_column(name: str, data_type: str | st.DataType) -> Column:
    if isinstance(data_type, str):
        with original_errors():
            _ensure_type(name, data_type)
        return Column(name, data_type)
    (column,) = columns_of(from_spark_schema(st.StructType([st.StructField(name, data_type)])))
    return column


def _ensure_type(name: str, text: str) -> None:
    try:
        parse_type(text)
    except NotSqlError as error:
        raise UsageError(
            f"The type of the column {shown(name)} can't be {quoted(text)}: {error}. Nothing was "
            "written. Spell it as SQL does, as in array<decimal(10,2)>.",
            kind="PARSE_SYNTAX_ERROR",
            line=error.line,
            column=error.column,
        ) from None


def _parse_identity(always: object, by_default: object) -> Identity | None:
    """Return how the engine assigns a column's numbers, or None."""
    if always is not None and by_default is not None:
        raise _bad_generator("generatedByDefaultAs and generatedAlwaysAs cannot both be set")
    if isinstance(always, str):
        return None
    generator = always if by_default is None else by_default
    if generator is None:
        return None
    if not isinstance(generator, IdentityGenerator):
        argument, wanted = "Generated always as expression", "str or IdentityGenerator"
        if by_default is not None:
            argument, wanted = "Generated by default expression", "IdentityGenerator"
        ensure_exactly(generator, (IdentityGenerator,), argument, wanted)
        raise TypeError(argument)
    if generator.step == 0:
        raise _bad_generator("Column identity generation requires step to be non-zero")
    return Identity(generator.start, generator.step, always=by_default is None)


def _bad_generator(problem: str) -> UsageError:
    return UsageError(
        f"{problem}. Nothing was written.", kind="OPTIMIST_INVALID_ARGUMENT", argument="generated"
    )


def _parse_names(
    given: Sequence[str | list[str] | tuple[str, ...]], argument: str
) -> tuple[str, ...]:
    """Return names that are given one by one, or as one list."""
    names: Sequence[object] = given
    if len(given) == 1 and isinstance(given[0], list | tuple):
        names = given[0]
    for name in names:
        ensure_exactly(name, (str,), argument, "str")
    return tuple(map(str, names))
