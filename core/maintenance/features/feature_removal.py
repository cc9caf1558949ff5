"""The removal of a feature's traces from the newest version, by commits of their own.

Each function looks at the newest version and continues from there, so that an interrupted DROP
FEATURE can be run again. Each returns whether it has committed anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from types import MappingProxyType

import pyarrow as pa

from optimist.core.commands.alter.alteration import Alteration, Change, alter
from optimist.core.commands.alter.layout import cluster_by
from optimist.core.commands.alter.properties import set_properties, unset_properties
from optimist.core.commands.row_balance import RowBalance, ensure_balanced
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.parquet.parquet_footers import stored_columns
from optimist.core.data.partition_values import uri_reference
from optimist.core.data.stored_shape import has_other_types
from optimist.core.errors import ConcurrentWriteException, ProtocolError
from optimist.core.log.file_table import add_files, canonical_paths
from optimist.core.maintenance.features.feature_traces import TRACES
from optimist.core.maintenance.optimize.arrangements import Arrangement, Purge, Rearrangement
from optimist.core.maintenance.optimize.bins import bins_of
from optimist.core.maintenance.optimize.optimize import BinWriter, optimize
from optimist.core.maintenance.vector_files import vector_paths
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.data_access import DataAccess
from optimist.core.protocol.actions import Action, DomainMetadata, RemoveFile
from optimist.core.protocol.clustering import clustering_columns, clustering_domain
from optimist.core.protocol.schema_checks import ensure_names_legal
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.column_mapping import without_mapping
from optimist.core.schema.type_widening import TYPE_CHANGES
from optimist.core.schema.types import (
    COLUMN_MAPPING_PREFIX,
    StructType,
    schema_to_json,
)
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.operations import (
    DOMAIN_CLEANUP,
    ROW_TRACKING_UNBACKFILL,
    Operation,
    json_text,
)
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["CaredFor", "remove_traces"]

_READERS = 16
_TRIES = 10


@dataclass(frozen=True, slots=True)
class CaredFor:
    """A table whose feature is dropped, with the functions that write its files.

    Attributes:
        begin: Starts a transaction on the newest version.
        purge: Rewrites the files that have deletion vectors, as REORG does.
        write: Rewrites files in this process. The transaction may change the metadata.
    """

    begin: Callable[[], OptimisticTransaction]
    purge: Callable[[], object]
    write: BinWriter

    @property
    def snapshot(self) -> Snapshot:
        """The newest version."""
        return self.begin().snapshot

    def commit(self, change: Change) -> CommitResult | None:
        """Make one commit, and return None if there was nothing to do."""
        return alter(self.begin, change)


def remove_traces(table: CaredFor, name: str) -> bool:
    """Remove the traces of a feature from the newest version.

    Returns:
        Whether anything was committed.

    Raises:
        SchemaError: Columns have names that only column mapping allows.
        DeltaConcurrentModificationException: Other commits won. Commits made before stay, and the
            next run continues.
    """
    remove = _REMOVALS.get(name)
    return remove is not None and remove(table)


def _unset_properties(table: CaredFor, *keys: str) -> bool:
    known = table.snapshot.metadata.configuration
    present = [key for key in keys if key in known]
    if not present:
        return False
    table.commit(lambda txn: unset_properties(txn, present, if_exists=True))
    return True


# Deletion vectors


def _remove_vectors(table: CaredFor) -> bool:
    made = _unset_properties(table, "delta.enableDeletionVectors")
    traces = TRACES["deletionVectors"]
    for _ in range(_TRIES):
        if not traces.files(table.snapshot).num_rows:
            break
        table.purge()
        made = True
    return table.commit(_bury_vectors) is not None or made


def _bury_vectors(txn: OptimisticTransaction) -> Alteration | None:
    """Record vector files as removed, so that VACUUM keeps them as long as their versions.

    An engine that does not know vectors would delete them as files that nobody needs.
    """
    removed, paths = txn.snapshot.tombstones, txn.snapshot.data_paths
    root = txn.table.table_path.rstrip("/") + "/"
    own = [path for path in vector_paths(removed, paths).to_pylist() if path.startswith(root)]
    known = set(canonical_paths(removed["path"]).to_pylist())
    names = [path[len(root) :] for path in own if path[len(root) :] not in known]
    if not names:
        return None
    now_ms = txn.table.clock.now_ms()
    buried = (RemoveFile(uri_reference(name), now_ms, data_change=False) for name in names)
    return Alteration(Operation("Deletion Vector Tombstones"), actions=tuple(buried))


# Column mapping


def _remove_mapping(table: CaredFor) -> bool:
    txn = table.begin()
    if not TRACES["columnMapping"].in_version(txn.snapshot):
        return False
    txn.ensure_writable()
    before = txn.snapshot
    schema = without_mapping(TableMetadata.of(before.metadata).declared_schema)
    ensure_names_legal(schema, before.partition_columns, options=txn.table.options)
    kept = {
        key: text
        for key, text in before.metadata.configuration.items()
        if not key.startswith(COLUMN_MAPPING_PREFIX)
    }
    # As in a RESTORE, the metadata are taken exactly as given, since the new files have them, too.
    txn.update_metadata_for_table_restore(
        replace(before.metadata, schema_string=schema_to_json(schema), configuration=kept),
        before.protocol,
    )
    files = txn.filter_files()
    bins = bins_of(
        files,
        before.partition_schema,
        max_bytes=txn.table.options.optimize_max_file_size,
        keeps_single=True,
    )
    with UncommittedFiles(txn) as pending:
        written = table.write(txn, bins, pending, None)
        now_ms = txn.table.clock.now_ms()
        removes = (replace(a.remove(now_ms), data_change=False) for a in add_files(files))
        adds = [replace(add, data_change=False) for found in written for add in found.written]
        actions: tuple[Action, ...] = (*removes, *adds, *_renamed_clustering(before, schema))
        ensure_balanced(actions, RowBalance.EQUAL, "REMOVE COLUMN MAPPING")
        size = sum(add.size for add in adds)
        operation = Operation("REMOVE COLUMN MAPPING").with_metrics({"numOutputBytes": size})
        # Not rebased: files that another commit adds use the physical names.
        pending.commit_large(txn, actions, operation)
    return True


def _renamed_clustering(before: Snapshot, schema: StructType) -> tuple[DomainMetadata, ...]:
    """Return the clustering domain with the columns' new names in files."""
    columns = clustering_columns(before.domain_metadata, before.schema)
    return (clustering_domain(columns, schema),) if columns else ()


