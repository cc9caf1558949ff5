"""`DeltaTable`: names and signatures of `delta.tables`, to the letter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.maintenance.vacuum.vacuum import VacuumRequest
from optimist.core.paths import join
from optimist.core.plugins.table_path import TablePath, path_text
from optimist.core.requests.alterations import DropFeature
from optimist.core.requests.table_definition import CreateMode
from optimist.core.secrets import Options
from optimist.core.sql.statements import TimeTravel
from optimist.core.statements.clones import CloneOptions
from optimist.core.statements.conversions import (
    convert_files,
    converted_path,
    partition_columns_of,
)
from optimist.core.statements.history import detail_rows
from optimist.core.statements.maintenance import (
    drop_feature,
    history_of,
    rearrange,
    restore_to,
    vacuum_table,
)
from optimist.core.statements.missing_tables import as_missing_name
from optimist.core.statements.result_rows import restored_rows
from optimist.core.table.delta_log import DeltaLog
from optimist.core.table.table_handle import TableHandle
from optimist.spark.commands.alter import SparkTableChanges, changes_of
from optimist.spark.commands.catalog.missing_tables import as_no_table_of_that_name, open_existing
from optimist.spark.commands.catalog.names import CatalogTable, is_enabled, known_path, named_table
from optimist.spark.commands.maintenance.clone import clone_path, clone_to_name, clone_to_path
from optimist.spark.commands.maintenance.convert import parsed_conversion
from optimist.spark.commands.maintenance.named_conversions import convert_named
from optimist.spark.commands.maintenance.optimize_builder import DeltaOptimizeBuilder
from optimist.spark.commands.row_changes import RowChanges
from optimist.spark.commands.statement_context import SparkStatements
from optimist.spark.commands.table_builder import DeltaTableBuilder
from optimist.spark.commands.table_transaction import DeltaTableTransaction
from optimist.spark.conditions.own_frames import OwnFrames
from optimist.spark.planes.planes import plane_of
from optimist.spark.rows.local_rows import result_frame
from optimist.spark.session.arguments import (
    ensure_kind,
    ensure_value,
)
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.pyspark_versions import ensure_supported, is_connect

__all__ = ["DeltaTable"]

_LOG_FOLDERS = ("_delta_log", "_samples")


class DeltaTable(RowChanges):
    """A Delta table, to read and to change, from `DeltaTable.forPath` or `forName`.

    Each method uses the newest version and the session's conf at the call. Each change is a
    separate transaction.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        hadoop_conf: Mapping[str, str],
        alias: str | None = None,
        frames: OwnFrames | None = None,
        entry: CatalogTable | None = None,
    ) -> None:
        self._spark = spark
        self._entry = entry
        self._path = path
        self._hadoop_conf = Options(hadoop_conf)  # a repr must not show keys and tokens
        by_catalog = () if entry is None else entry.parts
        if is_connect(spark):  # a client can give rows only a name of one part
            by_catalog = by_catalog[-1:]
        self._own_name = by_catalog if alias is None else (alias,)
        self._frames = frames or OwnFrames()

    @classmethod
    @original_errors()
    def forPath(
        cls,
        sparkSession: SparkSession,
        path: TablePath,
        hadoopConf: Mapping[str, str] = {},
    ) -> DeltaTable:
        """Return the table at a path.

        Args:
            sparkSession: A classic session, or a Spark Connect client.
            path: The table.
            hadoopConf: Options for the file system; their keys start with `fs.` or `dfs.`.

        Raises:
            TableNotFoundError: The path has no Delta table (kind `DELTA_MISSING_DELTA_TABLE`).
        """
        ensure_supported(sparkSession)
        log = open_existing(sparkSession, path_text(path), hadoopConf)
        return cls(sparkSession, log.table_path, hadoopConf)

    @classmethod
    @original_errors()
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Return the table of a name: ``delta.`/path` ``, or one of Spark's session catalog.

        Raises:
            TableNotFoundError: The name or path has no Delta table (kinds
                `DELTA_MISSING_DELTA_TABLE`, `DELTA_TABLE_NOT_FOUND`).
        """
        ensure_supported(sparkSession)
        ensure_kind(tableOrViewName, str, "tableOrViewName")
        with as_no_table_of_that_name(tableOrViewName):
            path, entry = named_table(sparkSession, tableOrViewName)
        if entry is None:
            return cls.forPath(sparkSession, path)
        with as_missing_name(entry.shown_name):
            log = open_log(sparkSession, path)
            log.snapshot()
        return cls(sparkSession, log.table_path, {}, entry=entry)

    @classmethod
    @original_errors()
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: TablePath) -> bool:
        """Check whether a path is a Delta table or lies in one, as a partition's folder does.

        A name ``delta.`path` `` means the same as the path. So does the name of a Delta table in
        Spark's catalog.
        """
        ensure_supported(sparkSession)
        path = known_path(sparkSession, path_text(identifier, "identifier"))
        whole = open_log(sparkSession, path).table_path
        return any(
            open_log(sparkSession, folder).table_exists() for folder in _folders_upwards(whole)
        )

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Begin a table that does not exist yet, in the given or active session."""
        return DeltaTableBuilder(sparkSession, CreateMode.CREATE, cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Begin a table that is created only if it does not exist."""
        return DeltaTableBuilder(sparkSession, CreateMode.CREATE_IF_NOT_EXISTS, cls)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Begin the replacement of a table, which removes its rows and keeps its history."""
        return DeltaTableBuilder(sparkSession, CreateMode.REPLACE, cls)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Begin a table that replaces the existing one, if it exists."""
        return DeltaTableBuilder(sparkSession, CreateMode.CREATE_OR_REPLACE, cls)

    @classmethod
    @original_errors()
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
    ) -> DeltaTable:
        """Make a Delta table of Parquet files or of an Iceberg table, in place.

        Args:
            sparkSession: A classic session, or a Spark Connect client.
            identifier: ``parquet.`/path` ``, ``iceberg.`/path` ``, or a Parquet table's name in the
                catalog.
            partitionSchema: The columns in the directories' names, with their types, as SQL text or
                as a schema.

        Returns:
            The table; nothing was done if it was a Delta table already.

        Raises:
            ArgumentTypeError: An argument has the wrong type; this is a `ValueError`, too.
            OptimistError: See `DeltaLog.convert`.
        """
        ensure_supported(sparkSession)
        ensure_value(identifier, str, "identifier", "a string")
        if partitionSchema is not None:
            ensure_value(partitionSchema, (str, StructType), "partitionSchema", "a schema")
        command = parsed_conversion(identifier, partitionSchema)
        source = converted_path(command.table)
        if source is None:
            convert_named(sparkSession, command)
            return cls.forName(sparkSession, identifier)
        columns = partition_columns_of(command.partitioned_by)
        context = SparkStatements(sparkSession)
        request = source.request(ConvertRequest(columns, zone=context.zone))
        convert_files(context, context.open_path(source.path), request)
        return cls.forPath(sparkSession, source.path)

    def toDF(self) -> DataFrame:
        """Return the newest version as a DataFrame.

        After `enable(spark)` it follows the table, as frames of `spark.read` do.
        """
        with original_errors():
            if is_enabled(self._spark):
                reader = self._spark.read.format("delta").options(**self._hadoop_conf)
                frame = reader.load(self._log.table_path)
            else:
                frame = plane_of(self._spark, self._log.table).scan(self._log.snapshot())
            return self._frames.remember(self._under_own_name(frame))

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the table under a name that conditions and expressions may use."""
        ensure_kind(aliasName, str, "aliasName")
        own = (self._spark, self._path, self._hadoop_conf)
        return DeltaTable(*own, aliasName, self._frames, self._entry)

    def optimize(self) -> DeltaOptimizeBuilder:
        """Begin an OPTIMIZE, which the builder's `executeCompaction` or `executeZOrderBy` runs."""
        return DeltaOptimizeBuilder(self._optimize)

    def _optimize(self, wanted: Rearrangement, where: str | None) -> DataFrame:
        with original_errors():
            return self._answer(rearrange(self._statements, self._log, wanted, where))

    @property
    def alter(self) -> SparkTableChanges:
        """Changes of schema, properties, constraints and so on, each in its own commit."""
        return SparkTableChanges(self._spark, self._log)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Give the table all features of these versions, where lower versions change nothing.

        Raises:
            ArgumentTypeError: A version is not a number; this is a `ValueError`, too.
            ConfigError: The version does not exist.
        """
        ensure_value(readerVersion, int, "The readerVersion", "an integer")
        ensure_value(writerVersion, int, "The writerVersion", "an integer")
        with original_errors():
            changes_of(self._spark, self._log).upgrade_protocol(readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a table feature, and the features that it requires, to the protocol.

        Raises:
            ArgumentTypeError: The name is not text; this is a `ValueError`, too.
            ConfigError: The feature does not exist.
        """
        ensure_value(featureName, str, "featureName", "a string")
        with original_errors():
            changes_of(self._spark, self._log).add_feature(featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Remove a feature from the table's protocol, after its traces in the table.

        Args:
            featureName: The feature.
            truncateHistory: True to remove the log of versions older than a day, instead of
                protecting it by the feature `checkpointProtection`.

        Raises:
            ArgumentTypeError: An argument has the wrong type; this is a `ValueError`, too.
            UsageError, SchemaError, ProtocolError, TableError: See `DeltaLog.drop_feature`.
        """
        ensure_value(featureName, str, "featureName", "a string")
        if truncateHistory is not None:
            ensure_value(truncateHistory, bool, "truncateHistory", "a boolean")
        with original_errors():
            change = DropFeature(featureName, bool(truncateHistory))
            drop_feature(self._statements, self._log, change)

    @original_errors()
    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits, newest first, at most `limit` of them."""
        if limit is not None:
            ensure_kind(limit, int, "limit")
        return self._answer(history_of(self._log, limit))

    @original_errors()
    def detail(self) -> DataFrame:
        """Return one row about the table: its path, size, properties and protocol."""
        name = None if self._entry is None else self._entry.shown_name
        return self._answer(detail_rows(self._log.detail(), name))

    @original_errors()
    def generate(self, mode: str) -> None:
        """Write lists of the table's files for readers that don't know Delta.

        Args:
            mode: `symlink_format_manifest`.

        Raises:
            UsageError: The mode is unknown (kind `DELTA_MODE_NOT_SUPPORTED`).
            SchemaError: Files have deletion vectors, which such a list can't express.
        """
        ensure_kind(mode, str, "mode")
        self._log.generate(mode)

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete the files below the table that no version in the retention period needs.

        Args:
            retentionHours: How long removed files are kept; as in Delta, only None and 0 have an
                effect, unless `vacuum.retentionWindowIgnore.enabled` is off.

        Returns:
            A frame without rows and columns, as Delta's.

        Raises:
            ArgumentTypeError: The hours are not a number; this is a `ValueError`, too.
            UsageError: The retention is shorter than the table's (kind
                `DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT`).
            TableError, StorageError: See `DeltaLog.vacuum`.
        """
        if retentionHours is not None:
            ensure_value(retentionHours, (int, float), "retentionHours", "a number")
        with original_errors():
            vacuum_table(self._statements, self._log, VacuumRequest(retentionHours))
            return self._spark.createDataFrame([], StructType())

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore the table to a version, in one commit that another RESTORE can undo.

        Returns:
            One row: `table_size_after_restore`, `num_of_files_after_restore`, `num_removed_files`,
            `num_restored_files`, `removed_files_size`, `restored_files_size`. No row if the table
            is at that version.

        Raises:
            ArgumentTypeError: The version is not a number; this is a `ValueError`, too.
            TableError: The log does not hold the version (kind
                `DELTA_CANNOT_RESTORE_TABLE_VERSION`), or some of its files are gone (kind
                `DELTA_FILE_NOT_FOUND_DETAILED`).
            ConcurrentWriteException: Another commit came first; nothing was written.
        """
        ensure_value(version, int, "version", "an int")
        with original_errors():
            return self._restore(TimeTravel(version))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the table to a time, as `restoreToVersion` does to a version.

        Args:
            timestamp: A time in the session's zone, for the newest version that is not younger.

        Raises:
            UsageError: The text is not a time (kind `DELTA_TIMESTAMP_INVALID`).
            TableError, ConcurrentWriteException: As `restoreToVersion`.
        """
        ensure_value(timestamp, str, "timestamp", "a string")
        with original_errors():
            return self._restore(TimeTravel(timestamp=timestamp))

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Make another table with the rows that this one has now.

        Args:
            target: The clone's path, absolute or a URL, or its name in the catalog.
            isShallow: True if the clone uses the files of this table, without copies.
            replace: True if a table without files may be replaced.
            properties: Properties of the clone that replace this table's or are added to them.

        Returns:
            The clone.

        Raises:
            ArgumentTypeError: An argument has the wrong type; this is a `ValueError`, too.
            UsageError, SchemaError, ConfigError, TableError, ConcurrentWriteException: See
                `DeltaLog.clone`. `DELTA_INVALID_CLONE_PATH` is a path that is not absolute.
        """
        return self._clone(target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Make another table with the rows of a version, with arguments and errors of `clone`."""
        ensure_value(version, int, "version", "an int")
        return self._clone(target, isShallow, replace, properties, TimeTravel(version))

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Make another table with the rows of a time, with arguments and errors of `clone`."""
        ensure_value(timestamp, str, "timestamp", "a string")
        travel = TimeTravel(timestamp=timestamp)
        return self._clone(target, isShallow, replace, properties, travel)

    def _clone(
        self,
        target: str,
        is_shallow: bool,
        replace: bool,
        properties: Mapping[str, str] | None,
        travel: TimeTravel | None = None,
    ) -> DeltaTable:
        ensure_value(target, str, "target", "a string")
        ensure_value(is_shallow, bool, "isShallow", "a boolean")
        ensure_value(replace, bool, "replace", "a boolean")
        if properties is not None:
            ensure_value(properties, dict, "properties", "a dict")
        mode = CreateMode.CREATE_OR_REPLACE if replace else CreateMode.CREATE
        options = CloneOptions(mode, is_shallow, travel, properties or {})
        with original_errors():
            path = clone_path(target)
            if path is None:
                clone_to_name(self._spark, self._log, target, options)
                return DeltaTable.forName(self._spark, target)
            clone_to_path(self._spark, self._log, path, options)
            return DeltaTable.forPath(self._spark, path, self._hadoop_conf)

    def transaction(self, *, user_metadata: str | None = None) -> DeltaTableTransaction:
        """Begin a transaction of several operations, each of which sees those before it.

        Use it as `with table.transaction() as txn:`. The operations are methods of `txn`, and all
        or none are committed at the end of the block.

        Args:
            user_metadata: Text for the history.
        """
        session = (self._spark, self._own_name, self._frames)
        return DeltaTableTransaction(
            *session, lambda: self._log.transaction(user_metadata=user_metadata)
        )

    @property
    def _handle(self) -> TableHandle:
        return self._log

    def _restore(self, travel: TimeTravel) -> DataFrame:
        done = restore_to(self._statements, self._log, travel)
        return self._answer(restored_rows(done))

    def _answer(self, rows: pa.Table) -> DataFrame:
        return result_frame(self._spark, rows)

    @property
    def _statements(self) -> SparkStatements:
        return SparkStatements(self._spark)

    @property
    def _log(self) -> DeltaLog:
        """The table's log by the conf as it is now, which may have changed since `forPath`."""
        return open_log(self._spark, self._path, self._hadoop_conf)


def _folders_upwards(path: str) -> Iterator[str]:
    """Yield a path, then the folders above it.

    It ends at the root or at a log, which holds no tables.
    """
    yield path
    scheme, separator, rest = path.rpartition("://")
    server, _, inner = rest.partition("/") if separator else ("", "", rest)
    names = inner.split("/")
    while len(names) > 1 and names[-1] not in _LOG_FOLDERS:
        names.pop()
        if folder := "/".join(names):
            yield join(f"{scheme}{separator}{server}", folder) if separator else folder
