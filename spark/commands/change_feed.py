"""`readChangeFeed`: what a run of versions inserted, updated and deleted, as a DataFrame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from optimist.core.changes.bounds import ChangeBounds
from optimist.core.changes.feed import change_feed
from optimist.core.errors import UsageError
from optimist.core.options import parse_bool
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.planes.planes import plane_of
from optimist.spark.rows.row_shape import column_of

__all__ = ["CHANGE_OPTIONS", "ChangeOptions", "OptionValue", "change_feed_frame"]

CHANGE_OPTIONS = (
    "readChangeFeed",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
)
OptionValue: TypeAlias = str | int | bool | dt.datetime | dt.date | None


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """The options of a read of changes, as the caller gave them."""

    given: Mapping[str, OptionValue]

    @classmethod
    def among(cls, options: Mapping[str, OptionValue]) -> ChangeOptions | None:
        """Those among the options of a read; None where changes are not asked for.

        Raises:
            UsageError: `readChangeFeed` is neither true nor false (kind
                `OPTIMIST_INVALID_ARGUMENT`), or a bound is given without it (kind
                `OPTIMIST_UNKNOWN_OPTION`).
        """
        given = {name: options[name] for name in CHANGE_OPTIONS if options.get(name) is not None}
        if _flag(given.pop("readChangeFeed", False)):
            return cls(given)
        if given:
            name = next(iter(given))
            raise UsageError(
                f"{name} means nothing without readChangeFeed=True. Add that, or leave it out.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=name,
                known=("readChangeFeed",),
            )
        return None

    def bounds(self, to_ms: Callable[[OptionValue], int]) -> ChangeBounds:
        """The bounds, times read by `to_ms`.

        Raises:
            UsageError: No start, both kinds of one end, or a value that does not parse.
        """
        return ChangeBounds(
            starting_version=self._version("startingVersion"),
            ending_version=self._version("endingVersion"),
            starting_ms=self._time("startingTimestamp", to_ms),
            ending_ms=self._time("endingTimestamp", to_ms),
        )

    def _version(self, name: str) -> int | None:
        value = self.given.get(name)
        if value is None:
            return None
        text = str(value).strip()
        if isinstance(value, bool) or not text.isdecimal():
            raise UsageError(
                f"{name} must be a version number, not {value!r}.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument=name,
            )
        return int(text)

    def _time(self, name: str, to_ms: Callable[[OptionValue], int]) -> int | None:
        value = self.given.get(name)
        return None if value is None else to_ms(value)


def change_feed_frame(spark: SparkSession, log: DeltaLog, bounds: ChangeBounds) -> DataFrame:
    """The changes between two versions or times; no row is read before a query runs.

    The frame has the table's columns as they are at the last version, all nullable, and then
    `_change_type`, `_commit_version` and `_commit_timestamp`. Filters on these choose files.

    Raises:
        UsageError, TableError, SchemaError, ProtocolError: As `change_feed`.
    """
    feed = change_feed(log, bounds)
    plane = plane_of(spark, log)
    columns = [column_of(name) for name in feed.schema.names]
    frames = [plane.scan(view, view.files).select(*columns) for view in feed.views]
    return reduce(DataFrame.unionAll, frames)


def _flag(value: OptionValue) -> bool:
    try:
        return parse_bool(str(value))
    except ValueError:
        raise UsageError(
            f"readChangeFeed must be true or false, not {value!r}.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="readChangeFeed",
        ) from None
