"""DELETE by vectors: data files stay, and the log records which of their rows are deleted.

Each file is removed with its old vector and added with its new one, which includes the old one's
rows (spec 10.10). A file without live rows is only removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.changes.vectors import all_but
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.parquet.row_counts import rows_by_footer
from optimist.core.data.statistics.loose_bounds import loosen_bounds
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.data.storage.unreadable_files import UNREADABLE
from optimist.core.data.table_ref import TableRef
from optimist.core.data.vectors.deletion_vectors import (
    ensure_rows_exist,
    inline_vector,
    read_deletion_vectors,
)
from optimist.core.data.vectors.vector_writer import write_deletion_vectors
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.file_table import files_table
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor
from optimist.core.runtime.read_ahead import read_ahead

__all__ = [
    "ChosenRows",
    "MarkedFile",
    "MarkedFiles",
    "choose_rows",
    "deleted_rows",
    "only_chosen",
    "without_rows",
]

_READERS = 8
_MOST_ROWS = 1 << 36
"""More rows than any file has, but few enough that their ranges fit into memory."""


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """Live rows of one data file that a command changes.

    Attributes:
        file: The file.
        rows: The positions of the rows in the file, from 0. At least one.
        deleted: The positions that the file's vector already deletes.
        num_rows: The number of rows in the file, deleted ones included.
    """

    file: AddFile
    rows: BitMap64
    deleted: BitMap64
    num_rows: int

    @property
    def are_all(self) -> bool:
        """Whether these are all live rows of the file."""
        return len(self.rows) + len(self.deleted) == self.num_rows


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A data file that got a new vector."""

    before: AddFile
    after: AddFile


@dataclass(frozen=True, slots=True)
class MarkedFiles:
    """The files of a command that deleted some of their rows.

    Attributes:
        marked: The files that still have live rows.
        emptied: The files without live rows, which are removed.
    """

    marked: tuple[MarkedFile, ...] = ()
    emptied: tuple[AddFile, ...] = ()

    @classmethod
    def write(
        cls, table: TableRef, chosen: Sequence[ChosenRows], pending: UncommittedFiles
    ) -> MarkedFiles:
        """Delete the chosen rows by vectors, and register the vector files in `pending`.

        Raises:
            StorageError: A file of vectors can't be written.
        """
        partly = [item for item in chosen if not item.are_all]
        vectors = write_deletion_vectors(
            [item.deleted | item.rows for item in partly], table, pending.register_path
        )
        return cls(
            tuple(map(_with_vector, partly, vectors)),
            tuple(item.file for item in chosen if item.are_all),
        )


def choose_rows(
    table: TableRef,
    files: Sequence[AddFile],
    rows: Sequence[BitMap64],
    *,
    deleted: Sequence[BitMap64] | None = None,
) -> tuple[ChosenRows, ...]:
    """Return the chosen rows of each file, with all that is needed to delete them.

    Args:
        table: The table.
        files: Files of one version.
        rows: The positions of the rows to delete, for each file.
        deleted: The result of `deleted_rows` for the files; None to read it here.

    Raises:
        TableError: A row is already deleted (kind `DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH`); a
            file has fewer rows, or can't be read to count them (kind
            `OPTIMIST_UNREADABLE_DATA_FILE`); or a vector is gone or damaged, see
            `read_deletion_vectors` and `ensure_rows_exist`.
    """
    old = deleted_rows(table, files) if deleted is None else deleted
    counts = read_ahead(
        lambda item: _count_rows(table, *item),
        zip(files, rows, old, strict=True),
        threads=_READERS,
        ahead=2 * _READERS,
    )
    chosen = tuple(map(ChosenRows, files, rows, old, counts))
    for item in chosen:
        ensure_rows_exist(item.deleted, item.num_rows, item.file.path)
        _ensure_live(item)
    return chosen


def deleted_rows(table: TableRef, files: Sequence[AddFile]) -> list[BitMap64]:
    """Return the positions that the vector of each file deletes.

    Raises:
        TableError: A vector is gone or damaged; see `read_deletion_vectors`.
    """
    given = [file.deletion_vector for file in files if file.deletion_vector]
    read = iter(read_deletion_vectors(given, table.data_paths, table.data_access()))
    return [next(read) if file.deletion_vector else BitMap64() for file in files]


def only_chosen(chosen: Iterable[ChosenRows]) -> pa.Table:
    """Return the files as rows of `Snapshot.files`, with only the chosen rows live.

    A second pass then reads exactly these rows. If it evaluated the condition again, it could find
    other rows, for example because the condition uses the current time. The files have no
    statistics, because the log's row counts may differ from those found.
    """
    return files_table(
        replace(item.file, deletion_vector=all_but(item.rows, item.num_rows), stats=None)
        for item in chosen
    )


def without_rows(files: Sequence[AddFile], rows: Sequence[BitMap64]) -> pa.Table:
    """Return the files as rows of `Snapshot.files`, with exactly these rows deleted."""
    return files_table(
        replace(file, deletion_vector=inline_vector(gone), stats=None)
        for file, gone in zip(files, rows, strict=True)
    )


def _count_rows(table: TableRef, file: AddFile, rows: BitMap64, deleted: BitMap64) -> int:
    """Count a file's rows by its statistics, or by its footer if these can't be right.

    A file without live rows is removed, and with it each row that its statistics do not count. So
    the footer decides that none is left.
    """
    count = num_rows(file.stats)
    is_possible = count is not None and rows.max() < count <= _MOST_ROWS
    if count is not None and is_possible and count != len(rows) + len(deleted):
        return count
    path = table.data_paths.full_path(file.path)
    reason = "the file is gone or can't be read"
    try:
        count = rows_by_footer(path, table.data_access())
    except UNREADABLE:
        count = None
    if count is not None and rows.max() < count:
        return count
    if count is not None:
        reason = f"its footer says {count}, but row {rows.max()} should be deleted"
    raise TableError(
        f"The log has no correct row count for the data file {shown(path)}, and {reason}. "
        "Nothing was written. Restore the file, and run the operation again.",
        kind="OPTIMIST_UNREADABLE_DATA_FILE",
        path=path,
    )


def _ensure_live(item: ChosenRows) -> None:
    if item.rows.isdisjoint(item.deleted):
        return
    raise TableError(
        f"The command would delete {len(item.rows & item.deleted)} rows of the data file "
        f"{shown(item.file.path)} that its deletion vector deletes already. Nothing was written. "
        "The file or its vector was replaced by hand, or this is a bug: please report it.",
        kind="DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
        path=item.file.path,
    )


def _with_vector(item: ChosenRows, vector: DeletionVectorDescriptor) -> MarkedFile:
    stats = loosen_bounds(
        item.file.stats,
        num_rows=item.num_rows,
        num_live=item.num_rows - len(item.deleted),
    )
    after = replace(item.file, deletion_vector=vector, stats=stats, data_change=True)
    return MarkedFile(item.file, after)
