"""The reader of checkpoints of all kinds (spec 5.6, 5.8).

All kinds are read alike: top-level files (one, or the parts of a multi-part checkpoint; Parquet or
JSON), and the sidecars that they name, if any. The non-file actions are in top-level files. Adds
and removes may be in both.

A reader gives three parts separately, because they cost differently: the non-file actions, the live
files, and the tombstones, which only the writer of the next checkpoint needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import LogFileNotFoundError, OptimistError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import (
    MALFORMED_ACTION,
    MALFORMED_CHECKPOINT,
    MALFORMED_COMMIT,
    MISSING_PART_FILES,
)
from optimist.core.forking import ForkSafeLock
from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.log.chosen_adds import ChosenAdds
from optimist.core.log.column_cache import ColumnCache
from optimist.core.log.commit_lines import parse_commit_lines
from optimist.core.log.file_choice import FileChoice
from optimist.core.log.file_identity import identity_of
from optimist.core.log.file_table import FILES_SCHEMA, TOMBSTONES_SCHEMA, file_actions_batch
from optimist.core.log.limits import (
    DEFAULT_LIMITS,
    LogLimits,
    SeenFiles,
    counted,
    distinct,
    ensure_few,
    ensure_readable_size,
    unpacked,
)
from optimist.core.log.parquet_actions import (
    action_rows,
    add_batches,
    has_file_actions,
    remove_batches,
)
from optimist.core.log.sidecars import Manifest, Sidecar, sidecar_directory
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import (
    Action,
    Metadata,
    Protocol,
    UnknownAction,
    action_from_dict,
)
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.values.column_chunks import ColumnChunks

__all__ = ["CheckpointReader"]

_BatchesOf: TypeAlias = Callable[[CheckpointFile, int], Iterator[pa.RecordBatch]]

_PARALLEL_READS = 8
_STREAMED_READS = 2
"""The files that are read ahead, each as a whole, while their rows pass through memory."""
_EXPANSION = 4
"""How many times larger than in the store the files of a checkpoint are in memory, or less."""
_EXPANSION_OF_PAGES = 2
"""The same for pages that are not compressed: alike statistics may be packed to a tenth."""
_STATE_COLUMNS = ("protocol", "metaData", "txn", "domainMetadata")
_V2_COLUMNS = ("checkpointMetadata", "sidecar")
_DAMAGED_CONTENT = frozenset({MALFORMED_ACTION, MALFORMED_COMMIT})


class CheckpointReader:
    """A reader of one checkpoint, which keeps its top level. Threads may share it.

    Every method raises `TableError` of kind `OPTIMIST_MALFORMED_CHECKPOINT` for a damaged file, and
    of kind `DELTA_MISSING_PART_FILES` for a missing sidecar.

    Args:
        store: The store of the log.
        version: The version in the checkpoint's name.
        files: The top-level files, as listed.
        limits: The most that is read of it.
    """

    def __init__(
        self,
        store: LogStore,
        version: int,
        files: Sequence[FileStatus],
        limits: LogLimits = DEFAULT_LIMITS,
    ) -> None:
        self._store = store
        self._version = version
        self._files = {status.path: status for status in files}
        self._limits = limits
        self._lock = ForkSafeLock()
        self._combine_tops: _Content | None = None
        self._footers: dict[str, tuple[ColumnChunks, Hashable]] = {}
        self._cache = ColumnCache(limits.cache_bytes)

    def sidecars(self) -> tuple[Sidecar, ...]:
        """Return the sidecars that the top level names (none unless it is a V2 checkpoint)."""
        return self._top_level().sidecars

    def manifest(self) -> Manifest | None:
        """Return the top level's description of its sidecars, or None if it holds file actions."""
        content = self._top_level()
        if any(top.has_files for top in content.tops):
            return None
        tags = {str(key): str(value) for key, value in content.tags.items()}
        return Manifest(content.sidecars, tags)

    def state_actions(self) -> tuple[Action, ...]:
        """Return protocol, metadata, application transactions and domain metadata."""
        return tuple(action for top in self._top_level().tops for action in top.actions)

    def live_files(self, *, is_streamed: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the live files as batches of `FILES_SCHEMA`.

        Args:
            is_streamed: Whether the caller keeps no batch. Then little is read ahead.
        """
        expected = self._top_level().num_adds
        found = 0
        with _explaining_errors(self._first_path):
            batches = self._file_actions(
                add_batches, FILES_SCHEMA, is_add=True, is_streamed=is_streamed
            )
            for batch in distinct(batches, self._limits):
                found += batch.num_rows
                if expected is not None and found > expected:
                    break
                yield batch
        self._ensure_complete(found)

    def ensure_whole(self) -> None:
        """Read every row of the state, and keep none. Only that shows a page that was damaged."""
        for batches in (self.live_files(), self.tombstones()):
            for _ in batches:
                pass

    def is_small(self) -> bool:
        """Return whether the files may stay in memory as a whole, by the size of the checkpoint."""
        content = self._top_level()
        stored = sum(status.size_bytes for status in self._files.values())
        stored += sum(sidecar.size_bytes for sidecar in content.sidecars)
        pages = sum(chunks.unpacked_bytes for chunks, _ in self._footers.values())
        needed = max(stored * _EXPANSION, pages * _EXPANSION_OF_PAGES)
        return needed <= self._limits.cache_bytes

    def chosen_files(self, choice: FileChoice) -> Iterator[pa.RecordBatch]:
        """Yield the files that a choice wants, and read no more of the others than it needs."""
        seen = SeenFiles(self._limits)
        for batch in self._chosen_files(choice):
            with _explaining_errors(self._first_path):
                seen.ensure_new(batch)
            yield batch

    def _chosen_files(self, choice: FileChoice) -> Iterator[pa.RecordBatch]:
        content = self._top_level()
        counts: list[int | None] = []
        for top in content.tops:
            if top.files is not None:
                adds = top.files.filter(top.files.column("isAdd"))
                yield choice.of(adds.select(FILES_SCHEMA.names))
                counts.append(adds.num_rows)
        yield from self._of_each_file(partial(self._chosen_adds, choice, counts))
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            self._ensure_complete(sum(known))

    def _ensure_complete(self, num_adds: int) -> None:
        """Refuse a checkpoint that holds more or fewer files than it claims."""
        expected = self._top_level().num_adds
        if expected is not None and num_adds != expected:
            actual = f"more than {expected}" if num_adds > expected else num_adds
            raise _malformed_checkpoint(
                self._first_path, f"it holds {actual} files, but claims to hold {expected}"
            )

    def _chosen_adds(
        self, choice: FileChoice, counts: list[int | None], path: str
    ) -> Iterator[pa.RecordBatch]:
        with self._opened(path) as (file, size_bytes):
            file.is_streamed = True
            chosen = ChosenAdds(
                path,
                file,
                size_bytes,
                choice=choice,
                cache=self._cache,
                explaining=partial(_explaining_errors, path),
            )
            counts.append(chosen.num_adds)
            ensure_few(max(chosen.most_adds, sum(filter(None, counts))), self._limits)
            yield from chosen.batches()

    def tombstones(self, *, is_streamed: bool = False) -> Iterator[pa.RecordBatch]:
        """Return the removed files as batches of `TOMBSTONES_SCHEMA` (see `live_files`)."""
        batches = self._file_actions(
            remove_batches, TOMBSTONES_SCHEMA, is_add=False, is_streamed=is_streamed
        )
        return counted(batches, self._limits)

    def _file_actions(
        self, read: _BatchesOf, schema: pa.Schema, *, is_add: bool, is_streamed: bool
    ) -> Iterator[pa.RecordBatch]:
        content = self._top_level()
        for top in content.tops:
            if top.files is not None:
                wanted = top.files.column("isAdd") if is_add else _not_adds(top.files)
                yield top.files.filter(wanted).select(schema.names)
        ahead = _STREAMED_READS if is_streamed else _PARALLEL_READS
        yield from self._of_each_file(partial(self._read_batches, read, is_streamed), ahead)

    def _read_batches(
        self, read: _BatchesOf, is_streamed: bool, path: str
    ) -> Iterator[pa.RecordBatch]:
        with self._open(path) as (file, size_bytes):
            file.is_streamed = is_streamed
            yield from unpacked(read(file, size_bytes), size_bytes, self._limits)

    def _of_each_file(
        self, read: Callable[[str], Iterator[pa.RecordBatch]], ahead: int = _PARALLEL_READS
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is read of each Parquet file, of several files ahead."""
        tops = [top.path for top in self._top_level().tops if top.files is None]
        paths = [*tops, *self._sidecar_paths()]
        if len(paths) == 1:
            yield from read(paths[0])
            return
        for batches in read_ahead(
            lambda path: tuple(read(path)), paths, threads=ahead, ahead=ahead
        ):
            yield from batches

    def _sidecar_paths(self) -> list[str]:
        directory = sidecar_directory(self._first_path.rpartition("/")[0])
        return [join(directory, item.file_name) for item in self.sidecars()]

    @property
    def _first_path(self) -> str:
        return next(iter(self._files))

    def _top_level(self) -> _Content:
        with self._lock:
            if self._combine_tops is None:
                self._combine_tops = self._read_top_level()
            return self._combine_tops

    def _read_top_level(self) -> _Content:
        if len(self._files) == 1:
            tops = [self._read_top(self._first_path)]
        else:
            tops = list(
                read_ahead(
                    self._read_top, self._files, threads=_PARALLEL_READS, ahead=_PARALLEL_READS
                )
            )
        try:
            return _combine_tops(self._version, tops)
        except ValueError as error:
            raise _malformed_checkpoint(self._first_path, str(error)) from None

    def _read_top(self, path: str) -> _Top:
        if path.endswith(".json"):
            return self._read_json(path)
        with self._open(path) as (file, size_bytes):
            actions = tuple(
                action_from_dict({column: row})
                for column in (*_STATE_COLUMNS, *_V2_COLUMNS)
                for row in action_rows(file, size_bytes, column)
            )
            return _Top(path, actions, has_files=has_file_actions(file))

    def _read_json(self, path: str) -> _Top:
        ensure_readable_size(self._files[path], self._limits)
        data = self._store.read_bytes(path)
        with _explaining_errors(path):
            lines = parse_commit_lines(data, path)
            files = file_actions_batch(lines.file_actions)
            return _Top(path, lines.actions, files=files, has_files=files.num_rows > 0)

    @contextmanager
    def _open(self, path: str) -> Iterator[tuple[CheckpointFile, int]]:
        with _explaining_errors(path), self._opened(path) as opened:
            yield opened

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[CheckpointFile, int]]:
        """Open a file, and leave the errors of whatever is done with it as they are."""
        try:
            source = self._store.open_read(path)
        except LogFileNotFoundError as error:
            if path in self._files:
                raise
            raise _missing_sidecar(path, self._version) from error
        with source:
            with _explaining_errors(path):
                size_bytes = source.seek(0, os.SEEK_END)
                file = self._same_file(path, source)
            with file:
                yield file, size_bytes

    def _same_file(self, path: str, source: BinaryIO) -> CheckpointFile:
        """Return the open file, which must be the one whose footer and columns are kept."""
        identity = identity_of(source)
        if path not in self._footers:
            self._ensure_as_listed(path, identity)
        known, first = self._footers.get(path, (None, identity))
        file = CheckpointFile(source, known if identity == first else None)
        # Several threads may open it for the first time.
        _, first = self._footers.setdefault(path, (file.chunks, identity))
        if identity != first:
            raise _replaced(path)
        return file

    def _ensure_as_listed(self, path: str, identity: Hashable) -> None:
        """Refuse a file that has replaced the listed one: the state at hand may be of that one."""
        listed = self._files.get(path)
        if listed is None or not listed.etag or not isinstance(identity, str):
            return
        if identity.strip('"') != listed.etag.strip('"'):
            # A server may spell a tag in its listings in yet another way.
            now = next(iter(self._store.list_from(path)), None)
            if now is None or not now.is_same_file(listed):
                raise _replaced(path)


