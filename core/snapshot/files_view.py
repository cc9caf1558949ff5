"""`FilesView`: files, and the metadata that describes their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.errors import SchemaError
from optimist.core.errors.argument_types import ensure_text
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.errors.short_repr import path_in_repr
from optimist.core.forking import ForkSafeLock
from optimist.core.log.file_source import FileSource
from optimist.core.log.file_table import FILES_SCHEMA, canonical_paths
from optimist.core.log.replay import TableState
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.field_keys import metadata_that_counts
from optimist.core.protocol.gates import DEFAULT_PROTOCOL, is_active
from optimist.core.protocol.properties import TableProperties
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.runtime.observers import observed
from optimist.core.schema.types import StructField, StructType
from optimist.core.snapshot import by_need

if TYPE_CHECKING:
    from optimist.core.log.file_choice import FileChoice
    from optimist.core.predicates import Predicate
    from optimist.core.skipping.predicate_choice import PartitionTexts
    from optimist.core.skipping.pruner import FilePruner, RowCount
    from optimist.core.snapshot.scan import Scan, Scanner

__all__ = ["FilesView"]

_Result = TypeVar("_Result")

_NO_METADATA = Metadata(id="", schema_string='{"type":"struct","fields":[]}')


class FilesView:
    """Files that are read like a table: of a table version, or of one part of a change feed.

    Threads may share it, and its content never changes.

    Attributes:
        table_path: The table's directory. Relative paths start from it.
        version: The version of the table that the view is made from, or -1 without a table.
        protocol: The table's protocol.
        metadata: Schema, partitioning and properties of the files.
        schema: The columns, partition columns included, with the metadata keys that count for this
            table.
        partition_columns: The logical names of the partition columns, in order.
        properties: The table properties, parsed.
        log_identity: A text for keys that distinguishes the log of this version from earlier and
            later logs at the path. Empty if unknown.
    """

    def __init__(
        self,
        table_path: str,
        version: int,
        *,
        table: TableState,
        source: FileSource,
        store: LogStore | None,
        options: EngineOptions,
    ) -> None:
        self.table_path = table_path
        self.version = version
        self.log_identity = ""
        self.protocol: Protocol = table.protocol or DEFAULT_PROTOCOL
        self.metadata: Metadata = table.metadata or _NO_METADATA
        parsed = TableMetadata.of(metadata_that_counts(self.metadata, self.protocol))
        self.schema: StructType = parsed.schema
        self.partition_columns: tuple[str, ...] = parsed.partition_columns
        self.properties: TableProperties = parsed.properties
        self._source = source
        self._store = store
        self._options = options
        self._kept_scanner: Scanner | None = None
        self._scanner_lock = ForkSafeLock()

    def __repr__(self) -> str:
        path = path_in_repr(self.table_path)
        return f"{type(self).__name__}(table_path={path}, version={self.version})"

    @cached_property
    def data_paths(self) -> DataPaths:
        """The meaning of the paths in `files`, and the rule which of them may be opened."""
        path, store = self.table_path, self._store
        origin = store.data_origin(path) if store else DataOrigin.of(path)
        return DataPaths(path, origin, self._options.paths_outside_table)

    def has_active(self, feature: str) -> bool:
        """Return whether a table feature is present and in use, not just set by a property."""
        ensure_text(feature, "feature")
        return is_active(feature, self.protocol, self.metadata)

    @property
    def zone(self) -> str:
        """The time zone of the session, by the engine's options."""
        return self._options.zone

    @property
    def files(self) -> pa.Table:
        """The files, one row each, columns of `FILES_SCHEMA` (path as in the log)."""
        return self._source.table()

    @property
    def num_files(self) -> int:
        """The number of files."""
        return self._source.sums().num_files

    @property
    def size_in_bytes(self) -> int:
        """The sum of the files' sizes."""
        return self._source.sums().size_bytes

    @property
    def answers_from_log(self) -> bool:
        """Whether queries may be answered by statistics alone, by the engine's options."""
        return self._options.answers_from_log

    @property
    def has_zoned_partitions(self) -> bool:
        """Whether partition values may be times without a zone, which need the session's zone."""
        return any(str(item.data_type) == "timestamp" for item in self.partition_schema)

    @property
    def partition_schema(self) -> StructType:
        """The partition columns as a schema.

        Raises:
            SchemaError: A partition column is not in the schema (kind
                `DELTA_PARTITION_COLUMN_NOT_FOUND`).
        """
        return StructType(tuple(self._field(name) for name in self.partition_columns))

    def physical_name(self, column: str) -> str:
        """Return the name of a column in data files, statistics and partition values (spec 10.8).

        Raises:
            SchemaError: The column does not exist (kind `DELTA_COLUMN_NOT_FOUND`).
        """
        ensure_text(column, "column")
        return self._field(column).physical_name

    def scan(self, predicate: str | Predicate | None = None, *, limit: int | None = None) -> Scan:
        """Return the files that may hold matching rows, or all of them without a predicate.

        Conjuncts on partition columns decide exactly. Statistics only leave out files that can't
        match.

        Args:
            predicate: SQL text or a tree.
            limit: The number of matching rows that are enough. If statistics prove that some of the
                files hold so many, only those files are returned.

        Raises:
            UsageError: The predicate does not parse or names an unknown column.
        """
        with observed("scan", self.table_path) as facts:
            found = self._scanner.scan(predicate, limit)
            facts["version"], facts["files"] = self.version, found.files.num_rows
        return found

    def count(self, predicate: str | Predicate | None = None) -> RowCount:
        """Count the rows that match, as far as the log shows without reading them (spec 9.5).

        Deleted rows are not counted. A file is undecided unless partition values and statistics
        prove that all of its rows match, or none.

        Raises:
            UsageError: As `scan`.
        """
        return self._scanner.count(predicate)

    def scanner(self, *, zone: str) -> Scanner:
        """Return a new scanner of the files, by the engine's options.

        Args:
            zone: The time zone for days and local times in predicates.
        """
        columns = self.partition_columns
        return by_need.Scanner(self._source, self.schema, columns, self._options, zone)

    def files_at(self, paths: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Return the files with one of these paths, in any spelling, whatever their vectors."""
        wanted = canonical_paths(paths)
        return self.files_where(
            "path", lambda found: pc.is_in(canonical_paths(found), value_set=wanted)
        )

    def files_where(self, column: str, keep: Callable[[pa.ChunkedArray], pa.Array]) -> pa.Table:
        """Return the files that a test of one column keeps.

        Args:
            column: A column of `files`.
            keep: Returns a mask for values of the column. It may be called for one part of the
                files after the other.
        """
        return self._scanner.files_where(column, keep)

    def files_of(self, choice: FileChoice) -> pa.Table:
        """Return the files that a choice wants, in its columns, read without the others."""
        return self._scanner.files_of(choice)

    def in_partitions(
        self, partitions: Sequence[PartitionTexts], columns: Sequence[str] = FILES_SCHEMA.names
    ) -> pa.Table:
        """Return the files of some partitions, read without the others.

        Args:
            partitions: The partitions, by their texts in the log.
            columns: The columns to read, of those of `files`. `path` and `deletionVector` are
                always among them.
        """
        return self._scanner.in_partitions(partitions, columns)

    def read_columns(
        self,
        columns: Sequence[str],
        use: Callable[[Iterator[pa.RecordBatch]], _Result],
        predicate: str | Predicate | None = None,
    ) -> _Result:
        """Return what a function makes of some columns of the files, which it takes in batches.

        Args:
            columns: The columns to read, of those of `files`. Batches may have more.
            use: The function. It need not take all batches. It is called again, from the first
                file on, if a checkpoint turns out to be damaged.
            predicate: SQL text or a tree; files that can't hold matching rows are left out.

        Raises:
            UsageError: As `scan`.
        """
        return self._scanner.read_columns(columns, use, predicate)

    def pruner(self) -> FilePruner:
        """Return a new pruner of all files, by the engine's options, for many predicates."""
        return self._scanner.pruner_of_all()

    @property
    def _scanner(self) -> Scanner:
        """The scanner that keeps what it has parsed, for all questions."""
        with self._scanner_lock:
            if self._kept_scanner is None:
                self._kept_scanner = self.scanner(zone=self.zone)
            return self._kept_scanner

    def _field(self, name: str) -> StructField:
        field = self.schema.find(name)
        if field is None:
            raise SchemaError(
                f"The table {self.table_path} has no column {quoted(name)}. Its columns are: "
                f"{listed(self.schema.names)}.",
                kind="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        return field
