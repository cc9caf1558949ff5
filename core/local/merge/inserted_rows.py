"""`InsertedRows`: the rows that a MERGE adds for rows of the source without a match."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.column_shape import arrow_rows
from optimist.core.data.identity_numbers import with_identity_numbers
from optimist.core.local.merge.found_rows import FoundRows
from optimist.core.local.merge.resolution import LocalResolvedClause, LocalResolvedMerge
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import StructType

__all__ = ["InsertedRows", "is_clause", "with_all_columns"]

_BYTES_TOGETHER = 64 << 20
"""Rows are made until they have about this size. Those of one partition become one file."""


class InsertedRows:
    """New rows, made when they are iterated over, which is possible once.

    Args:
        merge: The MERGE.
        schema: The table's schema.
        found: The rows of the source that match none.

    Attributes:
        numbered: The identity columns in which the rows get numbers.
        num_rows: How many rows were made so far.
    """

    def __init__(self, merge: LocalResolvedMerge, schema: StructType, found: FoundRows) -> None:
        self.numbered = merge.numbered(schema)
        self.num_rows = 0
        self._merge = merge
        self._schema = schema
        self._found = found

    def __iter__(self) -> Iterator[pa.Table]:
        for source in self._unmatched():
            rows = self._made(source)
            if rows.num_rows:
                yield rows

    def _unmatched(self) -> Iterator[pa.Table]:
        """Yield the rows without a match, as many as are made at a time."""
        waiting: list[pa.Table] = []
        num_bytes = 0
        for rows in self._found.unmatched_rows() if self._merge.has_inserts else ():
            waiting.append(rows)
            num_bytes += rows.nbytes
            if num_bytes >= _BYTES_TOGETHER:
                yield pa.concat_tables(waiting)
                waiting, num_bytes = [], 0
        if waiting:
            yield pa.concat_tables(waiting)

    def _made(self, source: pa.Table) -> pa.Table:
        merge, schema = self._merge, self._schema
        clauses = merge.clauses_of_rows(
            "NOT MATCHED", lambda: merge.sides.rows("NOT MATCHED", source=source), source.num_rows
        )
        parts = [to_arrow_schema(schema).empty_table()]
        for item in merge.of_kind("NOT MATCHED"):
            parts += self._inserted(item, source.filter(is_clause(clauses, item)))
        rows = pa.concat_tables(parts)
        if self.numbered:
            brought = [name for name in schema.names if name not in self.numbered]
            rows, _ = with_identity_numbers(rows, schema, brought, num_before=self.num_rows)
        self.num_rows += rows.num_rows
        return rows

    def _inserted(self, clause: LocalResolvedClause, source: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows that a clause adds for rows of the source, if there are any."""
        if clause.assignments is not None and source.num_rows:
            empty = with_all_columns(source.select([]), self._schema)
            seen = self._merge.sides.rows("NOT MATCHED", source=source)
            yield clause.assignments.updated(empty, seen)


def with_all_columns(rows: pa.Table, schema: StructType) -> pa.Table:
    """Return the rows with all of the table's columns, null where a column was not read.

    Columns that carry the ids of the rows follow.
    """
    found = arrow_rows(rows, schema)
    for name in rows.column_names:
        if name not in schema.names:
            found = found.append_column(name, rows[name])
    return found


def is_clause(numbers: pa.Array, clause: LocalResolvedClause) -> pa.BooleanArray:
    """Check for each clause number whether it is that of a clause, which null never is."""
    found = pc.fill_null(pc.equal(numbers, clause.number), False)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
