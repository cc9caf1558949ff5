"""The files that a version within the retention period needs (spec 10.12).

These are the live files, the removed ones whose time is not up, and the files of the deletion
vectors of both. They are Arrow columns of paths relative to the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.errors.system_causes import NO_SUCH_FILE
from optimist.core.log.file_table import canonical_paths
from optimist.core.maintenance.vector_files import vector_paths
from optimist.core.paths import name_of, strip_file_scheme, without_dots
from optimist.core.snapshot import Snapshot

__all__ = ["KeptPaths", "path_below", "relative_paths", "relative_vector_paths"]

_AT_A_TIME = 1 << 20
_DOUBLED = r"//+"
_NAME = "[^/]*$"
_NUL = "\0"
_FOLDER = "^.*/"
_ODD = r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.\.?(/|$)"


class KeptPaths:
    """The paths that VACUUM may not touch, by one version of the table.

    Args:
        snapshot: The newest version.
        delete_before_ms: Files that were removed at this time or later are kept.

    Raises:
        TableError: The log is damaged, or the files do not agree with the version's checksum.
    """

    def __init__(self, snapshot: Snapshot, delete_before_ms: int) -> None:
        self.version = snapshot.version
        self._chunks = list(_kept(snapshot, delete_before_ms))

    def are_kept(self, paths: pa.Array) -> pa.Array:
        """Which of these relative paths are kept."""
        asked = _one_slash(paths)
        kept = pa.array([False] * len(asked), pa.bool_())
        for chunk in self._chunks:
            kept = pc.or_(kept, pc.is_in(asked, value_set=chunk))
        return kept


def relative_paths(references: pa.Array, paths: DataPaths) -> pa.Array:
    """The paths of a log's references, relative to the table; null for those outside it.

    Nothing is opened. A reference that names a file of the table by another way, such as a URL or
    directories that are symbolic links, means that file.
    """
    decoded = canonical_paths(references)
    is_odd = pc.match_substring_regex(decoded, _ODD)
    if pc.any(is_odd, min_count=0).as_py():
        odd = [path_below(each, paths) for each in decoded.filter(is_odd).to_pylist()]
        decoded = pc.replace_with_mask(decoded, is_odd, pa.array(odd, pa.string()))
    decoded = _one_slash(decoded)
    return _by_real_folders(decoded, paths) if paths.origin.is_local else decoded


def relative_vector_paths(files: pa.Table, paths: DataPaths) -> pa.Array:
    """The relative paths of the files that hold the vectors of data files, each once."""
    below = (path_below(full, paths) for full in vector_paths(files, paths).to_pylist())
    return pa.array([path for path in below if path], pa.string())


def _kept(snapshot: Snapshot, delete_before_ms: int) -> Iterator[pa.Array]:
    paths, num_files, size_bytes = snapshot.data_paths, 0, 0
    for batch in snapshot.iter_files(_AT_A_TIME):
        num_files += batch.num_rows
        size_bytes += pc.sum(batch.column("size"), min_count=0).as_py()
        yield from _named(batch, paths)
    snapshot.ensure_agrees(num_files=num_files, size_bytes=size_bytes)
    is_recent = pc.greater_equal(
        pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0)), delete_before_ms
    )
    for batch in snapshot.iter_tombstones(_AT_A_TIME):
        yield from _named(batch.filter(is_recent), paths)


def _named(batch: pa.RecordBatch, paths: DataPaths) -> Iterator[pa.Array]:
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
        yield _below(map(paths.spelled_text, odd), paths)


def _led_to(named: pa.Array, paths: DataPaths) -> Iterator[pa.Array]:
    """What is opened in place of those relative paths that are symbolic links.

    A walk does not meet a link in a directory that is hidden, and LITE walks nowhere.
    """
    root = strip_file_scheme(paths.table_path)
    folders = _folders(named).dictionary_encode()
    for number, folder in enumerate(folders.dictionary.to_pylist()):
        links = _links_in(f"{root}/{folder}", root)
        if links:
            here = named.filter(pc.equal(folders.indices, number)).to_pylist()
            yield _below((f"{root}/{path}" for path in here if name_of(path) in links), paths)


def _below(named: Iterable[str], paths: DataPaths) -> pa.Array:
    """The relative paths of what is opened by some full paths, within the table."""
    opened = (os.path.realpath(strip_file_scheme(path)) for path in named if _NUL not in path)
    below = (path_below(path, paths) for path in opened)
    return pa.array([path for path in below if path], pa.string())


def _links_in(folder: str, directory: str) -> set[str]:
    """The names of the symbolic links in a directory; none if there can't be such a one."""
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


def _by_real_folders(named: pa.Array, paths: DataPaths) -> pa.Array:
    """Relative paths whose directories are none of them links; null where they lead out."""
    root = strip_file_scheme(paths.table_path)
    real_root = os.path.realpath(root).rstrip("/") + "/"
    folders = _folders(named).dictionary_encode()
    given = folders.dictionary.to_pylist()
    full = [f"{root}/{folder}" for folder in given]
    real = [(path if _NUL in path else os.path.realpath(path)).rstrip("/") + "/" for path in full]
    found = [each[len(real_root) :] if each.startswith(real_root) else None for each in real]
    if found == given:
        return named
    names = pc.replace_substring_regex(named, _FOLDER, "")
    spelled = pa.array(found, pa.string()).take(folders.indices)
    return pc.binary_join_element_wise(spelled, names, "")


def _folders(paths: pa.Array) -> pa.Array:
    """The directories of relative paths, with a slash at the end."""
    return pc.replace_substring_regex(paths, _NAME, "")


def path_below(text: str, paths: DataPaths) -> str | None:
    """A decoded path relative to the table; None outside of it."""
    path = paths.spelled_text(text)
    if _NUL in path:
        return None  # no file is called so
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
