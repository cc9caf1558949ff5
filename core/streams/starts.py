"""The version at which a stream without an offset begins (spec 11.2)."""

from __future__ import annotations

from optimist.core.changes.bounds import first_version_since
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.log.names import commit_path
from optimist.core.log.timestamps import format_timestamp
from optimist.core.snapshot import Snapshot
from optimist.core.streams.commit_files import CommitReader
from optimist.core.streams.options import StreamOptions

__all__ = ["first_commit"]


def first_commit(
    table: TableRef, options: StreamOptions, latest: Snapshot, reader: CommitReader
) -> int | None:
    """Return the first commit that a new stream reads, or None if the whole table comes first.

    It may be in the future: the version after the newest for `latest`, or a later one if the option
    `changeDataFeed.timestampOutOfRange.enabled` lets a stream wait for its start.

    Args:
        table: The table.
        options: The stream's options.
        latest: The newest version.
        reader: Handles a commit that is no longer in the log.

    Raises:
        TableError: The start is after the newest version (kinds `DELTA_VERSION_NOT_FOUND`,
            `DELTA_TIMESTAMP_GREATER_THAN_COMMIT`), or no longer in the log.
    """
    wanted = options.starting_version
    # A log of schemas begins with the table's metadata at the start, which must be known then.
    may_wait = table.options.cdf_allow_out_of_range and options.schema_location is None
    if options.starting_ms is not None:
        version = first_version_since(table, latest, options.starting_ms)
        if version > latest.version and not table.options.cdf_allow_out_of_range:
            raise _too_late(options.starting_ms, latest)
        return version
    if wanted is None:
        return None
    if not isinstance(wanted, int):
        return latest.version + 1
    if wanted <= latest.version:
        _ensure_held(table, wanted, latest, reader)
    elif not may_wait:
        raise _yet_to_come(wanted, latest)
    return wanted


def _ensure_held(table: TableRef, version: int, latest: Snapshot, reader: CommitReader) -> None:
    """Refuse a start whose commit is gone.

    The version itself need not be recreatable.
    """
    try:
        table.store.read_bytes(commit_path(table.log_path, version))
    except LogFileNotFoundError:
        reader.missing(version, latest.version)


def _yet_to_come(version: int, latest: Snapshot) -> TableError:
    return TableError(
        f"The stream starts at version {version}, but the newest version of "
        f"{latest.table_path} is {latest.version}. Nothing was read. Start at that version or "
        "earlier, or at latest for future commits; to wait for the version, set "
        "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled to true, which a stream "
        "with a schemaTrackingLocation can't.",
        kind="DELTA_VERSION_NOT_FOUND",
        version=version,
        latest=latest.version,
    )


def _too_late(time_ms: int, latest: Snapshot) -> TableError:
    return TableError(
        f"The stream starts at {format_timestamp(time_ms)}, but the newest version of "
        f"{latest.table_path}, version {latest.version}, is from "
        f"{format_timestamp(latest.timestamp_ms)}. Nothing was read. Start at that time or "
        "earlier; to wait for the first commit after it, set "
        "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled to true.",
        kind="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        timestamp_ms=time_ms,
        latest_version=latest.version,
        latest_timestamp_ms=latest.timestamp_ms,
    )
