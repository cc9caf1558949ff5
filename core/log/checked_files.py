"""The live files of a version and its checksum, which must agree (spec 5.9)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TypeVar

import pyarrow as pa

from optimist.core.errors import LogFileNotFoundError, OptimistError, StorageError, TableError
from optimist.core.forking import ForkSafeLock
from optimist.core.log.checksum import (
    VersionChecksum,
    checksum_of_files,
    read_checksum,
)
from optimist.core.log.commits import read_commit_info
from optimist.core.log.file_choice import FileChoice, Use
from optimist.core.log.file_sizes import ensure_possible, total_bytes
from optimist.core.log.file_source import FileSums, sums_of
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.integrity import differences, disagreement
from optimist.core.log.limits import LogLimits
from optimist.core.log.names import checksum_name, commit_path
from optimist.core.log.replay import UNREADABLE_CHECKPOINT, LogState, replay
from optimist.core.log.segment import LogSegment, is_listed, list_segment
from optimist.core.options.engine import EngineOptions
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.engine_name import is_own_engine
from optimist.core.secrets import without_secrets

__all__ = ["CheckedFiles"]

_LOG = logging.getLogger(__name__)
_Part = TypeVar("_Part")
_FOR_SUMS = FileChoice(
    schema=pa.schema([FILES_SCHEMA.field(name) for name in ("path", "size", "deletionVector")])
)


class CheckedFiles:
    """The live files of one version, compared once with its checksum when they are read.

    A checksum that this engine derived may be wrong without harm: a wrong checksum beside one of
    its own commits is dropped, and the commits decide. A wrong checksum of another engine stops
    callers that write on top of the files. Nothing is read before somebody asks. Threads may share
    it.

    Args:
        state: The state of the version.
        segment: The files of the log that make up the version, or None without a table.
        store: The store of the log. None if no table was ever read.
        options: Whether a disagreement is an error, and the largest checksum that is read.
        checksum: The version's checksum, if it was derived from the one before.
        expects_checksum: Whether to read the checksum's file even though no listing showed it.
    """

    def __init__(
        self,
        state: LogState,
        segment: LogSegment | None,
        *,
        store: LogStore | None,
        options: EngineOptions,
        checksum: VersionChecksum | None = None,
        expects_checksum: bool = False,
    ) -> None:
        self._state = state
        self._segment = segment
        self._store = store
        self._options = options
        self._checksum = checksum
        self._expects_checksum = expects_checksum
        self._is_refuted = False
        self._disagreement: TableError | None = None
        self._table: pa.Table | None = None
        self._sums: FileSums | None = None
        self._lock = ForkSafeLock()

    def table(self) -> pa.Table:
        """Return the files, one row each, columns of `FILES_SCHEMA`, and keep them.

        Raises:
            TableError: The checkpoint is damaged and no older one helps. Or the files disagree with
                the checksum (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`) and
                `checksum.mismatchFatalForReads` is set.
        """
        with self._lock:
            if self._table is None:
                files = self.read(lambda state: state.files.table())
                self._compare_as_read(files.num_rows, total_bytes(files.column("size")))
                self._table = files
            return self._table

    def whole(self) -> pa.Table | None:
        """Return all files if they are in memory, or so few that they may stay there, else None.

        Raises:
            TableError: As `table`.
        """
        with self._lock:
            is_small = self._table is not None or self.read(
                lambda state: state.files.fits_in_memory
            )
            return self.table() if is_small else None

    def read_chosen(self, choice: FileChoice, use: Use[_Part]) -> _Part:
        """Return what `use` makes of the chosen files, read without the others.

        The files are not compared with the checksum, which is a sum over all of them.

        Raises:
            TableError, LogFileNotFoundError: The checkpoint is damaged and no other one helps.
        """
        return self.read(lambda state: state.files.read(choice, use))

    def sums(self) -> FileSums:
        """Return the number of files and the sum of their sizes, without keeping many files.

        Raises:
            TableError: As `table`.
        """
        with self._lock:
            whole = self.whole()
            if whole is not None:
                return sums_of(whole.to_batches())
            if self._sums is None:
                found = self.read_chosen(_FOR_SUMS, sums_of)
                ensure_possible(found.size_bytes)
                self._compare_as_read(*found)
                self._sums = found
            return self._sums

    @property
    def known_table(self) -> pa.Table | None:
        """The files if they are in memory, and None if they would have to be read."""
        if self._table is None and self._state.files.stays_in_memory:
            return self._state.files.table()
        return self._table

    @property
    def state(self) -> LogState:
        """The state of the version."""
        return self._state

    def read(self, part: Callable[[LogState], _Part]) -> _Part:
        """Read a part of the state, from a newer checkpoint if its own is gone.

        A program may keep a version for so long that cleanup has removed its checkpoint. The
        version itself may still be in the log, made from a newer checkpoint.

        Raises:
            TableError, LogFileNotFoundError: The part can't be read, and the log no longer has the
                version.
        """
        with self._lock:
            try:
                return part(self._state)
            except LogFileNotFoundError as error:
                self._state = self._state_from_listing(error)
            except TableError as error:
                if error.kind not in UNREADABLE_CHECKPOINT:
                    raise
                self._state = self._state_from_listing(error)
            return part(self._state)

    def _state_from_listing(self, error: OptimistError) -> LogState:
        """Return the state made from the best existing checkpoint, or raise the error.

        It may have the name of our own: writers of classic checkpoints replace each other's files.
        """
        mine, store = self._segment, self._store
        if mine is None or store is None or mine.checkpoint is None:
            raise error
        found = list_segment(store, mine.log_path, version=mine.version)
        if found is None or found.checkpoint is None:
            raise error
        is_older = found.checkpoint_version < mine.checkpoint_version
        is_mine = found.checkpoint.is_same_as(mine.checkpoint)
        if is_older or is_mine or not self._is_same_log(mine, found, store):
            raise error
        _LOG.info("Version %d is made from another checkpoint: %s", mine.version, error)
        return replay(
            store,
            found,
            max_retries=self._options.snapshot_loading_max_retries,
            limits=LogLimits.of(self._options),
        )

    def _is_same_log(self, mine: LogSegment, found: LogSegment, store: LogStore) -> bool:
        one, other = mine.last_commit, found.last_commit
        if one is None or other is None or is_listed(one):
            return one is not None and other is not None and one.is_same_file(other)
        # No listing has shown our own commit yet, so compare the ids of the transactions.
        here, there = self._state.table.commit_info, read_commit_info(store, other.path)
        return here is not None and there is not None and here.txn_id == there.txn_id

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the files in batches, and neither keep nor compare files read from the store.

        Raises:
            TableError, LogFileNotFoundError: As `read`, or the checkpoint was removed or replaced
                after its first batch.
        """
        with self._lock:
            known = self._table
        if known is not None:
            return iter(known.to_batches())
        return self.read(lambda state: _begun(state.files.stream()))

    def tombstone_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the tombstones in batches, without keeping those of the store.

        Raises:
            TableError, LogFileNotFoundError: As `batches`.
        """
        return self.read(lambda state: _begun(state.tombstones.stream()))

    @property
    def expects_checksum(self) -> bool:
        """Whether the checksum's file must still be read though no listing showed it."""
        return self._expects_checksum

    @property
    def kept_checksum(self) -> VersionChecksum | None:
        """The checksum, if it was derived or read already."""
        return self._checksum

    @property
    def checksum(self) -> VersionChecksum | None:
        """The checksum of the version, if it is known without reading all files."""
        with self._lock:
            if self._checksum is None:
                self._checksum = self._known_checksum()
            return self._checksum

    def ensure_intact(self) -> None:
        """Refuse to write on top of files that disagree with another engine's checksum.

        Raises:
            TableError: They disagree (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`), and
                `checksum.mismatch.fatal` is not switched off.
        """
        with self._lock:
            if self._disagreement and self._options.checksum_mismatch_fatal:
                # The error is kept, and each raise would lengthen its traceback.
                raise self._disagreement.with_traceback(None)

    def ensure_agrees(self, *, num_files: int, size_bytes: int) -> None:
        """Compare the checksum, if any, with the counts of a caller that streamed the files.

        Raises:
            TableError: As `ensure_intact`.
        """
        with self._lock:
            noted = self.checksum
            if self._segment and noted:
                self._compare(self._segment, noted, num_files=num_files, size_bytes=size_bytes)
        self.ensure_intact()

    def _compare_as_read(self, num_files: int, size_bytes: int) -> None:
        """Compare the files that were read with the checksum, if the listing showed one."""
        segment = self._segment
        if segment is None or segment.checksum_file is None:
            return
        noted = self._checksum or self._read_checksum()
        if noted is None:
            return
        wrong = self._compare(segment, noted, num_files=num_files, size_bytes=size_bytes)
        if not wrong:
            self._checksum = noted
        elif self._options.checksum_mismatch_fatal_for_reads:
            raise disagreement(wrong, segment.log_path, segment.version)

    def _compare(
        self, segment: LogSegment, noted: VersionChecksum, *, num_files: int, size_bytes: int
    ) -> str:
        """Drop a wrong checksum, return the difference, and note whether it must stop writers."""
        state = self._state.table
        wrong = differences(noted, state, num_files=num_files, size_bytes=size_bytes)
        if not wrong:
            return wrong
        self._checksum, self._is_refuted = None, True
        if self._is_own_commit(segment):
            path = without_secrets(join(segment.log_path, checksum_name(segment.version)))
            _LOG.warning("The version checksum %s is wrong and is ignored: %s", path, wrong)
        else:
            self._disagreement = disagreement(wrong, segment.log_path, segment.version)
            _LOG.warning("%s", self._disagreement)
        return wrong

    def _is_own_commit(self, segment: LogSegment) -> bool:
        """Return whether this engine made the version, and so derived its checksum."""
        info = self._state.table.commit_info
        if info is None and self._store is not None:  # a checkpoint replaces the commit
            try:
                path = commit_path(segment.log_path, segment.version)
                info = read_commit_info(self._store, path)
            except (StorageError, TableError):
                return False
        return info is not None and is_own_engine(info.engine_info)

    def _known_checksum(self) -> VersionChecksum | None:
        if self._segment is None:
            return None
        found = None
        may_exist = self._segment.checksum_file is not None or self._expects_checksum
        if may_exist and not self._is_refuted:
            found = self._read_checksum()
        self._expects_checksum = False
        if found is None and self._state.files.is_resolved:
            found = checksum_of_files(self.table(), state=self._state.table, options=self._options)
        return found

    def _read_checksum(self) -> VersionChecksum | None:
        if self._segment is None or self._store is None:
            return None
        status = self._segment.checksum_file
        if status is not None and status.size_bytes > self._options.log_max_file_bytes:
            return None
        info = self._state.table.commit_info
        txn_id = info.txn_id if info else None
        return read_checksum(
            self._store, self._segment.log_path, self._segment.version, txn_id=txn_id
        )


def _begun(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the first batch at once, so that a checkpoint that is gone or replaced is seen now."""
    return chain(list(islice(batches, 1)), batches)
