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

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.marked_files import ChosenRows, only_chosen
from optimist.core.commands.merge.run import RowsToMerge
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet.parquet_reader import Positions
from optimist.core.local.merge.inserted_rows import InsertedRows, is_clause, with_all_columns
from optimist.core.local.merge.matches import FileMatches, find_matches
from optimist.core.local.merge.resolution import LocalResolvedMerge
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
        changed: What becomes of the rows of each of the touched files.
        is_matched: For each row of the source whether it matches a row; empty if none is inserted.
    """

    changed: Sequence[FileMatches]
    is_matched: np.ndarray


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
        found, is_matched = find_matches(self.writer.target, candidates, self.merge)
        positions = [item.positions for item in found]
        touched = [at for at, rows in enumerate(positions) if rows]
        depended = [rows | item.matched for rows, item in zip(positions, found, strict=True)]
        if not self.merge.has_inserts:  # no row of the source is kept out by a match
            depended = positions
        needed = [at for at, rows in enumerate(depended) if rows]
        changed = [found[at] for at in touched]
        yield LocalRowsToMerge(
            _touched_files(candidates, touched, [positions[at] for at in touched]),
            self.merge.counts(_rows_by_clause(changed)),
            _touched_files(candidates, needed, [depended[at] for at in needed]),
            changed,
            is_matched,
        )

    def write(
        self, found: LocalRowsToMerge, chosen: Sequence[ChosenRows] | None
    ) -> tuple[WrittenFiles, int]:
        """See `MergeTarget`."""
        inserted = InsertedRows(self.merge, self._schema, found.is_matched)
        rows = _ChangedRows(self.merge, self._schema, found.changed)
        if not found.changed:
            written = WrittenFiles() if found.is_matched.all() else self.writer.write(inserted)
        elif chosen is None:
            files = found.touched.files
            written = self.writer.rewrite(files, "MERGE", rows.all_rows, added=inserted)
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
        if needed or writer.target.snapshot.has_active("rowTracking"):
            before = writer.target.snapshot.schema
            columns = StructType(tuple(item for item in before if item.name in needed))
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
        found: What becomes of the rows of each file.
    """

    merge: LocalResolvedMerge
    schema: StructType
    found: Sequence[FileMatches]

    def all_rows(self, file: int, batch: pa.RecordBatch, positions: Positions) -> Iterator[Written]:
        """Yield the rows of a batch that stay, and those that change."""
        is_changed = is_among(positions(), self.found[file].positions)
        yield KEPT, pa.Table.from_batches([batch]).filter(pc.invert(is_changed))
        yield from self.changed_rows(file, batch, positions)

    def changed_rows(
        self, file: int, batch: pa.RecordBatch, positions: Positions
    ) -> Iterator[Written]:
        """Yield the rows of a batch that change: as they were, and with their new values."""
        places = positions()
        changed, rows = self.found[file].changed_at(places), pa.Table.from_batches([batch])
        number = pc.index_in(places, value_set=_one_array(changed["position"]))
        yield from self._by_clause(changed.take(number.drop_null()), rows.filter(number.is_valid()))

    def updated_without_target(self) -> Iterator[pa.Table]:
        """Yield the updated rows of each file, whose new values need no row of the table."""
        field = to_arrow_schema(self.schema).field(0)
        for item in self.found:
            for changed in item.changed.to_batches(max_chunksize=_ROWS_TOGETHER):
                unread = pa.table([pa.nulls(changed.num_rows, field.type)], names=[field.name])
                for kinds, rows in self._by_clause(pa.Table.from_batches([changed]), unread):
                    if kinds == AFTER:
                        yield rows

    def _by_clause(self, changed: pa.Table, target: pa.Table) -> Iterator[Written]:
        """Yield rows that change, as they were and with their new values, clause by clause.

        Args:
            changed: What becomes of each row; see `FileMatches`.
            target: The rows of the table, with the columns that were read.
        """
        for item in self.merge.clauses:
            mask = is_clause(changed["clause"], item)
            if not mask.true_count:
                continue
            rows = target.filter(mask)
            if item.assignments is None:
                yield DELETED, rows
                continue
            source = None
            if item.kind == "MATCHED":
                numbers = changed["source"].filter(mask).to_numpy()
                source = self.merge.source.take(numbers, self.merge.source_columns(item))
            seen = self.merge.sides.rows(item.kind, target=rows, source=source)
            yield AFTER, item.assignments.updated(with_all_columns(rows, self.schema), seen)
            yield BEFORE, rows


def _rows_by_clause(changed: Sequence[FileMatches]) -> Counter[int]:
    """Return how many rows get each clause, by its number."""
    counts: Counter[int] = Counter()
    for item in changed:
        counts.update(item.num_by_clause())
    return counts


def _touched_files(
    candidates: pa.Table, indexes: Sequence[int], rows: Sequence[BitMap64]
) -> TouchedFiles:
    """Return some of the candidates with rows in them."""
    files = candidates.take(pa.array(indexes, pa.int64()))
    return TouchedFiles(files, sum(map(len, rows)), tuple(rows))


def _one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
