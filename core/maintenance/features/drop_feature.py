"""DROP FEATURE: remove a table feature from the protocol (spec 6.4).

1. The feature's traces are removed from the newest version, by commits of their own
   (`feature_removal`).
2. A feature that only writers need is then dropped by one commit.
3. Older versions may need readers that know a reader feature. Without TRUNCATE HISTORY, the log of
   these versions is protected: three checkpoints keep readers of the newest version away from it,
   and the feature `checkpointProtection` tells writers which versions only an engine that knows
   their features may clean up. With TRUNCATE HISTORY, the feature is dropped once the log has no
   version that uses it.
4. If another commit wins against the one that drops the feature, it is tried again on the newest
   version, unless that version uses the feature again.

Each run continues where the last one stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimist.core.commands.alter.alteration import Alteration
from optimist.core.errors import (
    ConcurrentWriteException,
    OptimistError,
    ProtocolError,
    SchemaError,
    TableError,
    UsageError,
)
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.log_upkeep.cleanup import truncate_history
from optimist.core.maintenance.features.feature_removal import CaredFor, remove_traces
from optimist.core.maintenance.features.feature_traces import (
    ROW_TRACKING_PROPERTIES,
    TRACES,
    history_has_traces,
    in_use,
)
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.domains import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN
from optimist.core.protocol.features import FEATURES, feature_by_any_case
from optimist.core.protocol.gates import implied_features, with_features, without_feature
from optimist.core.protocol.properties import PROPERTIES, canonical_name
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import earliest_recreatable_version
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["DropRequest", "drop_feature"]

_PROTECTION = "checkpointProtection"
_PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
_BARRIERS = 3
_TRIES = 10
_OF_ROW_IDS, _CLUSTERING = "rowTracking", "clustering"
_DOMAINS = {_OF_ROW_IDS: ROW_TRACKING_DOMAIN, _CLUSTERING: CLUSTERING_DOMAIN}


@dataclass(frozen=True, slots=True)
class DropRequest:
    """The feature to drop and how its history is treated.

    Attributes:
        feature: The feature's name.
        truncates_history: Whether the log of versions older than a day is deleted instead of
            protected.
    """

    feature: str
    truncates_history: bool = False


def drop_feature(table: CaredFor, request: DropRequest) -> CommitResult:
    """Remove a feature from a table's protocol.

    Args:
        table: The table.
        request: The feature and how its history is treated.

    Returns:
        The commit that dropped the feature.

    Raises:
        UsageError: The feature can't be dropped, or can't be dropped from this table (kinds
            `DELTA_FEATURE_DROP_...`).
        SchemaError: CHECK constraints need it (kind `DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE`).
        ProtocolError: Older versions still need the feature (kinds
            `DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD`,
            `DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST`,
            `DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD`); or the table
            can't be written to.
        TableError: A checkpoint could not be written (kind `DELTA_FEATURE_DROP_CHECKPOINT_FAILED`).
        DeltaConcurrentModificationException: Other commits won against every attempt.

    Commits made before an error stay, and the next run continues from there.
    """
    txn = table.begin()
    txn.ensure_writable(to_alter=True)
    request = replace(request, feature=_ensure_droppable(txn.snapshot, request))
    name, options = request.feature, txn.table.options
    if name == _PROTECTION:
        return _drop_protection(table, request)
    has_removed = remove_traces(table, name)
    if not FEATURES[name].reader_writer:
        return _commit_drop(table, request)
    if not request.truncates_history and options.fast_drop_feature_enabled:
        for _ in range(_BARRIERS):
            _commit_barrier(table)
        return _commit_drop(table, request, protects=True)
    _ensure_history_is_free(table, request, has_removed=has_removed)
    return _commit_drop(table, request)


def _ensure_droppable(snapshot: Snapshot, request: DropRequest) -> str:
    """Return the feature's name as the protocol has it, or refuse to drop it."""
    given = request.feature
    row = FEATURES.get(given) or feature_by_any_case(given)
    if row is None:
        if canonical_name(given) in PROPERTIES:
            raise _cannot_drop(
                f"it is a table property and not a feature. Unset the property {quoted(given)}",
                given,
                "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
            )
        raise _cannot_drop(
            "this engine does not know it. Use one that does",
            given,
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        )
    name = row.name
    if name not in TRACES:
        raise _cannot_drop(
            "dropping this feature is not supported. Write the rows to a new table",
            name,
            "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
        )
    present = implied_features(snapshot.protocol)
    if name not in present:
        raise _cannot_drop(
            f"the table's protocol does not have it; it has {listed(sorted(present))}",
            name,
            "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
        )
    if request.truncates_history and not row.reader_writer and name != _PROTECTION:
        raise _cannot_drop(
            "it needs no truncation of the history. Leave TRUNCATE HISTORY out",
            name,
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
        )
    _ensure_not_needed(snapshot, name, present)
    return name


def _ensure_not_needed(snapshot: Snapshot, name: str, present: frozenset[str]) -> None:
    dependent = sorted(
        each for each in present if each in FEATURES and name in FEATURES[each].requires
    )
    if dependent:
        raise _cannot_drop(
            f"other features of the table need it: {listed(dependent)}. Drop these first",
            name,
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        )
    if TRACES[name].is_removable or not in_use(name, snapshot):
        return
    if name == "checkConstraints":
        constraints = listed(sorted(snapshot.properties.constraints))
        raise SchemaError(
            f"The feature {name} can't be dropped: the table has CHECK constraints, {constraints}. "
            "Nothing was written. Drop these first.",
            kind="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            feature=name,
        )
    raise _cannot_drop(
        "columns or properties of the table use it, and it can't be taken out of them. Drop these "
        "columns, unset the property, or write the rows to a new table",
        name,
        "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
    )


