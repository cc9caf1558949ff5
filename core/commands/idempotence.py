"""Idempotent writes, which an application may repeat under the same id and version (spec 10.6)."""

from __future__ import annotations

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import wrong_type
from optimist.core.errors.foreign_text import shown
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import SetTransaction
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["conf_txn", "is_replay", "progress"]


def conf_txn(options: EngineOptions) -> tuple[str, int] | None:
    """Return the conf's application id and version: `write.txnAppId` and `write.txnVersion`.

    Raises:
        UsageError: Only one of them is set (kind `DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS`).
    """
    app_id, version = options.write_txn_app_id, options.write_txn_version
    if app_id is not None and version is not None:
        return app_id, version
    if app_id is None and version is None:
        return None
    raise UsageError(
        "The conf keys spark.databricks.delta.write.txnAppId and "
        "spark.databricks.delta.write.txnVersion work only together. Nothing was written. Set both "
        "or neither.",
        kind="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
    )


def ensure_app_txn(given: object) -> None:
    """Refuse a caller's transaction that is not an application's id and a version.

    Raises:
        ArgumentTypeError: It is something else (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    match given:
        case None | (str(), int()):
            return
    raise wrong_type("txn", given, "a pair of an application's id and a version: ('job', 5)")


def is_replay(txn: OptimisticTransaction, app_txn: tuple[str, int] | None) -> bool:
    """Tell whether the table has recorded this version of the application, or a later one.

    The look-up counts as a read, so a commit that advances the application meanwhile conflicts.

    Raises:
        UsageError: The version is negative (kind `OPTIMIST_INVALID_ARGUMENT`). -1 stands for an
            application that has recorded nothing, so the first write would look like a replay.
    """
    if app_txn is None:
        return False
    app_id, version = app_txn
    if version < 0:
        raise UsageError(
            f"The version {version} of the application {shown(app_id)} is negative. Nothing was "
            "written. Count its writes from 0.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="txn",
        )
    return txn.txn_version(app_id) >= version


def progress(
    txn: OptimisticTransaction, app_txn: tuple[str, int] | None
) -> tuple[SetTransaction, ...]:
    """Return the action that records the application's version, if there is one."""
    if app_txn is None:
        return ()
    app_id, version = app_txn
    return (SetTransaction(app_id, version, last_updated=txn.table.clock.now_ms()),)
