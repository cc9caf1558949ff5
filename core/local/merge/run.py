"""MERGE without Spark, by vectors or by copy on write (spec 10.15, profiles MG and MGi of 2.13).

1. Every expression is resolved; no row is read.
2. The values of the source's keys, or ranges of them, tell which files can hold rows that match;
   these are recorded as read. With a clause for NOT MATCHED BY SOURCE, all files are.
3. Those files are searched: only the columns that decide which rows match and what becomes of them.
4. Rows that are updated are written with their new values, together with the new rows. Where the
   table has deletion vectors, changed rows are marked in them; elsewhere the other rows of the
   files are written again. With the change data feed, changes are written to change files, unless
   the commit itself tells of them: where rows are only added, or also deleted by vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.marked_files import ChosenRows, MarkedFiles, choose_rows, only_chosen
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_changes import MergedRows
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.row_rewrite import marks_rows
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.identity_numbers import with_identity_numbers
from optimist.core.data.parquet.parquet_reader import Positions
from optimist.core.data.row_numbers import row_numbers
from optimist.core.local.merge.keys import target_predicate
from optimist.core.local.merge.matches import FileMatches, find_matches
from optimist.core.local.merge.resolution import ResolvedMerge, first_clause
from optimist.core.local.row_writer import AFTER, BEFORE, DELETED, KEPT, RowWriter, Written
from optimist.core.local.target import positions_of
from optimist.core.log.file_table import add_files, files_table
from optimist.core.predicates import Predicate
from optimist.core.requests.merge_clauses import Action, Kind
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import StructType

__all__ = ["merge_rows", "wanted_rows"]

_CHANGED_KINDS: tuple[Kind, ...] = ("MATCHED", "NOT MATCHED BY SOURCE")
"""The kinds of clauses that change rows of the table."""


def merge_rows(writer: RowWriter, merge: ResolvedMerge, watch: Stopwatch) -> MergedRows:
    """Find the matches, write the rows, and tell what was done.

    Args:
        writer: Writes the rows.
        merge: The MERGE.
        watch: Told how long the search and the writing took.

    Raises:
        SchemaError: A new value does not fit its column, or breaks a rule of the table.
        UsageError: Several rows of the source change one of the table.
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    target = writer.target
    candidates = target.txn.filter_files(wanted_rows(merge))
    found = list(find_matches(target, candidates, merge))
    needed = [place for place, item in enumerate(found) if item.needed]
    target.txn.need_only(
        candidates.take(pa.array(needed, pa.int64())), [found[place].needed for place in needed]
    )
    touched = [place for place, item in enumerate(found) if item.changed.num_rows]
    job = _Merge(
        writer,
        merge,
        candidates.take(pa.array(touched, pa.int64())),
        [found[place].changed for place in touched],
    )
    schema, numbered = target.snapshot.schema, merge.numbered(target.snapshot.schema)
    inserted = _inserted(merge, found, schema)
    if numbered:
        brought = [name for name in schema.names if name not in numbered]
        inserted, _ = with_identity_numbers(inserted, schema, brought)
    watch.lap("scanTimeMs")
    rewrite = job.write(inserted)
    watch.lap("rewriteTimeMs")
    target.txn.advance_identity_columns(numbered if inserted.num_rows else (), rewrite.written.adds)
    counts = job.counts(rewrite, inserted.num_rows)
    return MergedRows(rewrite, counts, merge.request.source.num_rows)


def wanted_rows(merge: ResolvedMerge) -> Predicate | None:
    """A predicate that is true for every row of the table that can change; None for all."""
    if merge.of_kind("NOT MATCHED BY SOURCE"):
        return None
    return target_predicate(merge.request.source, merge.keys)


