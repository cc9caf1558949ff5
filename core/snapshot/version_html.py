"""A version of a table as HTML for notebooks, from what is in memory."""

from __future__ import annotations

import pyarrow as pa

from optimist.core.errors.html_repr import html_page, rows_html
from optimist.core.errors.size_text import bytes_text
from optimist.core.log.checksum import VersionChecksum
from optimist.core.log.timestamps import format_timestamp
from optimist.core.protocol.actions import CommitInfo
from optimist.core.schema.types import StructType
from optimist.core.snapshot import by_need
from optimist.core.snapshot.files_view import FilesView
from optimist.core.values.exact_sums import exact_sum

__all__ = ["columns_html", "version_html"]

_MOST_COLUMNS = 50
_MOST_FILES_COUNTED = 10_000
"""Above so many files, their rows are not counted: that would take longer than a glance."""


def version_html(
    version: FilesView,
    time_ms: int | None,
    files: pa.Table | None,
    checksum: VersionChecksum | None,
    last_commit: CommitInfo | None,
) -> str:
    """Return a version as HTML.

    Args:
        version: The version.
        time_ms: When it was made, if that is known.
        files: Its files, if they are in memory.
        checksum: Its checksum, if it is in memory.
        last_commit: What its commit says of itself, if that is known.
    """
    sums = _sums(files, checksum)
    size = None if sums is None else bytes_text(sums[1])
    info = last_commit or CommitInfo()
    facts = {
        "version": version.version,
        "time": None if time_ms is None else format_timestamp(time_ms),
        "files": "not read yet" if sums is None else sums[0],
        "size": size,
        "rows": None if files is None else _rows(files),
        "partitioned by": ", ".join(version.partition_columns) or None,
        "last commit": info.operation,
        "writer": info.engine_info,
    }
    return html_page(version.table_path, facts, columns_html(version.schema))


def columns_html(schema: StructType) -> str:
    """Return the columns of a table as HTML."""
    shown = schema.fields[:_MOST_COLUMNS]
    rows = [(item.name, str(item.data_type), "" if item.nullable else "NOT NULL") for item in shown]
    return rows_html(("column", "type", ""), rows, len(schema) - len(shown)) if rows else ""


def _sums(files: pa.Table | None, checksum: VersionChecksum | None) -> tuple[int, int] | None:
    if files is not None:
        return files.num_rows, exact_sum(files.column("size"))
    return None if checksum is None else (checksum.num_files, checksum.table_size_bytes)


def _rows(files: pa.Table) -> int | None:
    """Return the number of rows, or None if the log does not tell it soon."""
    if files.num_rows > _MOST_FILES_COUNTED:
        return None
    known = by_need.FileStatistics(files, StructType()).num_records.combine_chunks()
    rows = by_need.live_rows(files, known)
    return None if rows.null_count else exact_sum(rows)
