"""Taking the traces of a table feature out of the newest version, by commits of their own.

Each function looks at what is there and goes on from that; so a DROP FEATURE that was stopped is
run again. Each says whether it has committed anything.
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
from optimist.core.protocol.operation_names import DOMAIN_CLEANUP, ROW_TRACKING_UNBACKFILL
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
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["CaredFor", "remove_traces"]

_READERS = 16
_TRIES = 10


@dataclass(frozen=True, slots=True)
class CaredFor:
    """A table whose feature is dropped, and what writes files of it.

    Attributes:
        begin: Starts a transaction on the newest version.
        purge: Writes those files again that have deletion vectors, as REORG does.
        write: Writes files again in this process; the transaction may change the metadata.
    """

    begin: Callable[[], OptimisticTransaction]
    purge: Callable[[], object]
    write: BinWriter

    @property
    def snapshot(self) -> Snapshot:
        """The newest version."""
        return self.begin().snapshot

    def commit(self, change: Change) -> CommitResult | None:
        """Make one commit; None if there was nothing to do."""
        return alter(self.begin, change)


def remove_traces(table: CaredFor, name: str) -> bool:
    """Take the traces of a feature out of the newest version.

    Returns:
        Whether anything was committed.

    Raises:
        SchemaError: Columns have names that only column mapping allows.
        DeltaConcurrentModificationException: Other commits came first. What was committed before
            stays, and the next run goes on.
    """
    remove = _REMOVALS.get(name)
    return remove is not None and remove(table)


def _unset(table: CaredFor, *keys: str) -> bool:
    known = table.snapshot.metadata.configuration
    present = [key for key in keys if key in known]
    if not present:
        return False
    table.commit(lambda txn: unset_properties(txn, present, if_exists=True))
    return True


# Deletion vectors


def _without_vectors(table: CaredFor) -> bool:
    made = _unset(table, "delta.enableDeletionVectors")
    traces = TRACES["deletionVectors"]
    for _ in range(_TRIES):
        if not traces.files(table.snapshot).num_rows:
            break
        table.purge()
        made = True
    return table.commit(_bury_vectors) is not None or made


def _bury_vectors(txn: OptimisticTransaction) -> Alteration | None:
    """Note the files of vectors as removed, so that VACUUM keeps them as long as their versions.

    Engines that don't know vectors would take them for files that nobody needs.
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


def _without_mapping(table: CaredFor) -> bool:
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
    # As in a RESTORE, the metadata are taken to the letter; the files below have them, too.
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
        # Not rebased: a file that another commit adds has the columns by their physical names.
        pending.commit_large(txn, actions, operation)
    return True


def _renamed_clustering(before: Snapshot, schema: StructType) -> tuple[DomainMetadata, ...]:
    """The domain of clustering, which names its columns as files do."""
    columns = clustering_columns(before.domain_metadata, before.schema)
    return (clustering_domain(columns, schema),) if columns else ()


# Type widening


@dataclass(frozen=True, slots=True)
class _Retyping(Rearrangement):
    """Asks for files of old types to be written again."""

    old_types: Arrangement = field(default_factory=Purge)
    purges: bool = True

    def arrangement(self, snapshot: Snapshot, options: EngineOptions) -> Arrangement:
        """See `Rearrangement.arrangement`."""
        del snapshot, options
        return self.old_types


@dataclass(frozen=True, slots=True)
class _OldTypes(Purge):
    """The files that hold a column in the type that it had before, each alone if need be.

    Attributes:
        access: How the files are reached.
        known: The paths of files that hold no such column, as far as they were looked at.
    """

    access: DataAccess | None = None
    known: set[str] = field(default_factory=set)

    def bins(
        self, candidates: pa.Table, snapshot: Snapshot, options: EngineOptions
    ) -> list[pa.Table]:
        """See `Arrangement.bins`."""
        return bins_of(
            self.among(candidates, snapshot),
            snapshot.partition_schema,
            max_bytes=options.optimize_max_file_size,
            keeps_single=True,
        )

    def among(self, files: pa.Table, snapshot: Snapshot) -> pa.Table:
        """Those of the files that are to be written again, by their footers."""
        widened, by_id = _widened(snapshot.schema), snapshot.properties.column_mapping_mode == "id"
        paths = snapshot.data_paths.full_paths(files["path"].combine_chunks()).to_pylist()
        unknown = [path for path in paths if path not in self.known]
        read = partial(stored_columns, access=self.access)
        stored = read_ahead(read, unknown, threads=_READERS, ahead=4 * _READERS)
        for path, columns in zip(unknown, stored, strict=True):
            if not has_other_types(columns, widened, by_id=by_id):
                self.known.add(path)
        return files.filter(pa.array([path not in self.known for path in paths], pa.bool_()))


