"""The files of a deep clone: copies, in a directory of their own below the clone.

Names follow from the source's files, so that a CLONE that was stopped can go on: whoever finds a
copy under its name has it whole, and of just that file. The directory's name follows from the
source alone; nothing but copies of its files is in there.

Deletion vectors are read and written anew, as a description of one may name any file.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from optimist.core.data.copied_file import copy_file
from optimist.core.data.deletion_vectors import read_deletion_vectors
from optimist.core.data.filesystem import filesystem_for, make_durable
from optimist.core.data.partition_values import partition_directory, uri_reference
from optimist.core.data.stored_files import files_below
from optimist.core.data.table_ref import TableRef
from optimist.core.data.vector_writer import write_deletion_vectors
from optimist.core.log.file_table import add_files, files_table
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor
from optimist.core.running.read_ahead import read_ahead
from optimist.core.snapshot import Snapshot

__all__ = ["copied_files", "copies_directory"]

_RELATIVE = "u"
_COPIERS = 8


@dataclass(frozen=True, slots=True)
class _Copy:
    """One file that is to be copied.

    Attributes:
        path: Its full path.
        name: The copy's path below the clone, not percent-encoded.
        add: What the log says of it.
    """

    path: str
    name: str
    add: AddFile


def copied_files(
    source: TableRef, version: Snapshot, table: TableRef, register: Callable[[str], None]
) -> pa.Table:
    """Copy the files of a version, as far as they are not there yet.

    Args:
        source: The source.
        version: The version of it that is copied.
        table: The table that gets the copies.
        register: Told of each file, by its full path, that the next attempt could not use.

    Returns:
        The copies, as rows of `FILES_SCHEMA`; they are durable.

    Raises:
        TableError, StorageError: See `copy_file`. Copies that were made stay.
    """
    directory = copies_directory(source, version)
    adds = add_files(version.files)
    copies = [
        _Copy(path, _name(directory, path, add), add)
        for add in adds
        for path in [source.data_paths.full_path(add.path)]
    ]
    _copy_all(copies, source, table, directory)
    vectors = _copied_vectors(source, adds, table, directory, register)
    return files_table(
        replace(each.add, path=uri_reference(each.name), deletion_vector=vector)
        for each, vector in zip(copies, vectors, strict=True)
    )


def copies_directory(source: TableRef, version: Snapshot) -> str:
    """The name of the directory in which copies of a table's files are."""
    return f"data-{_uuid_of(source.table_path, version.metadata.id)}"


def _name(directory: str, path: str, add: AddFile) -> str:
    partition = partition_directory(add.partition_values)
    name = f"part-{_uuid_of(path, str(add.size), str(add.modification_time))}.parquet"
    return "/".join(filter(None, (directory, partition, name)))


def _uuid_of(*parts: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, "\0".join(parts))


def _copy_all(copies: Iterable[_Copy], source: TableRef, table: TableRef, directory: str) -> None:
    access, target_access = source.data_access(), table.data_access()
    root = join(table.table_path, directory)
    table.data_paths.ensure_not_led_out(root)  # anybody can tell the name beforehand
    sizes = {each.path: each.size_bytes for each in files_below(root, target_access)}
    targets = {join(table.table_path, each.name): each for each in copies}
    left = [target for target, each in targets.items() if sizes.get(target) != each.add.size]

    def copy(target: str) -> None:
        each = targets[target]
        copy_file(each.path, access, table, target, size_bytes=each.add.size)

    for _ in read_ahead(copy, left, threads=_COPIERS, ahead=2 * _COPIERS):
        pass
    filesystem, top = filesystem_for(table.table_path, target_access)
    inner = [filesystem_for(target, target_access)[1] for target in targets]
    make_durable(filesystem, top, inner)


def _copied_vectors(
    source: TableRef,
    adds: Iterable[AddFile],
    table: TableRef,
    directory: str,
    register: Callable[[str], None],
) -> list[DeletionVectorDescriptor | None]:
    """The vectors of the files, written to the directory of the copies."""
    vectors = [add.deletion_vector for add in adds]
    known = [vector for vector in vectors if vector is not None]
    rows = read_deletion_vectors(known, source.data_paths, source.data_access())
    place = replace(table, table_path=join(table.table_path, directory))
    written = iter(write_deletion_vectors(rows, place, register))
    return [None if vector is None else _within(next(written), directory) for vector in vectors]


def _within(vector: DeletionVectorDescriptor, directory: str) -> DeletionVectorDescriptor:
    """The description as the table has it, and not the directory."""
    if vector.storage_type != _RELATIVE:
        return vector
    return replace(vector, path_or_inline_dv=directory + vector.path_or_inline_dv)
