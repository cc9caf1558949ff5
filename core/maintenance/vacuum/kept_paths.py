"""The files that VACUUM must keep for versions within the retention period (spec 10.12).

These are the live files, the removed files whose retention has not ended, and the deletion vector
files of both. They are Arrow columns of paths relative to the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import DataPaths, split_at_last_slash
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.errors.system_causes import NO_SUCH_FILE
from optimist.core.log.file_table import canonical_paths
from optimist.core.log.replay import UNREADABLE_CHECKPOINT
from optimist.core.maintenance.vector_files import vector_paths
from optimist.core.paths import name_of, strip_file_scheme, without_dots
from optimist.core.snapshot import Snapshot

__all__ = ["KeptPaths", "path_below", "read_streamed", "relative_paths", "relative_vector_paths"]

_Result = TypeVar("_Result")

_AT_A_TIME = 1 << 20
_DOUBLED = r"//+"
_NUL = "\0"
_ODD = r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.\.?(/|$)"


class KeptPaths:
    """The paths that VACUUM must not delete, for one version of the table.

    Args:
        snapshot: The newest version.
        delete_before_ms: Files that were removed at this time or later are kept.
        others: Other versions, whose live files are kept.

    Raises:
        TableError: The log is damaged, or the files do not agree with the version's checksum.
    """

    def __init__(
        self, snapshot: Snapshot, delete_before_ms: int, others: Sequence[Snapshot] = ()
    ) -> None:
        self.version = snapshot.version
        self._chunks = read_streamed(
            snapshot, lambda: list(_collect_kept(snapshot, delete_before_ms))
        )
        for other in others:
            self._chunks += read_streamed(other, partial(_live_paths, other))

    def are_kept(self, paths: pa.Array) -> pa.Array:
        """Tell which of these relative paths are kept."""
        wanted = _one_slash(paths)
        kept = pa.array([False] * len(wanted), pa.bool_())
        for chunk in self._chunks:
            kept = pc.or_(kept, pc.is_in(wanted, value_set=chunk))
        return kept


def read_streamed(snapshot: Snapshot, read: Callable[[], _Result]) -> _Result:
    """Return what a function reads of a version's files batch by batch.

    If the checkpoint turns out to be damaged or gone, they are read into memory, from what may
    replace it, and the function is called again.

    Args:
        snapshot: The version.
        read: Reads `iter_files` and `iter_tombstones`, and keeps nothing after an error.

    Raises:
        TableError, LogFileNotFoundError: The checkpoint is damaged or gone, and nothing replaces
            it.
    """
    try:
        return read()
    except LogFileNotFoundError:
        pass
    except TableError as error:
        if error.kind not in UNREADABLE_CHECKPOINT:
            raise
    _ = snapshot.files, snapshot.tombstones  # kept in memory from now on
    return read()


def relative_paths(references: pa.Array, paths: DataPaths) -> pa.Array:
    """Return the log's paths relative to the table, and null for files outside it.

    No file is opened. A path that names a file of the table in another way, as by a URL or through
    symbolic links, is resolved to that file.
    """
    decoded = canonical_paths(references)
    is_odd = pc.match_substring_regex(decoded, _ODD)
    if pc.any(is_odd, min_count=0).as_py():
        odd = [path_below(each, paths) for each in decoded.filter(is_odd).to_pylist()]
        decoded = pc.replace_with_mask(decoded, is_odd, pa.array(odd, pa.string()))
    decoded = _one_slash(decoded)
    return _resolve_folders(decoded, paths) if paths.origin.is_local else decoded


def relative_vector_paths(files: pa.Table, paths: DataPaths) -> pa.Array:
    """Return the relative paths of the data files' vector files, each once."""
    below = (path_below(full, paths) for full in vector_paths(files, paths).to_pylist())
    return pa.array([path for path in below if path], pa.string())


def _live_paths(snapshot: Snapshot) -> list[pa.Array]:
    return [
        chunk
        for batch in snapshot.iter_files(_AT_A_TIME)
        for chunk in _paths_of_batch(batch, snapshot.data_paths)
    ]


