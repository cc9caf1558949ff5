"""The data files and vector files of a version, compared with one listing of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.listed_files import LISTED_SCHEMA, listed_pages
from optimist.core.data.storage.missing_files import missing_files
from optimist.core.data.table_ref import TableRef
from optimist.core.data.vectors.deletion_vectors import deletion_vector_path
from optimist.core.log.file_table import DELETION_VECTOR_TYPE, deletion_vector_of
from optimist.core.maintenance.fsck.findings import FINDINGS, REPAIRS, findings_table
from optimist.core.maintenance.fsck.log_content import NAMED
from optimist.core.maintenance.fsck.openable_files import openable_files
from optimist.core.maintenance.fsck.unnamed_files import UnnamedFiles
from optimist.core.maintenance.vacuum.hidden_names import HiddenNames
from optimist.core.maintenance.vacuum.kept_paths import (
    path_below,
    relative_paths,
    relative_vector_paths,
)
from optimist.core.maintenance.vector_files import stored_vectors, vector_paths
from optimist.core.paths import join
from optimist.core.snapshot import Snapshot

__all__ = ["StoredData", "full_paths_of"]

_OF_DATA = ("missing-file", "truncated-file", "swapped-file")
_FRAME_BYTES = 8  # the length before a vector, and the checksum behind it


class StoredData:
    """The files below a table's directory, listed once.

    Attributes:
        unnamed: The listed files that no version names, as far as the log was read.

    Args:
        table: The table.
        snapshot: Its newest version.
    """

    def __init__(self, table: TableRef, snapshot: Snapshot) -> None:
        self._table = table
        self._snapshot = snapshot
        self._access = table.data_access()
        names = HiddenNames.of(snapshot)
        pages = listed_pages(table.table_path, self._access, names.enters, names.apart.add)
        listed = pa.Table.from_batches(pages, LISTED_SCHEMA)
        self._listed = listed.filter(pc.invert(listed.column("is_directory"))).combine_chunks()
        # Of the other columns, such as statistics, no copy is made.
        self._files = snapshot.files.select([*NAMED.names, "size"])
        self._at = self._places_of(self._files)
        kept_ms = snapshot.properties.deleted_file_retention_ms
        others = self._listed.filter(pa.array(_are_none_of(self._at, self._listed.num_rows)))
        self.unnamed = UnnamedFiles(table, names, others, kept_ms)
        with_vectors = self._files.filter(pc.is_valid(self._files.column("deletionVector")))
        for batch in with_vectors.select(NAMED.names).to_batches():
            self.unnamed.note(batch)

    def findings(self) -> Iterator[pa.Table]:
        """Yield rows of `FINDINGS`. Call it after `unnamed` has seen all that the log names."""
        files, foreign = openable_files(self._files, self._table.data_paths)
        yield findings_table(foreign)
        yield from self._compare_sizes(files)
        yield from self._compare_vectors(files)
        yield self._orphans()

    def change_findings(self, changes: pa.Table) -> Iterator[pa.Table]:
        """Yield rows of `FINDINGS` for change files.

        Args:
            changes: The change files that must be there: `path`, `size` and `version`.
        """
        vectors = pa.nulls(changes.num_rows, DELETION_VECTOR_TYPE)
        named = changes.append_column("deletionVector", vectors)
        files, foreign = openable_files(named, self._table.data_paths)
        yield findings_table(foreign)
        versions = files.column("version")
        full = self._full_paths(files.column("path"))
        for found in self._compare_sizes(files, ("bad-change-file",) * 3):
            of = versions.take(pc.index_in(found.column("path"), value_set=full))
            found = found.set_column(2, FINDINGS.field("version"), of)
            is_missing = pc.is_null(found.column("bytes"))
            if pc.any(is_missing, min_count=0).as_py():
                oldest = self._oldest_change_file(full, versions)
                found = found.filter(pc.fill_null(pc.greater_equal(of, oldest), False))
            yield found

    def _oldest_change_file(
        self, full: pa.ChunkedArray, versions: pa.ChunkedArray
    ) -> pa.Int64Scalar:
        """Return the first version of which a change file is there, or null.

        VACUUM with a short retention removes younger change files, but not before older ones.
        """
        gone = missing_files(full, self._table.table_path, self._access)
        is_there = pc.invert(pc.is_in(full, value_set=gone))
        return pc.min(versions.filter(is_there))

    def _compare_sizes(
        self, files: pa.Table, kinds: tuple[str, str, str] = _OF_DATA
    ) -> Iterator[pa.Table]:
        """Yield the files that are gone, shorter and longer than the log says, by these kinds."""
        at = self._at if files is self._files else self._places_of(files)
        files = files.select(["path", "size"])
        yield self._missing(kinds[0], files.column("path").filter(pc.is_null(at)))
        known = files.filter(pc.is_valid(at)) if at.null_count else files
        found = self._listed.column("size").take(at.drop_null())
        for kind, is_so in (
            (kinds[1], pc.less(found, known.column("size"))),
            (kinds[2], pc.greater(found, known.column("size"))),
        ):
            wrong, sizes = known.filter(is_so), found.filter(is_so)
            proof = pc.binary_join_element_wise(
                "the log says ",
                wrong.column("size").cast(pa.string()),
                " bytes, and the file has ",
                sizes.cast(pa.string()),
                "",
            )
            yield _rows(kind, self._full_paths(wrong.column("path")), proof, sizes)

    def _places_of(self, files: pa.Table) -> pa.Array:
        """Return at which row of the listing each file is, and null for files not listed."""
        references = files.column("path").combine_chunks()
        below = relative_paths(references, self._table.data_paths)
        return pc.index_in(below, value_set=self._listed.column("path").combine_chunks())

    def _missing(self, kind: str, references: pa.ChunkedArray) -> pa.Table:
        """Return those of the log's paths at which there is no file."""
        full = self._full_paths(references)
        gone = missing_files(full, self._table.table_path, self._access)
        return _rows(kind, gone, "the log names it, and there is no such file")

    def _full_paths(self, references: pa.ChunkedArray) -> pa.ChunkedArray:
        paths = self._table.data_paths
        return pa.chunked_array(map(paths.full_paths, references.chunks), pa.string())

    def _compare_vectors(self, files: pa.Table) -> Iterator[pa.Table]:
        """Compare each file of vectors with the end of the last vector in it."""
        ends = self._ends_of_vectors(files)
        paths, wanted = pa.array(ends, pa.string()), pa.array(ends.values(), pa.int64())
        below = pa.array([path_below(each, self._table.data_paths) for each in ends], pa.string())
        at = pc.index_in(below, value_set=self._listed.column("path").combine_chunks())
        unlisted = pa.chunked_array([paths.filter(pc.is_null(at))])
        gone = missing_files(unlisted, self._table.table_path, self._access)
        proof = "the log names it, and there is no such file"
        yield _rows("missing-vector", gone, proof)
        sizes = self._listed.column("size").take(at.drop_null())
        is_short = pc.less(sizes, wanted.filter(pc.is_valid(at)))
        short = paths.filter(pc.is_valid(at)).filter(is_short)
        proof = "it ends before the last vector in it"
        yield _rows("truncated-vector", short, proof, sizes.filter(is_short))

    def _ends_of_vectors(self, files: pa.Table) -> dict[str, int]:
        """Return the full path of each file of vectors, with the end of the last one in it."""
        vectors = stored_vectors(files)
        kind, data, offset, size, *_ = vectors.flatten()
        end = pc.add(pc.fill_null(offset, 0).cast(pa.int64()), size.cast(pa.int64()))
        rows = pa.table({"kind": kind, "data": data, "end": end})
        rows = rows.append_column("row", pa.array(range(len(vectors)), pa.int64()))
        last = rows.group_by(["kind", "data"]).aggregate([("end", "max"), ("row", "min")])
        # One of each file stands for all of its vectors: it names the file.
        named = map(deletion_vector_of, vectors.take(last.column("row_min")).to_pylist())
        ends: dict[str, int] = {}
        for vector, most in zip(named, last.column("end_max").to_pylist(), strict=True):
            path = None if vector is None else deletion_vector_path(vector, self._table.data_paths)
            if path is not None:
                ends[path] = max(ends.get(path, 0), most + _FRAME_BYTES)
        return ends

    def _orphans(self) -> pa.Table:
        orphans = self.unnamed.left()
        proof = "no version in the log names it"
        paths = _inside(orphans.column("path"), self._table)
        return _rows("orphan", paths, proof, orphans.column("size"))


