"""The relation of a table version in a classic session; each scan gets its own plan.

Spark keeps a Python source's plan, with the filters that were pushed down, in an object that all
uses of a DataFrame share. So a second query over the frame, or the other side of a union or a
self-join, would read only what the first query's filters have left. Here each scan that Spark plans
gets its own object: `newScanBuilder` of the relation's table starts afresh.
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
    """Return the frame of a Python data source with scans that we plan.

    Args:
        frame: The result of `load()` in a classic session.
        version: What it reads.
        key: Equal for frames that read the same rows; Spark then shares caches between them.
    """
    jvm = Jvm.of(frame.sparkSession)
    return jvm.frame(_replace_table(jvm, analyzed_plan(frame), version, key))


def _replace_table(jvm: Jvm, plan: Any, version: VersionToScan, key: str) -> Any:
    """Put our table into the plan's relation, below any projection of char columns."""
    children = list(iterate(plan.children()))
    if children:
        new = (_replace_table(jvm, child, version, key) for child in children)
        return plan.withNewChildren(jvm.seq(new))
    parts = [plan.productElement(index) for index in range(plan.productArity())]
    parts[0] = _Table(jvm, plan.table(), version, key)
    return plan.copy(*parts)


class _Table(JavaIdentity):
    """Spark's table of a Python source, with our scan builders, which the JVM calls."""

    class Java:
        """The interfaces for which py4j makes a proxy."""

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
        """Return the source's name, which Spark asks for all the time."""
        return self._name

    def newScanBuilder(self, options: Any) -> Any:
        """Return a builder that shares its plan with no other scan."""

        def plan(read: PlannedRows, schema: Any) -> Any:
            return planned_scan(self._jvm, self._name, read, schema, options)

        return ScanBuilder(self._jvm, self._version, plan, self._schema)

    def metadataColumns(self) -> Any:
        """Return the hidden columns that a query may name."""
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
        """Return False: a column of the table hides a hidden column of the same name."""
        return False


class _MetadataColumn(JavaIdentity):
    """The hidden column `_metadata`, which the JVM asks for."""

    class Java:
        """The interface for which py4j makes a proxy."""

        implements = [f"{_CATALOG}.MetadataColumn"]  # noqa: RUF012 - py4j wants a list

    def __init__(self, jvm: Jvm, data_type: Any) -> None:
        super().__init__()
        self._type = jvm.session.parseDataType(json.dumps(data_type.jsonValue()))

    def name(self) -> str:
        """Return the column's name."""
        return METADATA

    def dataType(self) -> Any:
        """Return the column's type."""
        return self._type

    def isNullable(self) -> bool:
        """Return False, since every row has a file."""
        return False

    def comment(self) -> None:
        """Return None, since the column has no comment."""

    def transform(self) -> None:
        """Return None, since the column is not computed from other columns."""

    def metadataInJSON(self) -> None:
        """Return None, since the column has no metadata."""
