"""The writer of deletion vectors: into the log if small, else many to a file (spec 10.10).

A small vector costs a few hundred characters of the log and of every later checkpoint, and saves
its writer and each of its readers a request. So it goes into the log, unless the commit has so many
of them that a file is cheaper for all.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence

from pyroaring import BitMap64

from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.data.storage.new_file import new_file
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.table_ref import TableRef
from optimist.core.data.vectors.deletion_vectors import (
    DELETION_VECTOR_FILE_FORMAT,
    encode_z85,
    inline_vector,
    serialize_bitmap,
)
from optimist.core.paths import join
from optimist.core.protocol.actions import DeletionVectorDescriptor
from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["belongs_in_file", "write_deletion_vectors"]

_RELATIVE, _INLINE = "u", "i"
_WRITERS = 8
_INLINE_BYTES = 256
"""Up to this size a vector is small, for example one of a hundred scattered rows."""
_INLINE_BYTES_OF_COMMIT = 8 << 10
_FILE_BYTES = 2 << 20
"""From this size on a file takes no more vectors; Delta's `deletionVectors.packing.targetSize`."""


def belongs_in_file(vector: DeletionVectorDescriptor) -> bool:
    """Return whether a vector is in the log although it is not small."""
    return vector.storage_type == _INLINE and vector.size_in_bytes > _INLINE_BYTES


def write_deletion_vectors(
    vectors: Sequence[BitMap64], table: TableRef, register: Callable[[str], None]
) -> list[DeletionVectorDescriptor]:
    """Write the vectors of one commit. Their files are durable when this returns.

    Args:
        vectors: The deleted rows of one data file each. None is empty.
        table: The table. Its directory gets the files of vectors.
        register: Called with the full path of each file before it is begun.

    Returns:
        The descriptions, in the order of the vectors.

    Raises:
        StorageError: The file system failed. Some of the registered files may exist.
    """
    sizes = [len(serialize_bitmap(rows)) for rows in vectors]
    small = [number for number, size in enumerate(sizes) if size <= _INLINE_BYTES]
    if sum(sizes[number] for number in small) > _INLINE_BYTES_OF_COMMIT:
        small = []
    found = {number: inline_vector(vectors[number]) for number in small}
    groups = list(
        _pack_into_files([number for number in range(len(sizes)) if number not in found], sizes)
    )
    names = [uuid.UUID(table.clock.new_uuid()) for _ in groups]
    for name in names:
        register(_vector_path(table, name))

    def write(index: int) -> list[DeletionVectorDescriptor]:
        return _write_file(table, names[index], [vectors[number] for number in groups[index]])

    written = read_ahead(write, range(len(groups)), threads=_WRITERS, ahead=_WRITERS)
    for group, descriptors in zip(groups, written, strict=True):
        found.update(zip(group, descriptors, strict=True))
    return [found[number] for number in range(len(vectors))]


def _pack_into_files(numbers: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the vectors in groups for one file each, in order."""
    group: list[int] = []
    num_bytes = 0
    for number in numbers:
        group.append(number)
        num_bytes += sizes[number]
        if num_bytes >= _FILE_BYTES:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group


def _vector_path(table: TableRef, name: uuid.UUID) -> str:
    return join(table.table_path, f"deletion_vector_{name}.bin")


def _write_file(
    table: TableRef, name: uuid.UUID, vectors: Sequence[BitMap64]
) -> list[DeletionVectorDescriptor]:
    """Write one file: its format version, then each vector's size, bytes and checksum."""
    path, access = _vector_path(table, name), table.data_access()
    filesystem, inner = filesystem_for(path, access)
    policy = table.options.retry_policy
    offset, found = 1, []
    with storage_errors("written", path):
        file = new_file(path, filesystem, inner, access=access, clock=table.clock, policy=policy)
        try:
            file.sink.write(bytes([DELETION_VECTOR_FILE_FORMAT]))
            for rows in vectors:
                data = serialize_bitmap(rows)
                file.sink.write(struct.pack(">i", len(data)))
                file.sink.write(data)
                file.sink.write(struct.pack(">I", zlib.crc32(data)))
                found.append(_describe(name, offset, data, rows))
                offset += len(data) + 8
            file.publish()
        except BaseException:
            file.discard()
            raise
        make_durable(filesystem, filesystem_for(table.table_path, access)[1], [inner])
    return found


def _describe(
    name: uuid.UUID, offset: int, data: bytes, rows: BitMap64
) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type=_RELATIVE,
        path_or_inline_dv=encode_z85(name.bytes),
        size_in_bytes=len(data),
        cardinality=len(rows),
        offset=offset,
    )
