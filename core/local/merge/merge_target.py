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

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.marked_files import ChosenRows, only_chosen
from optimist.core.commands.merge.run import RowsToMerge
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.identity_numbers import with_identity_numbers
from optimist.core.data.parquet.parquet_reader import Positions
from optimist.core.data.row_numbers import row_numbers
from optimist.core.local.merge.matches import FileMatches, find_matches
from optimist.core.local.merge.resolution import LocalResolvedClause, LocalResolvedMerge
from optimist.core.local.row_writer import AFTER, BEFORE, DELETED, KEPT, RowWriter, Written
from optimist.core.local.target import positions_of
from optimist.core.log.file_table import files_table
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import StructType
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["LocalMergeTarget"]


@dataclass(frozen=True, slots=True)
class LocalRowsToMerge(RowsToMerge):
    """What the search has found, and the rows that are added.

    Attributes:
        changed: The rows that change in each of the touched files; see `FileMatches`.
        inserted: The new rows.
        numbered: The identity columns in which the new rows got numbers.
    """

    changed: Sequence[pa.Table]
    inserted: pa.Table
    numbered: tuple[str, ...]


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
        return self.writer.target.snapshot.schema

    @contextmanager
    def search(self, candidates: pa.Table) -> Iterator[LocalRowsToMerge]:
        """See `MergeTarget`."""
        found = list(find_matches(self.writer.target, candidates, self.merge))
        touched = [at for at, item in enumerate(found) if item.changed.num_rows]
        needed = [at for at, item in enumerate(found) if item.needed]
        changed = [found[at].changed for at in touched]
        positions = [positions_of(_one_array(item["position"])) for item in changed]
        inserted, numbered = self._new_rows(found)
        yield LocalRowsToMerge(
            _touched_files(candidates, touched, positions),
            self.merge.counts(_rows_by_clause(changed)),
            _touched_files(candidates, needed, [found[at].needed for at in needed]),
            changed,
            inserted,
            numbered,
        )

    def write(
        self, found: LocalRowsToMerge, chosen: Sequence[ChosenRows] | None
    ) -> tuple[WrittenFiles, int]:
        """See `MergeTarget`."""
        inserted = found.inserted
        rows = _ChangedRows(self.merge, self._schema, found.changed)
        if not found.changed:
            written = self.writer.write(inserted)
        elif chosen is None:
            files = found.touched.files
            written = self.writer.rewrite(files, "MERGE", rows.all_rows, added=inserted)
        else:
            written = self._write_updated(rows, found, chosen)
        numbered = found.numbered if inserted.num_rows else ()
        self.txn.advance_identity_columns(numbered, written.adds)
        return written, inserted.num_rows

    def _write_updated(
        self, rows: _ChangedRows, found: LocalRowsToMerge, chosen: Sequence[ChosenRows]
    ) -> WrittenFiles:
        """Write the updated rows and the new rows, and leave all other rows in their files."""
        inserted, writer = found.inserted, self.writer
        if not found.counts.all_updated:
            return writer.write(inserted)
        if writer.records_changes:
            return writer.rewrite(only_chosen(chosen), "MERGE", rows.changed_rows, added=inserted)
        needed = self.merge.columns_for_update(self._schema)
        if needed or writer.target.snapshot.has_active("rowTracking"):
            columns = StructType(tuple(item for item in self._schema if item.name in needed))
            files, added = only_chosen(chosen), inserted
        else:  # the new values are made of the source alone
            columns, files = self._schema, files_table([])
            added = pa.concat_tables([inserted, rows.updated_without_target()])
        return writer.rewrite(files, "MERGE", rows.changed_rows, columns=columns, added=added)

    def _new_rows(self, found: Sequence[FileMatches]) -> tuple[pa.Table, tuple[str, ...]]:
        """Return the rows to add, and the identity columns in which they got numbers."""
        merge, schema = self.merge, self._schema
        numbered = merge.numbered(schema)
        parts = [to_arrow_schema(schema).empty_table()]
        inserts = merge.of_kind("NOT MATCHED")
        if inserts:
            matched = pa.chunked_array([item.matched for item in found], pa.int64())
            numbers = row_numbers(merge.source.num_rows)
            new = merge.source.filter(pc.invert(pc.is_in(numbers, value_set=matched)))
            given = merge.clauses_of_rows(
                "NOT MATCHED", lambda: merge.sides.rows("NOT MATCHED", source=new), new.num_rows
            )
            for item in inserts:
                parts += self._inserted(item, new.filter(_is_clause(given, item)))
        rows = pa.concat_tables(parts)
        if numbered:
            brought = [name for name in schema.names if name not in numbered]
            rows, _ = with_identity_numbers(rows, schema, brought)
        return rows, numbered

    def _inserted(self, clause: LocalResolvedClause, source: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows that a clause adds for rows of the source, if there are any."""
        if clause.assignments is not None and source.num_rows:
            empty = _with_all_columns(source.select([]), self._schema)
            seen = self.merge.sides.rows("NOT MATCHED", source=source)
            yield clause.assignments.updated(empty, seen)


@dataclass(frozen=True, slots=True)
class _ChangedRows:
    """Makes the rows that a MERGE writes in place of those that it changes.

    Attributes:
        merge: The expressions.
        schema: The table's schema.
        changed: The rows that change in each file; see `FileMatches`.
    """

    merge: LocalResolvedMerge
    schema: StructType
    changed: Sequence[pa.Table]

    def all_rows(self, file: int, batch: pa.RecordBatch, positions: Positions) -> Iterator[Written]:
        """Yield the rows of a batch that stay, and those that change."""
        is_changed = pc.is_in(positions(), value_set=_one_array(self.changed[file]["position"]))
        yield KEPT, pa.Table.from_batches([batch]).filter(pc.invert(is_changed))
        yield from self.changed_rows(file, batch, positions)

    def changed_rows(
        self, file: int, batch: pa.RecordBatch, positions: Positions
    ) -> Iterator[Written]:
        """Yield the rows of a batch that change: as they were, and with their new values."""
        changed, rows = self.changed[file], pa.Table.from_batches([batch])
        number = pc.index_in(positions(), value_set=_one_array(changed["position"]))
        yield from self._by_clause(changed.take(number.drop_null()), rows.filter(number.is_valid()))

    def updated_without_target(self) -> pa.Table:
        """Return the updated rows of all files, whose new values need no row of the table."""
        changed = pa.concat_tables(self.changed)
        schema = to_arrow_schema(self.schema)
        field = schema.field(0)
        unread = pa.table([pa.nulls(changed.num_rows, field.type)], names=[field.name])
        updated = (rows for kinds, rows in self._by_clause(changed, unread) if kinds == AFTER)
        return pa.concat_tables([schema.empty_table(), *updated])

    def _by_clause(self, changed: pa.Table, target: pa.Table) -> Iterator[Written]:
        """Yield rows that change, as they were and with their new values, clause by clause.

        Args:
            changed: What becomes of each row; see `FileMatches`.
            target: The rows of the table, with the columns that were read.
        """
        for item in self.merge.clauses:
            mask = _is_clause(changed["clause"], item)
            if not mask.true_count:
                continue
            rows = target.filter(mask)
            if item.assignments is None:
                yield DELETED, rows
                continue
            source = None
            if item.kind == "MATCHED":
                source = self.merge.source.take(changed["source"].filter(mask))
            seen = self.merge.sides.rows(item.kind, target=rows, source=source)
            yield AFTER, item.assignments.updated(_with_all_columns(rows, self.schema), seen)
            yield BEFORE, rows


def _rows_by_clause(changed: Sequence[pa.Table]) -> dict[int, int]:
    """Return how many rows get each clause, by its number."""
    chunks = [chunk for item in changed for chunk in item["clause"].chunks]
    counts = pc.value_counts(pa.chunked_array(chunks, pa.int32()))
    return {item["values"]: item["counts"] for item in counts.to_pylist()}


def _touched_files(
    candidates: pa.Table, indexes: Sequence[int], rows: Sequence[BitMap64]
) -> TouchedFiles:
    """Return some of the candidates with rows in them."""
    files = candidates.take(pa.array(indexes, pa.int64()))
    return TouchedFiles(files, sum(map(len, rows)), tuple(rows))


def _with_all_columns(rows: pa.Table, schema: StructType) -> pa.Table:
    """Return the rows with all of the table's columns, null where a column was not read.

    Columns that carry the ids of the rows follow.
    """
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in to_arrow_schema(schema)
    ]
    carried = [name for name in rows.column_names if name not in schema.names]
    columns += [rows[name] for name in carried]
    return pa.table(columns, names=[*schema.names, *carried])


def _is_clause(numbers: pa.Array, clause: LocalResolvedClause) -> pa.BooleanArray:
    """Check for each clause number whether it is that of a clause, which null never is."""
    return _one_array(pc.fill_null(pc.equal(numbers, clause.number), False))


def _one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
