"""The files of a scan and their partitions as Arrow tables, without an object per file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import partition_columns_of
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.schema.types import StructType

__all__ = ["FileListing", "digest_of", "file_identities", "hadoop_path"]

_LARGEST_FILE = 1 << 46
"""More bytes than any object store takes in one object; Spark cuts files into tasks of 128 MiB."""


@dataclass(frozen=True, slots=True)
class FileListing:
    """Files of one table version, each with the ordinal of its partition.

    Attributes:
        data_paths: Resolves the paths in the log.
        files: The files as the log has them (`FILES_SCHEMA`).
        ordinals: The row of `partitions` that each file belongs to (int32).
        partitions: The distinct partition values, typed; one column per partition column.
    """

    data_paths: DataPaths
    files: pa.Table
    ordinals: pa.Array
    partitions: pa.Table

    @classmethod
    def of(
        cls,
        data_paths: DataPaths,
        files: pa.Table,
        partition_fields: StructType,
        *,
        zone: str,
        constants: pa.Table | None = None,
    ) -> FileListing:
        """Group the files by partition.

        Args:
            data_paths: Resolves the paths in the log.
            files: A `FILES_SCHEMA` table.
            partition_fields: The partition columns, in order.
            zone: The session's zone, for timestamps that were written without one.
            constants: More columns, with a row per file, to treat as partition values.

        Raises:
            TableError: A partition value does not parse as its column's type; or the log claims an
                impossible file size (kind `OPTIMIST_IMPOSSIBLE_COUNT`).
        """
        _ensure_possible(files)
        typed = partition_columns_of(files, partition_fields, zone=zone)
        if constants is not None:
            names = [*typed.column_names, *constants.column_names]
            typed = pa.table([*typed.columns, *constants.columns], names=names)
        ordinals, first_rows = _group_by_values(typed)
        return cls(
            data_paths=data_paths,
            files=files,
            ordinals=ordinals,
            partitions=typed.take(first_rows),
        )

    def filter(self, mask: pa.Array) -> FileListing:
        """Return the files where the mask is true, with all partitions."""
        return replace(self, files=self.files.filter(mask), ordinals=self.ordinals.filter(mask))

    def column(self, name: str) -> pa.Array:
        """Return one column of `files` in one piece."""
        return _in_one_piece(self.files[name])

    @property
    def paths(self) -> pa.Array:
        """Full paths for Hadoop, not percent-encoded, computed at each call.

        Raises:
            TableError: A path may not be opened; see `DataPaths.full_paths`.
        """
        return _full_paths(self.data_paths, self.column("path"))

    def has(self, path: str) -> bool:
        """Check whether a path, as Hadoop spells it, is the path of one of the files."""
        # Hadoop spells local URIs with one slash or with three.
        plain = pc.replace_substring_regex(self.paths, "^file:/+", "/")
        wanted = re.sub("^file:/+", "/", path)
        return bool(pc.any(pc.equal(plain, wanted), min_count=0).as_py())

    @property
    def partition_values(self) -> pa.Table:
        """The partition values of each file, computed at each call."""
        return self.partitions.take(self.ordinals)

    @property
    def num_files(self) -> int:
        """The number of files."""
        return int(self.files.num_rows)

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return int(pc.sum(self.files["size"], min_count=0).as_py())


def hadoop_path(path: str) -> str:
    """Return a table's path for Hadoop.

    A path without a scheme is local, whatever `fs.defaultFS` says.
    """
    return path if scheme_of(path) not in ("", "file") else f"file:{strip_file_scheme(path)}"


def file_identities(files: pa.Table) -> pa.Array:
    """Return a text per file that identifies it: path and deletion vector (spec 5.6)."""
    # A column of a slice keeps the memory of all rows of the larger table; a copy does not.
    parts = [_in_one_piece(files["path"])]
    if "deletionVector" in files.column_names:
        vectors = _in_one_piece(files["deletionVector"])
        keys = ("storageType", "pathOrInlineDv", "offset")
        parts += [pc.struct_field(vectors, key).cast(pa.string()) for key in keys]
    return pc.binary_join_element_wise(*parts, "@", null_handling="replace")


def digest_of(files: pa.Table) -> str:
    """Return a digest of some of a version's files, by which scans are compared."""
    digest = hashlib.sha256()
    texts = pc.binary_join_element_wise(file_identities(files), "", "\n")
    for buffer in texts.buffers():
        if buffer is not None:
            digest.update(buffer)
    return digest.hexdigest()[:16]


def _ensure_possible(files: pa.Table) -> None:
    """Refuse sizes for which Spark would plan millions of tasks, which its driver can't hold."""
    largest = pc.max(files["size"]).as_py()
    if largest is not None and largest > _LARGEST_FILE:
        path = files["path"][pc.index(files["size"], largest).as_py()].as_py()
        raise TableError(
            f"The log claims that the data file {shown(path)} has {largest} bytes, more than any "
            "file has. The log is damaged or was forged. Nothing was read or written. Read an "
            "older version, or restore the log from a backup.",
            kind="OPTIMIST_IMPOSSIBLE_COUNT",
            path=path,
            claimed=largest,
        )


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _group_by_values(typed: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the ordinal of each row's combination of values, and each combination's first row."""
    codes = pa.repeat(pa.scalar(0, pa.int64()), typed.num_rows)
    for column in typed.columns:
        encoded = _in_one_piece(column).dictionary_encode(null_encoding="encode")
        wide = pc.multiply(codes, pa.scalar(len(encoded.dictionary), pa.int64()))
        # The codes are encoded again after each column, so they stay below the number of rows and
        # can't overflow.
        codes = pc.add(wide, encoded.indices.cast(pa.int64())).dictionary_encode().indices
        codes = codes.cast(pa.int64())
    rows = pa.table([codes, pa.array(range(typed.num_rows), pa.int64())], names=["code", "row"])
    first = rows.group_by("code").aggregate([("row", "min")]).sort_by("code")["row_min"]
    return codes.cast(pa.int32()), _in_one_piece(first)


def _full_paths(data_paths: DataPaths, references: pa.Array) -> pa.Array:
    full = data_paths.full_paths(references)
    # As `hadoop_path`.
    return pc.if_else(
        pc.starts_with(full, "/"), pc.binary_join_element_wise("file:", full, ""), full
    )