def _commit_barrier(table: CaredFor) -> None:
    """Make an empty commit with a checkpoint, so that readers begin there and no earlier."""
    table.commit(lambda _: Alteration(Operation("Empty Commit")))
    txn = table.begin()
    try:
        write_checkpoint(
            txn.table.store, txn.snapshot, options=txn.table.options, clock=txn.table.clock
        )
    except OptimistError as error:
        raise TableError(
            f"The feature was not dropped, since a checkpoint could not be written: {error}. What "
            "was committed before stays. Run it again.",
            kind="DELTA_FEATURE_DROP_CHECKPOINT_FAILED",
        ) from error


def _commit_drop(table: CaredFor, request: DropRequest, *, protects: bool = False) -> CommitResult:
    """Commit the drop of the feature on the newest version."""
    for tries in range(1, _TRIES + 1):
        txn = table.begin()
        if in_use(request.feature, txn.snapshot):
            break
        txn.update_metadata(_metadata_without(txn, request.feature, protects=protects))
        protocol = without_feature(txn.snapshot.protocol, request.feature)
        if protects:
            protocol = with_features(protocol, [_PROTECTION])
        domain = _DOMAINS.get(request.feature)
        known = txn.snapshot.domain_metadata.get(domain) if domain else None
        removed = () if known is None else (replace(known, removed=True),)
        parameters = {
            "featureName": request.feature,
            "truncateHistory": request.truncates_history,
        }
        try:
            return txn.commit_large((protocol, *removed), Operation("DROP FEATURE", parameters))
        except ConcurrentWriteException:
            if tries == _TRIES:
                raise
    raise ProtocolError(
        f"The feature {request.feature} can't be dropped, since another commit uses it again. What "
        "was committed before stays. Run it again.",
        kind="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        feature=request.feature,
    )


def _metadata_without(txn: OptimisticTransaction, feature: str, *, protects: bool) -> Metadata:
    configuration = dict(txn.metadata.configuration)
    if feature == _OF_ROW_IDS:
        for key in ROW_TRACKING_PROPERTIES:
            configuration.pop(key, None)
    if feature == _PROTECTION:
        configuration.pop(_PROTECTED_BEFORE, None)
    if protects:
        configuration[_PROTECTED_BEFORE] = str(txn.read_version + 1)
    return replace(txn.metadata, configuration=configuration)


# The history


def _ensure_history_is_free(table: CaredFor, request: DropRequest, *, has_removed: bool) -> None:
    """Cut off old versions, and refuse to drop a feature that remaining versions need."""
    if has_removed:
        _commit_barrier(table)  # so that everything before it can be cut off later
        raise _must_wait(
            f"Dropping {request.feature} was partially successful. The newest version does not use "
            "it any more, but versions in the history do",
            table,
            request.feature,
            "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        )
    if request.truncates_history:
        _truncate_log(table)
    txn = table.begin()
    if history_has_traces(request.feature, txn.table, txn.snapshot):
        raise _must_wait(
            f"The feature {request.feature} can't be dropped, since versions in the history use it",
            table,
            request.feature,
            "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
        )


def _drop_protection(table: CaredFor, request: DropRequest) -> CommitResult:
    if not request.truncates_history:
        raise _cannot_drop(
            "it goes only with the history that it protects. Say TRUNCATE HISTORY",
            request.feature,
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        )
    _truncate_log(table)
    txn = table.begin()
    protected = txn.snapshot.properties.require_checkpoint_protection_before_version
    if earliest_recreatable_version(txn.table.store, txn.table.log_path) < protected:
        raise _must_wait(
            "The feature checkpointProtection can't be dropped, since the history holds versions "
            "with features that were dropped",
            table,
            request.feature,
            "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
        )
    return _commit_drop(table, request)


def _truncate_log(table: CaredFor) -> None:
    txn = table.begin()
    options, clock = txn.table.options, txn.table.clock
    write_checkpoint(txn.table.store, txn.snapshot, options=options, clock=clock)
    truncate_history(txn.table.store, txn.snapshot, options=options, clock=clock)


def _must_wait(problem: str, table: CaredFor, feature: str, kind: str) -> ProtocolError:
    configuration = table.snapshot.metadata.configuration
    kept = configuration.get("delta.logRetentionDuration", "30 days")
    cut = configuration.get("delta.dropFeatureTruncateHistory.retentionDuration", "24 hours")
    return ProtocolError(
        f"{problem}. Wait until these have expired (delta.logRetentionDuration is {shown(kept)}); "
        f"or wait for {shown(cut)} (delta.dropFeatureTruncateHistory.retentionDuration), and run "
        f"ALTER TABLE ... DROP FEATURE {feature} TRUNCATE HISTORY.",
        kind=kind,
        feature=feature,
    )


def _cannot_drop(problem: str, feature: str, kind: str) -> UsageError:
    return UsageError(
        f"The feature {shown(feature)} can't be dropped: {problem}. Nothing was written.",
        kind=kind,
        feature=feature,
    )
