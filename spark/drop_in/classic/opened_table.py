"""A table as Spark's analyzer has it, with what Python knows of it.

Spark holds a Java `DeltaTable`; it asks its `OpenedTable` for the plan of its rows where the table
is read, and tells it what to do where the table is written.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.commands.truncate import truncate
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.statements.shows import shown_properties
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.catalog.names import CatalogTable
from optimist.spark.commands.reading.read import TableVersion, read
from optimist.spark.drop_in.classic.partitions import show_partitions, truncates_partition
from optimist.spark.drop_in.classic.shown_statement import show_statement
from optimist.spark.drop_in.compiler import dropin
from optimist.spark.drop_in.shared.options import read_options
from optimist.spark.drop_in.table_identity import table_identity
from optimist.spark.native.listing import hadoop_path
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.callback_errors import callback, current_origin
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm, analyzed_plan, known_to_spark, text_map
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["OpenedTable", "opened_table"]

_OPENED: weakref.WeakValueDictionary[str, OpenedTable] = weakref.WeakValueDictionary()


class OpenedTable(JavaIdentity):
    """One version of a table, opened for one statement, as an object that the JVM calls.

    Attributes:
        spark: The session.
        log: The table.
        version: The version; None for a table that is yet to be made, or for its changes.
        snapshot: The same.
        name: The name for messages, as SQL writes it.
        entry: The entry in Spark's catalog; None for a path.
    """

    class Java:
        """The interface that py4j makes a proxy of."""

        implements = ["scala.Function2"]  # noqa: RUF012 - py4j wants a list

    def __init__(
        self,
        spark: SparkSession,
        log: DeltaLog,
        name: str,
        *,
        version: TableVersion | None = None,
        entry: CatalogTable | None = None,
        rows: Callable[[], DataFrame] | None = None,
    ) -> None:
        """Make a table of a session, where `rows` makes a new frame for each use.

        Where nobody chose the version, queries read the one that is the newest when they run
        (`newest_versions.py`).
        """
        super().__init__()
        self.spark = spark
        self.log = log
        self.name = name
        self.version = version
        self.snapshot = None if version is None else version.snapshot
        self.entry = entry
        self._is_newest = version is not None and not version.is_time_travel
        self._rows = rows if version is None else partial(version.frame, spark)
        _OPENED[self.toString()] = self

    @property
    def path(self) -> str:
        """Where the table is."""
        return self.log.table_path

    def java(self, schema: st.StructType, *, kind: str = "DeltaTable") -> Any:
        """Return the table for Spark.

        Args:
            schema: Its columns; NOT NULL is told, and Spark trusts it, as with Delta's jar.
            kind: The Java class.

        Raises:
            SchemaError: Spark's JVM does not know a type (kind `OPTIMIST_UNKNOWN_TYPE`).
        """
        jvm = Jvm.of(self.spark)
        with known_to_spark():
            columns = jvm.struct(schema)
        make = getattr(dropin(jvm), kind)
        properties = jvm.root.java.util.HashMap(self._properties())
        identity = self._identity(jvm)
        return make(self, self.name, columns, self._partitioning(jvm), properties, identity)

    def _identity(self, jvm: Jvm) -> str | None:
        """See `java/DeltaTable.java`."""
        if self.version is None or not self._is_newest:
            return None
        table = table_identity(jvm, self.log.table, self.version.snapshot)
        # In another zone, or of other partitions, the rows are others.
        chosen = None if self.version.partition is None else dict(self.version.partition.values)
        return f"{table} {self.version.zone} {chosen}"

    def ensure_changeable(self, verb: str) -> None:
        """Refuse to change what a name has chosen of a table: a version, or some partitions.

        Args:
            verb: What the statement is called.

        Raises:
            UsageError: See `ensure_whole_table`.
        """
        if self.version is not None:
            self.version.ensure_whole_table(verb, self.name)

    # What the JVM calls.

    def apply(self, what: str, argument: Any) -> Any:
        """Do what is asked."""
        with callback(lambda: current_origin(self.spark.sparkContext)):
            return self._answer(what, argument)

    def _answer(self, what: str, argument: Any) -> Any:
        """Return the plan of the rows or of a command, or None once the rows are gone."""
        if what == "plan" and self._rows is not None:
            return analyzed_plan(self._rows() if argument is None else self._changes(argument))
        if what == "table":
            return self._as_it_is_now()
        if what == "partitions" and self.snapshot is not None:
            return show_partitions(self.spark, self.snapshot, self.name, argument)
        if what == "truncate partition":
            raise truncates_partition(self.name)
        if what == "statement" and self.snapshot is not None:
            return show_statement(self.spark, self.snapshot, self.name, self.entry)
        if what == "truncate":
            self.ensure_changeable("TRUNCATE TABLE")
            truncate(self.log.start_transaction(self.log.snapshot()))
            return None
        raise not_built_yet(f"The operation {what!r} on {self.name} through Spark's catalog")

    def _as_it_is_now(self) -> Any:
        """Return the newest version for a change, or None if this is only a part of the table."""
        if self.version is None or self.version.partition is not None:
            return None
        newest = self.version.at(self.log.snapshot())
        table = OpenedTable(self.spark, self.log, self.name, version=newest, entry=self.entry)
        return table.java(to_spark_schema(newest.snapshot.schema))

    def _changes(self, options: Any) -> DataFrame:
        """Return the changes that a reader with `readChangeFeed` asks for."""
        given = text_map(self.spark, options.asCaseSensitiveMap())
        return read(self.spark, self.path, **read_options(given))

    # What Spark's commands show.

    def _partitioning(self, jvm: Jvm) -> Any:
        expressions = jvm.root.org.apache.spark.sql.connector.expressions
        transforms: list[Any] = []
        if self.snapshot is not None:
            names = self.snapshot.metadata.partition_columns
            transforms = [expressions.Expressions.identity(quoted(name)) for name in names]
            clustered = clustering_columns(self.snapshot.domain_metadata, self.snapshot.schema)
            if clustered:
                columns = [
                    expressions.Expressions.column(".".join(map(quoted, path)))
                    for path in clustered
                ]
                transforms.append(expressions.ClusterByTransform(jvm.seq(columns)))
        return jvm.array(expressions.Transform, transforms)

    def _properties(self) -> dict[str, str]:
        """Return the table's properties as Delta shows them, with protocol and location."""
        shown = {"provider": "delta", "location": self.path}
        if self.entry is not None:
            shown["location"] = hadoop_path(self.path)
            shown["is_managed_location" if self.entry.is_managed else "external"] = "true"
            if self.entry.owner:
                shown["owner"] = self.entry.owner
        return shown if self.snapshot is None else shown | shown_properties(self.snapshot)


def opened_table(java_table: Any) -> OpenedTable:
    """Return the table behind a Java `DeltaTable`."""
    return _OPENED[str(java_table.python().toString())]
