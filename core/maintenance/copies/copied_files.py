"""The files of a deep clone: copies in a directory of their own below the clone.

The names are derived from the source's files, so that an interrupted CLONE can continue: a copy
that exists under its name is complete and of exactly that file. The name of the directory is
derived from the source alone, and the directory holds nothing but copies of its files.

Deletion vectors are read and written again, since a descriptor may name any file.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from optimist.core.data.directory_names import ensure_nameable
from optimist.core.data.partition_values import partition_directory, uri_reference
from optimist.core.data.storage.copied_file import CopyRule, FileCopy, copy_file
from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import files_below
from optimist.core.data.table_ref import TableRef
from optimist.core.data.vectors.deletion_vectors import read_deletion_vectors
from optimist.core.data.vectors.vector_writer import write_deletion_vectors
from optimist.core.log.file_table import add_files, files_table
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.progress import ProgressReport
from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["CopyFiles", "copied_files", "copies_directory", "copy_here"]

_RELATIVE = "u"
_COPIERS = 8


CopyFiles: TypeAlias = Callable[[Sequence[FileCopy], CopyRule, Clock], None]
"""Makes copies. Those made before an error stay."""


def copy_here(
    copies: Sequence[FileCopy],
    rule: CopyRule,
    clock: Clock,
    report: ProgressReport | None = None,
) -> None:
    """Make copies in this process, by threads.

    Args:
        copies: The copies to make.
        rule: How they are made.
        clock: The source of time.
        report: Is told of each copy.
    """
    copy = partial(copy_file, rule=rule, clock=clock)
    report = report or ProgressReport(clock, None, "CLONE")
    made = read_ahead(copy, copies, threads=_COPIERS, ahead=2 * _COPIERS)
    for _ in report.each("copy", made, len(copies)):
        pass


def copied_files(
    source: TableRef,
    files: pa.Table,
    table: TableRef,
    directory: str,
    register: Callable[[str], None],
    copy: CopyFiles,
) -> pa.Table:
    """Copy the files that are not copied yet.

    Args:
        source: The table that has the files.
        files: The files, as rows of `FILES_SCHEMA`.
        table: The table that gets the copies.
        directory: The directory in that table; see `copies_directory`.
        register: Called with the full path of each file that another attempt could not use.
        copy: Makes the copies.

    Returns:
        The copies, as rows of `FILES_SCHEMA`. They are durable.

    Raises:
        TableError, StorageError: See `copy_file`. Copies that were made stay.
    """
    adds = add_files(files)
    paths = [source.data_paths.full_path(add.path) for add in adds]
    names = [_copy_name(directory, path, add) for path, add in zip(paths, adds, strict=True)]
    copies = [
        FileCopy(path, join(table.table_path, name), add.size)
        for path, name, add in zip(paths, names, adds, strict=True)
    ]
    _copy_all(copies, source, table, join(table.table_path, directory), copy)
    vectors = _copied_vectors(source, adds, table, directory, register)
    return files_table(
        replace(add, path=uri_reference(name), deletion_vector=vector)
        for add, name, vector in zip(adds, names, vectors, strict=True)
    )


def copies_directory(table_path: str, identity: str) -> str:
    """Return the name of the directory for copies of a table's files.

    Args:
        table_path: The path of the source.
        identity: A text that distinguishes the source from earlier tables at its path, such as its
            id.
    """
    return f"data-{_uuid_of(table_path, identity)}"


def _copy_name(directory: str, path: str, add: AddFile) -> str:
    partition = partition_directory(add.partition_values)
    name = f"part-{_uuid_of(path, str(add.size), str(add.modification_time))}.parquet"
    return "/".join(filter(None, (directory, partition, name)))


def _uuid_of(*parts: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, "\0".join(parts))


def _copy_all(
    copies: Sequence[FileCopy], source: TableRef, table: TableRef, root: str, copy: CopyFiles
) -> None:
    """Make the copies that the directory `root` lacks, and make all copies durable."""
    access = table.data_access()
    table.data_paths.ensure_not_led_out(root)  # others can guess the name in advance
    sizes = {each.path: each.size_bytes for each in files_below(root, access)}
    left = [each for each in copies if sizes.get(each.target) != each.size_bytes]
    if is_on_disk(table.table_path):
        for each in left:
            ensure_nameable(each.target)
    rule = CopyRule(source.data_access(), access, table.options.retry_policy)
    copy(left, rule, table.clock)
    filesystem, top = filesystem_for(table.table_path, access)
    make_durable(filesystem, top, [filesystem_for(each.target, access)[1] for each in copies])


def _copied_vectors(
    source: TableRef,
    adds: Iterable[AddFile],
    table: TableRef,
    directory: str,
    register: Callable[[str], None],
) -> list[DeletionVectorDescriptor | None]:
    """Write the files' vectors into the directory of the copies."""
    vectors = [add.deletion_vector for add in adds]
    known = [vector for vector in vectors if vector is not None]
    rows = read_deletion_vectors(known, source.data_paths, source.data_access())
    target = replace(table, table_path=join(table.table_path, directory))
    written = iter(write_deletion_vectors(rows, target, register))
    return [
        None if vector is None else _relative_to_table(next(written), directory)
        for vector in vectors
    ]


def _relative_to_table(
    vector: DeletionVectorDescriptor, directory: str
) -> DeletionVectorDescriptor:
    """Return the descriptor relative to the table, not to the directory."""
    if vector.storage_type != _RELATIVE:
        return vector
    return replace(vector, path_or_inline_dv=directory + vector.path_or_inline_dv)
