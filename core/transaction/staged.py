"""Fold the steps of one block into one commit: its actions and its operation (spec 1.18)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from optimist.core.log.file_table import canonical_path
from optimist.core.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from optimist.core.transaction.conflicts.isolation import FILE_ACTIONS, is_append_only
from optimist.core.transaction.conflicts.operations import TRANSACTION, Operation, json_text
from optimist.core.transaction.hooks.hooks import PostCommitHook

__all__ = ["StagedStep", "folded_actions", "new_files", "whole_operation"]

_Kind = TypeVar("_Kind", AddFile, RemoveFile)


@dataclass(frozen=True, slots=True)
class StagedStep:
    """A step that is done, as its commit would be if it were alone.

    Attributes:
        operation: What it did.
        actions: Its actions, checked, without row ids.
        tags: Its tags.
        hooks: What is to run after the commit.
        recorded: Whether it wrote what it changed for the change data feed, if it changed rows.
    """

    operation: Operation
    actions: tuple[Action, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    hooks: tuple[PostCommitHook, ...] = ()
    recorded: bool = False

    @property
    def changes_rows(self) -> bool:
        """Whether it adds or removes files."""
        return any(isinstance(each, FILE_ACTIONS) for each in self.actions)

    @property
    def only_appends(self) -> bool:
        """Whether it adds files at most."""
        return is_append_only(self.actions)


@dataclass(slots=True)
class _File:
    """What becomes of a data file.

    Attributes:
        before: Removes it as the version read has it; None for a file that a step has written.
        after: The file as the commit leaves it; None if it is gone by then.
    """

    before: RemoveFile | None = None
    after: AddFile | None = None


def folded_actions(steps: Sequence[StagedStep]) -> tuple[Action, ...]:
    """Return the actions of all steps as those of one commit, without metadata and protocol.

    A file that one step adds and a later one removes is in none of them. Of several vectors for one
    file the last counts, and the file is removed as it was before the first of them. Of an
    application's progress, and of a domain, the last counts.
    """
    files = _folded_files(steps).values()
    kept = {_key_of_action(each): each for step in steps for each in step.actions if _is_kept(each)}
    return (
        *(each.before for each in files if each.before is not None),
        *(each.after for each in files if each.after is not None),
        *(each for step in steps for each in step.actions if isinstance(each, AddCDCFile)),
        *kept.values(),
    )


def new_files(steps: Sequence[StagedStep]) -> frozenset[str]:
    """Return the canonical paths of all files that steps have written, even if they are gone."""
    return frozenset(path for path, file in _folded_files(steps).items() if file.before is None)


def whole_operation(steps: Sequence[StagedStep], user_metadata: str | None) -> Operation:
    """Return the operation of the commit: that of its one step, or one that lists those of all.

    Its metrics are the sums of theirs.
    """
    operations = [step.operation for step in steps]
    if len(operations) == 1:
        alone = operations[0]
        return alone if user_metadata is None else replace(alone, user_metadata=user_metadata)
    metrics = Counter[str]()
    for each in operations:
        metrics.update({name: int(text) for name, text in each.metrics.items() if text.isdecimal()})
    return Operation(
        TRANSACTION,
        {"operations": json_text(list(map(_as_mapping, operations)))},
        user_metadata=user_metadata,
    ).with_metrics(metrics)


def _folded_files(steps: Iterable[StagedStep]) -> dict[str, _File]:
    files: dict[str, _File] = {}
    for step in steps:
        for remove in _actions_of_kind(step, RemoveFile):
            path = canonical_path(remove.path)
            if path in files:
                files[path].after = None
            else:
                files[path] = _File(before=remove)
        for add in _actions_of_kind(step, AddFile):
            files.setdefault(canonical_path(add.path), _File()).after = add
    return files


def _actions_of_kind(step: StagedStep, kind: type[_Kind]) -> Iterator[_Kind]:
    return (each for each in step.actions if isinstance(each, kind))


def _is_kept(action: Action) -> bool:
    return not isinstance(action, (*FILE_ACTIONS, Metadata, Protocol))


def _key_of_action(action: Action) -> object:
    if isinstance(action, SetTransaction):
        return SetTransaction, action.app_id
    return (DomainMetadata, action.domain) if isinstance(action, DomainMetadata) else id(action)


def _as_mapping(operation: Operation) -> Mapping[str, object]:
    entry: dict[str, object] = {"operation": operation.name, **dict(operation.parameters)}
    if operation.user_metadata is not None:
        entry["userMetadata"] = operation.user_metadata
    return entry
