"""A check that a version's files still exist, before another version relies on them."""

from __future__ import annotations

import pyarrow as pa

from optimist.core.data.storage.missing_files import missing_files
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import listed
from optimist.core.maintenance.vector_files import vector_paths
from optimist.core.runtime.progress import FileProgress, ProgressReport

__all__ = ["ensure_files_there"]

_NAMED_FILES = 100


def ensure_files_there(
    table: TableRef,
    version: int,
    files: pa.Table,
    way_out: str,
    report: ProgressReport | None = None,
) -> None:
    """Refuse a version whose data files or deletion vectors were deleted.

    With `spark.sql.files.ignoreMissingFiles` it checks nothing.

    Args:
        table: The table that has the files.
        version: The version that has the files.
        files: Rows of `FILES_SCHEMA`.
        way_out: A sentence that says what the caller can do instead.
        report: Is told of the files, data files and deletion vectors, that are there.

    Raises:
        TableError: Files are gone (kind `DELTA_FILE_NOT_FOUND_DETAILED`, fields `version`,
            `num_missing` and `paths`, which has at most 100 of them).
    """
    if table.options.ignore_missing_files:
        return
    paths = table.data_paths
    data = [paths.full_paths(chunk) for chunk in files["path"].chunks]
    wanted = pa.chunked_array([*data, vector_paths(files, paths)], pa.string())

    def tell(done: int) -> None:
        if report is not None:
            report.tell(FileProgress("check", done, len(wanted)))

    missing = missing_files(wanted, table.table_path, table.data_access(), tell)
    if not len(missing):
        return
    named = missing.slice(0, _NAMED_FILES).to_pylist()
    raise TableError(
        f"Not all files of version {version} are there any more: {len(missing)} are gone, such as "
        f"{listed(named[:3])}. VACUUM removes files that no version within the retention period "
        f"needs. Nothing was written. {way_out}",
        kind="DELTA_FILE_NOT_FOUND_DETAILED",
        version=version,
        num_missing=len(missing),
        paths=tuple(named),
    )
