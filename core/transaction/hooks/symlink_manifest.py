"""`GenerateSymlinkManifest`: lists of data files for readers that don't know Delta.

Presto, Athena and Hive read such lists. Where the property
`delta.compatibility.symlinkFormatManifest.enabled` is set, each commit with file actions rewrites
the manifests of the partitions it touched, under `_symlink_format_manifest/`. One manifest is
replaced as a whole, but the manifests of several partitions are not replaced together.

Hooks of several writers may run in another order than their commits. So that no manifest goes back
to an older version, each writer does this:

1. Look for commits since the version at hand, and go to the newest.
2. Write those of the manifests that are not what was written last.
3. Again from 1, until there is nothing to write.

The timeline of the race that this guards against: A commits 4 -> B commits 5 and writes its
manifest -> A writes that of 4 over it, then finds 5, and writes that. Whoever writes last looks
afterwards, and so leaves the newest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import partition_directory
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, StorageError, TableError
from optimist.core.log_upkeep.later_commits import commits_after
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.actions import AddFile, RemoveFile
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.hooks.hooks import CommittedTransaction

__all__ = ["MANIFEST_DIRECTORY", "GenerateSymlinkManifest", "SymlinkManifests", "all_partitions"]

MANIFEST_DIRECTORY = "_symlink_format_manifest"
Values: TypeAlias = Mapping[str, str | None]


class GenerateSymlinkManifest:
    """The post-commit hook, which needs no state."""

    name = "Generate Symlink Format Manifest"

    def run(self, committed: CommittedTransaction) -> None:
        """Rewrite the manifests of the partitions that the commit touched."""
        partitions: list[Values] = [
            action.partition_values or {}
            for action in committed.actions
            if isinstance(action, AddFile | RemoveFile)
        ]
        if committed.files:
            partitions += committed.files.partitions()
        touched = {json.dumps(dict(values)): values for values in partitions}
        if touched:
            manifests = SymlinkManifests(committed.table, committed.snapshot)
            manifests.bring_up_to_date(lambda _: touched.values(), is_asked_for=False)


class SymlinkManifests:
    """The manifests of one table. Single use, and for one thread.

    Args:
        table: The table.
        snapshot: A version of it, from which later ones are looked for.
    """

    def __init__(self, table: TableRef, snapshot: Snapshot) -> None:
        self._table = table
        self.snapshot = snapshot
        self._written: dict[str, tuple[str, ...]] = {}

    def bring_up_to_date(
        self, partitions: Callable[[Snapshot], Iterable[Values]], *, is_asked_for: bool
    ) -> frozenset[str]:
        """Write the manifests of the newest version, in the steps of the module.

        Args:
            partitions: Those of a version that are to be written.
            is_asked_for: Whether the table's property does not matter. If it does, and a later
                commit has unset it, the rest is left undone.

        Returns:
            The paths of the manifests, those included that went because no file is left.

        Raises:
            SchemaError: Files have deletion vectors, of which a manifest can't tell.
            StorageError: Others have committed all the while (`OPTIMIST_MANIFEST_OVERTAKEN`), or
                the version is no longer in the log (`OPTIMIST_PREDECESSOR_MISSING`).
        """
        policy, clock = self._table.options.retry_policy, self._table.clock
        start_s = clock.monotonic_s()
        while True:
            self.snapshot = _newest_version(self._table.store, self.snapshot)
            if not (is_asked_for or self.snapshot.properties.symlink_format_manifest_enabled):
                return frozenset(self._written)
            wanted = _wanted_manifests(self._table.store, self.snapshot, partitions(self.snapshot))
            due = {path: files for path, files in wanted.items() if self._has_not(path, files)}
            if not due:
                return frozenset(wanted)
            if clock.monotonic_s() - start_s > policy.budget_s:
                raise _manifest_overtaken(self.snapshot)
            for path, files in due.items():
                _replace_manifest(self._table.store, self.snapshot, path, files)
                self._written[path] = files

    def _has_not(self, path: str, files: tuple[str, ...]) -> bool:
        return path not in self._written or self._written[path] != files


def all_partitions(snapshot: Snapshot) -> Iterable[Values]:
    """Return the values of every partition of a version."""
    values = snapshot.files.column("partitionValues").to_pylist(maps_as_pydicts="strict")
    return {json.dumps(item): item for item in values}.values()


def _newest_version(store: LogStore, snapshot: Snapshot) -> Snapshot:
    commits = commits_after(store, snapshot)
    if not commits or snapshot.segment is None:
        return snapshot
    return snapshot.updated_to(store, snapshot.segment.extended(commits))


def _wanted_manifests(
    store: LogStore, snapshot: Snapshot, partitions: Iterable[Values]
) -> dict[str, tuple[str, ...]]:
    """Return the lines of each manifest by its path, or None for one that must not be there."""
    if pc.any(pc.is_valid(snapshot.files.column("deletionVector")), min_count=0).as_py():
        raise SchemaError(
            "A symlink manifest can't be written for a table whose files have deletion vectors: it "
            "can't say which rows are deleted. Purge the deletion vectors, or unset "
            "delta.compatibility.symlinkFormatManifest.enabled.",
            kind="DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
        )
    names = [snapshot.physical_name(column) for column in snapshot.partition_columns]
    wanted = {}
    for values in partitions:
        # A partition of another partitioning, which is gone, has a manifest and no file any more.
        is_current = set(values) == set(names)
        ordered = {name: values[name] for name in (names if is_current else values)}
        files = _files_of(snapshot.files, ordered) if is_current else []
        lines = tuple(_manifest_line(store, snapshot.data_paths, item) for item in files)
        wanted[_manifest_path(snapshot, ordered)] = lines
    return wanted


def _manifest_path(snapshot: Snapshot, values: Values) -> str:
    directory = join(snapshot.table_path, MANIFEST_DIRECTORY)
    if values:
        directory = join(directory, partition_directory(values))
    return join(directory, "manifest")


def _replace_manifest(
    store: LogStore, snapshot: Snapshot, path: str, lines: tuple[str, ...]
) -> None:
    snapshot.data_paths.ensure_not_led_out(path)
    if not lines:
        store.delete(path)
        return
    store.ensure_directory(path.rpartition("/")[0])
    store.write(path, list(lines), overwrite=True)


def _manifest_overtaken(snapshot: Snapshot) -> StorageError:
    return StorageError(
        f"Whenever the symlink manifests of {snapshot.table_path} were written, other writers had "
        "committed in the meantime. The manifests may list the files of an older version than "
        f"{snapshot.version}. Generate them when fewer writers are active.",
        kind="OPTIMIST_MANIFEST_OVERTAKEN",
        path=snapshot.table_path,
        retryable=True,
    )


def _manifest_line(store: LogStore, paths: DataPaths, reference: str) -> str:
    """Return a file as the manifest names it, even one that we may not open ourselves.

    Nothing is opened here, and a file that is left out would hide its rows. A reader of the
    manifest that can't reach the file raises an error of its own.
    """
    try:
        return store.resolve_path(paths.full_path(reference))
    except TableError:
        return paths.spelled_path(reference)


def _files_of(files: pa.Table, values: Values) -> list[str]:
    """Return the paths of the files of one partition."""
    mask = pa.array([True] * files.num_rows) if not values else None
    for name, value in values.items():
        found = pc.map_lookup(files.column("partitionValues"), name, "first")
        hit = pc.is_null(found) if value is None else pc.fill_null(pc.equal(found, value), False)
        mask = hit if mask is None else pc.and_(mask, hit)
    paths: list[str] = files.column("path").filter(mask).to_pylist()
    return paths
