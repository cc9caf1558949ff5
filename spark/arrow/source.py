"""A Python data source over one table version; pyarrow reads its files.

*Assumes* that this package is installed where Spark's Python workers run, the driver's among them.
*Provides* a scan whose tasks are balanced groups of files. It reads the columns of the frame's
schema, and the files that its options leave. *Does not provide* filters that Spark pushes down:
Spark would use the plan of a filtered query for other queries, too. Classic sessions plan without
this source, by `scan_builder`.

The planning worker opens the table again at the version that the frame was made from, with the
options of the log's store. These options may hold secrets, so they travel inside the pickled class
and never as options of the source, which plans and the UI show.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NoReturn

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType as SparkStruct

from optimist.core.data.storage.data_paths import SAME_STORE
from optimist.core.errors import TableError, UsageError
from optimist.core.forking import ForkSafeLock
from optimist.core.predicates import Predicate
from optimist.core.secrets import Options
from optimist.core.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.arrow.known_rows import KnownRows, known_rows
from optimist.spark.arrow.tasks import Grouping, encode_groups
from optimist.spark.arrow.version_to_scan import VersionToScan
from optimist.spark.rows.scanned_table import ScannedTable
from optimist.spark.session.pyspark_versions import session_id
from optimist.spark.session.task_errors import portable_errors

__all__ = ["SOURCE_PREFIX", "ScanOptions", "TableReadSource", "register_source"]

SOURCE_PREFIX = "optimist_"
_LOCK = ForkSafeLock()
_SOURCES: dict[str, dict[Options, str]] = {}
"""Names of the sources registered with each session, which may have many Python objects."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """The version to read, and how, without secrets, since Spark shows these options.

    Attributes:
        path: The table.
        version: The version.
        table_id: The table's id: a path may be deleted and used again for another table.
        log_identity: See `FilesView`; a log that was restored has the same id and versions.
        zone: The session's time zone.
        grouping: How files become tasks.
        is_time_travel: The user chose the version, by number or time.
        outside: Which files outside the table may be read; see `DataPaths`.
        predicate: Which rows are needed, as SQL that our own parser reads.
        without: Keys of the conf that would give the text of the predicate another meaning, if they
            were true; see `known_without`.
        limit: How many rows are enough; None for all.
        follows: The client reads the table's newest version at each action.
        counts_only: Nobody looks at the values of the columns, only at the number of rows.
    """

    path: str
    version: int
    table_id: str
    log_identity: str
    zone: str
    grouping: Grouping
    is_time_travel: bool = False
    outside: str = SAME_STORE
    predicate: str = str(Predicate.TRUE)
    without: tuple[str, ...] = ()
    limit: int | None = None
    follows: bool = False
    counts_only: bool = False

    def to_options(self) -> dict[str, str]:
        """Return the values as options of a data source, which are text."""
        return {
            "path": self.path,
            "version": str(self.version),
            "tableId": self.table_id,
            "logIdentity": self.log_identity,
            "zone": self.zone,
            "maxBytes": str(self.grouping.max_bytes),
            "numGroups": str(self.grouping.num_groups),
            "openCost": str(self.grouping.open_cost),
            "isTimeTravel": str(self.is_time_travel).lower(),
            "outside": self.outside,
            "predicate": self.predicate,
            "without": " ".join(self.without),
            "limit": "" if self.limit is None else str(self.limit),
            "follows": str(self.follows).lower(),
            "countsOnly": str(self.counts_only).lower(),
        }

    @property
    def scanned_table(self) -> ScannedTable:
        """The version and table that are scanned."""
        return ScannedTable(self.path, self.table_id, self.version, self.is_time_travel)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ScanOptions:
        """Parse the output of `to_options`, with keys in any case."""
        folded = {key.lower(): value for key, value in options.items()}
        return cls(
            path=folded["path"],
            version=int(folded["version"]),
            table_id=folded["tableid"],
            log_identity=folded["logidentity"],
            zone=folded["zone"],
            grouping=Grouping(
                int(folded["maxbytes"]), int(folded["numgroups"]), int(folded["opencost"])
            ),
            is_time_travel=folded["istimetravel"] == "true",
            outside=folded["outside"],
            predicate=folded["predicate"],
            without=tuple(folded["without"].split()),
            limit=int(folded["limit"]) if folded["limit"] else None,
            follows=folded["follows"] == "true",
            counts_only=folded["countsonly"] == "true",
        )


class TableReadSource(DataSource):
    """Table versions as a data source, whose classes `register_source` makes."""

    source_name: ClassVar[str] = ""
    store_options: ClassVar[Options] = Options()

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return cls.source_name

    def reader(self, schema: SparkStruct) -> DataSourceReader:
        """Return a reader of the columns in the frame's schema."""
        scan = ScanOptions.from_options(self.options)
        with portable_errors():
            return _Reader(scan, self.store_options, schema)

    def writer(self, schema: SparkStruct, overwrite: bool) -> NoReturn:  # noqa: ARG002 - Spark's
        """Refuse rows, when Spark wants to write to a view over a table."""
        path = ScanOptions.from_options(self.options).path
        with portable_errors():
            raise UsageError(
                f"This is a view of, or a frame over, the table at {path}, and neither can be "
                "written to. Nothing was written. Write to the table itself: "
                f"INSERT INTO delta.`{path}`.",
                kind="OPTIMIST_UNSUPPORTED_STATEMENT",
                path=path,
            )


