"""The rows of a MERGE without Spark (spec 10.15, profiles MG and MGi of 2.13).

1. Every expression is resolved before a row is read.
2. The values of the source's keys, or ranges of them, tell which files can hold rows that match.
   With a clause for NOT MATCHED BY SOURCE, all files are searched.
3. The search reads only the columns that decide which rows match and which clauses they get.
4. Updated rows are written with their new values, together with the new rows. With the change data
   feed, changes are written to change files, unless the commit itself shows them: where rows are
   only added, or also deleted by vectors.

`merge_rows` in `core/commands/merge/run.py` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.marked_files import ChosenRows, only_chosen
from optimist.core.commands.merge.run import RowsToMerge
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet.parquet_reader import Positions
from optimist.core.data.parquet.text_dictionaries import with_plain_texts
from optimist.core.local.merge.found_rows import FoundRows
from optimist.core.local.merge.inserted_rows import InsertedRows, with_all_columns
from optimist.core.local.merge.matches import find_matches
from optimist.core.local.merge.resolution import LocalResolvedClause, LocalResolvedMerge
from optimist.core.local.row_writer import AFTER, BEFORE, DELETED, KEPT, RowWriter, Written
from optimist.core.local.target import is_among
from optimist.core.log.file_table import files_table
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import StructType
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["LocalMergeTarget"]

_ROWS_TOGETHER = 131_072
"""So many updated rows are made at a time."""


@dataclass(frozen=True, slots=True)
class LocalRowsToMerge(RowsToMerge):
    """What the search has found, and the rows of the source that match nothing.

    Attributes:
        rows: The rows.
        names: The log's names for the touched files.
    """

    rows: FoundRows
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class LocalMergeTarget:
    """The rows of one MERGE, as a `MergeTarget`.

    Attributes:
        writer: Writes the rows.
        merge: The expressions.
    """

    writer: RowWriter
    merge: LocalResolvedMerge

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        return self.writer.target.txn

    @property
    def num_source_rows(self) -> int:
        """How many rows the source has."""
        return int(self.merge.source.num_rows)

    @property
    def _schema(self) -> StructType:
        """The table's schema after the MERGE."""
        return self.txn.table_metadata.schema

    @contextmanager
    def search(self, candidates: pa.Table) -> Iterator[LocalRowsToMerge]:
        """See `MergeTarget`."""
        with find_matches(self.writer.target, candidates, self.merge) as found:
            files, names = _files_of(candidates, found.names)
            changed = [found.file(name).changed for name in names]
            depended = changed
            if self.merge.has_inserts:  # a match keeps a row of the source out
                depended = [found.file(name).matched | changed[at] for at, name in enumerate(names)]
            yield LocalRowsToMerge(
                _touched_files(files, changed),
                self.merge.counts(found.num_by_clause()),
                _touched_files(files, depended),
                found,
                [name for name, rows in zip(names, changed, strict=True) if rows],
            )

    def write(
        self, found: LocalRowsToMerge, chosen: Sequence[ChosenRows] | None
    ) -> tuple[WrittenFiles, int]:
        """See `MergeTarget`."""
        has_new = self.merge.has_inserts and found.rows.num_unmatched > 0
        inserted = InsertedRows(self.merge, self._schema, found.rows)
        rows = _ChangedRows(self.merge, self._schema, found.rows, found.names)
        if not found.names:
            written = self.writer.write(inserted) if has_new else WrittenFiles()
        elif chosen is None:
            files = found.touched.files
            written = self.writer.rewrite(
                files, "MERGE", rows.all_rows, added=inserted, with_dictionaries=True
            )
        else:
            written = self._write_updated(rows, found, chosen, inserted)
        numbered = inserted.numbered if inserted.num_rows else ()
        self.txn.advance_identity_columns(numbered, written.adds)
        return written, inserted.num_rows

    def _write_updated(
        self,
        rows: _ChangedRows,
        found: LocalRowsToMerge,
        chosen: Sequence[ChosenRows],
        inserted: InsertedRows,
    ) -> WrittenFiles:
        """Write the updated rows and the new rows, and leave all other rows in their files."""
        writer = self.writer
        if not found.counts.all_updated:
            return writer.write(inserted)
        if writer.records_changes:
            return writer.rewrite(only_chosen(chosen), "MERGE", rows.changed_rows, added=inserted)
        needed, added = self.merge.columns_for_update(self._schema), iter(inserted)
        # No file has the columns that the MERGE adds to the table.
        before = writer.target.snapshot.schema
        columns = StructType(tuple(item for item in before if item.name in needed))
        if columns.fields or writer.target.snapshot.has_active("rowTracking"):
            files = only_chosen(chosen)
        else:  # the new values are made of the source alone
            columns, files = self._schema, files_table([])
            added = chain(added, rows.updated_without_target())
        return writer.rewrite(files, "MERGE", rows.changed_rows, columns=columns, added=added)