def full_paths_of(files: pa.Table, table: TableRef) -> pa.Array:
    """Return each full path under which a finding may name these data files and their vectors."""
    files, not_opened = openable_files(files, table.data_paths)
    references = files.column("path").combine_chunks()
    below = relative_paths(references, table.data_paths).drop_null()
    found = [
        table.data_paths.full_paths(references),
        _inside(below, table),
        vector_paths(files, table.data_paths),
        _inside(relative_vector_paths(files, table.data_paths), table),
        pa.array([each.path for each in not_opened], pa.string()),
    ]
    return pa.concat_arrays([each.cast(pa.string()) for each in found])


def _inside(below: Any, table: TableRef) -> Any:
    """Return the full paths of relative ones."""
    return pc.binary_join_element_wise(join(table.table_path, ""), below, "")


def _are_none_of(rows: pa.Array, count: int) -> np.ndarray:
    """Return for each of so many rows whether it is none of these."""
    found = np.ones(count, bool)
    found[rows.drop_null().to_numpy()] = False
    return found


def _rows(kind: str, paths: Any, proof: Any, sizes: Any = None) -> pa.Table:
    length = len(paths)
    columns = {
        "kind": pa.repeat(kind, length),
        "path": paths,
        "version": pa.nulls(length, pa.int64()),
        "bytes": pa.nulls(length, pa.int64()) if sizes is None else sizes,
        "proof": pa.repeat(proof, length) if isinstance(proof, str) else proof,
        "repair": pa.repeat(REPAIRS[kind], length),
    }
    return pa.table(columns, schema=FINDINGS)
