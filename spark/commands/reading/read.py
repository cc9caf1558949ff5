"""`read`: a table, now or at an older version, as a DataFrame."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.plugins.table_path import TablePath, path_text
from optimist.core.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.core.table.partition_paths import partition_paths
from optimist.spark.arrow.sent_scans import know_table
from optimist.spark.commands.reading.change_feed import (
    CHANGE_OPTIONS,
    ChangeOptions,
    OptionValue,
    change_feed_frame,
)
from optimist.spark.commands.reading.partition_read import ChosenPartition
from optimist.spark.commands.reading.read_columns import ReadColumns
from optimist.spark.planes.planes import plane_of
from optimist.spark.rows.partition_zone import partition_zone
from optimist.spark.session.arguments import version_number
from optimist.spark.session.call_options import CallOptions
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import from_spark_schema

__all__ = [
    "TableVersion",
    "ensure_table_at",
    "epoch_millis",
    "names_older_version",
    "open_rows",
    "open_target",
    "open_version",
    "read",
]

_AT_VERSION = re.compile(r"^(?P<path>.+)@[vV](?P<version>[0-9]{1,19})/*$")
_AT_TIME = re.compile(r"^(?P<path>.+)@(?P<time>[0-9]{17})/*$")  # yyyyMMddHHmmssSSS
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)

Timestamp: TypeAlias = str | dt.datetime | dt.date


@original_errors()
def read(
    spark: SparkSession,
    path: TablePath,
    *,
    versionAsOf: int | str | None = None,
    timestampAsOf: Timestamp | None = None,
    columns: Sequence[str] | None = None,
    **options: OptionValue,
) -> DataFrame:
    """Read a Delta table as a DataFrame.

    Spark asks our log which files to read when it plans a query. The frame stays at its version,
    whatever is committed later.

    Args:
        spark: A classic session, or a Spark Connect client.
        path: The table. `path@v123` and `path@20261120103000000` name a version and a time.
        versionAsOf: Read this version.
        timestampAsOf: Read the newest version that is not younger than this time; text is read in
            the session's zone.
        columns: Return only these columns, in this order: names, paths of struct fields as in SQL,
            or fields of `_metadata`. A `select` of the frame does the same, but Spark Connect does
            not pass it on to data sources. There, name the columns here to read only these.
        options: `readChangeFeed=True` reads the changes of a range of versions instead, with
            `startingVersion` or `startingTimestamp` and optionally `endingVersion` or
            `endingTimestamp`, both ends included (see `change_feed_frame`). All others are for the
            file system: keys that start with `fs.` or `dfs.`. Names may be in any case.

    Raises:
        TableNotFoundError: There is no table at the path.
        TableError: The version or time is outside what the log still holds, or is so old that its
            files may be gone.
        UsageError: An option is unknown, or both a version and a time are given.
        SchemaError: The table lacks one of `columns` (kind `DELTA_COLUMN_NOT_FOUND`).
        ArgumentTypeError: `path` is not a path, or `columns` are not names; this is a `TypeError`,
            too.
    """
    text = path_text(path)
    given = CallOptions.sort(
        {"versionAsOf": versionAsOf, "timestampAsOf": timestampAsOf, **options},
        ("versionAsOf", "timestampAsOf", *CHANGE_OPTIONS),
        takes_properties=False,
    )
    changes = ChangeOptions.among(given.named)
    at_version, at_time = given.named.get("versionAsOf"), given.named.get("timestampAsOf")
    if changes is not None and (at_version is not None or at_time is not None):
        raise UsageError(
            "A read of changes can't have versionAsOf or timestampAsOf. Nothing was read. Give a "
            "start and an end (startingVersion, endingVersion, or the timestamps) instead.",
            kind="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    if at_version is not None and at_time is not None:
        raise UsageError(
            "The options versionAsOf and timestampAsOf are both given. Nothing was read. Give only "
            "one of them.",
            kind="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    if changes is not None:
        log = open_log(spark, text, given.filesystem)
        feed = change_feed_frame(spark, log, changes.bounds(partial(epoch_millis, spark)))
        if columns is None:
            return feed
        return ReadColumns.of(columns, from_spark_schema(feed.schema)).chosen(feed)
    version = None if at_version is None else _parse_version(at_version)
    millis = None if at_time is None else epoch_millis(spark, at_time)
    found = open_rows(spark, text, version, millis, filesystem=given.filesystem)
    if columns is None:
        return found.frame(spark)
    return found.frame(spark, ReadColumns.of(columns, found.snapshot.schema))


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table, opened for reading.

    Attributes:
        log: The table.
        snapshot: The version.
        is_time_travel: True if the user chose the version; see `RowPlane.scan`.
        partition: The partitions that the path names; None for all rows.
        zone: See `partition_zone`.
    """

    log: DeltaLog
    snapshot: Snapshot
    is_time_travel: bool
    partition: ChosenPartition | None = None
    zone: str | None = None

    def frame(self, spark: SparkSession, columns: ReadColumns | None = None) -> DataFrame:
        """Return the rows of the version, without reading a file before a query runs."""
        plane = plane_of(spark, self.log.table)
        is_time_travel = self.is_time_travel
        if columns is None:
            rows = plane.scan(self.snapshot, is_time_travel=is_time_travel, zone=self.zone)
            rows = know_table(rows, self.log) if is_connect(spark) else rows
            return self.in_partition(rows)
        needed = (*columns.paths, *self.partition_paths)
        rows = plane.scan(
            self.snapshot, is_time_travel=is_time_travel, columns=needed, zone=self.zone
        )
        return columns.chosen(self.in_partition(rows))

    def at(self, snapshot: Snapshot) -> TableVersion:
        """Return this read at another version, such as a newer one."""
        return replace(self, snapshot=snapshot)

    def ensure_whole_table(self, verb: str, name: str) -> None:
        """Refuse to change the table by a name of an older version or of partitions.

        Args:
            verb: The command.
            name: The name, as SQL writes it.

        Raises:
            UsageError: The name has a version or a time (kind
                `DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION`).
            TableNotFoundError: It names only some partitions (kind `DELTA_TABLE_NOT_FOUND`).
        """
        if self.is_time_travel:
            raise UsageError(
                f"{verb} can't change version {self.snapshot.version} of a table, which "
                f"{shown(name)} means: only the newest version can be changed. Nothing was "
                "written. Leave the version out of the name.",
                kind="DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
                version=self.snapshot.version,
            )
        if self.partition is not None:
            raise TableNotFoundError(
                f"{verb} can't change {shown(name)}: its path means partitions of the table "
                f"{shown(self.log.table_path)}. Nothing was written. Name the table, and say which "
                "partitions in a condition.",
                kind="DELTA_TABLE_NOT_FOUND",
                path=self.partition.path,
            )

    @property
    def partition_paths(self) -> tuple[tuple[str], ...]:
        """The columns that `in_partition` needs, as paths."""
        return () if self.partition is None else tuple((name,) for name in self.partition.values)

    def in_partition(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the partitions that the path names."""
        return rows if self.partition is None else self.partition.rows(rows, self.snapshot)


def open_version(
    spark: SparkSession,
    path: str,
    version: int | None = None,
    millis: int | None = None,
    *,
    filesystem: Mapping[str, str] | None = None,
) -> TableVersion:
    """Open a version of the table at a path, by default the newest.

    Args:
        spark: A classic session, or a Spark Connect client.
        path: The table; as for `read`, a version or a time may follow after an `@`.
        version: The version.
        millis: Open the newest version that is not younger than this time in epoch milliseconds.
        filesystem: Options of this call: keys that start with `fs.` or `dfs.`.

    Raises:
        TableNotFoundError: There is no table at the path.
        TableError: The version or time is outside what the log still holds, or is so old that its
            files may be gone.
        UsageError: The path has a version or a time, and the call gives another one (kind
            `DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS`).
    """
    options = filesystem or {}
    log = open_log(spark, path, options)
    is_given = version is not None or millis is not None
    if not is_given and not log.table_exists():
        found = _travel_in_path(spark, path, options)
        log, version, millis = found or (log, None, None)
    if version is None and millis is None:
        newest = log.snapshot()
        return TableVersion(log, newest, is_time_travel=False, zone=partition_zone(spark, newest))
    try:
        snapshot = log.snapshot(version, millis, to_read=True)
    except TableNotFoundError as error:
        if is_given and names_older_version(path):
            raise _time_travel_twice(path) from error
        raise
    return TableVersion(log, snapshot, is_time_travel=True, zone=partition_zone(spark, snapshot))


def open_rows(
    spark: SparkSession,
    path: str,
    version: int | None = None,
    millis: int | None = None,
    *,
    filesystem: Mapping[str, str] | None = None,
) -> TableVersion:
    """Open a version as `open_version` does, or partitions of a table, as in `table/p=1`.

    Raises:
        SchemaError: The path names a column that is not a partition column (kind
            `DELTA_NON_PARTITION_COLUMN_SPECIFIED`).
    """
    try:
        return open_version(spark, path, version, millis, filesystem=filesystem)
    except TableNotFoundError:
        found = _open_partition(spark, path, version, millis, filesystem)
        if found is None:
            raise
        return found


def ensure_table_at(spark: SparkSession, place: str) -> None:
    """Refuse a place that a catalog gives, if a reader of paths would find another table there.

    Args:
        spark: A Spark Connect client.
        place: The place of an entry, such as `/data/t@v1`: a table of its own, whatever it ends in.

    Raises:
        TableNotFoundError: The place has no table.
    """
    if names_older_version(place) or any(True for _ in partition_paths(place)):
        open_log(spark, place).snapshot()


def _open_partition(
    spark: SparkSession,
    path: str,
    version: int | None,
    millis: int | None,
    filesystem: Mapping[str, str] | None,
) -> TableVersion | None:
    match = _AT_VERSION.match(path) or _AT_TIME.match(path)
    inside = match["path"] if match else path
    for partition_path in partition_paths(inside):
        table = partition_path.table_path + path[len(inside) :]
        try:
            found = open_version(spark, table, version, millis, filesystem=filesystem)
        except TableNotFoundError:
            continue
        return replace(found, partition=ChosenPartition.of(path, partition_path, found.snapshot))
    return None


def _time_travel_twice(path: str) -> UsageError:
    return UsageError(
        f"The path {shown(path)} has a version or a time after its @, and the call gives another "
        "one. Nothing was read. Give one of them.",
        kind="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        path=path,
    )


def _travel_in_path(
    spark: SparkSession, path: str, options: Mapping[str, str]
) -> tuple[DeltaLog, int | None, int | None] | None:
    """Return the table and the version or time of a path like `table@v5`, or None."""
    if match := _AT_VERSION.match(path):
        return open_log(spark, match["path"], options), int(match["version"]), None
    if match := _AT_TIME.match(path):
        text = match["time"]
        day, time = (
            f"{text[:4]}-{text[4:6]}-{text[6:8]}",
            f"{text[8:10]}:{text[10:12]}:{text[12:14]}",
        )
        millis = epoch_millis(spark, f"{day} {time}.{text[14:]}")
        return open_log(spark, match["path"], options), None, millis
    return None


def _parse_version(value: OptionValue) -> int:
    version = version_number(value)
    if version is None:
        raise UsageError(
            f"The option versionAsOf must be a version number, not {value!r}.",
            kind="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            value=str(value).strip(),
        )
    return version


def names_older_version(path: str) -> bool:
    """Check whether a path looks like `table@v5`, which may still be a table's name."""
    return _whose_version(path) is not None


def _whose_version(path: str) -> str | None:
    """Return the path before the version or time in a path like `table@v5`."""
    match = _AT_VERSION.match(path) or _AT_TIME.match(path)
    return None if match is None else match["path"]


def open_target(spark: SparkSession, path: str, extra: Mapping[str, str] | None = None) -> DeltaLog:
    """Return the handle of a table that is written to or created (see `open_log`).

    A path like `table@v5` may be a new table's, as in Delta, unless a reader would read it as a
    version.

    Raises:
        UsageError: It names an older version of a table (kind
            `DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION`).
    """
    log, table = open_log(spark, path, extra), _whose_version(path)
    if table is None or log.table_exists() or not open_log(spark, table, extra).table_exists():
        return log
    raise UsageError(
        f"The path {shown(path)} means an older version of the table {shown(table)}, and only the "
        "newest version can be changed. Nothing was written. Leave the version out of the path, or "
        "take another name for a new table.",
        kind="DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
        path=path,
    )


def epoch_millis(spark: SparkSession, value: OptionValue) -> int:
    """Return a time in epoch milliseconds.

    Spark reads text and dates in the session's zone.
    """
    if isinstance(value, dt.datetime):
        return (value.astimezone(dt.timezone.utc) - _EPOCH) // dt.timedelta(milliseconds=1)
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    query = "SELECT unix_millis(try_cast(:text AS TIMESTAMP)) AS millis"
    row = spark.sql(query, args={"text": text}).collect()[0]
    if row["millis"] is None:
        raise UsageError(
            f"The text {value!r} is not a timestamp. Write it like 2026-11-20 10:30:00.",
            kind="DELTA_TIMESTAMP_INVALID",
            value=text,
        )
    return int(row["millis"])