def _widened(schema: StructType) -> StructType:
    """The columns of which a type was changed, be it that of a part."""
    plain = schema.without_field_keys(lambda key: key == TYPE_CHANGES)
    return StructType(tuple(item for item in schema if item not in plain.fields))


def _without_widening(table: CaredFor) -> bool:
    made = _unset(table, "delta.enableTypeWidening")
    if TYPE_CHANGES not in table.snapshot.metadata.schema_string:
        return made
    old_types = _OldTypes(access=table.begin().table.data_access())
    for tries in range(1, _TRIES + 1):
        optimize(table.begin, table.write, _Retyping(old_types=old_types))
        txn = table.begin()
        if old_types.among(txn.snapshot.files, txn.snapshot).num_rows:
            continue  # another commit, such as a RESTORE, has brought one
        try:
            _forget_types(txn)
        except ConcurrentWriteException:
            if tries == _TRIES:
                raise
        else:
            return True
    raise ProtocolError(
        "The feature typeWidening can't be dropped, since other commits bring files with the types "
        "of before again and again. What was committed before stays. Run it again.",
        kind="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        feature="typeWidening",
    )


def _forget_types(txn: OptimisticTransaction) -> None:
    """Commit that no file of this version holds a column in another type than the table's."""
    schema = TableMetadata.of(txn.metadata).declared_schema
    plain = schema.without_field_keys(lambda key: key == TYPE_CHANGES)
    told = json.loads(schema_to_json(_widened(schema)))["fields"]
    txn.update_metadata(replace(txn.metadata, schema_string=schema_to_json(plain)))
    txn.commit_large((), Operation("DROP FEATURE", {"columns": json_text(told)}))


# Features of writers


def _with_classic_checkpoints(table: CaredFor) -> bool:
    if not TRACES["v2Checkpoint"].in_version(table.snapshot):
        return False
    table.commit(lambda txn: set_properties(txn, {"delta.checkpointPolicy": "classic"}))
    return True


def _without_timestamps(table: CaredFor) -> bool:
    return _unset(table, "delta.enableInCommitTimestamps")


def _without_row_ids(table: CaredFor) -> bool:
    properties = table.snapshot.properties
    made = False
    if properties.enable_row_tracking or not properties.row_tracking_suspended:
        off = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
        table.commit(lambda txn: set_properties(txn, off))
        made = True
    for batch in count():
        if table.commit(partial(_unnumbered, batch=batch)) is None:
            return made or batch > 0
    return made


def _unnumbered(txn: OptimisticTransaction, batch: int) -> Alteration | None:
    """Take the ids of the next files away; None if no file is left."""
    left = TRACES["rowTracking"].files(txn.snapshot).slice(0, txn.table.options.backfill_max_files)
    if not left.num_rows:
        return None
    txn.depend_on(left)
    again = tuple(
        replace(add, data_change=False, base_row_id=None, default_row_commit_version=None)
        for add in add_files(left)
    )
    return Alteration(Operation(ROW_TRACKING_UNBACKFILL, {"batchId": str(batch)}), actions=again)


def _without_domains(table: CaredFor) -> bool:
    def change(txn: OptimisticTransaction) -> Alteration | None:
        # Those of the system are left over: the features that they belong to were dropped before.
        known = txn.snapshot.stored_domains.values()
        removed = tuple(replace(item, removed=True) for item in known)
        if not removed:
            return None
        return Alteration(Operation(DOMAIN_CLEANUP), actions=removed)

    return table.commit(change) is not None


def _unclustered(table: CaredFor) -> bool:
    snapshot = table.snapshot
    if not clustering_columns(snapshot.domain_metadata, snapshot.schema):
        return False
    table.commit(lambda txn: cluster_by(txn, ()))
    return True


_REMOVALS: Mapping[str, Callable[[CaredFor], bool]] = MappingProxyType(
    {
        "deletionVectors": _without_vectors,
        "columnMapping": _without_mapping,
        "typeWidening": _without_widening,
        "typeWidening-preview": _without_widening,
        "v2Checkpoint": _with_classic_checkpoints,
        "inCommitTimestamp": _without_timestamps,
        "rowTracking": _without_row_ids,
        "domainMetadata": _without_domains,
        "clustering": _unclustered,
    }
)
