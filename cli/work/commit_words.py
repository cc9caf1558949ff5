"""What one commit did, in words and numbers (spec 1.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import LogFileNotFoundError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.commit_lines import parse_commit_lines
from optimist.core.log.file_table import file_actions_batch
from optimist.core.log.names import commit_path
from optimist.core.log.timestamps import format_timestamp
from optimist.core.protocol.actions import (
    Action,
    AddCDCFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from optimist.core.snapshot.time_travel import ensure_version_exists
from optimist.core.table.delta_log import DeltaLog
from optimist.core.values.exact_sums import exact_sum

__all__ = ["DescribedCommit", "describe_commit"]


@dataclass(frozen=True, slots=True)
class DescribedCommit:
    """What a commit did.

    Attributes:
        facts: Its facts by name.
        files: One row per file that it added or removed: `path`, `change`, `size`, and whether the
            file has a deletion vector (`vector`).
    """

    facts: Mapping[str, object]
    files: pa.Table


def describe_commit(log: DeltaLog, version: int) -> DescribedCommit:
    """Return what a commit did.

    Raises:
        TableError: The log does not hold the commit (kind `DELTA_VERSION_NOT_FOUND`), or it is
            damaged (kind `OPTIMIST_MALFORMED_COMMIT`).
    """
    path = commit_path(log.log_path, version)
    try:
        data = log.store.read_bytes(path)
    except LogFileNotFoundError:
        latest = log.snapshot().version
        ensure_version_exists(log.store, log.log_path, version, latest_version=latest)
        raise
    lines = parse_commit_lines(data, path)
    files = _file_rows(file_actions_batch(lines.file_actions))
    info = next((each for each in lines.actions if isinstance(each, CommitInfo)), CommitInfo())
    counts = _counts(files)
    facts = {
        "version": version,
        "words": _words(version, info, counts, lines.actions),
        **_facts_of_info(info),
        **counts,
        "changeFiles": sum(isinstance(each, AddCDCFile) for each in lines.actions),
        "changesMetadata": any(isinstance(each, Metadata) for each in lines.actions),
        "changesProtocol": any(isinstance(each, Protocol) for each in lines.actions),
    }
    return DescribedCommit(facts, files)


def _file_rows(actions: pa.RecordBatch) -> pa.Table:
    is_add = actions.column("isAdd")
    columns = {
        "path": actions.column("path"),
        "change": pc.if_else(is_add, "added", "removed"),
        "size": actions.column("size"),
        "vector": pc.is_valid(actions.column("deletionVector")),
    }
    return pa.table(columns)


def _counts(files: pa.Table) -> dict[str, int]:
    found = {}
    for change in ("added", "removed"):
        sizes = files.column("size").filter(pc.equal(files.column("change"), change))
        found[f"{change}Files"] = len(sizes)
        found[f"{change}Bytes"] = exact_sum(sizes)
    return found


def _facts_of_info(info: CommitInfo) -> dict[str, object]:
    timestamp_ms = info.in_commit_timestamp or info.timestamp
    return {
        "timestamp": None if timestamp_ms is None else format_timestamp(timestamp_ms),
        "operation": info.operation,
        "operationParameters": _texts(info.operation_parameters),
        "operationMetrics": _texts(info.operation_metrics),
        "readVersion": info.read_version,
        "isolationLevel": info.isolation_level,
        "isBlindAppend": info.is_blind_append,
        "engineInfo": info.engine_info,
        "userName": info.user_name,
        "userMetadata": info.user_metadata,
        "txnId": info.txn_id,
    }


def _texts(values: Mapping[str, Any] | None) -> dict[str, str] | None:
    return None if values is None else {key: str(value) for key, value in values.items()}


def _words(
    version: int, info: CommitInfo, counts: Mapping[str, int], actions: Sequence[Action]
) -> str:
    """Return a sentence about the commit."""
    engine = f" by {shown(info.engine_info)}" if info.engine_info else ""
    parts = [
        f"{verb} {counts[f'{change}Files']} files ({counts[f'{change}Bytes']} bytes)"
        for verb, change in (("adds", "added"), ("removes", "removed"))
        if counts[f"{change}Files"]
    ]
    parts += [_word_of(action) for action in actions if isinstance(action, _TOLD)]
    done = ", ".join(dict.fromkeys(parts)) or "changes nothing"
    return f"Version {version} is {shown(info.operation or 'a commit')}{engine}: it {done}."


def _word_of(action: Action) -> str:
    if isinstance(action, SetTransaction):
        return f"records version {action.version} of the application {shown(action.app_id)}"
    if isinstance(action, DomainMetadata):
        verb = "removes" if action.removed else "sets"
        return f"{verb} the domain {shown(action.domain)}"
    return "sets the protocol" if isinstance(action, Protocol) else "sets schema and properties"


_TOLD = (SetTransaction, DomainMetadata, Protocol, Metadata)
