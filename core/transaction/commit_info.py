"""commitInfo: what a commit says about itself, in the first line of its file (spec 1.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optimist.core.imports import own_version
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Action, CommitInfo
from optimist.core.protocol.engine_name import ENGINE_NAME
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.transaction.conflicts.isolation import FILE_ACTIONS
from optimist.core.transaction.conflicts.operations import Operation

__all__ = [
    "build_commit_info",
    "engine_info",
    "get_operation_metrics",
    "get_user_metadata",
]


def build_commit_info(  # noqa: PLR0913 - one keyword per key of commitInfo
    operation: Operation,
    actions: Sequence[Action],
    *,
    txn_id: str,
    timestamp_ms: int,
    read_version: int,
    isolation_level: IsolationLevel,
    is_blind_append: bool,
    tags: Mapping[str, str] | None,
    options: EngineOptions,
) -> CommitInfo:
    """Build the commitInfo of a commit. It always has `txn_id` and `is_blind_append`."""
    return CommitInfo(
        timestamp=timestamp_ms,
        operation=operation.name,
        operation_parameters=dict(operation.parameters),
        read_version=read_version if read_version >= 0 else None,
        isolation_level=isolation_level.value,
        is_blind_append=is_blind_append,
        data_change=any(a.data_change for a in actions if isinstance(a, FILE_ACTIONS)),
        operation_metrics=get_operation_metrics(operation, options),
        user_metadata=get_user_metadata(operation, options),
        tags=dict(tags) if tags else None,
        engine_info=engine_info(options),
        txn_id=txn_id,
        extra=dict(options.commit_info_extra or {}),
    )


def get_operation_metrics(operation: Operation, options: EngineOptions) -> Mapping[str, str] | None:
    """Return the operation's metrics, unless `history.metricsEnabled` is off."""
    return dict(operation.metrics) if options.history_metrics_enabled else None


def get_user_metadata(operation: Operation, options: EngineOptions) -> str | None:
    """Return the write's own user metadata, or else that of the conf."""
    if operation.user_metadata is not None:
        return operation.user_metadata
    return options.user_metadata


def engine_info(options: EngineOptions) -> str:
    """Return `Optimist/<version>`, after the host engine's name where there is one."""
    own = f"{ENGINE_NAME}/{own_version()}"
    return f"{options.engine_info} {own}" if options.engine_info else own
