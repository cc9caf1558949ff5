"""`FilesView`: files, and the metadata that describes their rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import pyarrow as pa

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.log.replay import TableState
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import LogStore
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.field_keys import metadata_that_counts
from optimist.core.protocol.gates import DEFAULT_PROTOCOL, is_active
from optimist.core.protocol.properties import TableProperties
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import StructField, StructType
from optimist.core.skipping.pruner import FilePruner, RowCount
from optimist.core.snapshot.scan import Scan, Scanner
from optimist.core.values.exact_sums import exact_sum

__all__ = ["FilesView"]

_NO_METADATA = Metadata(id="", schema_string='{"type":"struct","fields":[]}')


class FilesView:
    """Files that are read like a table: those of a table version, or of half of a change feed.

    Threads may share it; what it shows never changes.

    Attributes:
        table_path: The table's directory, which relative paths start from.
        version: The version of the table that the view is made from, -1 where there is no table.
        protocol: The table's protocol.
        metadata: Schema, partitioning and properties of the files.
        schema: The columns, partition columns included, with the keys that count for this table.
        partition_columns: The logical names of the partition columns, in order.
        properties: The table properties, parsed.
        log_identity: Tells the log of this version from others that were or will be at the path: a
            text for keys, empty where nothing is known that does.
    """

    def __init__(
        self,
        table_path: str,
        version: int,
        *,
        table: TableState,
        read_files: Callable[[], pa.Table],
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
        self._read_files = read_files
        self._store = store
        self._options = options
        self._scanner = Scanner(read_files, self.schema, self.partition_columns, options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(table_path={self.table_path!r}, version={self.version})"

    @cached_property
    def data_paths(self) -> DataPaths:
        """What the paths in `files` mean, and which of them may be opened."""
        path, store = self.table_path, self._store
        origin = store.data_origin(path) if store else DataOrigin.of(path)
        return DataPaths(path, origin, self._options.paths_outside_table)

    def has_active(self, feature: str) -> bool:
        """Whether a table feature is there and in use, not only a property that asks for it."""
        return is_active(feature, self.protocol, self.metadata)

    @property
    def files(self) -> pa.Table:
        """The files, one row each, columns of `FILES_SCHEMA` (path as it stands in the log)."""
        return self._read_files()

    @property
    def num_files(self) -> int:
        """How many files there are."""
        return int(self.files.num_rows)

    @property
    def size_in_bytes(self) -> int:
        """The sizes of the files, summed."""
        return exact_sum(self.files.column("size"))

    @property
    def has_zoned_partitions(self) -> bool:
        """Whether partition values may be times without a zone, which are read in the session's."""
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
        """The name of a column in data files, statistics and partition values (spec 10.8).

        Raises:
            SchemaError: There is no such column (kind `DELTA_COLUMN_NOT_FOUND`).
        """
        return self._field(column).physical_name

    def scan(self, predicate: str | Predicate | None = None, *, limit: int | None = None) -> Scan:
        """The files that may hold matching rows; all of them without a predicate.

        Conjuncts on partition columns decide exactly; statistics only leave out files that can't
        match.

        Args:
            predicate: SQL text or a tree.
            limit: How many matching rows are enough: if statistics prove that some of the files
                hold so many, only those files are returned.

        Raises:
            UsageError: The predicate does not parse or names an unknown column.
        """
        return self._scanner.scan(predicate, limit)

    def count(self, predicate: str | Predicate | None = None) -> RowCount:
        """How many rows match, as far as the log tells without a look at them (spec 9.5).

        Deleted rows are not counted. A file is undecided unless partition values and statistics
        prove that all of its rows match, or none.

        Raises:
            UsageError: As `scan`.
        """
        return self._scanner.count(predicate)

    def pruner(self, *, zone: str = "UTC") -> FilePruner:
        """A new pruner of all files, by the engine's options.

        Args:
            zone: The time zone of predicates that speak of days or of local times.
        """
        return self._scanner.pruner(zone)

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