# Type widening


@dataclass(frozen=True, slots=True)
class _Retyping(Rearrangement):
    """A request to rewrite files that hold old types."""

    old_types: Arrangement = field(default_factory=Purge)
    purges: bool = True

    def arrangement(self, snapshot: Snapshot, options: EngineOptions) -> Arrangement:
        """Return the arrangement that rewrites files of old types."""
        del snapshot, options
        return self.old_types


@dataclass(frozen=True, slots=True)
class _OldTypes(Purge):
    """Files that hold a column in an earlier type.

    A file may be rewritten alone.

    Attributes:
        access: The access to the files.
        known: The paths of files that are known to hold no such column.
    """

    access: DataAccess | None = None
    known: set[str] = field(default_factory=set)

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """Group the files that hold an earlier type into bins."""
        return bins_of(
            self.among(candidates, snapshot),
            snapshot.partition_schema,
            max_bytes=options.optimize_max_file_size,
            keeps_single=True,
        )

    def among(self, files: pa.Table, snapshot: Snapshot) -> pa.Table:
        """Return the files that have to be rewritten, judged by their footers."""
        widened, by_id = (
            _widened_columns(snapshot.schema),
            snapshot.properties.column_mapping_mode == "id",
        )
        paths = snapshot.data_paths.full_paths(files["path"].combine_chunks()).to_pylist()
        unknown = [path for path in paths if path not in self.known]
        read = partial(stored_columns, access=self.access)
        stored = read_ahead(read, unknown, threads=_READERS, ahead=4 * _READERS)
        for path, columns in zip(unknown, stored, strict=True):
            if not has_other_types(columns, widened, by_id=by_id):
                self.known.add(path)
        return files.filter(pa.array([path not in self.known for path in paths], pa.bool_()))


