"""One scan of the arrow plane in a classic session, as Spark's optimizer asks for it.

Spark offers Python data sources no choice of columns and no limit, and filters only from 4.1 on.
But it asks whatever a table's `newScanBuilder` gives, and that is ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from optimist.core.data.table_ref import TableRef
from optimist.core.forking import ForkSafeLock
from optimist.core.predicates import Predicate
from optimist.core.schema.column_paths import named_path
from optimist.core.skipping.pruner import FilePruner
from optimist.core.snapshot import Snapshot
from optimist.spark.arrow.tasks import Grouping, encode_groups
from optimist.spark.arrow.wanted_rows import WantedRows, cheapest_column
from optimist.spark.conditions.data_filters import data_predicate
from optimist.spark.session.callback_errors import callback
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm

__all__ = ["ScanBuilder", "VersionToScan"]

_CONNECTOR = "org.apache.spark.sql.connector"


@dataclass(frozen=True)
class VersionToScan:
    """A version that frames read, with what is parsed of it once for all their scans.

    Attributes:
        table: The table.
        snapshot: The version.
        zone: The session's time zone.
        grouping: How files become tasks.
    """

    table: TableRef
    snapshot: Snapshot
    zone: str
    grouping: Grouping
    _lock: ForkSafeLock = field(default_factory=ForkSafeLock)

    def files(self, predicate: Predicate, limit: int | None) -> pa.Table:
        """The files that may hold matching rows; with a limit, as few as have so many."""
        if predicate == Predicate.TRUE and limit is None:
            return self.snapshot.files
        use_statistics = self.table.options.stats_skipping
        with self._lock:
            if limit is not None and use_statistics:
                return self._pruner.enough(predicate, limit)
            return self._pruner.prune(predicate, use_statistics=use_statistics)

    def wanted(self, schema: st.StructType, limit: int | None) -> WantedRows:
        """How tasks read these columns."""
        return WantedRows.of(
            self.snapshot,
            schema,
            zone=self.zone,
            access=self.table.data_access(),
            data_paths=self.snapshot.data_paths,
            limit=limit,
        )

    @cached_property
    def _pruner(self) -> FilePruner:
        return self.snapshot.pruner(zone=self.zone)


class ScanBuilder(JavaIdentity):
    """Takes what a query wants, then plans it; the JVM calls it, from one thread."""

    class Java:
        """The interfaces that py4j makes a proxy of."""

        implements = [  # noqa: RUF012 - py4j wants a list
            "org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters",
            f"{_CONNECTOR}.read.SupportsPushDownRequiredColumns",
            f"{_CONNECTOR}.read.SupportsPushDownLimit",
        ]

    def __init__(
        self, jvm: Jvm, version: VersionToScan, plan: Callable[..., Any], schema: Any
    ) -> None:
        """A builder of one scan.

        Args:
            jvm: The session's handles.
            version: What is read.
            plan: `planned_scan`, for all but the rows, the groups and the schema.
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

    # What Spark calls, in this order.

    def pushFilters(self, filters: Any) -> Any:
        """Files are skipped by the filters that are understood; Spark evaluates all of them."""
        with callback():
            schema = self._version.snapshot.schema
            self._predicate = data_predicate(filters, schema, named_path)
            return filters

    def pushedFilters(self) -> Any:
        """None is evaluated here."""
        kind = self._jvm.root.org.apache.spark.sql.connector.expressions.filter.Predicate
        return self._jvm.array(kind, ())

    def pushLimit(self, limit: int) -> bool:
        """Each task stops after so many rows; Spark asks only where no filter is left."""
        self._limit = limit
        return True

    def isPartiallyPushed(self) -> bool:
        """Tasks together may give more rows than the limit."""
        return True

    def pruneColumns(self, required: Any) -> None:
        """Only these columns are read, and of structs only these fields."""
        with callback():
            self._schema = required
            if required.isEmpty():
                # Spark counts the rows of batches, and a batch without columns has none.
                cheapest = cheapest_column(self._version.snapshot)
                self._schema = self._jvm.root.org.apache.spark.sql.types.StructType().add(
                    self._all.apply(cheapest.name)
                )

    def build(self) -> Any:
        """The scan: which files are read is decided here."""
        with callback():
            schema = st.StructType.fromJson(json.loads(self._schema.json()))
            files = self._version.files(self._predicate, self._limit)
            paths = self._version.snapshot.data_paths
            groups = list(encode_groups(paths, files, self._version.grouping))
            rows = self._version.wanted(schema, self._limit)
            return self._plan(rows, groups, self._schema)