@dataclass(frozen=True, slots=True)
class _ChangedRows:
    """Makes the rows that a MERGE writes in place of those that it changes.

    Attributes:
        merge: The expressions.
        schema: The table's schema.
        found: What becomes of the rows.
        names: The log's names for the files that are read, in their order.
    """

    merge: LocalResolvedMerge
    schema: StructType
    found: FoundRows
    names: Sequence[str]

    def all_rows(self, file: int, batch: pa.RecordBatch, positions: Positions) -> Iterator[Written]:
        """Yield the rows of a batch that stay, and those that change."""
        rows, places = pa.Table.from_batches([batch]), positions()
        is_changed = is_among(places, self.found.file(self.names[file]).changed)
        yield KEPT, rows.filter(pc.invert(is_changed))
        yield from self._by_clause(self.names[file], rows, places)

    def changed_rows(
        self, file: int, batch: pa.RecordBatch, positions: Positions
    ) -> Iterator[Written]:
        """Yield the rows of a batch that change: as they were, and with their new values."""
        rows = pa.Table.from_batches([batch])
        yield from self._by_clause(self.names[file], rows, positions())

    def updated_without_target(self) -> Iterator[pa.Table]:
        """Yield the updated rows of each file, whose new values need no row of the table."""
        for name in self.names:
            for item in self.merge.clauses:
                if item.assignments is None:
                    continue
                for source, count in self._sources(name, item):
                    yield self._updated(item, self._unread(count), source)

    def _sources(
        self, name: str, clause: LocalResolvedClause
    ) -> Iterator[tuple[pa.Table | None, int]]:
        """Yield the source's rows for the rows of a file that a clause updates, and how many.

        They are None where the new values need no row of the source.
        """
        if self.merge.columns_of_source.get(clause.number):
            for values in self.found.values.parts(name, clause.number):
                yield values, values.num_rows
            return
        count = len(self.found.file(name).by_clause.get(clause.number, ()))
        for first in range(0, count, _ROWS_TOGETHER):
            yield None, min(_ROWS_TOGETHER, count - first)

    def _unread(self, count: int) -> pa.Table:
        """Return rows of the table of which no column was read."""
        field = to_arrow_schema(self.schema).field(0)
        return pa.table([pa.nulls(count, field.type)], names=[field.name])

    def _by_clause(self, name: str, rows: pa.Table, positions: pa.Array) -> Iterator[Written]:
        """Yield rows that change, as they were and with their new values, clause by clause.

        Args:
            name: The log's name for the file.
            rows: The rows of the table, with the columns that were read.
            positions: Their positions in the file.
        """
        for item in self.merge.clauses:
            wanted = self.found.file(name).by_clause.get(item.number)
            mask = None if wanted is None else is_among(positions, wanted)
            if mask is None or not mask.true_count:
                continue
            old = with_plain_texts(rows.filter(mask))
            if item.assignments is None:
                yield DELETED, old
                continue
            source = None
            if self.merge.columns_of_source.get(item.number):
                source = self.found.values.at(name, positions.filter(mask))
            yield AFTER, self._updated(item, old, source)
            yield BEFORE, old

    def _updated(
        self, clause: LocalResolvedClause, rows: pa.Table, source: pa.Table | None
    ) -> pa.Table:
        """Return rows with the new values that a clause gives them."""
        assignments = clause.assignments
        if assignments is None:
            raise ValueError(f"the clause {clause.number} updates nothing")
        seen = self.merge.sides.rows(clause.kind, target=rows, source=source)
        return assignments.updated(with_all_columns(rows, self.schema), seen)


def _files_of(candidates: pa.Table, names: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """Return the candidates of these names in their order, and their names."""
    wanted = pa.array(names, pa.string())
    files = candidates.filter(pc.is_in(candidates["path"], value_set=wanted))
    return files, files["path"].to_pylist()


def _touched_files(files: pa.Table, rows: Sequence[BitMap64]) -> TouchedFiles:
    """Return those of the files that have rows."""
    has_rows = pa.array(map(bool, rows), pa.bool_())
    return TouchedFiles(files.filter(has_rows), sum(map(len, rows)), tuple(filter(None, rows)))
