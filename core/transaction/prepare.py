"""The checks a commit must pass before anything reaches the log (spec 1.6, 1.7).

`prepare` puts the actions in order and runs the rows of `CHECKS`; each is a function of one `Draft`
that
raises or returns.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optimist.core.errors import SchemaError, TableError, UsageError
from optimist.core.options import EngineOptions
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from optimist.core.protocol.gates import ensure_upgrade_allowed, ensure_writable, supports
from optimist.core.protocol.properties import TableProperties
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.table_schema import table_schema
from optimist.core.transaction.conflicts.isolation import FILE_ACTIONS, ROW_TRACKING_DOMAIN
from optimist.core.transaction.conflicts.operations import Operation

__all__ = [
    "Draft",
    "dedupe_set_transactions",
    "ensure_consistent_files",
    "ensure_table_writable",
    "prepare",
]

_LOG = logging.getLogger(__name__)

MAY_REPARTITION = frozenset(
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
    }
)
_MAY_KEEP_TIGHT_BOUNDS = frozenset(
    {
        "COMPUTE STATS",
        "RESTORE",
        "CLONE",
        "ROW TRACKING BACKFILL",
        "Manual Update",
        "OPTIMIZE CHECKPOINT",
    }
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit in preparation.

    Attributes:
        table_path: For messages.
        read_version: The version the transaction started from; -1 for a new table.
        actions: What the caller passed, and the pending metadata and protocol.
        operation: What it claims to do.
        metadata: The table's metadata as this commit leaves it.
        read_metadata: As it was; None for a new table.
        protocol: The table's protocol as this commit leaves it.
        read_protocol: As it was; None for a new table.
        options: The engine's options.
    """

    table_path: str
    read_version: int
    actions: tuple[Action, ...]
    operation: Operation
    metadata: Metadata | None
    read_metadata: Metadata | None
    protocol: Protocol
    read_protocol: Protocol | None
    options: EngineOptions

    @property
    def properties(self) -> TableProperties:
        """The table's properties as this commit leaves them."""
        configuration = self.metadata.configuration if self.metadata else {}
        return TableProperties.from_configuration(configuration)


def prepare(draft: Draft) -> tuple[Action, ...]:
    """Run every check, and return the actions as metadata, protocol, then the rest in order.

    Raises:
        UsageError, SchemaError, ProtocolError, TableError: The first check that failed; nothing is
        written.
    """
    for check in CHECKS:
        check(draft)
    first = [a for a in draft.actions if isinstance(a, Metadata)]
    second = [a for a in draft.actions if isinstance(a, Protocol)]
    rest = [a for a in draft.actions if not isinstance(a, Metadata | Protocol)]
    return (*first, *second, *rest)


def dedupe_set_transactions(actions: Sequence[Action]) -> tuple[Action, ...]:
    """One `txn` per application; two of one application must agree on the version (spec 1.6.3)."""
    seen: dict[str, int] = {}
    out: list[Action] = []
    for action in actions:
        if isinstance(action, SetTransaction):
            known = seen.setdefault(action.app_id, action.version)
            if known != action.version:
                raise UsageError(
                    f"The commit sets application {action.app_id} to version {known} and to "
                    f"version {action.version}. Keep one; nothing was written.",
                    kind="DELTA_DUPLICATE_SET_TRANSACTION",
                    app_id=action.app_id,
                )
            if any(isinstance(a, SetTransaction) and a.app_id == action.app_id for a in out):
                continue
        out.append(action)
    return tuple(out)


def ensure_consistent_files(actions: Sequence[Action], options: EngineOptions) -> None:
    """No file twice, and one `dataChange` for all (spec 1.6.7, 1.6.8); run again after a rebase."""
    if options.duplicate_action_check_enabled:
        _check_duplicates(actions)
    mode = options.consistent_data_change_mode
    flags = {a.data_change for a in actions if isinstance(a, AddFile | RemoveFile)}
    if mode == "off" or len(flags) < 2:
        return
    message = "The commit mixes file actions with dataChange true and false."
    if mode == "fatal":
        raise UsageError(
            f"{message} Split it in two commits; nothing was written.",
            kind="DELTA_INCONSISTENT_DATA_CHANGE",
        )
    _LOG.warning(message)


