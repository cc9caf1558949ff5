"""A rehearsal: one commit to a table of its own, which is read back and removed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import remove_directory
from optimist.core.errors import OptimistError
from optimist.core.paths import join, strip_file_scheme
from optimist.core.secrets import Options
from optimist.core.table.delta_log import DeltaLog

__all__ = ["rehearse"]

_ROWS = pa.table({"rehearsal": pa.array([1, 2, 3], pa.int64())})
_NAME = "optimist-rehearsal"
_LATE_WORK = "postCommit.background"


def rehearse(place: str, options: Options) -> tuple[bool, str]:
    """Commit to a new table in a directory, read it back and remove it.

    Only what this call has created is removed. Work after the commit is done before the removal,
    whatever the options say of it.

    Args:
        place: The directory in which the table is created.
        options: The options of the table and its store.

    Returns:
        Whether all of it went well, and what happened.

    Raises:
        UsageError: The URL or an option is wrong.
    """
    wanted = {key: value for key, value in options.items() if not key.endswith(_LATE_WORK)}
    prompt = Options(wanted)
    above = DeltaLog.for_path(place, prompt)
    if is_on_disk(above.table_path) and not Path(strip_file_scheme(above.table_path)).is_dir():
        return False, "there is no such directory, so nothing was written"
    name = f"{_NAME}-{above.clock.new_uuid()}"
    log = DeltaLog.for_path(join(above.table_path, name), prompt)
    try:
        is_fine, told = _commit_and_read(log)
    finally:
        left = _remove(log)
    return (False, f"{told}; {left}") if left else (is_fine, f"{told}; it is removed again")


def _commit_and_read(log: DeltaLog) -> tuple[bool, str]:
    begun_s = log.clock.monotonic_s()
    try:
        log.append(_ROWS)
        took_ms = (log.clock.monotonic_s() - begun_s) * 1000
        rows = log.to_arrow()
    except OptimistError as error:
        return False, str(error)
    if not rows.equals(_ROWS):
        return False, f"the rows of {log.table_path} do not come back as they were written"
    return True, f"a table of {rows.num_rows} rows was committed in {took_ms:.0f} ms and read back"


def _remove(log: DeltaLog) -> str | None:
    """Remove the table, and return what is wrong if that fails."""
    try:
        remove_directory(log.table_path, log.table.data_access())
    except OptimistError as error:
        return f"{log.table_path} could not be removed: {error}"
    return None
