"""The content of a log's files, read once: commits, checksums, checkpoints, the hint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.checkpoint_kinds import Checkpoint
from optimist.core.log.checksum import VersionChecksum
from optimist.core.log.commit_lines import CommitLines, parse_commit_lines
from optimist.core.log.commits import read_commits_bytes
from optimist.core.log.file_table import DELETION_VECTOR_TYPE, file_actions_batch
from optimist.core.log.last_checkpoint import LastCheckpoint
from optimist.core.log.limits import LogLimits
from optimist.core.log.names import LAST_CHECKPOINT, listing_start, parse_log_file_name
from optimist.core.maintenance.fsck.findings import Finding
from optimist.core.maintenance.fsck.listed_log import ListedLog
from optimist.core.maintenance.fsck.second_look import is_there, is_young
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import AddCDCFile, CommitInfo

__all__ = ["LogContent"]

_NAMED = pa.schema([("path", pa.string()), ("deletionVector", DELETION_VECTOR_TYPE)])
_MISSING_SIDECAR = "DELTA_MISSING_PART_FILES"


@dataclass(slots=True)
class LogContent:
    """The reader of one log, which remembers the files that it names.

    Attributes:
        store: The store of the log.
        log: The listed log.
        limits: The most that is read of a checkpoint.
        now_ms: The time, in epoch milliseconds.
    """

    store: LogStore
    log: ListedLog
    limits: LogLimits
    now_ms: int
    _named: list[pa.RecordBatch] = field(default_factory=list)
    _gone: set[str] = field(default_factory=set)

    @property
    def named(self) -> pa.Table:
        """All files that the log names, as adds, removes or change files, in any version."""
        return pa.Table.from_batches(self._named, _NAMED)

    def findings(self) -> Iterator[Finding]:
        """Read the whole log, and yield what is wrong with its content."""
        txn_ids: dict[int, str] = {}
        yield from self._read_commits(txn_ids)
        yield from self._read_checksums(txn_ids)
        for status, data in self._contents(self.log.compacted):
            try:
                parse_commit_lines(data, status.path)
            except TableError as error:
                yield Finding("bad-compacted", status.path, str(error.args[0]))
        yield from self._read_checkpoints()
        yield from self._read_hint()

    def _contents(self, statuses: Iterable[FileStatus]) -> Iterator[tuple[FileStatus, bytes]]:
        """Yield the content of each file, except those that a cleanup has removed meanwhile."""
        given = list(statuses)
        contents = read_commits_bytes(self.store, given, self._read_unless_gone)
        for status, data in zip(given, contents, strict=True):
            if status.path not in self._gone:
                yield status, data

    def _read_unless_gone(self, path: str) -> bytes:
        try:
            return self.store.read_bytes(path)
        except LogFileNotFoundError:
            self._gone.add(path)
            return b""

    def _read_commits(self, txn_ids: dict[int, str]) -> Iterator[Finding]:
        seen: dict[str, int] = {}
        versions = {status.path: version for version, status in self.log.commits.items()}
        for status, data in self._contents(self.log.commits.values()):
            version = versions[status.path]
            try:
                lines = parse_commit_lines(data, status.path)
            except TableError as error:
                yield _unparsable(version, status, data, error)
                continue
            self._note_named(lines)
            info = next((each for each in lines.actions if isinstance(each, CommitInfo)), None)
            if info is not None and info.txn_id:
                txn_ids[version] = info.txn_id
            key = txn_ids.get(version) or (_digest(data) if lines.file_actions else None)
            first = seen.setdefault(key, version) if key else version
            if first != version:
                proof = f"version {first} is the commit of the same transaction"
                yield Finding("duplicate-commit", status.path, proof, version, status.size_bytes)

    def _note_named(self, lines: CommitLines) -> None:
        if lines.file_actions:
            self._named.append(file_actions_batch(lines.file_actions).select(_NAMED.names))
        changes = [each.path for each in lines.actions if isinstance(each, AddCDCFile)]
        if changes:
            vectors = pa.nulls(len(changes), DELETION_VECTOR_TYPE)
            columns = [pa.array(changes, pa.string()), vectors]
            self._named.append(pa.RecordBatch.from_arrays(columns, schema=_NAMED))

    def _read_checksums(self, txn_ids: dict[int, str]) -> Iterator[Finding]:
        versions = {status.path: version for version, status in self.log.checksums.items()}
        for status, data in self._contents(self.log.checksums.values()):
            version = versions[status.path]
            try:
                noted = VersionChecksum.from_json(data.decode("utf-8"))
            except ValueError as error:
                yield Finding("bad-checksum", status.path, shown(error), version)
                continue
            mine = txn_ids.get(version)
            if mine and noted.txn_id and noted.txn_id != mine:
                proof = (
                    f"the commit is of transaction {shown(mine)}, but its checksum {status.name} "
                    f"is of transaction {shown(noted.txn_id)}"
                )
                commit = self.log.commits[version]
                yield Finding("overwritten-commit", commit.path, proof, version)

    def _read_checkpoints(self) -> Iterator[Finding]:
        for checkpoint in self.log.checkpoints:
            path = checkpoint.files[0].path
            reader = checkpoint.open(self.store, self.limits)
            try:
                reader.state_actions()
                for batches in (reader.live_files(), reader.tombstones()):
                    self._named.extend(batch.select(_NAMED.names) for batch in batches)
            except LogFileNotFoundError:
                continue  # a cleanup removed it
            except TableError as error:
                if not all(is_there(self.store, each.path) for each in checkpoint.files):
                    continue
                is_gone = error.kind == _MISSING_SIDECAR
                kind = "missing-sidecar" if is_gone else "bad-checkpoint"
                damaged = str(error.fields.get("path", path))
                yield Finding(kind, damaged, str(error.args[0]), checkpoint.version)

    def _read_hint(self) -> Iterator[Finding]:
        path = join(self.log.log_path, LAST_CHECKPOINT)
        try:
            hint = LastCheckpoint.from_json(self.store.read_bytes(path).decode("utf-8"))
        except LogFileNotFoundError:
            return
        except ValueError as error:
            yield Finding("stale-hint", path, f"it can't be read: {shown(error)}")
            return
        # A writer makes the checkpoint first, and then the hint.
        newest = max(
            (each.version for each in self.log.checkpoints if self._is_old(each)), default=-1
        )
        if hint.version < newest:
            proof = f"it names version {hint.version}, but there is a checkpoint of {newest}"
            yield Finding("stale-hint", path, proof, hint.version)
        elif not self._has_checkpoint(hint.version):
            proof = f"it names a checkpoint of version {hint.version}, which is not there"
            yield Finding("stale-hint", path, proof, hint.version)

    def _is_old(self, checkpoint: Checkpoint) -> bool:
        return not any(is_young(status, self.now_ms) for status in checkpoint.files)

    def _has_checkpoint(self, version: int) -> bool:
        """Look for a checkpoint anew: it may have been written after the log was listed."""
        for status in self.store.list_from(listing_start(self.log.log_path, version)):
            name = parse_log_file_name(status.name)
            if name is not None and name.version > version:
                return False
            if name is not None and name.version == version and name.kind.is_checkpoint:
                return True
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _unparsable(version: int, status: FileStatus, data: bytes, error: TableError) -> Finding:
    reason, size = str(error.args[0]), status.size_bytes
    if not data.strip():
        return Finding("empty-commit", status.path, "it is empty", version, size)
    if not data.lstrip().startswith(b"{"):
        proof = f"it is no commit: it begins with {data.lstrip()[:20]!r}"
        return Finding("foreign-commit", status.path, proof, version, size)
    return Finding("torn-commit", status.path, reason, version, size)
