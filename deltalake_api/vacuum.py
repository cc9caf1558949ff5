"""VACUUM with deltalake's result, the relative paths of the files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optimist.core import DeltaLog, Snapshot
from optimist.core.maintenance.vacuum.file_deletion import DeletionRule, delete_here
from optimist.core.maintenance.vacuum.vacuum import VacuumRequest, vacuum

__all__ = ["vacuum_table"]


def vacuum_table(
    log: DeltaLog,
    retention_hours: float | None,
    *,
    dry_run: bool,
    is_full: bool,
    kept: Sequence[Snapshot],
) -> list[str]:
    """Run VACUUM, and return the files that it deletes or would delete.

    Args:
        log: The table.
        retention_hours: How long removed files are kept.
        dry_run: Whether nothing is deleted.
        is_full: Whether the table's directory is listed, or only the log is read.
        kept: Older versions whose files are kept.
    """
    deleted: list[str] = []

    def delete(batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
        for batch, count in zip(batches, delete_here(batches, rule), strict=True):
            deleted.extend(batch)
            yield count

    mode = "FULL" if is_full else "LITE"
    request = VacuumRequest(
        retention_hours, dry_run, mode, delete=delete, kept_versions=tuple(kept)
    )
    done = vacuum(lambda: log.start_transaction(log.snapshot()), request)
    if not dry_run:
        return deleted
    root = log.table_path.rstrip("/") + "/"
    return [str(path).removeprefix(root) for path in done.paths.to_pylist()]
