"""The files of a scan and their partitions as Arrow tables; no JVM, no object per file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import partition_columns_of
from optimist.core.log.file_table import canonical_paths
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.schema.types import StructType

__all__ = ["FileListing", "digest_of", "file_identities", "hadoop_path"]

_SCHEME = "^[A-Za-z][A-Za-z0-9+.-]*:/"


@dataclass(frozen=True, slots=True)
class FileListing:
    """Files of one table version, each with the ordinal of its partition.

    Attributes:
        files: The files as the log has them (`FILES_SCHEMA`).
        paths: Their full paths for Hadoop, not percent-encoded, in the order of `files`.
        ordinals: Which row of `partitions` each belongs to (int32).
        partitions: The distinct partition values, typed; one column per partition column.
    """

    files: pa.Table
    paths: pa.Array
    ordinals: pa.Array
    partitions: pa.Table

    @classmethod
    def of(
        cls,
        table_path: str,
        files: pa.Table,
        partition_fields: StructType,
        *,
        zone: str,
        constants: pa.Table | None = None,
    ) -> FileListing:
        """Group the files by partition.

        Args:
            table_path: Where relative paths start.
            files: A `FILES_SCHEMA` table.
            partition_fields: The partition columns, in order.
            zone: The session's zone, for timestamps that were written without one.
            constants: More columns, a row per file, that are to be taken for partition values.

        Raises:
            TableError: A partition value does not parse as its column's type.
        """
        typed = partition_columns_of(files, partition_fields, zone=zone)
        if constants is not None:
            names = [*typed.column_names, *constants.column_names]
            typed = pa.table([*typed.columns, *constants.columns], names=names)
        ordinals, first_rows = _group(typed)
        return cls(
            files=files,
            paths=_full_paths(table_path, files["path"]),
            ordinals=ordinals,
            partitions=typed.take(first_rows),
        )

    def filter(self, mask: pa.Array) -> FileListing:
        """The files where the mask is true; the partitions stay as they are."""
        return FileListing(
            self.files.filter(mask),
            self.paths.filter(mask),
            self.ordinals.filter(mask),
            self.partitions,
        )

    def column(self, name: str) -> pa.Array:
        """One column of `files` in one piece."""
        return _in_one_piece(self.files[name])

    @property
    def num_files(self) -> int:
        """How many files there are."""
        return int(self.files.num_rows)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return int(pc.sum(self.files["size"], min_count=0).as_py())


def hadoop_path(path: str) -> str:
    """A table's path for Hadoop: what has no scheme is local, whatever `fs.defaultFS` says."""
    return path if scheme_of(path) not in ("", "file") else f"file:{strip_file_scheme(path)}"


def file_identities(files: pa.Table) -> pa.Array:
    """What tells logical files apart, a text each: the path, and the deletion vector (spec 5.6)."""
    # Taken out of larger tables, columns keep the memory of all rows: only a copy holds theirs
    # alone.
    parts = [_in_one_piece(files["path"])]
    if "deletionVector" in files.column_names:
        vectors = _in_one_piece(files["deletionVector"])
        keys = ("storageType", "pathOrInlineDv", "offset")
        parts += [pc.struct_field(vectors, key).cast(pa.string()) for key in keys]
    return pc.binary_join_element_wise(*parts, "@", null_handling="replace")


def digest_of(files: pa.Table) -> str:
    """Tells one choice of files of a version from another; part of the equality of two scans."""
    digest = hashlib.sha256()
    texts = pc.binary_join_element_wise(file_identities(files), "", "\n")
    for buffer in texts.buffers():
        if buffer is not None:
            digest.update(buffer)
    return digest.hexdigest()[:16]


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _group(typed: pa.Table) -> tuple[pa.Array, pa.Array]:
    """The ordinal of each row's combination of values, and the first row of each combination."""
    codes = pa.repeat(pa.scalar(0, pa.int64()), typed.num_rows)
    for column in typed.columns:
        encoded = _in_one_piece(column).dictionary_encode(null_encoding="encode")
        wide = pc.multiply(codes, pa.scalar(len(encoded.dictionary), pa.int64()))
        # Encoded again after each column, so the codes stay below the number of rows and can't
        # overflow.
        codes = pc.add(wide, encoded.indices.cast(pa.int64())).dictionary_encode().indices
        codes = codes.cast(pa.int64())
    rows = pa.table([codes, pa.array(range(typed.num_rows), pa.int64())], names=["code", "row"])
    first = rows.group_by("code").aggregate([("row", "min")]).sort_by("code")["row_min"]
    return codes.cast(pa.int32()), _in_one_piece(first)


def _full_paths(table_path: str, references: pa.ChunkedArray) -> pa.Array:
    decoded = canonical_paths(_in_one_piece(references))
    rooted = pc.starts_with(decoded, "/")
    absolute = pc.match_substring_regex(decoded, _SCHEME)
    root = hadoop_path(table_path).rstrip("/")
    local = pc.binary_join_element_wise("file:", decoded, "")
    relative = pc.binary_join_element_wise(root, decoded, "/")
    return pc.if_else(rooted, local, pc.if_else(absolute, decoded, relative))