@dataclass(frozen=True, slots=True)
class _Merge:
    """A MERGE whose matches are known.

    Attributes:
        writer: Writes the rows.
        merge: The expressions.
        files: The files with rows that change, as rows of `Snapshot.files`.
        changed: Those rows, for each of the files; see `FileMatches`.
    """

    writer: RowWriter
    merge: ResolvedMerge
    files: pa.Table
    changed: Sequence[pa.Table]

    def write(self, inserted: pa.Table) -> Rewrite:
        """Write what is new and what must be written again."""
        target = self.writer.target
        if not self.changed:
            return Rewrite((), self.writer.write(inserted), None)
        if not marks_rows(target.txn, "MERGE"):
            written = self.writer.rewrite(self.files, "MERGE", self._again, added=inserted)
            return Rewrite(add_files(self.files), written, None)
        rows = [positions_of(_one(changed["position"])) for changed in self.changed]
        chosen = choose_rows(target.table, add_files(self.files), rows)
        written = self._write_updated(chosen, inserted)
        marked = MarkedFiles.write(target.table, chosen, self.writer.pending)
        return Rewrite(marked.emptied, written, None, marked.marked)

    def _write_updated(self, chosen: Sequence[ChosenRows], inserted: pa.Table) -> WrittenFiles:
        """Write the updated rows with their new values, and the new rows."""
        snapshot = self.writer.target.snapshot
        schema = snapshot.schema
        if not any(self._num_rows(kind, "update") for kind in _CHANGED_KINDS):
            return self.writer.write(inserted)
        needed = self.merge.columns_for_update(schema)
        if self.writer.records_changes:
            return self.writer.rewrite(only_chosen(chosen), "MERGE", self._changes, added=inserted)
        if needed or snapshot.has_active("rowTracking"):
            columns = StructType(tuple(item for item in schema if item.name in needed))
            files, added = only_chosen(chosen), inserted
        else:  # the source has all that the new rows are made of
            columns, files = schema, files_table([])
            added = pa.concat_tables([inserted, self._made_of_source()])
        return self.writer.rewrite(files, "MERGE", self._changes, columns=columns, added=added)

    def _made_of_source(self) -> pa.Table:
        """The updated rows of all files, for which no row of the table is needed."""
        changed = pa.concat_tables(self.changed)
        schema = to_arrow_schema(self.writer.target.snapshot.schema)
        field = schema.field(0)
        unread = pa.table([pa.nulls(changed.num_rows, field.type)], names=[field.name])
        updated = (rows for kinds, rows in self._of_clauses(changed, unread) if kinds == AFTER)
        return pa.concat_tables([schema.empty_table(), *updated])

    def counts(self, rewrite: Rewrite, num_inserted: int) -> RowCounts:
        """How many rows changed."""
        rows = self._num_rows
        updated = rows("MATCHED", "update"), rows("NOT MATCHED BY SOURCE", "update")
        return RowCounts(
            *updated,
            rows("MATCHED", "delete"),
            rows("NOT MATCHED BY SOURCE", "delete"),
            copied=rewrite.written.num_rows - num_inserted - sum(updated),
            inserted=num_inserted,
        )

    def _num_rows(self, kind: Kind, action: Action) -> int:
        """How many rows of the table get a clause of that kind and action."""
        actions = [item.clause.action for item in self.merge.of_kind(kind)]
        places = [place for place, found in enumerate(actions) if found == action]
        return sum(_is_given(changed, kind, places).true_count for changed in self.changed)

    def _again(self, place: int, batch: pa.RecordBatch, positions: Positions) -> Iterator[Written]:
        """The rows of a batch that stay, and those that change."""
        is_changed = pc.is_in(positions(), value_set=_one(self.changed[place]["position"]))
        yield KEPT, pa.Table.from_batches([batch]).filter(pc.invert(is_changed))
        yield from self._changes(place, batch, positions)

    def _changes(
        self, place: int, batch: pa.RecordBatch, positions: Positions
    ) -> Iterator[Written]:
        """The rows of a batch that change: as they were, and with their new values."""
        changed, rows = self.changed[place], pa.Table.from_batches([batch])
        number = pc.index_in(positions(), value_set=_one(changed["position"]))
        return self._of_clauses(changed.take(number.drop_null()), rows.filter(pc.is_valid(number)))

    def _of_clauses(self, changed: pa.Table, rows: pa.Table) -> Iterator[Written]:
        """Rows that change, as they were, and with their new values.

        Args:
            changed: What becomes of each; see `FileMatches`.
            rows: The rows, as far as they were read.
        """
        schema = self.writer.target.snapshot.schema
        for kind in _CHANGED_KINDS:
            for at, item in enumerate(self.merge.of_kind(kind)):
                mask = _is_given(changed, kind, [at])
                if not mask.true_count:
                    continue
                own = rows.filter(mask)
                if item.assignments is None:
                    yield DELETED, own
                    continue
                sides = {self.merge.request.target_alias: own}
                if kind == "MATCHED":
                    source = self.merge.request.source.take(changed["source"].filter(mask))
                    sides[self.merge.request.source_alias] = source
                current = _with_all_columns(own, schema)
                yield AFTER, item.assignments.updated(current, item.scope.rows(sides))
                yield BEFORE, own


def _inserted(merge: ResolvedMerge, found: Sequence[FileMatches], schema: StructType) -> pa.Table:
    """The rows that are added, for those of the source that match none of the table's."""
    nothing = to_arrow_schema(schema).empty_table()
    clauses = merge.of_kind("NOT MATCHED")
    if not clauses:
        return nothing
    source = merge.request.source
    numbers = row_numbers(source.num_rows)
    matched = pa.chunked_array([item.matched for item in found], pa.int64())
    new = source.filter(pc.invert(pc.is_in(numbers, value_set=matched)))
    parts = [nothing]
    given = first_clause(clauses, lambda: {merge.request.source_alias: new}, new.num_rows)
    for at, item in enumerate(clauses):
        rows = new.filter(pc.fill_null(pc.equal(given, at), False))
        empty = _with_all_columns(rows.select([]), schema)
        if item.assignments is not None and rows.num_rows:
            seen = item.scope.rows({merge.request.source_alias: rows})
            parts.append(item.assignments.updated(empty, seen))
    return pa.concat_tables(parts)


def _with_all_columns(rows: pa.Table, schema: StructType) -> pa.Table:
    """The rows with the table's columns; those that they lack, and nobody asks for, are null.

    Columns that carry the ids of the rows follow.
    """
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in to_arrow_schema(schema)
    ]
    carried = [name for name in rows.column_names if name not in schema.names]
    columns += [rows[name] for name in carried]
    return pa.table(columns, names=[*schema.names, *carried])


def _is_given(changed: pa.Table, kind: str, places: Sequence[int]) -> pa.BooleanArray:
    """Which of the changed rows get one of those clauses of a kind."""
    is_one = pc.is_in(changed["clause"], value_set=pa.array(places, pa.int32()))
    return _one(pc.and_(pc.equal(changed["kind"], kind), is_one))


def _one(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks()