def _widened_columns(schema: StructType) -> StructType:
    """Return the columns whose type was changed, at any depth."""
    plain = schema.without_field_keys(lambda key: key == TYPE_CHANGES)
    return StructType(tuple(item for item in schema if item not in plain.fields))


def _remove_widening(table: CaredFor) -> bool:
    made = _unset_properties(table, "delta.enableTypeWidening")
    if TYPE_CHANGES not in table.snapshot.metadata.schema_string:
        return made
    old_types = _OldTypes(access=table.begin().table.data_access())
    for tries in range(1, _TRIES + 1):
        optimize(table.begin, table.write, _Retyping(old_types=old_types))
        txn = table.begin()
        if old_types.among(txn.snapshot.files, txn.snapshot).num_rows:
            continue  # another commit, such as a RESTORE, has added one
        try:
            _forget_types(txn)
        except ConcurrentWriteException:
            if tries == _TRIES:
                raise
        else:
            return True
    raise ProtocolError(
        "The feature typeWidening can't be dropped, since other commits keep adding files with "
        "earlier types. What was committed before stays. Run it again.",
        kind="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        feature="typeWidening",
    )


def _forget_types(txn: OptimisticTransaction) -> None:
    """Commit metadata without type changes, once all files hold the table's types."""
    schema = TableMetadata.of(txn.metadata).declared_schema
    plain = schema.without_field_keys(lambda key: key == TYPE_CHANGES)
    fields = json.loads(schema_to_json(_widened_columns(schema)))["fields"]
    txn.update_metadata(replace(txn.metadata, schema_string=schema_to_json(plain)))
    txn.commit_large((), Operation("DROP FEATURE", {"columns": json_text(fields)}))


# Features of writers


def _use_classic_checkpoints(table: CaredFor) -> bool:
    if not TRACES["v2Checkpoint"].in_version(table.snapshot):
        return False
    table.commit(lambda txn: set_properties(txn, {"delta.checkpointPolicy": "classic"}))
    return True


def _remove_timestamps(table: CaredFor) -> bool:
    return _unset_properties(table, "delta.enableInCommitTimestamps")


def _remove_row_ids(table: CaredFor) -> bool:
    properties = table.snapshot.properties
    made = False
    if properties.enable_row_tracking or not properties.row_tracking_suspended:
        off = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
        table.commit(lambda txn: set_properties(txn, off))
        made = True
    for batch in count():
        if table.commit(partial(_remove_ids_of_batch, batch=batch)) is None:
            return made or batch > 0
    return made


def _remove_ids_of_batch(txn: OptimisticTransaction, batch: int) -> Alteration | None:
    """Remove the row ids of the next files, or return None if no file is left."""
    left = TRACES["rowTracking"].files(txn.snapshot).slice(0, txn.table.options.backfill_max_files)
    if not left.num_rows:
        return None
    txn.depend_on(left)
    again = tuple(
        replace(add, data_change=False, base_row_id=None, default_row_commit_version=None)
        for add in add_files(left)
    )
    return Alteration(Operation(ROW_TRACKING_UNBACKFILL, {"batchId": str(batch)}), actions=again)


def _remove_domains(table: CaredFor) -> bool:
    def change(txn: OptimisticTransaction) -> Alteration | None:
        # Only system domains are left by then. Their features were dropped before.
        known = txn.snapshot.stored_domains.values()
        removed = tuple(replace(item, removed=True) for item in known)
        if not removed:
            return None
        return Alteration(Operation(DOMAIN_CLEANUP), actions=removed)

    return table.commit(change) is not None


def _remove_clustering(table: CaredFor) -> bool:
    snapshot = table.snapshot
    if not clustering_columns(snapshot.domain_metadata, snapshot.schema):
        return False
    table.commit(lambda txn: cluster_by(txn, ()))
    return True


_REMOVALS: Mapping[str, Callable[[CaredFor], bool]] = MappingProxyType(
    {
        "deletionVectors": _remove_vectors,
        "columnMapping": _remove_mapping,
        "typeWidening": _remove_widening,
        "typeWidening-preview": _remove_widening,
        "v2Checkpoint": _use_classic_checkpoints,
        "inCommitTimestamp": _remove_timestamps,
        "rowTracking": _remove_row_ids,
        "domainMetadata": _remove_domains,
        "clustering": _remove_clustering,
    }
)
