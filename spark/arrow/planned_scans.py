"""The relation of a table version in a classic session, each of whose scans is planned by itself.

Spark keeps what a Python source has planned, the effect of pushed filters included, in an object
that all uses of a DataFrame share. A second query over the frame, and the other side of a union or
a self-join, would read only what the filters of the first have left. Here each scan that Spark
plans gets an object of its own: the relation's table is one whose `newScanBuilder` starts afresh.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.arrow.planned_reads import PlannedRows, planned_scan
from optimist.spark.arrow.row_metadata import METADATA, metadata_type
from optimist.spark.arrow.scan_builder import ScanBuilder
from optimist.spark.arrow.version_to_scan import VersionToScan
from optimist.spark.session.callback_errors import callback
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate

__all__ = ["with_planned_scans"]

_CATALOG = "org.apache.spark.sql.connector.catalog"


def with_planned_scans(frame: DataFrame, version: VersionToScan, key: str) -> DataFrame:
    """The frame of a Python data source, changed so that its scans are planned by us.

    Args:
        frame: What `load()` gave, in a classic session.
        version: What it reads.
        key: Equal for frames that read the same rows; Spark then shares caches between them.
    """
    jvm = Jvm.of(frame.sparkSession)
    return jvm.frame(_replaced(jvm, analyzed_plan(frame), version, key))


def _replaced(jvm: Jvm, plan: Any, version: VersionToScan, key: str) -> Any:
    """The plan with our table in its relation; Spark lays a projection of char columns over it."""
    children = list(iterate(plan.children()))
    if children:
        new = (_replaced(jvm, child, version, key) for child in children)
        return plan.withNewChildren(jvm.seq(new))
    parts = [plan.productElement(place) for place in range(plan.productArity())]
    parts[0] = _Table(jvm, plan.table(), version, key)
    return plan.copy(*parts)


class _Table(JavaIdentity):
    """Spark's table of a Python source, with scan builders of our own; the JVM calls it."""

    class Java:
        """The interfaces that py4j makes a proxy of."""

        implements = [  # noqa: RUF012 - py4j wants a list
            f"{_CATALOG}.SupportsRead",
            f"{_CATALOG}.SupportsMetadataColumns",
        ]

    def __init__(self, jvm: Jvm, table: Any, version: VersionToScan, key: str) -> None:
        super().__init__(key)
        self._jvm = jvm
        self._table = table
        self._version = version
        self._name = str(table.name())
        self._schema = table.schema()

    def __getattr__(self, name: str) -> Any:
        # Proxies do not inherit Java's default methods, which differ from version to version.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._table, name)

    def name(self) -> str:
        """The source's name, which Spark asks for all the time."""
        return self._name

    def newScanBuilder(self, options: Any) -> Any:
        """A builder that shares its planning with no other scan."""

        def plan(read: PlannedRows, schema: Any) -> Any:
            return planned_scan(self._jvm, self._name, read, schema, options)

        return ScanBuilder(self._jvm, self._version, plan, self._schema)

    def metadataColumns(self) -> Any:
        """The hidden columns that a query may name."""
        with callback():
            return self._metadata_columns

    @cached_property
    def _metadata_columns(self) -> Any:
        found = metadata_type(self._version.snapshot)
        columns = [] if found is None else [_MetadataColumn(self._jvm, found)]
        kind = self._jvm.java_class(f"{_CATALOG}.MetadataColumn")
        tag = self._jvm.module("scala.reflect.ClassTag$").apply(kind)
        return self._jvm.seq(columns).toArray(tag)  # py4j puts no proxies into arrays

    def canRenameConflictingMetadataColumns(self) -> bool:
        """A column of the table's own hides them."""
        return False


class _MetadataColumn(JavaIdentity):
    """`_metadata`; the JVM calls it."""

    class Java:
        """The interface that py4j makes a proxy of."""

        implements = [f"{_CATALOG}.MetadataColumn"]  # noqa: RUF012 - py4j wants a list

    def __init__(self, jvm: Jvm, data_type: Any) -> None:
        super().__init__()
        self._type = jvm.session.parseDataType(json.dumps(data_type.jsonValue()))

    def name(self) -> str:
        """Its name."""
        return METADATA

    def dataType(self) -> Any:
        """Its type."""
        return self._type

    def isNullable(self) -> bool:
        """Every row has a file."""
        return False

    def comment(self) -> None:
        """It has none."""

    def transform(self) -> None:
        """It is not made of other columns."""

    def metadataInJSON(self) -> None:
        """It has none."""
