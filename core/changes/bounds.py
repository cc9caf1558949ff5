"""The range of versions whose changes are read (spec 10.11)."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError, UsageError
from optimist.core.errors.kinds import TIMESTAMP_TOO_EARLY
from optimist.core.log.timestamps import format_timestamp
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import version_at_timestamp

__all__ = ["ChangeBounds", "first_version_since"]


@dataclass(frozen=True, slots=True)
class ChangeBounds:
    """The first and the last version of a range, each given by version or by time.

    A starting time means the first commit made at that time or later. An ending time means the last
    commit made at that time or earlier. Without an end, or with an ending version above the newest,
    the range ends at the newest version.

    Attributes:
        starting_version: The first version.
        ending_version: The last version.
        starting_ms: The start in epoch milliseconds.
        ending_ms: The end in epoch milliseconds.
    """

    starting_version: int | None = None
    ending_version: int | None = None
    starting_ms: int | None = None
    ending_ms: int | None = None

    def __post_init__(self) -> None:
        for which, version, time_ms in (
            ("starting", self.starting_version, self.starting_ms),
            ("ending", self.ending_version, self.ending_ms),
        ):
            if version is not None and time_ms is not None:
                raise UsageError(
                    f"The {which} version and the {which} timestamp are both given. Nothing was "
                    "read. Give only one of them.",
                    kind="DELTA_MULTIPLE_CDC_BOUNDARY",
                    boundary=which,
                )
        if self.starting_version is None and self.starting_ms is None:
            raise _missing_start()

    def resolve(self, table: TableRef, latest: Snapshot) -> tuple[int, int] | None:
        """Return the first and last version, or None if no commit lies between the two times.

        It also returns None if the start is after the newest commit and the option
        `changeDataFeed.timestampOutOfRange.enabled` allows that.

        Raises:
            UsageError: The end is before the start (kind `DELTA_INVALID_CDC_RANGE`).
            TableError: The start is after the newest version (kinds
                `DELTA_CDC_START_VERSION_AFTER_LATEST`, `DELTA_TIMESTAMP_GREATER_THAN_COMMIT`), or
                the end is a time outside the log (kinds `DELTA_TIMESTAMP_GREATER_THAN_COMMIT`,
                `DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION`).
        """
        is_lenient = table.options.cdf_allow_out_of_range
        start = self._resolve_start(table, latest)
        if start > latest.version:
            if is_lenient:
                return None
            raise self._starts_too_late(start, latest)
        end = self._resolve_end(table, latest, is_lenient=is_lenient)
        by_times = self.starting_ms is not None and self.ending_ms is not None
        if by_times and self._times_are_ordered() and end == start - 1:
            return None  # both times lie between the same two commits
        if end < start or not self._times_are_ordered():
            raise _end_before_start(start, end)
        return start, min(end, latest.version)

    def _times_are_ordered(self) -> bool:
        if self.starting_ms is None or self.ending_ms is None:
            return True
        return self.starting_ms <= self.ending_ms

    def _resolve_start(self, table: TableRef, latest: Snapshot) -> int:
        if self.starting_version is not None:
            return self.starting_version
        if self.starting_ms is None:
            raise _missing_start()
        return first_version_since(table, latest, self.starting_ms)

    def _resolve_end(self, table: TableRef, latest: Snapshot, *, is_lenient: bool) -> int:
        if self.ending_version is not None:
            return self.ending_version
        if self.ending_ms is None:
            return latest.version
        return version_at_timestamp(
            table.store, table.log_path, self.ending_ms, latest=latest, accept_last=is_lenient
        )

    def _starts_too_late(self, start: int, latest: Snapshot) -> TableError:
        if self.starting_ms is None:
            return TableError(
                f"The read of changes starts at version {start}, but the newest version of "
                f"{latest.table_path} is {latest.version}. Nothing was read. Start at the newest "
                "version or earlier, or set "
                "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled to get no rows "
                "instead of this error.",
                kind="DELTA_CDC_START_VERSION_AFTER_LATEST",
                start=start,
                latest=latest.version,
            )
        return TableError(
            f"The read of changes starts at {format_timestamp(self.starting_ms)}, but the newest "
            f"version of {latest.table_path}, version {latest.version}, is from "
            f"{format_timestamp(latest.timestamp_ms)}. Nothing was read. Start at that time or "
            "earlier, or set spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled to "
            "get no rows instead of this error.",
            kind="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            timestamp_ms=self.starting_ms,
            latest_version=latest.version,
            latest_timestamp_ms=latest.timestamp_ms,
        )


def first_version_since(table: TableRef, latest: Snapshot, time_ms: int) -> int:
    """Return the first version made at a time or later, or the one after the newest.

    Its commit is in the log, but the table may not be loadable at that version.

    Args:
        table: The table.
        latest: Its newest version.
        time_ms: Epoch milliseconds.
    """
    try:
        before = version_at_timestamp(
            table.store,
            table.log_path,
            time_ms - 1,
            latest=latest,
            accept_last=True,
            must_be_recreatable=False,
        )
    except TableError as error:
        earliest = error.fields.get("earliest_version")
        is_early = error.kind == TIMESTAMP_TOO_EARLY
        if not is_early or not isinstance(earliest, int):
            raise
        return earliest
    return before + 1


def _missing_start() -> UsageError:
    return UsageError(
        "The read of changes has no start. Nothing was read. Give one: starting_version or "
        "starting_timestamp in plain Python, startingVersion or startingTimestamp on Spark.",
        kind="DELTA_NO_START_FOR_CDC_READ",
    )


def _end_before_start(start: int, end: int) -> UsageError:
    return UsageError(
        f"The read of changes starts at version {start} and ends at version {end}, before its "
        "start. Nothing was read. Swap the two.",
        kind="DELTA_INVALID_CDC_RANGE",
        start=start,
        end=end,
    )
