"""The repair of a table's log and statistics, where no row can be lost by it (docs/fsck.md).

1. The table is checked. If its newest version can't be read, nothing is done.
2. Each file that is to leave the log is copied. Which these are is part of the findings: a file is
   among them only if every version that can be read now can also be read without it.
3. If a checkpoint or the hint was damaged, the newest version is written as a new checkpoint. A
   damaged one of the same version would be in the way, so the hint and it are removed before. None
   of this is done if something contradicts the newest version: a checkpoint would fix its content,
   and hide what it lacks.
4. The other files are removed.
5. Files with untrue statistics get true ones, in one commit. If the caller asks for that, files
   that are gone are taken out of the table in another one.
6. The table is checked again.

If a run is killed, the table is no worse than before, and the next run does the rest. What a run
has done can be undone (`undo.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.table_ref import TableRef
from optimist.core.log.checkpoint_kinds import written_checkpoint
from optimist.core.log.names import LAST_CHECKPOINT, commit_path, parse_log_file_name
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.maintenance.fsck.findings import CheckedTable, Finding
from optimist.core.maintenance.fsck.fsck import check_table, examine
from optimist.core.maintenance.fsck.sample import Sample
from optimist.core.maintenance.fsck.saved_files import SavedFiles, digest_of
from optimist.core.maintenance.fsck.second_look import is_there, status_now
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.gates import ensure_writable
from optimist.core.runtime.progress import ProgressReport
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.result import CommitResult

__all__ = ["RepairCommits", "repair_table"]

_OF_CHECKPOINTS = frozenset({"bad-checkpoint", "missing-part", "missing-sidecar", "stale-hint"})
"""The kinds of which the hint may name the damaged checkpoint."""
_IN_DOUBT = frozenset({"checksum-mismatch", "overwritten-commit", "untrue-checkpoint"})
"""The kinds that mean that the newest version may lack rows that the log still has."""


@dataclass(frozen=True, slots=True)
class RepairCommits:
    """The commits that a repair may need.

    Attributes:
        recompute: Computes the statistics of files anew, given their full paths.
        drop_missing: Takes files that are gone out of the table; None unless the user asks for it.
    """

    recompute: Callable[[pa.Array], CommitResult | None]
    drop_missing: Callable[[], CommitResult | None] | None = None


def repair_table(
    table: TableRef,
    load: Callable[[], Snapshot],
    commits: RepairCommits,
    *,
    deep: bool,
    sample: Sample | None = None,
    report: ProgressReport | None = None,
) -> CheckedTable:
    """Repair what a check finds, and return what is left, with the steps that were done.

    Args:
        table: The table.
        load: Returns the newest version.
        commits: The commits that may be needed.
        deep: Whether data files and vectors are read, too, and their statistics made true.
        sample: As of `examine`; both checks read the same files.
        report: As of `examine`, for the check before the repair and the one after it.

    Raises:
        StorageError: The store failed. Steps that were done stay, and their copies.
        TableError, ProtocolError: The table can't be read, or not be written by this engine.
    """
    checked, found = examine(table, load, deep=deep, sample=sample, report=report)
    if checked.version is None or not checked.findings.num_rows:
        return checked
    snapshot = load()
    saved = SavedFiles(table, _last_commit_of(snapshot))
    _repair_log(table, snapshot, found, saved)
    _repair_data(table, checked.findings, commits, saved)
    if not saved.steps().num_rows:
        return checked
    left = check_table(table, load, deep=deep, sample=sample, report=report)
    steps = saved.steps()
    return replace(left, steps=steps, record=saved.name if steps.num_rows else None)


def _last_commit_of(snapshot: Snapshot) -> str:
    segment = snapshot.segment
    if segment is None or segment.last_commit is None:
        return commit_path(snapshot.log_path, snapshot.version)
    return segment.last_commit.path


def _repair_log(
    table: TableRef, snapshot: Snapshot, found: list[Finding], saved: SavedFiles
) -> None:
    """Run steps 2 to 4."""
    ensure_writable(
        snapshot.protocol,
        snapshot.metadata,
        table_path=snapshot.table_path,
        version=snapshot.version,
    )
    if any(each.kind in _IN_DOUBT for each in found):
        found = [each for each in found if each.kind not in _OF_CHECKPOINTS]
    # A cleanup may have removed since what makes a file superfluous.
    found = [each for each in found if each.base is None or is_there(table.store, each.base)]
    wanted = {status.path: status for each in found for status in each.files}
    writes = any(each.kind in _OF_CHECKPOINTS and each.files for each in found)
    first = _in_the_way(table, wanted.values(), snapshot.version) if writes else []
    wanted |= {status.path: status for status in first}
    hint = status_now(table.store, join(table.log_path, LAST_CHECKPOINT)) if writes else None
    copied = wanted if hint is None else wanted | {hint.path: hint}
    copies = {path: saved.save(status) for path, status in copied.items()}
    for status in first:
        _remove(status, copies, saved)
    if writes:
        _write_checkpoint(table, snapshot, _base_of(snapshot, found), saved)
    for status in wanted.values():
        if status not in first:
            _remove(status, copies, saved)


def _in_the_way(table: TableRef, wanted: Iterable[FileStatus], version: int) -> list[FileStatus]:
    """Return the damaged checkpoints of the newest version, behind the hint if there are any.

    Engines that use delta-kernel-rs open no table whose hint names a checkpoint that is gone.
    """
    damaged = [status for status in wanted if _is_of(status, version)]
    hint = status_now(table.store, join(table.log_path, LAST_CHECKPOINT)) if damaged else None
    return damaged if hint is None else [hint, *damaged]


def _is_of(status: FileStatus, version: int) -> bool:
    name = parse_log_file_name(status.name)
    return name is not None and name.kind.is_checkpoint and name.version == version


def _remove(status: FileStatus, copies: dict[str, str | None], saved: SavedFiles) -> None:
    copy = copies[status.path]
    if copy is not None:
        saved.remove(status, copy)


def _base_of(snapshot: Snapshot, found: Iterable[Finding]) -> str | None:
    """Return the file without which a version can't be read once its new checkpoint is gone.

    It is the checkpoint that the version was read from; if that is a damaged one, what it can be
    read from without it; and without any checkpoint the first commit.
    """
    segment = snapshot.segment
    if segment is None or segment.checkpoint is None:
        return commit_path(snapshot.log_path, 0)
    first = segment.checkpoint.files[0].path
    for each in found:
        if first in [status.path for status in each.files]:
            return each.base
    return first


def _write_checkpoint(
    table: TableRef, snapshot: Snapshot, base: str | None, saved: SavedFiles
) -> None:
    """Write the newest version as a checkpoint, and read it back as a whole."""
    last = write_checkpoint(table.store, snapshot, options=table.options, clock=table.clock)
    written = written_checkpoint(table.log_path, last, table.clock.now_ms())
    reader = written.open(table.store)
    reader.state_actions()
    for _ in reader.live_files():
        pass
    path = written.files[0].path
    status = status_now(table.store, path)
    saved.note("checkpoint", path, left=None if status is None else status.identity, base=base)
    hint = digest_of(last.to_json(table.options).encode())
    saved.note("hint", join(table.log_path, LAST_CHECKPOINT), left=hint)


def _repair_data(
    table: TableRef, found: pa.Table, commits: RepairCommits, saved: SavedFiles
) -> None:
    """Run step 5."""
    untrue = found.filter(pc.equal(found.column("kind"), "untrue-statistics")).column("path")
    if len(untrue):
        commit = commits.recompute(untrue.combine_chunks())
        if commit is not None:
            saved.note(f"commit {commit.version}: COMPUTE STATS", table.table_path)
    if commits.drop_missing is not None and "missing-file" in found.column("kind").to_pylist():
        commit = commits.drop_missing()
        if commit is not None:
            saved.note(f"commit {commit.version}: FSCK", table.table_path)
