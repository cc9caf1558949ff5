"""GENERATE: write lists of the newest version's files, for readers that do not know Delta."""

from __future__ import annotations

from optimist.core.data.storage.stored_files import files_below, remove_file
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import ensure_text
from optimist.core.errors.foreign_text import quoted
from optimist.core.paths import join
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.hooks.symlink_manifest import (
    MANIFEST_DIRECTORY,
    SymlinkManifests,
    all_partitions,
)

__all__ = ["generate_manifests"]

_MODE = "symlink_format_manifest"


def generate_manifests(table: TableRef, snapshot: Snapshot, mode: str) -> None:
    """Write the manifest of each partition, and remove manifests of partitions that are gone.

    If others commit meanwhile, manifests are written for their versions, too. A reader sees each
    manifest whole, old or new. The manifests do not all change at once.

    Raises:
        UsageError: `mode` is not `symlink_format_manifest`, in any case (kind
            `DELTA_MODE_NOT_SUPPORTED`).
        SchemaError, StorageError: See `SymlinkManifests.bring_up_to_date`.
    """
    ensure_text(mode, "mode")
    if mode.lower() != _MODE:
        raise UsageError(
            f"The mode {quoted(mode)} of GENERATE is unknown. Nothing was written. Use {_MODE}.",
            kind="DELTA_MODE_NOT_SUPPORTED",
            mode=mode,
        )
    manifests = SymlinkManifests(table, snapshot)
    written = manifests.bring_up_to_date(all_partitions, is_asked_for=True)
    _remove_stale(table, manifests.snapshot, written)
    # A new partition's manifest may have been there already, and was then just removed.
    manifests.bring_up_to_date(all_partitions, is_asked_for=True)


def _remove_stale(table: TableRef, snapshot: Snapshot, written: frozenset[str]) -> None:
    access = table.data_access()
    for status in files_below(join(snapshot.table_path, MANIFEST_DIRECTORY), access):
        if status.name == "manifest" and status.path not in written:
            snapshot.data_paths.ensure_not_led_out(status.path)
            remove_file(status.path, access)
