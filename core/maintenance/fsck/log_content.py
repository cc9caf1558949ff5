"""The content of a log's files, read once: commits, checksums, checkpoints, the hint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import MALFORMED_CHECKPOINT, MISSING_PART_FILES
from optimist.core.log.checkpoint_kinds import Checkpoint
from optimist.core.log.checksum import VersionChecksum, is_of_old_writer
from optimist.core.log.commit_lines import CommitLines, parse_commit_lines
from optimist.core.log.commits import read_commits_bytes
from optimist.core.log.compacted import compacted_range
from optimist.core.log.file_table import DELETION_VECTOR_TYPE
from optimist.core.log.last_checkpoint import LastCheckpoint
from optimist.core.log.limits import LogLimits, ensure_readable_size
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    commit_path,
    listing_start,
    parse_log_file_name,
)
from optimist.core.log.replay import commit_batch
from optimist.core.maintenance.fsck.change_files import ChangeFiles
from optimist.core.maintenance.fsck.checkpoint_content import CheckpointContent, untruth_of
from optimist.core.maintenance.fsck.committed_actions import (
    CommittedActions,
    keys_of,
    state_facts,
)
from optimist.core.maintenance.fsck.compacted_content import contradiction
from optimist.core.maintenance.fsck.findings import Finding
from optimist.core.maintenance.fsck.listed_log import ListedLog
from optimist.core.maintenance.fsck.second_look import is_there, is_young, status_now
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import AddCDCFile, CommitInfo
from optimist.core.runtime.opening_progress import told_while_opening
from optimist.core.runtime.progress import ProgressReport
from optimist.core.values.exact_sums import exact_sum

__all__ = ["NAMED", "LogContent", "ignore_named"]

NAMED = pa.schema([("path", pa.string()), ("deletionVector", DELETION_VECTOR_TYPE)])
"""One row per file that the log names: an add, a remove or a change file of any version."""
_COMMITTED = pa.schema([("isAdd", pa.bool_()), *NAMED])
_MOST_TIMES = 16
"""How often compacted commits may stand for the same commits: a hostile log has many such files."""
_ALWAYS_COMPARED = 100_000
_KINDS = {
    MISSING_PART_FILES: "missing-sidecar",
    MALFORMED_CHECKPOINT: "bad-checkpoint",
}
"""The kind of finding for each kind of error of a checkpoint's reader."""


def ignore_named(batch: pa.RecordBatch) -> None:
    """Take no notice of the files that a log names."""


