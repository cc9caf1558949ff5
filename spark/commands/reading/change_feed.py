"""`readChangeFeed`: the rows that some versions inserted, updated and deleted, as a DataFrame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from optimist.core.changes.bounds import ChangeBounds
from optimist.core.changes.feed import change_feed
from optimist.core.errors import ConfigError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.options.values import parse_bool
from optimist.core.snapshot.files_view import FilesView
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.planes.planes import RowPlane, plane_of
from optimist.spark.rows.row_shape import column_of
from optimist.spark.session.arguments import version_number

__all__ = ["CHANGE_OPTIONS", "ChangeOptions", "OptionValue", "change_feed_frame", "joined_views"]

_READ_CHANGES = ("readChangeFeed", "readChangeData")  # the second is Delta's older name
CHANGE_OPTIONS = (
    *_READ_CHANGES,
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
)
OptionValue: TypeAlias = str | int | bool | dt.datetime | dt.date | None


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """The options of a change read, as the caller gave them."""

    given: Mapping[str, OptionValue]

    @classmethod
    def among(cls, options: Mapping[str, OptionValue]) -> ChangeOptions | None:
        """Return the options for changes among a read's options, or None if it reads no changes.

        Raises:
            UsageError: `readChangeFeed` is neither true nor false (kind
                `OPTIMIST_INVALID_ARGUMENT`).
            ConfigError: A bound is given without `readChangeFeed` (kind `OPTIMIST_UNKNOWN_OPTION`).
        """
        given = {name: options[name] for name in CHANGE_OPTIONS if options.get(name) is not None}
        asked = [_parse_flag(name, given.pop(name, False)) for name in _READ_CHANGES]
        if any(asked):
            return cls(given)
        if given:
            name = next(iter(given))
            raise ConfigError(
                f"The option {name} works only with readChangeFeed=True. Nothing was read. Add "
                f"readChangeFeed=True, or leave {name} out.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=name,
                known=("readChangeFeed",),
            )
        return None

    def bounds(self, to_ms: Callable[[OptionValue], int]) -> ChangeBounds:
        """Return the bounds of the read, with times converted by `to_ms` to epoch milliseconds.

        Raises:
            UsageError: The start is missing, one end is given as a version and as a time, or a
                value does not parse.
        """
        return ChangeBounds(
            starting_version=self._version_of("startingVersion"),
            ending_version=self._version_of("endingVersion"),
            starting_ms=self._time_of("startingTimestamp", to_ms),
            ending_ms=self._time_of("endingTimestamp", to_ms),
        )

    def _version_of(self, name: str) -> int | None:
        value = self.given.get(name)
        if value is None:
            return None
        version = version_number(value)
        if version is None:
            raise UsageError(
                f"The provided version ({shown(value)}) of the option {name} is not a valid "
                "version. Nothing was read. Give a number, 0 or more.",
                kind="DELTA_VERSION_INVALID",
                argument=name,
            )
        return version

    def _time_of(self, name: str, to_ms: Callable[[OptionValue], int]) -> int | None:
        value = self.given.get(name)
        return None if value is None else to_ms(value)


def change_feed_frame(spark: SparkSession, log: DeltaLog, bounds: ChangeBounds) -> DataFrame:
    """Return the changes between two versions or times.

    No row is read before a query runs.

    The frame has the table's columns as they are at the last version, all nullable, and then
    `_change_type`, `_commit_version` and `_commit_timestamp`. Filters on these choose files.

    Raises:
        UsageError, TableError, SchemaError, ProtocolError: As `change_feed`.
    """
    feed = change_feed(log.table, log.snapshot(), bounds)
    return joined_views(plane_of(spark, log.table), feed.views)


def joined_views(plane: RowPlane, views: Sequence[FilesView]) -> DataFrame:
    """Return the rows of all views, which have the same columns, one view after the other."""
    columns = [column_of(name) for name in views[0].schema.names]
    frames = [plane.scan_files(view, view.files).select(*columns) for view in views]
    return reduce(DataFrame.unionAll, frames)


def _parse_flag(name: str, value: OptionValue) -> bool:
    try:
        return parse_bool(str(value))
    except ValueError:
        raise UsageError(
            f"The option {name} must be true or false, not {value!r}.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=name,
        ) from None
