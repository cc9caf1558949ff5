"""The checks a commit must pass before anything reaches the log (spec 1.6, 1.7).

`prepare_commit` runs the rows of `_CHECKS`, each a function of one `Draft` that raises or returns,
and puts the actions in order.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from optimist.core.data.statistics.stats_text import num_rows, stats_of
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, TableError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.file_table import add_files, canonical_path
from optimist.core.log.many_files import ManyFiles
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    UnknownAction,
)
from optimist.core.protocol.binding_properties import ensure_properties_parse
from optimist.core.protocol.clustering import ensure_clustering_fits
from optimist.core.protocol.domains import (
    CLUSTERING_DOMAIN,
    ROW_TRACKING_DOMAIN,
    domains_that_count,
    is_of_the_system,
)
from optimist.core.protocol.gates import ensure_upgrade_allowed, ensure_writable, supports
from optimist.core.protocol.properties import TableProperties
from optimist.core.protocol.schema_checks import ensure_mapping_sound
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.operations import (
    BACKFILLS,
    DOMAIN_CLEANUP,
    ROW_TRACKING_BACKFILL,
    TRANSACTION,
    Operation,
)
from optimist.core.transaction.prepare_many import (
    doubled_paths,
    odd_partitioning,
    removed_among,
    replaced_in_part,
    warn_of_empty_files,
)

__all__ = [
    "Draft",
    "dedupe_set_transactions",
    "ensure_consistent_files",
    "ensure_table_writable",
    "prepare_commit",
]

_LOG = logging.getLogger(__name__)

_MAY_REPARTITION = frozenset(
    {
        "WRITE",
        "REPLACE TABLE",
        "CREATE OR REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
        "RESTORE",
        "CLONE",
        "CONVERT",
        "CREATE TABLE",
        "CREATE TABLE AS SELECT",
        TRANSACTION,  # each of its steps was looked at when it was done
        "REMOVE COLUMN MAPPING",  # which gives the columns other names in files
    }
)
"""Operations that may change the partition columns (spec 1.7.7)."""
_MAY_KEEP_TIGHT_BOUNDS = frozenset(
    {
        "COMPUTE STATS",
        "RESTORE",
        "CLONE",
        ROW_TRACKING_BACKFILL,
        "Manual Update",
        "OPTIMIZE CHECKPOINT",
    }
)
"""Operations that may add a file with a deletion vector and tight bounds (spec 1.7.12)."""
_TAKES_FILES_AS_THEY_ARE = frozenset({"RESTORE", "CLONE"})
"""Operations whose files were part of a table before, with their vectors and statistics."""
_DROPS = "DROP FEATURE"
"""The operation that takes a feature out of the protocol, and its domain with it."""
_DROPS_DOMAINS = frozenset({_DROPS, DOMAIN_CLEANUP})
"""Operations that may remove domains of the system."""
_RESTORE = "RESTORE"
"""The operation that may bring an older high-water mark of row ids back."""
_UPDATES_FILES_IN_PLACE = frozenset({"COMPUTE STATS"}) | BACKFILLS
"""Operations that add live files again unchanged, with the deletion vectors these have."""
_OF_CHECKPOINTS = frozenset({"checkpointMetadata", "sidecar"})
"""Actions that only V2 checkpoints may have."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit in preparation.

    Attributes:
        table: The table.
        snapshot: The table as the transaction found it; of version -1 for a new table.
        actions: What the caller passed, and the pending metadata and protocol.
        operation: What the commit does, by its own account.
        metadata: The table's metadata as this commit leaves it; None for a new table to which the
            commit brings none.
        protocol: The table's protocol as this commit leaves it.
        files: Its files, or all that it removes, if the caller passed them as columns and not among
            the actions.
    """

    table: TableRef
    snapshot: Snapshot
    actions: tuple[Action, ...]
    operation: Operation
    metadata: Metadata | None
    protocol: Protocol
    files: ManyFiles | None = None

    @property
    def table_path(self) -> str:
        """The table's path, for messages."""
        return self.table.table_path

    @property
    def options(self) -> EngineOptions:
        """The engine's options."""
        return self.table.options

    @property
    def read_version(self) -> int:
        """The version the transaction started from, or -1 for a new table."""
        return self.snapshot.version

    @property
    def read_metadata(self) -> Metadata | None:
        """The table's metadata as it was, or None for a new table."""
        return self.snapshot.metadata if self.read_version >= 0 else None

    @property
    def read_protocol(self) -> Protocol | None:
        """The table's protocol as it was, or None for a new table."""
        return self.snapshot.protocol if self.read_version >= 0 else None

    @property
    def properties(self) -> TableProperties:
        """The table's properties as this commit leaves them."""
        return TableMetadata.of(self.metadata).properties if self.metadata else TableProperties()


