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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from optimist.core.data.hive_names import HIVE_NULL
from optimist.core.data.partition_values import partition_directory
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, StorageError, TableError
from optimist.core.log.file_lines import numbered_partitions
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

    def distinct(batches: Iterator[pa.RecordBatch]) -> Iterable[Values]:
        found: dict[str, Values] = {}
        for batch in batches:
            _, partitions = numbered_partitions(batch.column("partitionValues"))
            found |= {json.dumps(item): item for item in partitions}
        return found.values()

    return snapshot.read_columns(("partitionValues",), distinct)


def _newest_version(store: LogStore, snapshot: Snapshot) -> Snapshot:
    commits = commits_after(store, snapshot)
    if not commits or snapshot.segment is None:
        return snapshot
    return snapshot.updated_to(store, snapshot.segment.extended(commits))


def _wanted_manifests(
    store: LogStore, snapshot: Snapshot, partitions: Iterable[Values]
) -> dict[str, tuple[str, ...]]:
    """Return the lines of each manifest by its path, or None for one that must not be there."""
    if snapshot.read_columns(("deletionVector",), _have_vectors):
        raise SchemaError(
            "A symlink manifest can't be written for a table whose files have deletion vectors: it "
            "can't say which rows are deleted. Purge the deletion vectors, or unset "
            "delta.compatibility.symlinkFormatManifest.enabled.",
            kind="DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
        )
    given, names = list(partitions), _names(snapshot)
    # A partition of another partitioning, which is gone, has a manifest and no file any more.
    gone = [values for values in given if set(values) != set(names)]
    wanted: dict[str, tuple[str, ...]] = {_manifest_path(snapshot, values): () for values in gone}
    for texts, references in _paths_of(snapshot, _in_the_same_places(snapshot, given)).items():
        path = _manifest_path(snapshot, dict(zip(names, texts, strict=True)))
        lines = tuple(_manifest_line(store, snapshot.data_paths, item) for item in references)
        wanted[path] = (*wanted.get(path, ()), *lines)
    return wanted


def _names(snapshot: Snapshot) -> list[str]:
    return [snapshot.physical_name(column) for column in snapshot.partition_columns]


def _in_the_same_places(snapshot: Snapshot, given: Iterable[Values]) -> list[Values]:
    """Return partitions by the version's columns, and those whose manifests are theirs, too.

    Null, the empty text and Hive's word for null have one directory. A value that a file lacks is
    null.
    """
    names = _names(snapshot)

    def in_order(partitions: Iterable[Values]) -> list[Values]:
        current = (each for each in partitions if set(each) <= set(names))
        return [{name: each.get(name) for name in names} for each in current]

    found = in_order(given)
    if not any(text in (None, "", HIVE_NULL) for each in found for text in each.values()):
        return found
    places = {partition_directory(each) for each in found}
    every = in_order(all_partitions(snapshot))
    return [*found, *(each for each in every if partition_directory(each) in places)]


def _have_vectors(batches: Iterator[pa.RecordBatch]) -> bool:
    return any(batch.column("deletionVector").null_count < batch.num_rows for batch in batches)


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


def _paths_of(
    snapshot: Snapshot, partitions: Sequence[Values]
) -> Mapping[tuple[str | None, ...], Sequence[str]]:
    """Return the paths of the files of some partitions, by the partitions' values."""
    found: dict[tuple[str | None, ...], list[str]] = {
        tuple(each.values()): [] for each in partitions
    }
    if not partitions:
        return found
    names = list(partitions[0])
    files = snapshot.in_partitions(partitions, ("path", "partitionValues"))
    for batch in files.to_batches():
        numbers, values = numbered_partitions(batch.column("partitionValues"))
        grouped = pa.table({"number": numbers, "path": batch.column("path")})
        grouped = grouped.group_by("number", use_threads=False).aggregate([("path", "list")])
        for row in grouped.to_pylist():
            found[tuple(map(values[row["number"]].get, names))] += row["path_list"]
    return found
