"""One version of a table as scans read it: which of its files, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import types as st

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.table_ref import TableRef
from optimist.core.predicates import Predicate
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.scan import Scanner
from optimist.spark.arrow.tasks import Grouping
from optimist.spark.arrow.wanted_rows import WantedRows

__all__ = ["VersionToScan"]


@dataclass(frozen=True)
class VersionToScan:
    """A version that frames read, parsed once for all their scans.

    Attributes:
        table: The table.
        snapshot: The version.
        zone: The session's time zone.
        grouping: How files become tasks.
        data_paths: Resolves the log's paths.
    """

    table: TableRef
    snapshot: Snapshot
    zone: str
    grouping: Grouping
    data_paths: DataPaths

    def files(self, predicate: Predicate, limit: int | None) -> pa.Table:
        """Return the files that may hold matching rows, and no more of them than a limit needs."""
        return self._scanner.files(predicate, limit)

    def wanted(self, schema: st.StructType, limit: int | None) -> WantedRows:
        """Return how tasks read these columns."""
        return WantedRows.of(
            self.snapshot,
            schema,
            zone=self.zone,
            access=self.table.data_access(),
            data_paths=self.data_paths,
            limit=limit,
        )

    @cached_property
    def _scanner(self) -> Scanner:
        return self.snapshot.scanner(zone=self.zone)
