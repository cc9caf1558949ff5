"""One scan of the arrow plane in a classic session, as Spark's optimizer builds it.

Spark pushes no columns and no limit down to Python data sources, and filters only since 4.1. But
Spark asks the object that a table's `newScanBuilder` returns, and here that object is ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import types as st

from optimist.core.predicates import Predicate
from optimist.core.schema.column_paths import named_path
from optimist.spark.arrow.planned_reads import PlannedRows
from optimist.spark.arrow.tasks import encode_groups
from optimist.spark.arrow.version_to_scan import VersionToScan
from optimist.spark.arrow.wanted_rows import cheapest_column
from optimist.spark.conditions.connector_predicates import ConnectorPredicates
from optimist.spark.conditions.data_filters import data_predicate
from optimist.spark.session.callback_errors import callback
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm, iterate
from optimist.spark.session.pyspark_versions import TAKES_FILTERS

__all__ = ["ScanBuilder"]

_CONNECTOR = "org.apache.spark.sql.connector"


class ScanBuilder(JavaIdentity):
    """A builder that collects what a query wants, then plans it.

    The JVM calls it, from one thread.
    """

    class Java:
        """The interfaces for which py4j makes a proxy."""

        implements = [  # noqa: RUF012 - py4j wants a list
            TAKES_FILTERS,
            f"{_CONNECTOR}.read.SupportsPushDownRequiredColumns",
            f"{_CONNECTOR}.read.SupportsPushDownLimit",
        ]

    def __init__(
        self, jvm: Jvm, version: VersionToScan, plan: Callable[..., Any], schema: Any
    ) -> None:
        """Make a builder of one scan.

        Args:
            jvm: The session's handles.
            version: The version to read.
            plan: `planned_scan` with all its arguments but the rows and the schema.
            schema: All columns, a Java `StructType`.
        """
        super().__init__()
        self._jvm = jvm
        self._version = version
        self._plan = plan
        self._all = schema
        self._schema = schema
        self._predicate = Predicate.TRUE
        self._limit: int | None = None

    # Spark calls these methods in this order.

    def pushFilters(self, filters: Any) -> Any:
        """Skip files by the filters that we understand.

        Spark still evaluates all filters.
        """
        with callback():
            schema = self._version.snapshot.schema
            self._predicate = data_predicate(iterate(filters), schema, named_path)
            return filters

    def pushPredicates(self, predicates: Any) -> Any:
        """Skip files by filters in the form of PySpark 4.0."""
        with callback():
            schema = self._version.snapshot.schema
            self._predicate = data_predicate(predicates, schema, named_path, ConnectorPredicates)
            return predicates

    def pushedFilters(self) -> Any:
        """Return no filter, since none is evaluated here."""
        kind = self._jvm.root.org.apache.spark.sql.connector.expressions.filter.Predicate
        return self._jvm.array(kind, ())

    def pushedPredicates(self) -> Any:
        """Return no filter, on PySpark 4.0."""
        return self.pushedFilters()

    def pushLimit(self, limit: int) -> bool:
        """Stop each task after so many rows.

        Spark asks only where no filter is left.
        """
        self._limit = limit
        return True

    def isPartiallyPushed(self) -> bool:
        """Return True: tasks together may give more rows than the limit."""
        return True

    def pruneColumns(self, required: Any) -> None:
        """Read only these columns, and of structs only these fields."""
        with callback():
            self._schema = required
            if required.isEmpty():
                # Spark counts the rows of batches, and a batch without columns has none.
                cheapest = cheapest_column(self._version.snapshot)
                self._schema = self._jvm.root.org.apache.spark.sql.types.StructType().add(
                    self._all.apply(cheapest.name)
                )

    def build(self) -> Any:
        """Choose the files to read, and return the scan."""
        with callback():
            schema = st.StructType.fromJson(json.loads(self._schema.json()))
            files = self._version.files(self._predicate, self._limit)
            paths = self._version.data_paths
            groups = list(encode_groups(paths, files, self._version.grouping))
            rows = self._version.wanted(schema, self._limit)
            size_bytes = int(pc.sum(files["size"], min_count=0).as_py())
            return self._plan(PlannedRows(rows, groups, size_bytes), self._schema)