@dataclass(frozen=True, slots=True)
class _Top:
    """A top-level file: its few actions, and its file actions if it is JSON."""

    path: str
    actions: tuple[Action, ...]
    files: pa.RecordBatch | None = None
    has_files: bool = False


@dataclass(frozen=True, slots=True)
class _Content:
    """The whole top level. `num_adds` is None unless the checkpoint states it."""

    tops: tuple[_Top, ...]
    sidecars: tuple[Sidecar, ...]
    tags: Mapping[str, object]
    num_adds: int | None


def _combine_tops(version: int, tops: Sequence[_Top]) -> _Content:
    """Combine the top-level files, or raise ValueError if they lack or contradict something."""
    actions = [action for top in tops for action in top.actions]
    for cls in (Protocol, Metadata):
        if not any(isinstance(action, cls) for action in actions):
            raise ValueError(f"it has no {cls.KEY}")
    sidecars: dict[str, Sidecar] = {}
    tags: Mapping[str, object] = {}
    for action in actions:
        if isinstance(action, UnknownAction) and action.key == "sidecar":
            sidecar = Sidecar.of(action.body)
            sidecars[sidecar.file_name] = sidecar
        elif isinstance(action, UnknownAction) and action.key == "checkpointMetadata":
            tags = _read_tags(version, action.body)
    known = tuple(
        replace(top, actions=tuple(a for a in top.actions if not isinstance(a, UnknownAction)))
        for top in tops
    )
    num_adds = _read_num_adds(tags, has_sidecars=bool(sidecars))
    return _Content(known, tuple(sidecars.values()), tags, num_adds)


