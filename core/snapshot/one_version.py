"""One version of a table by its number (spec 5.6), and the error for a path without a table."""

from __future__ import annotations

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, TableError, TableNotFoundError
from optimist.core.log.segment import list_segment
from optimist.core.paths import join
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import ensure_version_exists

__all__ = ["NOT_RECREATABLE", "load_version", "table_not_found"]

NOT_RECREATABLE = (
    "DELTA_NO_RECREATABLE_HISTORY_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "DELTA_VERSION_NOT_FOUND",
)
"""The kinds of errors for a version that the log can no longer give."""


def load_version(table: TableRef, version: int, *, latest: Snapshot | None = None) -> Snapshot:
    """Return the table at a version. Its files are read on first use.

    Args:
        table: The table.
        version: The wanted version.
        latest: The newest version, if it could be loaded. It is returned if it is the wanted one,
            and an error then names the existing versions.

    Raises:
        TableNotFoundError: The path has no table.
        TableError: The log no longer holds the version, or is damaged.
        ProtocolError: The version demands a feature that this engine can't read.
    """
    if latest is not None and latest.version == version:
        return latest
    try:
        segment = list_segment(table.store, table.log_path, version=version)
    except TableError:
        if latest is not None:
            # The log may be fine but lack the version: name the versions that it has.
            ensure_version_exists(
                table.store, table.log_path, version, latest_version=latest.version
            )
        raise
    if segment is None:
        raise table_not_found(table)
    return Snapshot.load(
        table.store, table.table_path, segment, options=table.options, clock=table.clock
    )


def table_not_found(table: TableRef) -> TableNotFoundError:
    """Return the error for a path without a table, after a look at what the path holds."""
    path = table.table_path
    try:
        has_files = next(iter(table.store.list_from(join(path, ""))), None)
    except LogFileNotFoundError:
        return TableNotFoundError(
            f"Path does not exist: {path}. Check the path. To create a table there, write to it.",
            kind="PATH_NOT_FOUND",
            path=path,
        )
    found = "holds files but" if has_files else "is a directory but"
    return TableNotFoundError(
        f"Delta table `{path}` doesn't exist: the path {found} is not a Delta table, as it has no "
        "_delta_log with commits. Check the path.",
        kind="DELTA_TABLE_NOT_FOUND",
        path=path,
    )