def prepare_commit(draft: Draft) -> tuple[Action, ...]:
    """Check the draft, and return its actions in order: metadata, protocol, then the rest.

    Raises:
        UsageError, SchemaError, ProtocolError, TableError: The first check that failed; nothing is
            written.
    """
    # First what the checks rely on: the files of the snapshot agree with the version's checksum,
    # and no symbolic link leads the log out of the table.
    draft.snapshot.ensure_intact()
    draft.table.data_paths.ensure_not_led_out(draft.table.log_path)
    for check in _CHECKS:
        check(draft)
    # A reader that takes a commit line by line must know the schema before it meets files.
    first = [a for a in draft.actions if isinstance(a, Metadata)]
    second = [a for a in draft.actions if isinstance(a, Protocol)]
    if draft.read_version < 0 and not second:
        second = [draft.protocol]
    rest = [a for a in draft.actions if not isinstance(a, Metadata | Protocol)]
    prepared = (*first, *second, *_removed_strays(draft), *rest)
    ensure_consistent_files(prepared, draft.options, draft.files)
    return prepared


def dedupe_set_transactions(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Keep one `txn` per application (spec 1.6.3).

    Raises:
        UsageError: Two `txn` of one application differ in the version.
    """
    seen: dict[str, int] = {}
    out: list[Action] = []
    for action in actions:
        if isinstance(action, SetTransaction):
            known = seen.setdefault(action.app_id, action.version)
            if known != action.version:
                raise UsageError(
                    f"The commit sets application {shown(action.app_id)} to version {known} and to "
                    f"version {action.version}. Nothing was written. Keep one of them.",
                    kind="DELTA_DUPLICATE_SET_TRANSACTION",
                    app_id=action.app_id,
                )
            if any(isinstance(a, SetTransaction) and a.app_id == action.app_id for a in out):
                continue
        out.append(action)
    return tuple(out)


def ensure_consistent_files(
    actions: Sequence[Action], options: EngineOptions, files: ManyFiles | None = None
) -> None:
    """Refuse a file named twice, and a mix of `dataChange` true and false (spec 1.6.7, 1.6.8).

    Each check obeys its option. Both run again after a rebase, because it rewrites actions.

    Args:
        actions: The actions of the commit.
        options: The engine's options.
        files: The files that the commit has as columns.

    Raises:
        UsageError: One of the checks failed. Nothing was written.
    """
    if options.duplicate_action_check_enabled:
        _check_duplicates(actions)
        if files:
            adds = [a for a in actions if isinstance(a, AddFile)]
            _refuse_doubled(doubled_paths(files, adds))
    mode = options.consistent_data_change_mode
    flags = {a.data_change for a in actions if isinstance(a, AddFile | RemoveFile)}
    if files and files.removed.num_rows:
        flags.add(True)  # whatever they were when they were added
    if mode == "off" or len(flags) < 2:
        return
    message = "The commit mixes file actions with dataChange true and false."
    if mode == "fatal":
        raise UsageError(
            f"{message} Nothing was written. Split it into two commits.",
            kind="DELTA_INCONSISTENT_DATA_CHANGE",
        )
    _LOG.warning(message)


def ensure_table_writable(table_path: str, snapshot: Snapshot, *, to_alter: bool = False) -> None:
    """Make sure that this engine may write to the table as the snapshot shows it.

    Args:
        table_path: For the messages.
        snapshot: What the write has read.
        to_alter: Whether only metadata are written, which may mend properties that do not parse.

    Raises:
        ProtocolError: The table needs a writer feature that this engine does not have.
        SchemaError: Its columns can't be told apart in files; see `ensure_mapping_sound`.
        TableError: See `ensure_properties_parse`.
    """
    ensure_writable(
        snapshot.protocol, snapshot.metadata, table_path=table_path, version=snapshot.version
    )
    ensure_mapping_sound(snapshot.metadata)
    if not to_alter:
        ensure_properties_parse(snapshot.metadata, table_path=table_path, version=snapshot.version)


def _check_duplicates(actions: Sequence[Action]) -> None:
    adds = [_file_key(a) for a in actions if isinstance(a, AddFile)]
    removes = [_file_key(a) for a in actions if isinstance(a, RemoveFile)]
    doubled = [
        path
        for side in (adds, removes)
        for path, count in Counter(path for path, _ in side).items()
        if count > 1
    ]
    doubled += [path for path, _ in set(adds) & set(removes)]
    _refuse_doubled(doubled)


def _refuse_doubled(paths: Sequence[str]) -> None:
    if paths:
        raise UsageError(
            f"The commit names the file {shown(paths[0])} more than once. Nothing was written. "
            "Name it once.",
            kind="DELTA_DUPLICATE_ACTIONS_FOUND",
            paths=tuple(paths[:10]),
        )


def _file_key(action: AddFile | RemoveFile) -> tuple[str, str | None]:
    vector = action.deletion_vector
    return canonical_path(action.path), vector.unique_id if vector else None


def _check_protocol(draft: Draft) -> None:
    path, version = draft.table_path, draft.read_version
    if draft.read_protocol is not None:
        ensure_writable(draft.read_protocol, draft.read_metadata, table_path=path, version=version)
    changed = any(isinstance(a, Protocol) for a in draft.actions)
    if changed or any(isinstance(a, Metadata) for a in draft.actions):
        ensure_writable(draft.protocol, draft.metadata, table_path=path, version=version)
    metadata = draft.metadata or draft.read_metadata
    if metadata is not None:
        ensure_properties_parse(metadata, table_path=path, version=version)
    if changed and draft.read_protocol is not None:
        dropped = _dropped_feature(draft.operation)
        ensure_upgrade_allowed(draft.read_protocol, draft.protocol, dropped=dropped)


def _dropped_feature(operation: Operation) -> frozenset[str]:
    """Return the feature that an operation takes out of the protocol."""
    name = operation.parameters.get("featureName")
    return frozenset({str(name)}) if operation.name == _DROPS and name else frozenset()


def _check_new_table(draft: Draft) -> None:
    if draft.read_version >= 0 or not draft.options.commit_validation_enabled:
        return
    if not any(isinstance(a, Metadata) for a in draft.actions):
        raise TableError(
            f"The table at {draft.table_path} does not exist yet, and its first commit has no "
            "metadata. Nothing was written. Set a schema first.",
            kind="DELTA_METADATA_ABSENT",
            path=draft.table_path,
        )


def _check_repartitioning(draft: Draft) -> None:
    if draft.read_metadata is None or draft.metadata is None:
        return
    before, after = map(_physical_partitioning, (draft.read_metadata, draft.metadata))
    if before != after and draft.operation.name not in _MAY_REPARTITION:
        raise SchemaError(
            f"{draft.operation.name} can't change the partition columns from {shown(list(before))} "
            f"to {shown(list(after))}. Nothing was written. Overwrite the table with the option "
            "overwriteSchema.",
            kind="DELTA_UNSUPPORTED_PARTITION_COLUMN_CHANGE",
            before=before,
            after=after,
        )


def _physical_partitioning(metadata: Metadata) -> tuple[str, ...]:
    """Return the physical names of the partition columns, which a rename keeps."""
    schema = TableMetadata.of(metadata).schema
    fields = [(name, schema.find(name)) for name in metadata.partition_columns]
    return tuple(name if item is None else item.physical_name for name, item in fields)


def _check_partition_values(draft: Draft) -> None:
    adds = [a for a in draft.actions if isinstance(a, AddFile)]
    if not (adds or draft.files) or draft.metadata is None:
        return
    expected = set(_physical_partitioning(draft.metadata))
    odd = odd_partitioning(draft.files, expected) if draft.files else None
    for add in adds:
        if odd is None and set(add.partition_values) != expected:
            odd = add.path, sorted(add.partition_values)
    if odd is not None:
        path, columns = odd
        raise SchemaError(
            f"The file {shown(path)} has values for the partition columns {shown(columns)}, but "
            f"the table is partitioned by {shown(sorted(expected))}. Nothing was written. Give the "
            "file a value for each partition column of the table, and no other.",
            kind="DELTA_INVALID_PARTITIONING_SCHEMA",
            path=path,
        )


def _check_append_only(draft: Draft) -> None:
    before = draft.read_metadata
    if before is None or not TableMetadata.of(before).properties.append_only:
        return  # a table that this commit makes so may replace another
    removes = any(isinstance(a, RemoveFile) and a.data_change for a in draft.actions)
    if removes or (draft.files and draft.files.removed.num_rows):
        raise UsageError(
            f"The table {draft.table_path} accepts only appends (delta.appendOnly is true), and "
            f"{draft.operation.name} removes data. Nothing was written. Unset the property to "
            "change rows.",
            kind="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            path=draft.table_path,
        )


def _check_deletion_vectors(draft: Draft) -> None:
    if draft.operation.name in _TAKES_FILES_AS_THEY_ARE:
        return
    for add in draft.actions:
        if not isinstance(add, AddFile) or add.deletion_vector is None:
            continue
        keeps_vectors = draft.operation.name in _UPDATES_FILES_IN_PLACE
        allowed = draft.properties.enable_deletion_vectors or keeps_vectors
        if not (allowed and supports(draft.protocol, "deletionVectors")):
            raise _vector_error(
                add,
                "the table does not allow deletion vectors (set delta.enableDeletionVectors)",
                "DELTA_ADDING_DELETION_VECTORS_DISALLOWED",
            )
        stats, rows = stats_of(add.stats), num_rows(add.stats)
        if rows is None:
            raise UsageError(
                f"The file {shown(add.path)} has a deletion vector but no row count (numRecords in "
                "its statistics). Nothing was written. Add the row count.",
                kind="DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS",
                path=add.path,
            )
        tight = stats.get("tightBounds") is not False
        if tight and draft.operation.name not in _MAY_KEEP_TIGHT_BOUNDS:
            reason = "its statistics must set tightBounds to false"
            raise _vector_error(
                add, reason, "DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED"
            )


def _check_replaced_vectors(draft: Draft) -> None:
    """Refuse to add a live file with another vector and leave it live as it was, too."""
    files = [a for a in draft.actions if isinstance(a, AddFile | RemoveFile)]
    removed = {canonical_path(a.path) for a in files if isinstance(a, RemoveFile)}
    keys = {_file_key(a) for a in files if isinstance(a, AddFile) and a.deletion_vector}
    if draft.files and keys:
        removed.update(removed_among([path for path, _ in keys], draft.files))
    vectors = {path: vector for path, vector in keys if path not in removed}
    if not draft.options.duplicate_action_check_enabled:
        return
    if draft.files and draft.files.added.num_rows:
        _refuse_replaced_in_part(replaced_in_part(draft.files, draft.snapshot.files))
    if not vectors:
        return
    wanted = [a.path for a in files if canonical_path(a.path) in vectors]
    live = draft.snapshot.files_at(pa.array(wanted, pa.string()))
    for path, vector in map(_file_key, add_files(live)):
        _refuse_replaced_in_part(path if vectors[path] != vector else None)


def _refuse_replaced_in_part(path: str | None) -> None:
    if path is not None:
        raise UsageError(
            f"The commit adds the file {shown(path)} with a new deletion vector, but does not "
            "remove the file with its old one, so its rows would count twice. Nothing was "
            "written. Remove the file with its old vector in the same commit.",
            kind="DELTA_DUPLICATE_ACTIONS_FOUND",
            paths=(path,),
        )


def _vector_error(add: AddFile, reason: str, kind: str) -> UsageError:
    return UsageError(
        f"The file {shown(add.path)} can't be added with a deletion vector: {reason}. Nothing was "
        "written.",
        kind=kind,
        path=add.path,
    )


def _check_domains(draft: Draft) -> None:
    domains = [a.domain for a in draft.actions if isinstance(a, DomainMetadata)]
    if domains and not supports(draft.protocol, "domainMetadata"):
        raise UsageError(
            f"The commit sets the metadata domain {shown(domains[0])}, but the table does not have "
            "the feature domainMetadata. Nothing was written. Set the table property "
            "delta.feature.domainMetadata = 'supported'.",
            kind="DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
            domain=domains[0],
        )
    # Writers leave domains of the system alone that they do not understand (spec 6.3), and that of
    # row tracking is made after this check.
    is_drop = draft.operation.name in _DROPS_DOMAINS
    is_restore = draft.operation.name == _RESTORE
    reserved = [
        a.domain
        for a in draft.actions
        if isinstance(a, DomainMetadata)
        and is_of_the_system(a.domain)
        and a.domain != CLUSTERING_DOMAIN
        and not (is_drop and a.removed)
        and not (is_restore and a.domain == ROW_TRACKING_DOMAIN)
    ]
    if reserved:
        raise UsageError(
            f"The commit sets the metadata domain {shown(reserved[0])}, which is not for callers. "
            "Nothing was written. Leave it out, or take a name that does not begin with 'delta.'.",
            kind="OPTIMIST_RESERVED_METADATA_DOMAIN",
            domain=reserved[0],
        )
    doubled = [name for name, count in Counter(domains).items() if count > 1]
    if doubled:
        raise UsageError(
            f"The commit sets the metadata domain {shown(doubled[0])} more than once. Nothing was "
            "written. Keep one of them.",
            kind="DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR",
            domain=doubled[0],
        )


def _check_kinds(draft: Draft) -> None:
    for action in draft.actions:
        if isinstance(action, UnknownAction) and action.key in _OF_CHECKPOINTS:
            raise UsageError(
                f"The commit has an action {action.key!r}, which only checkpoints may have. "
                "Nothing was written. Leave it out.",
                kind="OPTIMIST_INVALID_ACTION",
                action=action.key,
            )


def _check_clustering(draft: Draft) -> None:
    domains = {a.domain: a for a in draft.actions if isinstance(a, DomainMetadata)}
    changes_metadata = any(isinstance(a, Metadata) for a in draft.actions)
    if draft.metadata is None or not (changes_metadata or CLUSTERING_DOMAIN in domains):
        return
    merged = {**draft.snapshot.domain_metadata, **domains}
    live = {name: item for name, item in merged.items() if not item.removed}
    ensure_clustering_fits(draft.metadata, domains_that_count(live, draft.protocol))


def _removed_strays(draft: Draft) -> list[DomainMetadata]:
    """Remove a clustering domain that would count only through the feature this commit adds.

    The table's rows were written without it.
    """
    stray = draft.snapshot.stored_domains.get(CLUSTERING_DOMAIN)
    if stray is None or CLUSTERING_DOMAIN in draft.snapshot.domain_metadata:
        return []
    is_given = any(
        isinstance(a, DomainMetadata) and a.domain == CLUSTERING_DOMAIN for a in draft.actions
    )
    comes = domains_that_count({CLUSTERING_DOMAIN: stray}, draft.protocol)
    return [replace(stray, removed=True)] if comes and not is_given else []


def _warn_of_empty_files(draft: Draft) -> None:
    for add in draft.actions:
        if isinstance(add, AddFile) and add.size == 0:
            _LOG.warning("The commit adds the file %s with a size of 0 bytes.", shown(add.path))
    if draft.files:
        warn_of_empty_files(draft.files)


_CHECKS: tuple[Callable[[Draft], None], ...] = (
    _check_protocol,
    _check_new_table,
    _check_repartitioning,
    _check_partition_values,
    _check_append_only,
    _check_deletion_vectors,
    _check_replaced_vectors,
    _check_domains,
    _check_kinds,
    _check_clustering,
    _warn_of_empty_files,
)
