"""A log whose versions an arbiter assigns (spec 4.1 to 4.8).

*Assumes* an arbiter that all writers of a table ask, under the one name of the table's location
(see `table_place`), and a store that shows written files at once.

*Provides* two fences. The arbiter's entry decides who owns version N. And the store's own
`put_if_absent` creates the file N.json, so that a writer which does not ask the arbiter is not
overwritten: we find its file, and our commit reports a conflict. Any reader or writer finishes a
commit that another has left unfinished.

*Does not provide* the second fence on a store that cannot create exclusively. There the arbiter is
the only fence, as in Delta's own store, and a writer that does not ask it breaks exclusion.

*Excludes* the writers that ask the same arbiter, and those that the store excludes.

A commit's state has three parts: the staged bytes T(N), the arbiter's entry E(N), and N.json.

| crash | what exists | finished by |
|---|---|---|
| before the entry | T(N), without owner | a lifecycle rule on `_delta_log/.tmp/` |
| after it, before the copy | E(N) incomplete, no N.json | the next listing, or the writer of N+1 |
| after the copy | N.json, E(N) incomplete | likewise; only the mark is missing |

No lock is held in this process: a protocol that is safe between processes is safe between threads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from optimist.core.errors import (
    ConfigError,
    LogFileNotFoundError,
    OptimistError,
    StorageError,
)
from optimist.core.forking import ForkSafeLock
from optimist.core.log.commits import read_commit_info
from optimist.core.log.names import commit_name, parse_log_file_name
from optimist.core.paths import LOG_DIRECTORY, join, name_of, parent_of
from optimist.core.plugins.arbiter import Arbiter, CommitEntry, damaged_entry
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import NO_ATOMIC_CREATE, FileStatus, LogStore, PutOutcome
from optimist.core.plugins.table_place import other_spellings, place_of
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.runtime.retry import Patience
from optimist.logstores.shared.arbiter_errors import (
    given_back,
    no_answer,
    predecessor_missing,
    staged_commit_lost,
    stale_entry,
)
from optimist.logstores.shared.arbiter_spelling import SpellingCheck, spelled_otherwise
from optimist.logstores.shared.overwritten_commits import is_commit

__all__ = ["ExternalArbiterLogStore"]

_Result = TypeVar("_Result")

_LOG = logging.getLogger(__name__)

_STAGING = ".tmp"
_CLAIM = Patience(max_tries=3)
_PUBLISH = Patience(max_tries=4)
_FIX = Patience(max_tries=4)
"""Four tries in total, as Delta's own recovery makes."""
_MAX_REPORTED = 1_000


@dataclass(frozen=True, slots=True)
class _LogFile:
    """One file of a log, as the arbiter and the store name it."""

    path: str
    table_path: str

    @property
    def log_path(self) -> str:
        return parent_of(self.path)

    @property
    def file_name(self) -> str:
        return name_of(self.path)

    @property
    def version(self) -> int | None:
        """The version of a commit file, or None for any other file."""
        parsed = parse_log_file_name(self.file_name)
        return parsed.version if parsed is not None and is_commit(self.file_name) else None


