"""What one commit did, in words and numbers (spec 1.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import LogFileNotFoundError, TableError
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
from optimist.core.schema.types import StructType
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.snapshot.time_travel import (
    CommitRecord,
    commit_history,
    ensure_version_exists,
)
from optimist.core.statements.history import history_rows
from optimist.core.table.delta_log import DeltaLog
from optimist.core.values.exact_sums import exact_sum

__all__ = ["DescribedCommit", "describe_commit", "describe_record"]


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
    with suppress(LogFileNotFoundError):
        # The listing also finishes a commit that an arbiter has accepted, but not yet copied.
        found = commit_history(log.store, log.log_path, limit=1, latest_version=version)
        if found:
            return describe_record(log, found[0])
    latest = log.snapshot().version
    ensure_version_exists(log.store, log.log_path, version, latest_version=latest)
    raise TableError(
        f"Version {version} can be read from a checkpoint, but its commit was removed, so nothing "
        "tells what it did.",
        kind="DELTA_VERSION_NOT_FOUND",
        version=version,
    )


def describe_record(log: DeltaLog, record: CommitRecord) -> DescribedCommit:
    """Return what a commit of the history did.

    Raises:
        LogFileNotFoundError: The commit is gone.
        TableError: It is damaged (kind `OPTIMIST_MALFORMED_COMMIT`).
    """
    path = commit_path(log.log_path, record.version)
    lines = parse_commit_lines(log.store.read_bytes(path), path)
    actions = file_actions_batch(lines.file_actions)
    files, info = _file_rows(actions), record.info or CommitInfo()
    counts = _counts(files)
    facts = {
        "version": record.version,
        "words": _words(record.version, info, counts, lines.actions),
        **_facts_of(record),
        "txnId": info.txn_id,
        **counts,
        "addedRows": _added_rows(actions),
        "changeFiles": sum(isinstance(each, AddCDCFile) for each in lines.actions),
        "changesMetadata": any(isinstance(each, Metadata) for each in lines.actions),
        "changesProtocol": any(isinstance(each, Protocol) for each in lines.actions),
    }
    return DescribedCommit(facts, files)


def _added_rows(actions: pa.RecordBatch) -> int | None:
    """Return the rows of the files that a commit adds, or None where it does not tell them."""
    added = pa.Table.from_batches([actions]).filter(actions.column("isAdd"))
    known = FileStatistics(added, StructType()).num_records.combine_chunks()
    rows = live_rows(added, known)
    return None if rows.null_count else exact_sum(rows)


def _file_rows(actions: pa.RecordBatch) -> pa.Table:
    is_add = actions.column("isAdd")
    columns = {
        "path": actions.column("path"),
        "change": pc.if_else(is_add, "added", "removed"),
        "size": actions.column("size"),
        "vector": pc.is_valid(actions.column("deletionVector")),
    }
    return pa.table(columns)


def _counts(files: pa.Table) -> dict[str, int | None]:
    """Return the number of files added and removed, and their bytes, or None where unknown."""
    found: dict[str, int | None] = {}
    for change in ("added", "removed"):
        sizes = files.column("size").filter(pc.equal(files.column("change"), change))
        found[f"{change}Files"] = len(sizes)
        found[f"{change}Bytes"] = None if sizes.null_count else exact_sum(sizes)
    return found


def _facts_of(record: CommitRecord) -> dict[str, object]:
    """Return what the history tells of a commit."""
    (row,) = history_rows((record,)).to_pylist(maps_as_pydicts="lossy")
    told = {name: row[name] for name in _TOLD_BY_HISTORY}
    return {"timestamp": format_timestamp(record.timestamp_ms), **told}


def _words(
    version: int, info: CommitInfo, counts: Mapping[str, int | None], actions: Sequence[Action]
) -> str:
    """Return a sentence about the commit."""
    engine = f" by {shown(info.engine_info)}" if info.engine_info else ""
    parts = [
        f"{verb} {counts[f'{change}Files']} files ({_bytes_text(counts[f'{change}Bytes'])})"
        for verb, change in (("adds", "added"), ("removes", "removed"))
        if counts[f"{change}Files"]
    ]
    parts += [_word_of(action) for action in actions if isinstance(action, _TOLD)]
    done = ", ".join(dict.fromkeys(parts)) or "changes nothing"
    return f"Version {version} is {shown(info.operation or 'a commit')}{engine}: it {done}."


def _bytes_text(count: int | None) -> str:
    return "of unknown size" if count is None else f"{count} bytes"


def _word_of(action: Action) -> str:
    if isinstance(action, SetTransaction):
        return f"records version {action.version} of the application {shown(action.app_id)}"
    if isinstance(action, DomainMetadata):
        verb = "removes" if action.removed else "sets"
        return f"{verb} the domain {shown(action.domain)}"
    return "sets the protocol" if isinstance(action, Protocol) else "sets schema and properties"


_TOLD_BY_HISTORY = (
    *("operation", "operationParameters", "operationMetrics", "readVersion", "isolationLevel"),
    *("isBlindAppend", "engineInfo", "userName", "userMetadata"),
)
_TOLD = (SetTransaction, DomainMetadata, Protocol, Metadata)
