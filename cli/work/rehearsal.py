"""A rehearsal: one commit to a table of its own, which is read back and removed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import remove_directory
from optimist.core.errors import OptimistError
from optimist.core.log.names import commit_path
from optimist.core.paths import join, strip_file_scheme
from optimist.core.secrets import Options
from optimist.core.table.delta_log import DeltaLog

__all__ = ["Rehearsal", "rehearse"]

_ROWS = pa.table({"rehearsal": pa.array([1, 2, 3], pa.int64())})
_NAME = "optimist-rehearsal"
_LATE_WORK = "postCommit.background"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a rehearsal has shown.

    Attributes:
        is_fine: Whether all of it went well.
        told: What happened.
        skew_ms: How far the store's clock is ahead of this machine's, by the time of the commit's
            file; None if that is unknown.
    """

    is_fine: bool
    told: str
    skew_ms: int | None = None


def rehearse(place: str, options: Options) -> Rehearsal:
    """Commit to a new table in a directory, read it back and remove it.

    Only what this call has created is removed. Work after the commit is done before the removal,
    whatever the options say of it.

    Args:
        place: The directory in which the table is created.
        options: The options of the table and its store.

    Raises:
        UsageError: The URL or an option is wrong.
    """
    wanted = {key: value for key, value in options.items() if not key.endswith(_LATE_WORK)}
    prompt = Options(wanted)
    above = DeltaLog.for_path(place, prompt)
    if is_on_disk(above.table_path) and not Path(strip_file_scheme(above.table_path)).is_dir():
        return Rehearsal(False, "there is no such directory, so nothing was written")
    name = f"{_NAME}-{above.clock.new_uuid()}"
    log = DeltaLog.for_path(join(above.table_path, name), prompt)
    try:
        done = _commit_and_read(log)
    finally:
        left = _remove(log)
    if left:
        return Rehearsal(False, f"{done.told}; {left}", done.skew_ms)
    return replace(done, told=f"{done.told}; it is removed again")


def _commit_and_read(log: DeltaLog) -> Rehearsal:
    begun_s, begun_ms = log.clock.monotonic_s(), log.clock.now_ms()
    try:
        log.append(_ROWS)
        took_ms = (log.clock.monotonic_s() - begun_s) * 1000
        skew_ms = _skew_ms(log, begun_ms)
        rows = log.to_arrow()
    except OptimistError as error:
        return Rehearsal(False, str(error))
    if not rows.equals(_ROWS):
        told = f"the rows of {log.table_path} do not come back as they were written"
        return Rehearsal(False, told, skew_ms)
    told = f"a table of {rows.num_rows} rows was committed in {took_ms:.0f} ms and read back"
    return Rehearsal(True, told, skew_ms)


def _skew_ms(log: DeltaLog, begun_ms: int) -> int | None:
    """Return how far the time of the commit's file lies outside the time that the commit took."""
    path = commit_path(log.log_path, 0)
    listed = next((each for each in log.store.list_from(path) if each.path == path), None)
    if listed is None or not listed.modified_ms:
        return None
    ended_ms = log.clock.now_ms()
    if listed.modified_ms > ended_ms:
        return listed.modified_ms - ended_ms
    return min(0, listed.modified_ms - begun_ms)


def _remove(log: DeltaLog) -> str | None:
    """Remove the table, and return what is wrong if that fails."""
    try:
        remove_directory(log.table_path, log.table.data_access())
    except OptimistError as error:
        return f"{log.table_path} could not be removed: {error}"
    return None
