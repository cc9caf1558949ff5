"""`x.y.compacted.json`: several commits in one file, reconciled (spec 5.1, 5.3.11).

Whoever opens the table between two checkpoints reads it instead of the commits that it covers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from optimist.core.errors import TableError
from optimist.core.log.commits import read_commits_bytes
from optimist.core.log.file_table import canonical_path
from optimist.core.log.names import commit_path, compacted_name
from optimist.core.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.paths import join

__all__ = ["compacted_lines", "is_compaction_due", "write_compaction"]

_FILE_ACTIONS = ("add", "remove")
_LATEST_BY = {"txn": "appId", "domainMetadata": "domain", "protocol": None, "metaData": None}
"""Actions of which only the last counts, and per what; None: of all."""


def is_compaction_due(version: int, interval: int) -> bool:
    """Whether the commits up to `version` fill an interval; an interval of 0 is never full.

    A file of one commit would be that commit, so an interval of 1 asks for nothing either.
    """
    return interval > 1 and (version + 1) % interval == 0


def write_compaction(store: LogStore, log_path: str, first: int, last: int) -> PutOutcome:
    """Write the commits `first` to `last` as one file; one that is there already is left alone.

    The removes of the run all stay, however old: they take back what earlier commits have added.

    Raises:
        LogFileNotFoundError: A commit is gone.
        TableError: A commit is damaged (kind `OPTIMIST_MALFORMED_COMMIT`).
        StorageError: The store failed.
    """
    commits = [
        FileStatus(commit_path(log_path, version), 0, 0) for version in range(first, last + 1)
    ]
    contents = read_commits_bytes(store, commits)
    try:
        lines = list(compacted_lines(contents))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TableError(
            f"The commits {first} to {last} of {log_path} can't be compacted: {error!r}. The table "
            "is as it was.",
            kind="OPTIMIST_MALFORMED_COMMIT",
            path=commits[0].path,
        ) from error
    data = "".join(f"{line}\n" for line in lines).encode()
    return store.put_if_absent(join(log_path, compacted_name(first, last)), data)


def compacted_lines(contents: Iterable[bytes]) -> Iterator[str]:
    """The reconciled actions (spec 5.6) of commits in order, as lines of JSON.

    `commitInfo` and `cdc` belong to single commits, and unknown actions are nobody's state: they
    are left out.
    """
    latest: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for content in contents:
        for line in content.split(b"\n"):
            if line.strip():
                _take(latest, json.loads(line))
    for action in latest.values():
        yield json.dumps(action, separators=(",", ":"), ensure_ascii=False)


def _take(latest: dict[tuple[str, ...], Mapping[str, Any]], action: Mapping[str, Any]) -> None:
    (kind, body), *others = action.items()
    if others:
        raise ValueError(f"a line holds {len(action)} actions")
    if kind in _FILE_ACTIONS:
        key = ("file", canonical_path(body["path"]), *_vector_key(body.get("deletionVector")))
        latest.pop(key, None)
        latest[key] = {kind: {**body, "dataChange": False}}
    elif kind in _LATEST_BY:
        name = _LATEST_BY[kind]
        latest[(kind, body[name] if name else "")] = action


def _vector_key(vector: Mapping[str, Any] | None) -> tuple[str, ...]:
    if vector is None:
        return ()
    return (vector["storageType"], vector["pathOrInlineDv"], str(vector.get("offset")))