def _check_duplicates(actions: Sequence[Action]) -> None:
    adds = [(a.path, _vector_id(a)) for a in actions if isinstance(a, AddFile)]
    removes = [(a.path, _vector_id(a)) for a in actions if isinstance(a, RemoveFile)]
    doubled = [
        path
        for side in (adds, removes)
        for path, count in Counter(path for path, _ in side).items()
        if count > 1
    ]
    doubled += [path for path, _ in set(adds) & set(removes)]
    if doubled:
        raise UsageError(
            f"The commit names the file {doubled[0]} more than once. Nothing was written.",
            kind="DELTA_DUPLICATE_ACTIONS_FOUND",
            paths=tuple(doubled[:10]),
        )


def _vector_id(action: AddFile | RemoveFile) -> str | None:
    return action.deletion_vector.unique_id if action.deletion_vector else None


def ensure_table_writable(table_path: str, snapshot: Snapshot) -> None:
    """The write gate on the version that a transaction starts from."""
    ensure_writable(
        snapshot.protocol, snapshot.metadata, table_path=table_path, version=snapshot.version
    )


def _check_protocol(draft: Draft) -> None:
    path, version = draft.table_path, draft.read_version
    if draft.read_protocol is not None:
        ensure_writable(draft.read_protocol, draft.read_metadata, table_path=path, version=version)
    changed = any(isinstance(a, Protocol) for a in draft.actions)
    if changed:
        ensure_writable(draft.protocol, draft.metadata, table_path=path, version=version)
    if changed and draft.read_protocol is not None:
        ensure_upgrade_allowed(draft.read_protocol, draft.protocol)


def _check_new_table(draft: Draft) -> None:
    if draft.read_version >= 0 or not draft.options.commit_validation_enabled:
        return
    if not any(isinstance(a, Metadata) for a in draft.actions):
        raise TableError(
            f"There is no table at {draft.table_path} yet, and the first commit brings no "
            "metadata. Set a schema first; nothing was written.",
            kind="DELTA_METADATA_ABSENT",
            path=draft.table_path,
        )


def _check_repartitioning(draft: Draft) -> None:
    if draft.read_metadata is None or draft.metadata is None:
        return
    before, after = draft.read_metadata.partition_columns, draft.metadata.partition_columns
    if before != after and draft.operation.name not in MAY_REPARTITION:
        raise SchemaError(
            f"{draft.operation.name} can't change the partition columns from {list(before)} to "
            f"{list(after)}. Overwrite the table with overwriteSchema; nothing was written.",
            kind="DELTA_UNSUPPORTED_PARTITION_COLUMN_CHANGE",
            before=before,
            after=after,
        )


def _check_partition_values(draft: Draft) -> None:
    adds = [a for a in draft.actions if isinstance(a, AddFile)]
    if not adds or draft.metadata is None:
        return
    schema = table_schema(draft.metadata)
    fields = [schema.find(name) for name in draft.metadata.partition_columns]
    expected = {item.physical_name for item in fields if item is not None}
    for add in adds:
        if set(add.partition_values) != expected:
            raise SchemaError(
                f"The file {add.path} has values for the partition columns "
                f"{sorted(add.partition_values)}, but the table is partitioned by "
                f"{sorted(expected)}. Nothing was written.",
                kind="DELTA_INVALID_PARTITIONING_SCHEMA",
                path=add.path,
            )


def _check_append_only(draft: Draft) -> None:
    if not draft.properties.append_only:
        return
    if any(isinstance(a, RemoveFile) and a.data_change for a in draft.actions):
        raise UsageError(
            f"The table {draft.table_path} only takes appends (delta.appendOnly is true), and "
            f"{draft.operation.name} removes data. Unset the property to change rows; nothing was "
            "written.",
            kind="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            path=draft.table_path,
        )