class ExternalArbiterLogStore(LogStore):
    """Any store, with an arbiter that decides who owns a version.

    Args:
        options: Kept as `options`; this class itself has none.
        store: Keeps the files.
        arbiter: Keeps the entries.
        clock: Paces retries, names staged files, and decides when entries may expire.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        store: LogStore,
        arbiter: Arbiter,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(options)
        self._store = store
        self._arbiter = arbiter
        self._clock: Clock = clock or SystemClock()
        self._lock = ForkSafeLock()
        self._reported: set[str] = set()
        self._spelling = SpellingCheck(arbiter)

    def table_path(self, path: str) -> str:
        """Return the path of a log file's table, as the arbiter's entries spell it."""
        return place_of(parent_of(parent_of(path)), self._store)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        A commit follows the algorithm of spec 4.4:

        0. If N.json exists, the answer is `EXISTS`.
        1. Ensure that N-1 is finished: its entry is complete, or is completed now, and its file
           exists. For N = 0, ensure that no complete entry is left from a deleted table.
        2. Stage the bytes as T(N), then create E(N): its creator owns the version. **The commit can
           no longer be taken back**, so from here on nothing is raised: an error is `UNKNOWN`.
        3. Create N.json, exclusively, with the staged bytes. If it exists already and is not ours,
           a writer that does not ask the arbiter has won: `EXISTS`.
        4. Mark E(N) complete. If that fails, the next listing or the writer of N+1 does it.

        Other files (checksums, checkpoints) go to the store directly if it creates exclusively.
        Before the first commit to a table, we look for entries under other spellings of its path.

        Raises:
            ConfigError: As the store's own `put_if_absent`; or such entries exist (kind
                `OPTIMIST_ARBITER_PATH_MISMATCH`).
            StorageError: Nothing was committed. Kinds of its own:
                `OPTIMIST_PREDECESSOR_MISSING`, `OPTIMIST_STALE_ARBITER_ENTRY`,
                `OPTIMIST_STAGED_COMMIT_LOST`.
        """
        log_file = _LogFile(path, self.table_path(path))
        if log_file.version is None:
            outcome = self._put_directly(path, data)
            if outcome is not None:
                return outcome
        self._ensure_spelled_alike(log_file)
        if self._is_taken(log_file):
            return PutOutcome.EXISTS
        entry = self._stage(log_file, data)
        claimed = self._claim(entry)
        if claimed is PutOutcome.CREATED:
            return self._publish(log_file, entry, data)
        if claimed is PutOutcome.EXISTS:
            self._ensure_winner_is_there(log_file)
        return claimed

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`.

        Only commits use the arbiter.

        Raises:
            ConfigError, StorageError: As `put_if_absent`.
        """
        if _LogFile(path, self.table_path(path)).version is None:
            try:
                return self._store.put_file_if_absent(path, file)
            except ConfigError as error:
                if error.kind != NO_ATOMIC_CREATE:
                    raise
        return super().put_file_if_absent(path, file)

    def fix_delta_log(self, entry: CommitEntry, log_path: str) -> None:
        """Finish a commit that its writer left unfinished (spec 4.5).

        Many callers may do so at once.

        1. If N.json is absent, create it exclusively with the staged bytes. If the staged bytes are
           gone but N.json exists by now, another writer has moved them, and the commit is complete.
        2. Mark the entry complete.

        Raises:
            StorageError: Four tries did not finish it, or the staged bytes are gone (kind
                `OPTIMIST_STAGED_COMMIT_LOST`).
        """
        if entry.complete:
            return
        is_copied = False
        failure: StorageError | None = None
        for _ in _FIX.tries(self._clock):
            try:
                if not is_copied:
                    self._copy_staged(entry, log_path)
                is_copied = True
                self._arbiter.complete(self._complete_entry(entry))
            except StorageError as error:
                failure = error
            else:
                _LOG.info(
                    "Finished the commit %s, which another writer had left unfinished.",
                    entry.file_name,
                )
                return
        if failure is not None and not is_copied:
            raise failure
        # The file exists, and only the mark is missing. The next listing or writer tries again.
        _LOG.warning(
            "The commit %s is in the table, but its entry could not be marked complete: %s",
            entry.file_name,
            failure,
        )

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`.

        The arbiter is not asked.
        """
        self._store.put_overwrite(path, data)

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`.

        A commit with an entry but no file is finished first.
        """
        return self._finish_and_read(path, self._store.read_bytes)

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read` and `read_bytes`."""
        return self._finish_and_read(path, self._store.open_read)

    def is_as_created(self, listed: FileStatus) -> bool:
        """See `LogStore.is_as_created`.

        The inner store has created N.json.
        """
        return self._store.is_as_created(listed)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        The newest commit of a log is finished first (spec 4.6).

        Only the newest entry is read: step 1 of `put_if_absent` finished the entries before it.

        Raises:
            StorageError: Also if the arbiter does not answer, or the newest commit can't be
                finished.
        """
        log_path = path.rpartition("/")[0]
        if name_of(log_path) != LOG_DIRECTORY:
            return self._store.list_from(path)
        latest = self._arbiter.latest(self.table_path(path))
        if latest is not None and not latest.complete:
            _ensure_of_log(latest)
            self.fix_delta_log(latest, log_path)
        return self._report_unarbitrated(self._store.list_from(path), latest)

    def newest_claimed(self, log_path: str) -> str | None:
        """See `LogStore.newest_claimed`."""
        latest = self._arbiter.latest(self.table_path(join(log_path, commit_name(0))))
        return latest.file_name if latest is not None and latest.complete else None

    def delete(self, path: str) -> None:
        """See `LogStore.delete`.

        The entry stays until it expires.
        """
        self._store.delete(path)

    def is_partial_write_visible(self, path: str) -> bool:
        """Return the store's answer."""
        return self._store.is_partial_write_visible(path)

    def ensure_directory(self, path: str) -> None:
        """See `LogStore.ensure_directory`."""
        self._store.ensure_directory(path)

    def resolve_path(self, path: str) -> str:
        """Return the store's answer."""
        return self._store.resolve_path(path)

    def data_origin(self, path: str) -> DataOrigin:
        """See `LogStore.data_origin`."""
        return self._store.data_origin(path)

    def data_access(self, path: str) -> DataAccess | None:
        """See `LogStore.data_access`."""
        return self._store.data_access(path)

    def list_below(self, directory: str) -> Iterator[FileStatus]:
        """See `LogStore.list_below`."""
        return self._store.list_below(directory)

    def list_names(self, directory: str) -> Iterator[str]:
        """See `LogStore.list_names`."""
        return self._store.list_names(directory)

    def delete_data_files(self, paths: Sequence[str]) -> None:
        """See `LogStore.delete_data_files`."""
        self._store.delete_data_files(paths)

    def service_time_ms(self, path: str) -> int | None:
        """See `LogStore.service_time_ms`."""
        return self._store.service_time_ms(path)

    def abort_uploads(self, directory: str) -> None:
        """See `LogStore.abort_uploads`."""
        self._store.abort_uploads(directory)

    def describe(self) -> Mapping[str, str]:
        """Return the descriptions of the store and the arbiter."""
        inner, arbiter = self._store.describe(), self._arbiter.describe()
        fence = inner.get("one writer wins by", "the store's put_if_absent")
        return {
            **inner,
            **{f"arbiter's {key}": value for key, value in arbiter.items() if key != "arbiter"},
            **super().describe(),
            "arbiter": arbiter["arbiter"],
            "files kept by": inner["store"],
            "one writer wins by": f"an entry of the arbiter, and then {fence}",
            "excludes": "writers that ask the same arbiter; of others: "
            + inner.get("excludes", ""),
        }

    # The name of the table

    def _ensure_spelled_alike(self, log_file: _LogFile) -> None:
        if self._spelling.is_done(log_file.table_path):
            return
        table = parent_of(log_file.log_path)
        spellings = other_spellings(table, self._store, name=log_file.table_path)
        other = self._spelling.find_other(log_file.table_path, spellings)
        if other is None:
            return
        if not other.complete:
            # Its writer may still need it, and our advice makes users delete its entry.
            _ensure_of_log(other)
            self.fix_delta_log(other, log_file.log_path)
        hint = self.spelling_hint(other.table_path)
        raise spelled_otherwise(log_file.table_path, other.table_path, hint=hint)

    def spelling_hint(self, other_path: str) -> str:  # noqa: ARG002 - for stores with an option
        """Return the option that names tables as in another path, or an empty text."""
        return ""

    # Steps 0 and 1

    def _is_taken(self, log_file: _LogFile) -> bool:
        """Finish and check the log before N.json, and then check whether N.json exists.

        Entries are read before files: if an entry is complete, its file existed before that.
        """
        version = log_file.version
        if version:
            return self._is_taken_after(log_file, commit_name(version - 1))
        # Version 0, or a file that is not a commit, has no predecessor.
        entry = self._arbiter.get(log_file.table_path, log_file.file_name)
        if self._exists(log_file.path):
            return True
        if entry is not None and entry.complete:
            raise stale_entry(log_file.path, log_file.table_path)
        return False

    def _is_taken_after(self, log_file: _LogFile, previous: str) -> bool:
        entry = self._arbiter.get(log_file.table_path, previous)
        if entry is not None and not entry.complete:
            self.fix_delta_log(entry, log_file.log_path)
        names = self._list_names_until(join(log_file.log_path, previous), until=log_file.file_name)
        if log_file.file_name in names:
            return True
        if previous not in names:
            raise predecessor_missing(log_file.path, previous, is_known=entry is not None)
        return False

    # Step 2

    def _stage(self, log_file: _LogFile, data: bytes) -> CommitEntry:
        # The name is fresh, so the staged bytes of two writers never mix.
        staged = f"{_STAGING}/{log_file.file_name}.{self._clock.new_uuid()}"
        self._store.ensure_directory(join(log_file.log_path, _STAGING))
        self._store.put_overwrite(join(log_file.log_path, staged), data)
        return CommitEntry(log_file.table_path, log_file.file_name, staged, complete=False)

    def _claim(self, entry: CommitEntry) -> PutOutcome:
        """Create the entry, and repeat without an answer.

        An entry with our `temp_path` counts as `CREATED`.
        """
        outcome = PutOutcome.EXISTS
        is_open = False
        for _ in _CLAIM.tries(self._clock):
            try:
                outcome = self._arbiter.create(entry)
            except OptimistError as error:
                if not is_open:
                    raise
                _LOG.warning(
                    "It is not known whether the entry of %s was created: %s",
                    entry.file_name,
                    error,
                )
                return PutOutcome.UNKNOWN
            if outcome is not PutOutcome.UNKNOWN:
                break
            is_open = True
        return outcome

    def _ensure_winner_is_there(self, log_file: _LogFile) -> None:
        """Ensure that the winner's file exists, so that the engine can read it."""
        winner = self._arbiter.get(log_file.table_path, log_file.file_name)
        if winner is not None and not winner.complete:
            self.fix_delta_log(winner, log_file.log_path)
        elif not self._exists(log_file.path):
            raise (
                stale_entry(log_file.path, log_file.table_path)
                if winner is not None
                else given_back(log_file.path, log_file.table_path)
            )

    # Steps 3 and 4

    def _publish(self, log_file: _LogFile, entry: CommitEntry, data: bytes) -> PutOutcome:
        try:
            is_ours = self._create_with_our_bytes(log_file.path, data)
        except OptimistError as error:
            # The entry is ours, so the next listing or writer finishes the commit. We must not
            # report that nothing was written.
            _LOG.warning(
                "The commit %s has its entry, but not its file yet: %s", log_file.path, error
            )
            return PutOutcome.UNKNOWN
        try:
            if not is_ours:
                # No recovery may copy our staged bytes over the other writer's file. It is safe to
                # delete them, since N.json exists.
                self._store.delete(join(log_file.log_path, entry.temp_path))
            self._arbiter.complete(self._complete_entry(entry))
        except OptimistError as error:
            _LOG.warning(
                "The entry of %s is left for the next writer to complete: %s", log_file.path, error
            )
        if is_ours:
            return PutOutcome.CREATED
        _LOG.error(
            "%s was written by a writer that did not ask the arbiter, although the version was "
            "ours. Its file is left as it is, and our commit tries the next version. Set all "
            "writers of the table to the same arbiter.",
            log_file.path,
        )
        return PutOutcome.EXISTS

    def _create_with_our_bytes(self, path: str, data: bytes) -> bool:
        """Create the file, and return True if it then holds our bytes, whoever wrote them."""
        for _ in _PUBLISH.tries(self._clock):
            if self._create_file(path, data) is PutOutcome.CREATED:
                return True
            try:
                return self._store.read_bytes(path) == data
            except LogFileNotFoundError:
                continue  # no answer, and no file: try again
        raise no_answer(path)

    def _complete_entry(self, entry: CommitEntry) -> CommitEntry:
        return entry.completed(self._clock.now_ms() // 1000 + self._arbiter.entry_ttl_s)

    # Recovery

    def _copy_staged(self, entry: CommitEntry, log_path: str) -> None:
        target = join(log_path, entry.file_name)
        if self._exists(target):
            return
        try:
            data = self._store.read_bytes(join(log_path, entry.temp_path))
        except LogFileNotFoundError:
            # Meanwhile, another writer may have finished the commit and moved its bytes.
            if self._exists(target):
                return
            raise staged_commit_lost(entry, target) from None
        if self._create_file(target, data) is PutOutcome.UNKNOWN and not self._exists(target):
            raise no_answer(target)

    def _finish_and_read(self, path: str, read: Callable[[str], _Result]) -> _Result:
        try:
            return read(path)
        except LogFileNotFoundError:
            if not is_commit(name_of(path)):
                raise
        entry = self._arbiter.get(self.table_path(path), name_of(path))
        if entry is not None:
            self.fix_delta_log(entry, parent_of(path))
        return read(path)

    # Files

    def _put_directly(self, path: str, data: bytes) -> PutOutcome | None:
        """Create a file by the store alone, or return None if only the arbiter excludes others."""
        try:
            return self._store.put_if_absent(path, data)
        except ConfigError as error:
            if error.kind != NO_ATOMIC_CREATE:
                raise
            return None

    def _create_file(self, path: str, data: bytes) -> PutOutcome:
        """Create N.json, through the second fence if the store has one."""
        outcome = self._put_directly(path, data)
        if outcome is not None:
            return outcome
        # First check, then write. Among the writers that ask the arbiter, only the version's owner
        # and those who finish its commit come here, all with the same bytes.
        _LOG.warning(
            "%s: the store can't create exclusively; only the arbiter excludes other writers.",
            path,
        )
        if self._exists(path):
            return PutOutcome.EXISTS
        self._store.put_overwrite(path, data)
        return PutOutcome.CREATED

    def _exists(self, path: str) -> bool:
        return name_of(path) in self._list_names_until(path, until=name_of(path))

    def _list_names_until(self, path: str, *, until: str) -> set[str]:
        """Return the names in a path's directory from its own name to `until`, both included."""
        found: set[str] = set()
        try:
            for status in self._store.list_from(path):
                if status.name > until:
                    break
                found.add(status.name)
        except LogFileNotFoundError:
            return set()
        return found

    # Commits made without asking the arbiter

    def _report_unarbitrated(
        self, listing: Iterator[FileStatus], latest: CommitEntry | None
    ) -> Iterator[FileStatus]:
        newest: FileStatus | None = None
        for status in listing:
            if is_commit(status.name):
                newest = status
            yield status
        if latest is not None and newest is not None and newest.name > latest.file_name:
            self._warn_of_unarbitrated(newest, latest.table_path)

    def _warn_of_unarbitrated(self, commit: FileStatus, table_path: str) -> None:
        """Warn once about a commit that is newer than the newest entry and has no entry itself."""
        with self._lock:
            if commit.path in self._reported or len(self._reported) >= _MAX_REPORTED:
                return
        if self._arbiter.get(table_path, commit.name) is not None:
            return  # its entry was created during the listing
        with self._lock:
            self._reported.add(commit.path)
        try:
            info = read_commit_info(self._store, commit.path)
        except OptimistError:
            info = None
        _LOG.warning(
            "%s was committed by %s, which did not ask the arbiter. Such writers can overwrite "
            "commits, and theirs can be overwritten: set all writers of the table to one arbiter.",
            commit.path,
            (info.engine_info if info is not None else None) or "an engine that gives no name",
        )


def _ensure_of_log(entry: CommitEntry) -> None:
    if parse_log_file_name(entry.file_name) is None:
        fault = "no file of a log has such a name"
        raise damaged_entry(entry.table_path, entry.file_name, fault)
