"""The handle of a table for one call: with the options that the call's arguments mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from optimist.core import DeltaLog
from optimist.core.commands.idempotence import ensure_app_txn
from optimist.core.errors.argument_types import flag, optional_whole, wrong_type
from optimist.core.options.commit_keys import parse_commit_keys
from optimist.core.plugins.table_path import TablePath
from optimist.core.requests.arguments import several
from optimist.deltalake.exceptions import not_supported
from optimist.deltalake.storage_options import engine_options
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties
from optimist.deltalake.writer.properties import WriterProperties, packing_of

__all__ = ["Call", "open_log", "with_options"]

_USER_METADATA = "userMetadata"


@dataclass(frozen=True, slots=True)
class Call:
    """What all commands of deltalake take besides their own arguments.

    Attributes:
        commit: The properties of the commit.
        hooks: What happens after it.
        writer: The properties of data files.
    """

    commit: CommitProperties | None = None
    hooks: PostCommitHookProperties | None = None
    writer: WriterProperties | None = None

    def __post_init__(self) -> None:
        # By their attributes: a program may still take these classes from deltalake.
        for argument, given, attribute in (
            ("commit_properties", self.commit, "app_transactions"),
            ("post_commithook_properties", self.hooks, "create_checkpoint"),
            ("writer_properties", self.writer, "max_row_group_size"),
        ):
            if given is not None and not hasattr(given, attribute):
                wanted = "".join(word.capitalize() for word in argument.split("_"))
                raise wrong_type(argument, given, f"{wanted.replace('hook', 'Hook')}, or None")

    def handle(self, log: DeltaLog, **options: Any) -> DeltaLog:
        """Return the table's handle for this call.

        Args:
            log: The table's handle.
            options: Fields of `EngineOptions` that the call needs in another way.

        Raises:
            DeltaError: A property has no counterpart here (kind `OPTIMIST_NOT_BUILT_YET`).
            ValueError: The custom metadata can't be a part of a commit.
        """
        if self.writer is not None:
            options["packing"] = packing_of(self.writer)
        return with_options(
            log, **_options_of(self.commit), **_options_after(self.hooks), **options
        )

    @property
    def app_txn(self) -> tuple[str, int] | None:
        """The version that an application records, or None.

        Raises:
            DeltaError: Several are given (kind `OPTIMIST_NOT_BUILT_YET`).
        """
        listed = None if self.commit is None else self.commit.app_transactions
        given = several(() if listed is None else listed, "app_transactions")
        for item in given:
            if not hasattr(item, "app_id"):
                raise wrong_type("app_transactions", item, "a list of Transaction")
        if len(given) > 1:
            raise not_supported(
                "A commit with several app_transactions", "Give one, or use DeltaLog.transaction."
            )
        found = (given[0].app_id, given[0].version) if given else None
        ensure_app_txn(found)
        return found

    def ensure_no_app_txn(self, command: str) -> None:
        """Refuse the version of an application where a command records none."""
        if self.app_txn is not None:
            raise not_supported(f"{command} with app_transactions", "Leave them out.")


def open_log(path: TablePath, storage_options: Mapping[str, str] | None) -> DeltaLog:
    """Return the handle of the table at a path, by deltalake's options of storage."""
    return DeltaLog.for_path(path, engine_options(storage_options))


def with_options(log: DeltaLog, **options: Any) -> DeltaLog:
    """Return a handle of the same table with other values of some fields of `EngineOptions`."""
    if not options:
        return log
    changed = replace(log.options, **options)
    return DeltaLog(log.table_path, log.store, changed, lease=log.lease, clock=log.clock)


def _options_of(given: CommitProperties | None) -> dict[str, Any]:
    if given is None:
        return {}
    found: dict[str, Any] = {}
    custom = given.custom_metadata
    if custom is not None and (
        not isinstance(custom, Mapping) or not all(isinstance(key, str) for key in custom)
    ):
        raise ValueError("custom_metadata is a mapping, and its keys must be strings.")
    retries = optional_whole(given.max_commit_retries, "max_commit_retries", least=0)
    if retries is not None:
        found["max_commit_attempts"] = retries + 1
    keys = dict(custom or {})
    if _USER_METADATA in keys:
        text = keys.pop(_USER_METADATA)
        if not isinstance(text, str):
            raise ValueError(f"{_USER_METADATA} in custom_metadata must be text.")
        found["user_metadata"] = text
    if keys:
        found["commit_info_extra"] = _commit_keys(keys)
    return found


def _commit_keys(keys: Mapping[str, Any]) -> Mapping[str, object]:
    try:
        text = json.dumps(keys, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"custom_metadata can't be written as JSON: {error}") from None
    try:
        return parse_commit_keys(text)
    except ValueError as error:
        raise ValueError(f"custom_metadata {error}. Nothing was written.") from None


def _options_after(hooks: PostCommitHookProperties | None) -> dict[str, Any]:
    """Return the options for what happens after a commit."""
    if hooks is None:
        return {}
    cleans_up = hooks.cleanup_expired_logs
    return {
        "post_commit_checkpoint": flag(hooks.create_checkpoint, "create_checkpoint"),
        "post_commit_cleanup": None
        if cleans_up is None
        else flag(cleans_up, "cleanup_expired_logs"),
    }