@dataclass(slots=True)
class LogContent:
    """The reader of one log.

    Attributes:
        store: The store of the log.
        log: The listed log.
        limits: The most that is read of a file.
        now_ms: The time, in epoch milliseconds.
        note: Called with the files that the log names, in batches of `NAMED`.
        report: Is told of each commit.
        changes: Keeps the change files whose absence would be a damage.
    """

    store: LogStore
    log: ListedLog
    limits: LogLimits
    now_ms: int
    note: Callable[[pa.RecordBatch], None]
    report: ProgressReport
    changes: ChangeFiles
    _commits: CommittedActions = field(default_factory=CommittedActions)
    _gone: set[str] = field(default_factory=set)
    _sums: dict[int, tuple[int, int]] = field(default_factory=dict)
    _sound: set[int] = field(default_factory=set)
    _good: dict[int, str] = field(default_factory=dict)

    def findings(self) -> Iterator[Finding]:
        """Read the whole log, and yield what is wrong with its content."""
        txn_ids: dict[int, str] = {}
        yield from self._read_commits(txn_ids)
        yield from self._read_checksums(txn_ids)
        yield from self._read_compacted()
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
        compared = [checkpoint.version for checkpoint in self.log.checkpoints]
        compared += [compacted_range(status)[1] for status in self.log.compacted]
        newest_compared = max(compared, default=-1)
        readable, too_large = self._readable(self.log.commits.values())
        yield from too_large
        contents = self._contents(readable)
        for status, data in self.report.each("log", contents, len(readable)):
            version = versions[status.path]
            try:
                lines = parse_commit_lines(data, status.path)
                files = self._note_named(lines, status)
            except TableError as error:
                yield _unparsable(version, status, data, error)
                continue
            if version <= newest_compared:
                self._commits.note(version, files, lines.actions)
            info = next((each for each in lines.actions if isinstance(each, CommitInfo)), None)
            self.changes.note(version, status, info, lines.actions)
            if info is not None and info.txn_id:
                txn_ids[version] = info.txn_id
            # Without a commitInfo, two transactions may write the same bytes.
            digest = _digest(data) if lines.file_actions and info is not None else None
            key = txn_ids.get(version) or digest
            first = seen.setdefault(key, version) if key else version
            if first != version:
                proof = f"version {first} is the commit of the same transaction"
                yield Finding("duplicate-commit", status.path, proof, version, status.size_bytes)
            else:
                self._sound.add(version)

    def _readable(self, statuses: Iterable[FileStatus]) -> tuple[list[FileStatus], list[Finding]]:
        """Return the files that may be read as a whole, and what is wrong with the others."""
        readable, found = [], []
        for status in statuses:
            try:
                ensure_readable_size(status, self.limits)
                readable.append(status)
            except TableError as error:
                name = parse_log_file_name(status.name)
                version = None if name is None else name.version
                found.append(Finding("unreadable", status.path, str(error.args[0]), version))
        return readable, found

    def _note_named(self, lines: CommitLines, status: FileStatus) -> pa.RecordBatch | None:
        """Note the files of a commit, and return its adds and removes, rows of `_COMMITTED`.

        Raises:
            TableError: A field has the wrong type (kind `OPTIMIST_MALFORMED_COMMIT`).
        """
        files = None
        if lines.file_actions:
            files = commit_batch(lines.file_actions, (status,), _COMMITTED)
            self.note(files.select(NAMED.names))
        changes = [each.path for each in lines.actions if isinstance(each, AddCDCFile)]
        if changes:
            vectors = pa.nulls(len(changes), DELETION_VECTOR_TYPE)
            columns = [pa.array(changes, pa.string()), vectors]
            self.note(pa.RecordBatch.from_arrays(columns, schema=NAMED))
        return files

    def _read_checksums(self, txn_ids: dict[int, str]) -> Iterator[Finding]:
        versions = {status.path: version for version, status in self.log.checksums.items()}
        readable, too_large = self._readable(self.log.checksums.values())
        yield from too_large
        for status, data in self._contents(readable):
            version = versions[status.path]
            try:
                noted = VersionChecksum.from_json(data.decode("utf-8"))
            except ValueError as error:
                if not is_young(status, self.now_ms) and not is_of_old_writer(data):
                    path, files = status.path, (status,)
                    yield Finding("bad-checksum", path, shown(error), version, files=files)
                continue
            mine = txn_ids.get(version)
            if mine and noted.txn_id and noted.txn_id != mine:
                proof = (
                    f"the commit is of transaction {shown(mine)}, but its checksum {status.name} "
                    f"is of transaction {shown(noted.txn_id)}"
                )
                commit = self.log.commits[version]
                self._sound.discard(version)
                yield Finding("overwritten-commit", commit.path, proof, version)
            else:
                self._sums[version] = (noted.num_files, noted.table_size_bytes)

    def _read_compacted(self) -> Iterator[Finding]:
        old = [status for status in self.log.compacted if not is_young(status, self.now_ms)]
        readable, too_large = self._readable(old)
        yield from too_large
        allowed = _ALWAYS_COMPARED + _MOST_TIMES * self._commits.num_actions
        for status, data in self._contents(readable):
            wrong = None
            try:
                lines = parse_commit_lines(data, status.path)
                self._note_named(lines, status)
                first, last = compacted_range(status)
                if self._sound_are(first, last):
                    allowed -= last - first + self._commits.num_actions_between(first, last)
                    if allowed < 0:
                        proof = "it was not compared: too many files stand for the same commits"
                        yield Finding("unreadable", status.path, proof)
                        continue
                    wrong = contradiction(lines, self._commits, first, last)
            except TableError as error:
                wrong = str(error.args[0])
            if wrong is not None:
                yield Finding("bad-compacted", status.path, wrong, files=(status,))

    def _sound_are(self, first: int, last: int) -> bool:
        """Return whether all commits of a range were read and are sound."""
        return last - first < len(self._sound) and self._sound.issuperset(range(first, last + 1))

    def _read_checkpoints(self) -> Iterator[Finding]:
        bad = []
        base = CheckpointContent(-1, {}, pa.chunked_array([], pa.large_string()), 0)
        for checkpoint in self.log.checkpoints:
            error, content = self._read_checkpoint(checkpoint)
            if error is not None:  # a connection was cut, or another writer has replaced the file
                error, content = self._read_checkpoint(self._as_it_is_now(checkpoint))
            if error is not None and not self._is_at_work(checkpoint):
                bad.append((checkpoint, error))
            if content is None:
                continue
            untruth = self._untruth_of(content, base)
            if untruth is None:
                self._good[checkpoint.version] = checkpoint.files[0].path
                base = content
            else:
                kind, proof = untruth
                yield Finding(kind, checkpoint.files[0].path, proof, checkpoint.version)
        for checkpoint, error in bad:
            kind = _KINDS.get(str(error.kind), "unreadable")
            damaged = str(error.fields.get("path", checkpoint.files[0].path))
            # Another engine may read of it what this one can't.
            without = None if kind == "unreadable" else self._base_without(checkpoint)
            files = () if without is None else checkpoint.files
            version, proof = checkpoint.version, str(error.args[0])
            yield Finding(kind, damaged, proof, version, files=files, base=without)

    def _untruth_of(
        self, content: CheckpointContent, base: CheckpointContent
    ) -> tuple[str, str] | None:
        """Return the kind and the proof of what a readable checkpoint says wrongly, if anything."""
        sums = (len(content.keys), content.size_bytes)
        noted = self._sums.get(content.version)
        if noted not in (None, sums):
            proof = f"its files and bytes are {sums}, but by the checksum of the version {noted}"
            return "checksum-mismatch", proof
        if not self._sound_are(base.version + 1, content.version):
            return None
        wrong = untruth_of(content, base, self._commits)
        return None if wrong is None else ("untrue-checkpoint", wrong)

    def _read_checkpoint(
        self, checkpoint: Checkpoint
    ) -> tuple[TableError | None, CheckpointContent | None]:
        """Return what is wrong with a checkpoint, or what it holds.

        Both are None if it is gone.
        """
        reader = checkpoint.open(self.store, self.limits)
        keys: list[pa.Array] = []
        size_bytes = 0
        try:
            facts = state_facts(reader.state_actions())
            files = reader.live_files()
            for batch in told_while_opening("files", files, count=lambda each: each.num_rows):
                self.note(batch.select(NAMED.names))
                keys.append(keys_of(batch))
                size_bytes += exact_sum(batch.column("size"))
            for batch in reader.tombstones():
                self.note(batch.select(NAMED.names))
        except LogFileNotFoundError:
            return None, None  # a cleanup removed it
        except TableError as error:
            return error, None
        found = pa.chunked_array(keys, pa.large_string())
        return None, CheckpointContent(checkpoint.version, facts, found, size_bytes)

    def _as_it_is_now(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return a checkpoint with what its files are now."""
        now = (status_now(self.store, status.path) for status in checkpoint.files)
        files = (new or old for new, old in zip(now, checkpoint.files, strict=True))
        return replace(checkpoint, files=tuple(files))

    def _base_without(self, checkpoint: Checkpoint) -> str | None:
        """Return the first file from which a checkpoint's version can be read without it, if any.

        It is a good checkpoint before it, or the first commit.
        """
        start = max((each for each in self._good if each <= checkpoint.version), default=-1)
        if not self._sound.issuperset(range(start + 1, checkpoint.version + 1)):
            return None
        return self._good.get(start) or commit_path(self.log.log_path, 0)

    def _is_at_work(self, checkpoint: Checkpoint) -> bool:
        """Return whether a writer may still write a checkpoint, or a cleanup has begun with it."""
        if not self._is_old(checkpoint):
            return True
        return not all(is_there(self.store, each.path) for each in checkpoint.files)

    def _read_hint(self) -> Iterator[Finding]:
        path = join(self.log.log_path, LAST_CHECKPOINT)
        before = status_now(self.store, path)
        readable, too_large = self._readable([] if before is None else [before])
        yield from too_large
        for _, data in self._contents(readable):
            version, proof = None, None
            try:
                hint = LastCheckpoint.from_json(data.decode("utf-8"))
                version, proof = hint.version, self._untruth_of_hint(hint)
            except ValueError as error:
                proof = f"it can't be read: {shown(error)}"
            # A writer may have begun to overwrite it since.
            status = None if proof is None else status_now(self.store, path)
            if proof and status and (version is not None or not is_young(status, self.now_ms)):
                yield Finding("stale-hint", path, proof, version, files=(status,))

    def _untruth_of_hint(self, hint: LastCheckpoint) -> str | None:
        # A writer makes the checkpoint first, and then the hint.
        newest = max(
            (each.version for each in self.log.checkpoints if self._is_old(each)), default=-1
        )
        if hint.version < newest:
            return f"it names version {hint.version}, but there is a checkpoint of {newest}"
        if not self._has_checkpoint(hint.version):
            return f"it names a checkpoint of version {hint.version}, which is not there"
        return None

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