def _collect_kept(snapshot: Snapshot, delete_before_ms: int) -> Iterator[pa.Array]:
    paths, num_files, size_bytes = snapshot.data_paths, 0, 0
    for batch in snapshot.iter_files(_AT_A_TIME):
        num_files += batch.num_rows
        size_bytes += pc.sum(batch.column("size"), min_count=0).as_py()
        yield from _paths_of_batch(batch, paths)
    snapshot.ensure_agrees(num_files=num_files, size_bytes=size_bytes)
    is_recent = pc.greater_equal(
        pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0)), delete_before_ms
    )
    # The hours of a caller may be more than the property, after which removed files expire.
    for batch in snapshot.iter_tombstones(_AT_A_TIME, since_ms=delete_before_ms):
        yield from _paths_of_batch(batch.filter(is_recent), paths)


def _paths_of_batch(batch: pa.RecordBatch, paths: DataPaths) -> Iterator[pa.Array]:
    references = batch.column("path")
    found = [relative_paths(references, paths).drop_null()]
    if batch.column("deletionVector").null_count < batch.num_rows:
        found.append(relative_vector_paths(pa.Table.from_batches([batch]), paths))
    yield from found
    if paths.origin.is_local:
        for named in found:
            yield from _led_to(named, paths)
        decoded = canonical_paths(references)
        odd = decoded.filter(pc.match_substring_regex(decoded, _ODD)).to_pylist()
        yield _real_paths_below(map(paths.spelled_text, odd), paths)


def _led_to(named: pa.Array, paths: DataPaths) -> Iterator[pa.Array]:
    """Resolve relative paths that are symbolic links to the paths that they open.

    A listing does not meet links in a hidden directory, and LITE lists nothing.
    """
    root = strip_file_scheme(paths.table_path)
    folders = split_at_last_slash(named)[0].dictionary_encode()
    for number, folder in enumerate(folders.dictionary.to_pylist()):
        links = _links_in(f"{root}/{folder}", root)
        if links:
            here = named.filter(pc.equal(folders.indices, number)).to_pylist()
            yield _real_paths_below(
                (f"{root}/{path}" for path in here if name_of(path) in links), paths
            )


def _real_paths_below(named: Iterable[str], paths: DataPaths) -> pa.Array:
    """Return the real paths of full paths, relative to the table, if they are inside it."""
    opened = (os.path.realpath(strip_file_scheme(path)) for path in named if _NUL not in path)
    below = (path_below(path, paths) for path in opened)
    return pa.array([path for path in below if path], pa.string())


def _links_in(folder: str, directory: str) -> set[str]:
    """Return the names of the symbolic links in a directory, which may not exist."""
    if _NUL in folder:
        return set()
    with storage_errors("listed", directory):
        try:
            with os.scandir(folder) as entries:
                return {entry.name for entry in entries if entry.is_symlink()}
        except OSError as error:
            if error.errno in NO_SUCH_FILE:
                return set()
            raise


def _resolve_folders(named: pa.Array, paths: DataPaths) -> pa.Array:
    """Resolve the directories of relative paths, to null if they lead out of the table."""
    root = strip_file_scheme(paths.table_path)
    real_root = os.path.realpath(root).rstrip("/") + "/"
    parents, names = split_at_last_slash(named)
    folders = parents.dictionary_encode()
    given = folders.dictionary.to_pylist()
    full = [f"{root}/{folder}" for folder in given]
    real = [(path if _NUL in path else os.path.realpath(path)).rstrip("/") + "/" for path in full]
    found = [each[len(real_root) :] if each.startswith(real_root) else None for each in real]
    if found == given:
        return named
    spelled = pa.array(found, pa.string()).take(folders.indices)
    return pc.binary_join_element_wise(spelled, names, "")


def path_below(text: str, paths: DataPaths) -> str | None:
    """Return a decoded path relative to the table, or None if it is outside."""
    path = paths.spelled_text(text)
    if _NUL in path:
        return None  # no file can have this name
    plain = without_dots(path) or path
    if paths.origin.is_local:
        root = os.path.realpath(strip_file_scheme(paths.table_path)).rstrip("/") + "/"
        folder, _, name = strip_file_scheme(plain).rpartition("/")
        key: str | None = f"{os.path.realpath(folder)}/{name}"
    else:
        key = paths.origin.key_of(plain)
        root = f"{paths.origin.key_of(paths.table_path) or ''}/".lstrip("/")
    return key[len(root) :] if key is not None and key.startswith(root) else None


def _one_slash(paths: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring(paths, "//"), min_count=0).as_py():
        return pc.replace_substring_regex(paths, _DOUBLED, "/")
    return paths
