"""`x.y.compacted.json`: several commits in one file, reconciled (spec 5.1, 5.3.11).

A reader that opens the table between two checkpoints reads it instead of the commits in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from optimist.core.errors.foreign_text import shown
from optimist.core.log.commit_lines import CommitLines, FileBody, parse_commit_lines
from optimist.core.log.commits import read_commits_bytes
from optimist.core.log.compacted import state_key
from optimist.core.log.file_table import canonical_path
from optimist.core.log.names import commit_path, compacted_name
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    RemoveFile,
    action_to_dict,
    malformed_commit,
)

__all__ = ["compacted_lines", "is_compaction_due", "write_compaction"]


def is_compaction_due(version: int, interval: int) -> bool:
    """Tell whether the commits up to `version` fill an interval.

    An interval of 0 means never.

    A compacted file of one commit would equal the commit, so an interval of 1 also means never.
    """
    return interval > 1 and (version + 1) % interval == 0


def write_compaction(store: LogStore, log_path: str, first: int, last: int) -> PutOutcome:
    """Write the commits `first` to `last` as one file, unless it exists.

    All removes of the range stay, however old, since they revoke adds of earlier commits.

    Raises:
        LogFileNotFoundError: A commit is gone.
        TableError: A commit is damaged (kind `OPTIMIST_MALFORMED_COMMIT`).
        StorageError: The store failed.
    """
    commits = [
        FileStatus(commit_path(log_path, version), 0, 0) for version in range(first, last + 1)
    ]
    contents = read_commits_bytes(store, commits)
    parsed = (
        parse_commit_lines(data, status.path, with_info=False)
        for status, data in zip(commits, contents, strict=True)
    )
    try:
        data = "".join(f"{line}\n" for line in compacted_lines(parsed)).encode()
    except (LookupError, TypeError, AttributeError) as error:
        run = f"one of the commits {first} to {last} has a damaged deletion vector ({shown(error)})"
        raise malformed_commit(commits[0].path, run) from error
    return store.put_if_absent(join(log_path, compacted_name(first, last)), data)


def compacted_lines(commits: Iterable[CommitLines]) -> Iterator[str]:
    """Reconcile the actions of commits in order, and yield them as lines of JSON (spec 5.6).

    `commitInfo` and `cdc` belong to single commits, and unknown actions are not part of the state.
    All of these are left out.
    """
    state: dict[tuple[str, ...], Action] = {}
    files: dict[tuple[str, ...], dict[str, object]] = {}
    for commit in commits:
        for action in commit.actions:
            key = state_key(action)
            if key is not None:
                state[key] = action
        for file_action in commit.file_actions:
            kind, body = _kind_and_body(file_action)
            file_key = _file_key(body)
            files.pop(file_key, None)  # a file's last action determines its position
            files[file_key] = {kind: {**body, "dataChange": False}}
    for wrapped in (*map(action_to_dict, state.values()), *files.values()):
        yield json.dumps(wrapped, separators=(",", ":"), ensure_ascii=False)


def _kind_and_body(action: FileBody) -> tuple[str, dict[str, Any]]:
    if isinstance(action, AddFile | RemoveFile):
        wrapped: dict[str, Any] = action_to_dict(action)
        return action.KEY, wrapped[action.KEY]
    body = dict(action)
    return ("add" if body.pop("isAdd") else "remove"), body


def _file_key(body: Mapping[str, Any]) -> tuple[str, ...]:
    path, vector = canonical_path(body["path"]), body.get("deletionVector")
    if vector is None:
        return (path,)
    return (path, vector["storageType"], vector["pathOrInlineDv"], str(vector.get("offset")))