def _check_deletion_vectors(draft: Draft) -> None:
    for add in draft.actions:
        if not isinstance(add, AddFile) or add.deletion_vector is None:
            continue
        allowed = draft.properties.enable_deletion_vectors
        if not (allowed and supports(draft.protocol, "deletionVectors")):
            raise _vector_error(add, "the table does not allow it", "DISALLOWED")
        stats = json.loads(add.stats) if add.stats else {}
        if stats.get("numRecords") is None:
            raise UsageError(
                f"The file {add.path} has a deletion vector but no row count (numRecords in its "
                "statistics). Nothing was written.",
                kind="DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS",
                path=add.path,
            )
        tight = stats.get("tightBounds") is not False
        if tight and draft.operation.name not in _MAY_KEEP_TIGHT_BOUNDS:
            reason = "its statistics do not say tightBounds false"
            raise _vector_error(add, reason, "WITH_TIGHT_BOUNDS_DISALLOWED")


def _vector_error(add: AddFile, reason: str, suffix: str) -> UsageError:
    return UsageError(
        f"The file {add.path} can't be added with a deletion vector: {reason}. Nothing was "
        "written.",
        kind=f"DELTA_ADDING_DELETION_VECTORS_{suffix}",
        path=add.path,
    )


def _check_domains(draft: Draft) -> None:
    domains = [a.domain for a in draft.actions if isinstance(a, DomainMetadata)]
    if domains and not supports(draft.protocol, "domainMetadata"):
        raise UsageError(
            f"The commit sets the metadata domain {domains[0]}, but the table does not have the "
            "feature domainMetadata. Nothing was written.",
            kind="DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
            domain=domains[0],
        )
    doubled = [name for name, count in Counter(domains).items() if count > 1]
    if doubled or ROW_TRACKING_DOMAIN in domains:
        name = doubled[0] if doubled else ROW_TRACKING_DOMAIN
        raise UsageError(
            f"The commit sets the metadata domain {name} more than once, or one that the engine "
            "keeps itself. Nothing was written.",
            kind="DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR",
            domain=name,
        )


def _check_column_defaults(draft: Draft) -> None:
    if draft.metadata is None or supports(draft.protocol, "allowColumnDefaults"):
        return
    for item in table_schema(draft.metadata):
        if "CURRENT_DEFAULT" in item.metadata:
            raise SchemaError(
                f"The column {item.name} has a default value, but the table does not have the "
                "feature allowColumnDefaults. Nothing was written.",
                kind="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                column=item.name,
            )


def _check_soft(draft: Draft) -> None:
    for add in draft.actions:
        if isinstance(add, AddFile) and add.size == 0:
            _LOG.warning("The added file %s says that it is 0 bytes long.", add.path)


def _check_change_data_files(draft: Draft) -> None:
    changes_metadata = any(isinstance(a, Metadata) for a in draft.actions)
    has_files = any(isinstance(a, FILE_ACTIONS) for a in draft.actions)
    if not (changes_metadata and has_files and draft.properties.enable_change_data_feed):
        return
    if draft.read_metadata is None or draft.metadata is None:
        return
    before = table_schema(draft.read_metadata)
    after = table_schema(draft.metadata)
    names = {item.physical_name: item.name for item in before}
    renamed = [f for f in after if names.get(f.physical_name, f.name) != f.name]
    if renamed:
        raise UsageError(
            f"The column {renamed[0].name} can't be renamed in the same commit as a change of data "
            "while the change data feed is on. Make two commits; nothing was written.",
            kind="DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
            column=renamed[0].name,
        )


CHECKS: tuple[Callable[[Draft], None], ...] = (
    _check_protocol,
    _check_new_table,
    _check_repartitioning,
    _check_partition_values,
    _check_append_only,
    _check_deletion_vectors,
    _check_column_defaults,
    _check_change_data_files,
    _check_domains,
    _check_soft,
)
