"""VACUUM with deltalake's result, the relative paths of the files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optimist.core import DeltaLog
from optimist.core.maintenance.vacuum.file_deletion import DeletionRule, delete_here
from optimist.core.maintenance.vacuum.vacuum import VacuumRequest, vacuum

__all__ = ["vacuum_table"]


def vacuum_table(
    log: DeltaLog, retention_hours: float | None, *, dry_run: bool, is_full: bool
) -> list[str]:
    """Run VACUUM, and return the files that it deletes or would delete.

    Args:
        log: The table.
        retention_hours: How long removed files are kept.
        dry_run: Whether nothing is deleted.
        is_full: Whether the table's directory is listed, or only the log is read.
    """
    deleted: list[str] = []

    def delete(batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
        for batch, count in zip(batches, delete_here(batches, rule), strict=True):
            deleted.extend(batch)
            yield count

    request = VacuumRequest(retention_hours, dry_run, "FULL" if is_full else "LITE", delete=delete)
    done = vacuum(lambda: log.start_transaction(log.snapshot()), request)
    if not dry_run:
        return deleted
    root = log.table_path.rstrip("/") + "/"
    return [str(path).removeprefix(root) for path in done.paths.to_pylist()]
