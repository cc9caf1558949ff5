"""`GenerateSymlinkManifest`: lists of data files for readers that don't know Delta.

Presto, Athena and Hive read such lists. Where the property
`delta.compatibility.symlinkFormatManifest.enabled` is set, each commit with file actions rewrites
the manifests of the partitions it touched, under `_symlink_format_manifest/`. One manifest is
replaced as a whole, but the manifests of several partitions are not replaced together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.data_paths import DataPaths
from optimist.core.data.partition_values import partition_directory
from optimist.core.errors import SchemaError, TableError
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.actions import AddFile, RemoveFile
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.hooks.hooks import CommittedTransaction

__all__ = ["MANIFEST_DIRECTORY", "GenerateSymlinkManifest", "write_all_manifests"]

MANIFEST_DIRECTORY = "_symlink_format_manifest"
_Values = Mapping[str, str | None]


class GenerateSymlinkManifest:
    """The post-commit hook; it needs no state."""

    name = "Generate Symlink Format Manifest"

    def run(self, committed: CommittedTransaction) -> None:
        """Rewrite the manifests of the partitions that the commit touched."""
        touched = {
            json.dumps(dict(action.partition_values or {})): action.partition_values or {}
            for action in committed.actions
            if isinstance(action, AddFile | RemoveFile)
        }
        if touched:
            _write(committed.table.store, committed.snapshot, touched.values())


def write_all_manifests(store: LogStore, snapshot: Snapshot) -> frozenset[str]:
    """Write the manifest of every partition of the table, and tell their paths."""
    values = snapshot.files.column("partitionValues").to_pylist(maps_as_pydicts="strict")
    distinct = {json.dumps(item): item for item in values}
    return _write(store, snapshot, distinct.values())


def _write(store: LogStore, snapshot: Snapshot, partitions: Iterable[_Values]) -> frozenset[str]:
    if pc.any(pc.is_valid(snapshot.files.column("deletionVector")), min_count=0).as_py():
        raise SchemaError(
            "A symlink manifest can't be written for a table whose files have deletion vectors: it "
            "can't say which rows are deleted. Purge the deletion vectors, or unset "
            "delta.compatibility.symlinkFormatManifest.enabled.",
            kind="DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
        )
    return frozenset(_write_partition(store, snapshot, values) for values in partitions)


def _write_partition(store: LogStore, snapshot: Snapshot, values: _Values) -> str:
    names = [snapshot.physical_name(column) for column in snapshot.partition_columns]
    files = _files_of(snapshot.files, {name: values.get(name) for name in names})
    directory = join(snapshot.table_path, MANIFEST_DIRECTORY)
    if names:
        directory = join(directory, partition_directory({name: values.get(name) for name in names}))
    path = join(directory, "manifest")
    snapshot.data_paths.ensure_not_led_out(path)
    if not files:
        store.delete(path)
        return path
    store.ensure_directory(directory)
    lines = [_line(store, snapshot.data_paths, item) for item in files]
    store.write(path, lines, overwrite=True)
    return path


def _line(store: LogStore, paths: DataPaths, reference: str) -> str:
    """A file as the manifest names it; a file that we may not open ourselves is named, too.

    Nothing is opened here, and leaving the file out would hide its rows. A reader of the manifest
    that can't or won't reach the file will say so.
    """
    try:
        return store.resolve_path(paths.full_path(reference))
    except TableError:
        return paths.spelled_path(reference)


def _files_of(files: pa.Table, values: _Values) -> list[str]:
    """The paths of the files of one partition."""
    mask = pa.array([True] * files.num_rows) if not values else None
    for name, value in values.items():
        found = pc.map_lookup(files.column("partitionValues"), name, "first")
        hit = pc.is_null(found) if value is None else pc.fill_null(pc.equal(found, value), False)
        mask = hit if mask is None else pc.and_(mask, hit)
    paths: list[str] = files.column("path").filter(mask).to_pylist()
    return paths
