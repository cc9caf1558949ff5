"""The tables below a table's directory, where no listing of it shows their logs (spec 10.12).

LITE and an inventory name files without a look at the directories that they are in. Such a file may
belong to another table below: a clone into a directory above its source names the source's files,
and so does its log once it has removed them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa

from optimist.core.data.storage.data_paths import split_at_last_slash
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import names_in
from optimist.core.data.table_ref import TableRef
from optimist.core.maintenance.vacuum.hidden_names import HiddenNames
from optimist.core.paths import LOG_DIRECTORY, join, strip_file_scheme
from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["TablesBelow"]

_THREADS = 8


class TablesBelow:
    """Looks for logs in the directories of files, once in each directory.

    Args:
        table: The table.
        names: Is told of the directories that have logs, so that `lies_apart` knows them.
    """

    def __init__(self, table: TableRef, names: HiddenNames) -> None:
        self._table = table
        self._names = names
        self._on_disk = is_on_disk(table.table_path)
        self._looked_at: set[str] = set()

    def look_above(self, paths: pa.Array) -> None:
        """Look for logs in the directories above files, given by their relative paths.

        A store is not asked about partition directories and those of single writes: that would cost
        a request for each of them, and no table is made there.

        Raises:
            StorageError: The store or the file system failed.
        """
        folders = split_at_last_slash(paths)[0].unique().to_pylist()
        found = {each for folder in folders for each in _directories_above(folder)}
        new = sorted(found - self._looked_at)
        self._looked_at.update(new)
        if not self._on_disk:
            new = [each for each in new if self._names.may_be_table(each)]
        has_log = read_ahead(self._has_log, new, threads=_THREADS, ahead=2 * _THREADS)
        self._names.apart.update(
            each for each, is_table in zip(new, has_log, strict=True) if is_table
        )

    def _has_log(self, directory: str) -> bool:
        path = join(self._table.table_path, directory, LOG_DIRECTORY)
        if self._on_disk:
            return os.path.lexists(strip_file_scheme(path))
        return bool(names_in(path, self._table.data_access()))


def _directories_above(folder: str) -> Iterator[str]:
    names = folder.rstrip("/").split("/")
    return ("/".join(names[:end]) for end in range(1, len(names) + 1) if names != [""])