def _read_tags(version: int, body: Any) -> Mapping[str, object]:
    if not isinstance(body, Mapping) or body.get("version") != version:
        raise ValueError(f"its name says version {version}, but its content is for another version")
    tags = body.get("tags") or {}
    if not isinstance(tags, Mapping):
        raise ValueError("its tags are not a JSON object")  # noqa: TRY004 - content, not a call
    return tags


def _read_num_adds(tags: Mapping[str, object], *, has_sidecars: bool) -> int | None:
    if has_sidecars and tags.get("sidecarNumActions") == "0":
        return None  # some writers wrote a sum over other files
    number = tags.get("numOfAddFiles")
    return None if number is None else int(str(number))


def _not_adds(batch: pa.RecordBatch) -> pa.BooleanArray:
    return pc.invert(batch.column("isAdd"))


def _replaced(path: str) -> TableError:
    return TableError(
        f"Another file has replaced the checkpoint {shown(path)} since it was listed or first "
        "read. Open the table again; the new file is as good.",
        kind=MALFORMED_CHECKPOINT,
        path=path,
    )


@contextmanager
def _explaining_errors(path: str, group: int | None = None) -> Iterator[None]:
    """Turn any error that a damaged file, or a row group of it, causes into one clear error."""
    where = "" if group is None else f"row group {group}: "
    try:
        yield
    except OptimistError as error:
        if error.kind not in _DAMAGED_CONTENT:
            raise
        raise _malformed_checkpoint(path, where + str(error.args[0])) from error
    except (
        pa.ArrowException,
        OSError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        # pyarrow reports a damaged file by any of these, most of them builtin errors.
        raise _malformed_checkpoint(path, where + str(error)) from error


def _malformed_checkpoint(path: str, reason: str) -> TableError:
    return TableError(
        f"The checkpoint {shown(path)} can't be read: {shown(reason).rstrip('.')}. Delete it if "
        "the commits before it are still there, or restore it from a backup.",
        kind=MALFORMED_CHECKPOINT,
        path=path,
    )


def _missing_sidecar(path: str, version: int) -> TableError:
    return TableError(
        f"The checkpoint of version {version} names the sidecar {shown(path)}, which does not "
        "exist. The sidecar was deleted. Restore it from a backup, or restore the commits since an "
        "older checkpoint.",
        kind=MISSING_PART_FILES,
        path=path,
        version=version,
    )