def register_source(spark: SparkSession, options: Mapping[str, str]) -> str:
    """Register the source for these store options on first use, and return its name.

    One source serves all versions of all tables, because Spark keeps each registered source until
    the session ends.
    """
    opened_with = Options(options)
    with _LOCK:
        sources = _SOURCES.setdefault(session_id(spark), {})
        if opened_with not in sources:
            name = SOURCE_PREFIX + uuid.uuid4().hex[:12]
            members: dict[str, Any] = {"source_name": name, "store_options": opened_with}
            spark.dataSource.register(type(name, (TableReadSource,), members))
            sources[opened_with] = name
        return sources[opened_with]


@dataclass(frozen=True, slots=True)
class _Group(InputPartition):
    """The files of one task, as Arrow's bytes."""

    data: bytes

    def __repr__(self) -> str:
        return f"_Group({len(self.data)} bytes)"


@dataclass(frozen=True, slots=True)
class _Known(InputPartition):
    """The rows of one task that reads no file."""

    rows: KnownRows

    def __repr__(self) -> str:
        return f"_Known({self.rows.end - self.rows.start} rows)"


class _Reader(DataSourceReader):
    """A reader that plans beside the driver, is pickled, and reads on the executors."""

    def __init__(self, scan: ScanOptions, store_options: Options, schema: SparkStruct) -> None:
        self._scan = scan
        self._store_options = store_options
        self._rows = self._version().wanted(schema, scan.limit)

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per group of files, so without files none."""
        with portable_errors():
            version, scan = self._version(), self._scan
            files = version.files(Predicate.parse(scan.predicate), scan.limit)
            known = known_rows(version, files, self._rows, counts_only=scan.counts_only)
            if known is not None:
                return [_Known(rows) for rows in known]
            groups = encode_groups(version.data_paths, files, scan.grouping)
            return [_Group(data) for data in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one group."""
        with portable_errors():
            if isinstance(partition, _Known):
                yield from partition.rows.batches(self._rows)
            elif isinstance(partition, _Group):  # else Spark's own stand-in for "no partitions"
                yield from self._rows.read(partition.data)

    def _version(self) -> VersionToScan:
        scan, options = self._scan, self._store_options
        known_by = (scan.table_id, scan.log_identity)
        snapshot = _snapshot(scan.path, scan.version, known_by, options)
        return VersionToScan(
            _log(scan.path, options).table,
            snapshot,
            scan.zone,
            scan.grouping,
            replace(snapshot.data_paths, outside=scan.outside),
        )


def _log(path: str, store_options: Options) -> DeltaLog:
    return DeltaLog.for_path(path, store_options)


@lru_cache(maxsize=16)  # Spark's planning asks twice, and its workers live on between queries
def _snapshot(
    path: str, version: int, known_by: tuple[str, str], store_options: Options
) -> Snapshot:
    snapshot = _log(path, store_options).snapshot(version)
    table_id, log_identity = known_by
    if snapshot.metadata.id != table_id or not snapshot.may_be_of_log(log_identity):
        raise TableError(
            f"The table at {path} is not the table that the DataFrame was made from: it has been "
            "deleted and created again since, or restored from a copy. Nothing was read. Read the "
            "table again.",
            kind="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
            path=path,
        )
    return snapshot
