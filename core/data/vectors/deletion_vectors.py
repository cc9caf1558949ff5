"""Deletion vectors: the deleted rows of a data file (spec 10.10).

A vector is a set of row positions, counted from 0 in the order of the file. It is in the log
itself, or in a file beside the data that may hold many. The reader checks size, checksum, magic
number and count, so that a damaged vector is an error and never a wrong answer.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pyarrow import fs
from pyroaring import BitMap64

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.unreadable_files import read_surely
from optimist.core.data.vectors.roaring_format import bitmap_end
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.paths import join
from optimist.core.plugins.data_access import DataAccess
from optimist.core.protocol.actions import DeletionVectorDescriptor
from optimist.core.runtime.read_ahead import read_ahead

__all__ = [
    "DELETION_VECTOR_FILE_FORMAT",
    "deletion_vector_path",
    "encode_z85",
    "ensure_rows_exist",
    "inline_rows",
    "inline_vector",
    "parse_bitmap",
    "read_deletion_vector",
    "read_deletion_vectors",
    "serialize_bitmap",
]

_Result = TypeVar("_Result")

DELETION_VECTOR_FILE_FORMAT = 1
"""The first byte of a file of vectors."""

_READERS = 8
_MAGIC = 1681511377
_NATIVE_MAGIC = 1681511376
_INLINE, _RELATIVE, _ABSOLUTE = "i", "u", "p"
_UUID_CHARACTERS = 20
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_MISSING_BYTE = b"#"
_TO_B85 = bytes.maketrans(_Z85, _B85)
_TO_Z85 = bytes.maketrans(_B85, _Z85)


def read_deletion_vector(
    descriptor: DeletionVectorDescriptor, paths: DataPaths, access: DataAccess | None = None
) -> BitMap64:
    """Return the positions of the deleted rows of one data file.

    Args:
        descriptor: The log's description of the vector.
        paths: The rules for paths in the log.
        access: The access to the table's files.

    Raises:
        TableError: The vector's file is gone (kind `DELTA_FILE_NOT_FOUND_DETAILED`), has another
            size than the log has (`DELTA_DELETION_VECTOR_SIZE_MISMATCH`), was changed
            (`DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH`), or holds another number of rows
            (`DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH`). Or the vector or its description can't
            be read (`OPTIMIST_MALFORMED_DELETION_VECTOR`), or its file may not be opened (see
            `DataPaths.full_paths`).
        StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
    """
    return read_deletion_vectors([descriptor], paths, access)[0]


def read_deletion_vectors(
    descriptors: Sequence[DeletionVectorDescriptor],
    paths: DataPaths,
    access: DataAccess | None = None,
) -> list[BitMap64]:
    """Return several vectors in the given order, and open a file with many of them once.

    Several threads read the files, because each costs requests to the store.

    Raises:
        TableError, StorageError: See `read_deletion_vector`.
    """
    bitmaps: dict[int, BitMap64] = {}
    by_path: dict[str, list[int]] = {}
    for number, descriptor in enumerate(descriptors):
        path = deletion_vector_path(descriptor, paths)
        if path is None:
            bitmaps[number] = inline_rows(descriptor)
        else:
            by_path.setdefault(path, []).append(number)

    def read_file(path: str) -> dict[int, BitMap64]:
        numbers = sorted(by_path[path], key=lambda item: descriptors[item].offset or 0)

        def read(source: Any) -> dict[int, BitMap64]:
            return {
                number: _parse_checked(
                    _read_stored(source, descriptors[number], path), descriptors[number], path
                )
                for number in numbers
            }

        return _read_file(path, access, read)

    for found in read_ahead(read_file, by_path, threads=_READERS, ahead=2 * _READERS):
        bitmaps |= found
    return [bitmaps[number] for number in range(len(descriptors))]


def inline_rows(descriptor: DeletionVectorDescriptor) -> BitMap64:
    """Return the rows of a vector that the log itself holds, without reading a file.

    Raises:
        TableError: See `read_deletion_vector`.
    """
    return _parse_checked(_read_inline(descriptor), descriptor, "the log")


def ensure_rows_exist(rows: BitMap64, num_rows: int, path: str) -> None:
    """Refuse a vector that names rows past the end of its data file.

    Its writer counted rows in another way than readers do, or meant another file. The rows that it
    should have deleted would come back.

    Args:
        rows: The vector's rows.
        num_rows: The number of rows in the file, deleted ones included.
        path: The data file.

    Raises:
        TableError: It names such rows (kind `OPTIMIST_MALFORMED_DELETION_VECTOR`, field `path`).
    """
    if rows and rows.max() >= num_rows:
        raise TableError(
            f"The deletion vector of {shown(path)} deletes row {rows.max()}, counted from 0, but "
            f"the file has only {num_rows} rows. The vector belongs to another file or is damaged, "
            f"or the log counts the file's rows wrongly. {_REMEDY}",
            kind="OPTIMIST_MALFORMED_DELETION_VECTOR",
            path=path,
        )


def deletion_vector_path(descriptor: DeletionVectorDescriptor, paths: DataPaths) -> str | None:
    """Return the decoded path of a vector's file, or None if the log itself holds the vector.

    Raises:
        TableError: The description is damaged (kind `OPTIMIST_MALFORMED_DELETION_VECTOR`), or the
            file may not be opened (see `DataPaths.full_paths`).
    """
    text = descriptor.path_or_inline_dv
    if descriptor.storage_type == _INLINE:
        return None
    if descriptor.storage_type == _ABSOLUTE:
        return paths.full_path(text)
    if descriptor.storage_type != _RELATIVE:
        raise _malformed_vector(
            "the log", f"it is stored in an unknown way, {quoted(descriptor.storage_type)}"
        )
    prefix, encoded = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
    try:
        name = f"deletion_vector_{uuid.UUID(bytes=_z85_decode(encoded))}.bin"
    except ValueError:
        raise _malformed_vector("the log", f"{quoted(text)} does not name a file") from None
    return paths.full_path_of_text(join(prefix, name) if prefix else name)


def inline_vector(rows: BitMap64) -> DeletionVectorDescriptor:
    """Return a vector of these rows that needs no file: its description holds the bytes."""
    data = serialize_bitmap(rows)
    return DeletionVectorDescriptor(
        storage_type=_INLINE,
        path_or_inline_dv=encode_z85(data),
        size_in_bytes=len(data),
        cardinality=len(rows),
    )


def serialize_bitmap(rows: BitMap64) -> bytes:
    """Return the bytes of a vector of these rows, from the magic number on.

    `parse_bitmap` reads them. They are in the portable form, with runs wherever these are shorter.
    """
    packed = rows.copy()
    packed.run_optimize()
    return struct.pack("<i", _MAGIC) + packed.serialize()


def encode_z85(data: bytes) -> str:
    """Return the bytes as Z85 text, padded with zeros to a multiple of four."""
    padded = data + bytes(-len(data) % 4)
    return base64.b85encode(padded).translate(_TO_Z85).decode("ascii")


def parse_bitmap(data: bytes | memoryview) -> BitMap64:
    """Return the positions in a vector, from its bytes after the length.

    The bytes begin with the magic number. Both forms are accepted: the portable one, and the native
    one that early writers used.

    Raises:
        ValueError: The bytes are not a sound bitmap.
    """
    if len(data) < 4:
        raise ValueError("the bytes end within the magic number")
    (magic,) = struct.unpack_from("<i", data)
    body = memoryview(data)[4:]  # no copy: a vector may be as large as memory allows
    if magic == _MAGIC:
        _ensure_portable(body)
        return BitMap64.deserialize(body)  # type: ignore[arg-type]  # any buffer will do
    if magic == _NATIVE_MAGIC:
        return BitMap64.deserialize(_to_portable(body))
    raise ValueError(f"{magic} is not the magic number of a deletion vector")


def _ensure_portable(body: memoryview) -> None:
    """Check the portable format: a count, then for each bucket its key and a 32-bit bitmap."""
    count = int.from_bytes(_take_exactly(body, 0, 8), "little")
    position, last_key = 8, -1
    for _ in range(count):
        key = int.from_bytes(_take_exactly(body, position, 4), "little")
        if not last_key < key < 1 << 31:
            raise ValueError("buckets are not in order")
        position, last_key = bitmap_end(body, position + 4), key
    if position != len(body):
        raise ValueError("bytes follow the last bucket")


def _to_portable(body: memoryview) -> bytes:
    """Convert the native format (a count, then each bucket's size and bitmap) to the portable."""
    count = int.from_bytes(_take_exactly(body, 0, 4), "little")
    pieces, position = [], 4
    for key in range(count):
        size = int.from_bytes(_take_exactly(body, position, 4), "little")
        bitmap = _take_exactly(body, position + 4, size)
        if bitmap_end(bitmap, 0) != size:
            raise ValueError("bytes follow a bucket")
        pieces.append(struct.pack("<I", key) + bytes(bitmap))
        position += 4 + size
    if position != len(body):
        raise ValueError("bytes follow the last bucket")
    return struct.pack("<Q", count) + b"".join(pieces)


def _read_inline(descriptor: DeletionVectorDescriptor) -> bytes:
    try:
        data = _z85_decode(descriptor.path_or_inline_dv)
    except ValueError as error:
        raise _malformed_vector("the log", str(error)) from None
    if not 0 <= len(data) - descriptor.size_in_bytes < 4:
        raise _size_mismatch("the log", descriptor.size_in_bytes, len(data))
    return data[: descriptor.size_in_bytes]


def _read_stored(
    source: fs.NativeFile, descriptor: DeletionVectorDescriptor, path: str
) -> memoryview:
    """Return the bytes of one vector of a file, uncopied, after checking size and checksum."""
    size, offset = descriptor.size_in_bytes, descriptor.offset or 0
    if source.size() and source.read_at(1, 0) != bytes([DELETION_VECTOR_FILE_FORMAT]):
        version = DELETION_VECTOR_FILE_FORMAT
        raise _malformed_vector(path, f"the file does not have the format version {version}")
    if size < 0 or offset < 1:
        raise _malformed_vector("the log", f"size {size} and offset {offset} are impossible")
    if source.size() < offset + size + 8:
        raise _size_mismatch(path, size, max(0, source.size() - offset - 8))
    framed = memoryview(source.read_at(size + 8, offset))
    (found,) = struct.unpack_from(">i", framed)
    if found != size:
        raise _size_mismatch(path, size, found)
    data = framed[4:-4]
    (checksum,) = struct.unpack(">I", framed[-4:])
    if zlib.crc32(data) != checksum:
        raise TableError(
            f"A deletion vector in {shown(path)} was damaged: its checksum does not match its "
            f"bytes. {_REMEDY}",
            kind="DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
            path=path,
        )
    return data


def _parse_checked(
    data: bytes | memoryview, descriptor: DeletionVectorDescriptor, location: str
) -> BitMap64:
    try:
        bitmap = parse_bitmap(data)
    except ValueError as error:
        raise _malformed_vector(location, str(error)) from None
    if len(bitmap) != descriptor.cardinality:
        raise TableError(
            f"A deletion vector in {shown(location)} marks {len(bitmap)} rows, but the log says "
            f"{descriptor.cardinality}. {_REMEDY}",
            kind="DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
            path=location,
        )
    return bitmap


def _read_file(path: str, access: DataAccess | None, read: Callable[[Any], _Result]) -> _Result:
    try:
        return read_surely(path, access, read)
    except FileNotFoundError:
        raise TableError(
            f"The deletion vector file {shown(path)} is missing, although the table's log names "
            f"it, so the deleted rows of its data files are unknown. {_REMEDY}",
            kind="DELTA_FILE_NOT_FOUND_DETAILED",
            path=path,
        ) from None
    except OSError as error:
        with storage_errors("read", path):
            raise error from None


def _z85_decode(text: str) -> bytes:
    """Decode Z85 text, which is the base85 of Python's decoder with another alphabet.

    Some writers don't fill up the last group with zeros, but begin it with `#`, once for each
    missing byte. No other group can begin so, because its number would not fit in four bytes.

    Raises:
        ValueError: The text is not Z85.
    """
    data = text.encode("ascii", "replace")
    if len(data) % 5 or data.translate(None, _Z85):
        raise ValueError("it is not in the encoding Z85")
    if data[-5:].startswith(_MISSING_BYTE):
        return _decode_groups(data[:-5]) + _decode_short_group(data[-5:])
    return _decode_groups(data)


def _decode_groups(data: bytes) -> bytes:
    try:
        return base64.b85decode(data.translate(_TO_B85))
    except ValueError:
        raise ValueError("a group of its Z85 is a number that does not fit in four bytes") from None


def _decode_short_group(data: bytes) -> bytes:
    digits = data.lstrip(_MISSING_BYTE)
    # It encodes its bytes with zero bytes before them, and `#` replaces the leading digits.
    number = _decode_groups(digits.rjust(5, _Z85[:1]))
    size = len(digits) - 1
    if size < 1 or any(number[:-size]):
        raise ValueError("the last group of its Z85 is padded in a way that no writer uses")
    return number[-size:]


def _take_exactly(data: memoryview, position: int, size: int) -> memoryview:
    piece = data[position : position + size]
    if len(piece) != size:
        raise ValueError("the bytes end within a bitmap")
    return piece


_REMEDY = "Restore the file, or read an older version of the table."


def _malformed_vector(location: str, reason: str) -> TableError:
    return TableError(
        f"A deletion vector in {shown(location)} can't be read: {reason}. {_REMEDY}",
        kind="OPTIMIST_MALFORMED_DELETION_VECTOR",
        path=location,
    )


def _size_mismatch(location: str, wanted: int, found: int) -> TableError:
    return TableError(
        f"A deletion vector in {shown(location)} has {found} bytes, but the log says {wanted}. "
        f"{_REMEDY}",
        kind="DELTA_DELETION_VECTOR_SIZE_MISMATCH",
        path=location,
        expected_bytes=wanted,
        found_bytes=found,
    )
