"""`read`: a table, now or as it was, as a DataFrame."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.change_feed import (
    CHANGE_OPTIONS,
    ChangeOptions,
    OptionValue,
    change_feed_frame,
)
from optimist.spark.planes.planes import plane_of
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log

__all__ = ["read"]

_FS_PREFIXES = ("fs.", "dfs.")
_AT_VERSION = re.compile(r"^(?P<path>.+)@v(?P<version>\d+)$")
_AT_TIME = re.compile(r"^(?P<path>.+)@(?P<time>\d{17})$")  # yyyyMMddHHmmssSSS
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)

Timestamp: TypeAlias = str | dt.datetime | dt.date


def read(
    spark: SparkSession,
    path: str,
    *,
    versionAsOf: int | str | None = None,
    timestampAsOf: Timestamp | None = None,
    **options: OptionValue,
) -> DataFrame:
    """A Delta table as a DataFrame. Spark asks our log which files to read when it plans a query.

    The frame stays at the version it was made from, whatever is committed later.

    Args:
        spark: A classic session, or a Spark Connect client.
        path: The table. `path@v123` and `path@20261120103000000` mean the version and the time.
        versionAsOf: Read this version.
        timestampAsOf: Read the newest version that is not younger; text is read in the session's
            zone.
        options: `readChangeFeed=True` reads the changes of a run of versions instead, with
            `startingVersion` or `startingTimestamp` and, if wanted, `endingVersion` or
            `endingTimestamp`, both ends included (see `change_feed_frame`). All others are for the
            file system: keys that start with `fs.` or `dfs.`.

    Raises:
        TableNotFoundError: There is no table at the path.
        TableError: The version or time is outside what the log still holds, or is so old that its
            files may be gone.
        UsageError: An unknown option, or a version and a time at once.
    """
    changes = ChangeOptions.among(options)
    others = _others(options)
    if changes is not None and (versionAsOf is not None or timestampAsOf is not None):
        raise UsageError(
            "A read of changes has a start and an end instead of versionAsOf and timestampAsOf.",
            kind="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    if versionAsOf is not None and timestampAsOf is not None:
        raise UsageError(
            "Give versionAsOf or timestampAsOf, not both.", kind="DELTA_ONEOF_IN_TIMETRAVEL"
        )
    with original_errors():
        log = open_log(spark, path, others)
        if changes is not None:
            return change_feed_frame(spark, log, changes.bounds(partial(_millis, spark)))
        version = None if versionAsOf is None else _version(versionAsOf)
        millis = None if timestampAsOf is None else _millis(spark, timestampAsOf)
        if version is None and millis is None and not log.table_exists():
            log, version, millis = _travel_in_path(spark, path, others) or (log, None, None)
        if version is None and millis is None:
            return plane_of(spark, log).scan(log.update())
        snapshot = log.snapshot(version, millis, to_read=True)
        return plane_of(spark, log).scan(snapshot, is_time_travel=True)


def _others(options: Mapping[str, OptionValue]) -> dict[str, str]:
    """The options of the file system; any other is refused."""
    others = {key: str(value) for key, value in options.items() if key not in CHANGE_OPTIONS}
    unknown = [key for key in others if not key.startswith(_FS_PREFIXES)]
    if unknown:
        known = ("versionAsOf", "timestampAsOf", *CHANGE_OPTIONS, *_FS_PREFIXES)
        raise UsageError(
            f"Unknown option {unknown[0]}. Known: {', '.join(known[:-2])}, and keys that start "
            f"with {' or '.join(_FS_PREFIXES)}.",
            kind="OPTIMIST_UNKNOWN_OPTION",
            key=unknown[0],
            known=known,
        )
    return others


def _travel_in_path(
    spark: SparkSession, path: str, options: Mapping[str, str]
) -> tuple[DeltaLog, int | None, int | None] | None:
    """Table, and version or time, that a path such as `table@v5` means; None for other paths."""
    if match := _AT_VERSION.match(path):
        return open_log(spark, match["path"], options), int(match["version"]), None
    if match := _AT_TIME.match(path):
        text = match["time"]
        parsed = dt.datetime.strptime(f"{text}000", "%Y%m%d%H%M%S%f")
        millis = _millis(spark, parsed.isoformat(sep=" "))
        return open_log(spark, match["path"], options), None, millis
    return None


def _version(value: int | str) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal():
        raise UsageError(
            f"versionAsOf must be a version number, not {value!r}.",
            kind="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            value=text,
        )
    return int(text)


def _millis(spark: SparkSession, value: OptionValue) -> int:
    """Epoch milliseconds. Text and dates are read as Spark reads them, in the session's zone."""
    if isinstance(value, dt.datetime):
        return (value.astimezone(dt.timezone.utc) - _EPOCH) // dt.timedelta(milliseconds=1)
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    query = "SELECT unix_millis(try_cast(:text AS TIMESTAMP)) AS millis"
    row = spark.sql(query, args={"text": text}).collect()[0]
    if row["millis"] is None:
        raise UsageError(
            f"{value!r} is no timestamp; write it like 2026-11-20 10:30:00.",
            kind="DELTA_TIMESTAMP_INVALID",
            value=text,
        )
    return int(row["millis"])
