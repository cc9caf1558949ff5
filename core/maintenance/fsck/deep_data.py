"""The content of a version's data files and vectors, and whether their statistics are true."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.parquet.row_counts import rows_by_footer
from optimist.core.data.storage.unreadable_files import UNREADABLE
from optimist.core.data.table_ref import TableRef
from optimist.core.data.vectors.deletion_vectors import ensure_rows_exist, read_deletion_vector
from optimist.core.errors import OptimistError, StorageError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.file_table import add_files
from optimist.core.maintenance.fsck.findings import Finding
from optimist.core.maintenance.fsck.openable_files import openable_files
from optimist.core.maintenance.fsck.sample import Sample
from optimist.core.predicates import col
from optimist.core.predicates.text import quote_path
from optimist.core.protocol.actions import AddFile
from optimist.core.runtime.progress import ProgressReport
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.local_scan import to_arrow

__all__ = ["DeepData"]

_READERS = 4
_DAMAGE = frozenset(
    {
        "DELTA_FILE_NOT_FOUND_DETAILED",
        "OPTIMIST_DATA_FILE_TYPE_MISMATCH",
        "OPTIMIST_DATA_FILE_WITHOUT_IDS",
        "OPTIMIST_UNREADABLE_DATA_FILE",
    }
)
"""The kinds of error that mean that no engine can read a file."""


@dataclass(frozen=True, slots=True)
class DeepData:
    """The reader of one version's files.

    Attributes:
        table: The table.
        snapshot: The version.
        report: Is told of each file.
        files: The files to read.
    """

    table: TableRef
    snapshot: Snapshot
    report: ProgressReport
    files: pa.Table

    @classmethod
    def of(
        cls, table: TableRef, snapshot: Snapshot, report: ProgressReport, sample: Sample | None
    ) -> DeepData:
        """Make the reader of all files that may be opened, or of a sample of them."""
        files, _ = openable_files(snapshot.files, table.data_paths)
        return cls(table, snapshot, report, files if sample is None else sample.among(files))

    def findings(self, without: set[str]) -> Iterator[Finding]:
        """Read the files, and yield what is wrong.

        Args:
            without: Full paths that are known to be missing or damaged already.
        """
        files, numbers = self.files, range(self.files.num_rows)
        checked = read_ahead(
            lambda number: self._findings_of(files.slice(number, 1), without),
            numbers,
            threads=_READERS,
            ahead=2 * _READERS,
        )
        told: set[str] = set()
        for finding in chain.from_iterable(self.report.each("data", checked, len(numbers))):
            if finding.path not in told:  # data files share files of vectors
                yield finding
            told.add(finding.path)

    def _findings_of(self, row: pa.Table, without: set[str]) -> list[Finding]:
        (add,) = add_files(row)
        path = self.table.data_paths.full_path(add.path)
        if path in without:
            return []
        try:
            num_rows = rows_by_footer(path, self.table.data_access())
        except StorageError:
            raise
        except UNREADABLE as error:
            return [Finding("damaged-file", path, shown(str(error)), size_bytes=add.size)]
        noted = _noted(add)
        said = noted.get("numRecords")
        if said is not None and said != num_rows:
            proof = f"the log says {said} rows, and the file has {num_rows}"
            return [Finding("swapped-file", path, proof, size_bytes=add.size)]
        wrong = self._error_of_vector(add, path, num_rows)
        if wrong is not None:
            damaged = str(wrong.fields.get("path", path))
            vector = Finding("damaged-vector", damaged, str(wrong.args[0]))
            return [] if damaged in without else [vector]
        return list(self._statistics_of(row, path, noted))

    def _error_of_vector(self, add: AddFile, path: str, num_rows: int) -> TableError | None:
        if add.deletion_vector is None:
            return None
        try:
            rows = read_deletion_vector(
                add.deletion_vector, self.table.data_paths, self.table.data_access()
            )
            ensure_rows_exist(rows, num_rows, path)
        except TableError as error:
            return error
        return None

    def _statistics_of(self, row: pa.Table, path: str, noted: dict[str, Any]) -> Iterator[Finding]:
        """Compare the bounds and counts of the log with the rows of the file.

        Rows that a vector deletes don't count: bounds may be those of the others (spec 9.1).
        """
        if not noted:
            return
        metadata = replace(self.snapshot.metadata, id=f"{self.snapshot.metadata.id}-fsck")
        view = self.snapshot.with_other_files(metadata, row)
        try:
            rows = to_arrow(view, access=self.table.data_access())
        except StorageError:
            raise
        except OptimistError as error:
            if _is_damage(error):
                yield Finding("damaged-file", path, str(error.args[0]))
            return
        partition = set(self.snapshot.partition_columns)
        for name in self.snapshot.schema.names:
            wrong = None if name in partition else _untruth(view, name, rows.column(name))
            if wrong:
                yield Finding("untrue-statistics", path, f"column {shown(name)}: {wrong}")
                return


def _is_damage(error: OptimistError) -> bool:
    """Return whether no engine can read a file, as opposed to this engine only."""
    # Spark writes variants that only its own reader can put together again.
    return error.kind in _DAMAGE and error.fields.get("type") != "variant"


def _noted(add: AddFile) -> dict[str, Any]:
    try:
        found = json.loads(add.stats or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _untruth(view: FilesView, name: str, values: pa.ChunkedArray) -> str | None:
    """Return the wrong answer to which the statistics of a column lead, or None if there is none.

    The engine's own rules decide what a query would leave out, since many texts of a bound are
    wider or narrower than they look.
    """
    column, nulls = col(quote_path((name,))), values.null_count
    counted = view.count(column.is_null()).total
    if counted is not None and counted != nulls:
        return f"{nulls} values are null, and by the log {counted}"
    for value in _ends(values):
        if not view.scan(column == value).files.num_rows:
            return f"it holds the value {shown(value)}, and a query for that leaves the file out"
    if len(values) > nulls and not view.scan(~column.is_null()).files.num_rows:
        return "it holds values, and a query for them leaves the file out"
    return None


def _ends(values: pa.ChunkedArray) -> list[Any]:
    """Return the smallest and the largest value, where Python has the type and they have order."""
    kind = values.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind):
        return []
    if pa.types.is_floating(kind):
        values = values.filter(pc.invert(pc.is_nan(values)))
    try:
        found = pc.min_max(values).as_py()
    except (ValueError, OverflowError):  # beyond the calendar of Python
        return []
    return [value for value in found.values() if value is not None]
