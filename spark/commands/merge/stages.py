"""Joined rows to the rows that a MERGE writes.

The rows of the table and of the source are joined once. What follows are projections, which Spark
makes one step of:

1. Both sides are visible: clauses for rows that match.
2. Only the table's columns are visible: clauses for rows of the table that match none.

Rows of the source that match none go another way, where only the source's columns are visible.

Each projection computes the clause of its rows, and with it their new values; those of other rows
are carried along. So a name means what it means in its clause, and no expression is evaluated for a
row that its clause does not get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.types import StructField, StructType
from optimist.spark.commands.merge.resolution import ResolvedClause, ResolvedMerge
from optimist.spark.rows.changed_rows import DELETED, INSERTED, KEPT, UPDATED, kinds_of
from optimist.spark.rows.places import Places
from optimist.spark.rows.row_shape import (
    Reshaping,
    column_of,
    quoted,
    with_declared_length,
    without_void,
)
from optimist.spark.rows.store_assignment import StoreAssignment
from optimist.spark.rows.touched_files import aliased
from optimist.spark.spark_schema import VOID, to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = ["COPIED", "Names", "Stages"]

COPIED, LEFT_OUT = -1, -2
"""What stands in place of a clause: the row stays as it is; there is no row."""
_KINDS = {"update": UPDATED, "delete": DELETED, "insert": INSERTED}
"""The kinds of change, by what a clause does."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of columns that neither side has.

    Attributes:
        prefix: What all of them begin with.
    """

    prefix: str

    @classmethod
    def beside(cls, columns: Sequence[str]) -> Names:
        """Names beside those columns, in any case of letters."""
        prefix = "__optimist_merge_"
        while any(name.lower().startswith(prefix) for name in columns):
            prefix += "_"
        return cls(prefix)

    @property
    def other(self) -> str:
        """The number of the row of the source; null where there is none."""
        return f"{self.prefix}other"

    @property
    def met(self) -> str:
        """The number of a row of the source that matches one of the table."""
        return f"{self.prefix}met"

    @property
    def clause(self) -> str:
        """The number of the row's clause."""
        return f"{self.prefix}clause"

    @property
    def path(self) -> str:
        """The path of the file of the table's row."""
        return f"{self.prefix}path"

    @property
    def position(self) -> str:
        """Where in that file the row stands."""
        return f"{self.prefix}position"

    @property
    def places(self) -> Places:
        """The two of them."""
        return Places(self.path, self.position)

    def value(self, at: int) -> str:
        """The value that is written to a column, by its place in the schema."""
        return f"{self.prefix}value{at}"

    def missing(self, at: int) -> str:
        """Whether the row needs a number of an identity column, by its place in the schema."""
        return f"{self.prefix}missing{at}"

    def before(self, at: int) -> str:
        """The value that a column had before, by its place in the schema."""
        return f"{self.prefix}before{at}"

    def hidden(self, at: int) -> str:
        """The table's own value of a column, by its place among the columns read."""
        return f"{self.prefix}hidden{at}"


@dataclass(frozen=True, slots=True)
class Stages:
    """The projections of one MERGE.

    Attributes:
        merge: Its expressions.
        before: The schema of the table's rows as they are read.
        names: Names of columns.
        alias: The alias of the table's rows.
        carried: The columns with the ids and versions of rows that move; see `carried_columns`.
        records_changes: Whether rows keep the values that they had before the MERGE beside those
            that they have afterwards.
    """

    merge: ResolvedMerge
    before: StructType
    names: Names
    alias: str
    carried: StructType
    records_changes: bool

    @property
    def sql(self) -> TableSql:
        """The SQL of the table, with its schema after the MERGE."""
        return self.merge.sql

    def numbered(self, source: DataFrame) -> DataFrame:
        """The source's rows with their numbers, which are the same in every pass.

        The number follows from a row's task and its place there: what is stored, or stands in the
        plan, is divided in the same way each time. As it is not deterministic to Spark, no filter
        gets below it, which could change the division.
        """
        return source.select("*", sf.monotonically_increasing_id().alias(self.names.other))

    def changes(self, own: DataFrame, other: DataFrame, *, with_values: bool) -> DataFrame:
        """The rows of the table that match, or that get a clause without: once for each match.

        Their columns are the places, the numbers of the source's rows, and the clauses.

        Args:
            own: The table's rows with `Names.places`, under the alias; for values with all
                columns, and those `carried`.
            other: The source's rows, numbered.
            with_values: Add the values after the MERGE, too.
        """
        names = self.names
        by_source = self.merge.of_kind("NOT MATCHED BY SOURCE")
        carried = [names.path, names.position, names.other]
        how = "left" if by_source else "inner"
        rows = self._joined(own, other, how, carried=carried, with_values=with_values)
        is_match = self._is_there(names.other)
        return rows.where(is_match | (column_of(names.clause) != COPIED)) if by_source else rows

    def rewritten(self, own: DataFrame, other: DataFrame) -> DataFrame:
        """What becomes of the rows of some files, with their clauses and values.

        Args:
            own: The rows, under the alias, with the columns `carried`, and with `Names.places` if a
                row may match several rows of the source and is to be told once.
            other: The source's rows, numbered.
        """
        names = self.names
        places = [name for name in (names.path, names.position) if name in own.columns]
        carried = [names.other, *places]
        rows = self._joined(own, other, "left", carried=carried, with_values=True)
        return rows.dropDuplicates(places) if places else rows

    def changed(self, changes: DataFrame) -> DataFrame:
        """Those of `changes` that are written: updated rows, and deleted ones to be recorded."""
        numbers = self.merge.numbers_of("update")
        if self.records_changes:
            numbers += self.merge.numbers_of("delete")
        rows = changes.where(column_of(self.names.clause).isin(numbers))
        if self.records_changes and self.merge.takes_several_matches:
            rows = rows.dropDuplicates([self.names.path, self.names.position])
        return rows

    def unmatched(self, other: DataFrame, changes: DataFrame) -> DataFrame:
        """The rows of the source that match none of the table's.

        Args:
            other: The source's rows, numbered.
            changes: What `changes` gave.
        """
        number, met = column_of(self.names.other), self.names.met
        return other.join(changes.select(number.alias(met)), number == column_of(met), "left_anti")

    def inserted(self, other: DataFrame) -> DataFrame:
        """The rows that are added for rows of the source, with their clauses and values.

        Args:
            other: Rows of the source that match none of the table's.
        """
        nothing = [self._null(item).alias(self.names.value(at)) for at, item in self._stored_fields]
        nothing += [
            self._null(item).alias(self.names.before(at)) for at, item in self._recorded_fields
        ]
        frame = other.select("*", sf.lit(COPIED).alias(self.names.clause), *nothing)
        inserts = self.merge.of_kind("NOT MATCHED")
        # Always true, but not deterministic to Spark: a filter by the clause would otherwise get
        # below the join that leaves out rows that match, and evaluate conditions for these.
        is_left = sf.monotonically_increasing_id() >= 0
        return self._after(frame, is_left, inserts, carried=self._before_names, otherwise=LEFT_OUT)

    def finished(self, *parts: DataFrame, carries: bool, has_changes: bool) -> DataFrame:
        """The rows that stay, in the table's columns; generated ones are computed again.

        Args:
            parts: Rows with their clauses and values.
            carries: Add the columns `carried`.
            has_changes: Keep deleted rows, too, and add the clause and the values before; see
                `kinds` and `before_names`.
        """
        names = self.names
        told = [names.clause, *(self._before_names if has_changes else ())]
        columns = (*told, *self._value_names)
        frame = reduce(DataFrame.union, (part.select(*map(column_of, columns)) for part in parts))
        values = (column_of(names.value(at)).alias(item.name) for at, item in self._stored_fields)
        gone = [LEFT_OUT] if has_changes else [LEFT_OUT, *self.merge.numbers_of("delete")]
        kept = frame.where(~column_of(names.clause).isin(gone))
        rows = kept.select(*map(column_of, told), *values)
        generated = {
            item.name: self._generated(item, text)
            for _, item in self._stored_fields
            if (text := generation_expression(item))
        }
        if generated:
            rows = rows.withColumns(generated)
        marks = dict(self._identities.values())
        if marks:
            rows = rows.withColumns(marks)
        carried = self.carried.names if carries else ()
        more = (*carried, *marks, *(told if has_changes else ()))
        return without_void(rows, self.sql.schema, *more)

    @property
    def missing(self) -> dict[str, Column]:
        """For identity columns, which of the rows that `finished` gives need a number."""
        return {name: column_of(mark) for name, (mark, _) in self._identities.items()}

    @property
    def is_deleted(self) -> Column:
        """Whether a row of `finished` is gone after the MERGE."""
        return column_of(self.names.clause).isin(self.merge.numbers_of("delete"))

    @property
    def kinds(self) -> Column:
        """The kinds of change that each row of `finished` is; see `changed_rows`."""
        kinds = kinds_of(KEPT)
        for item in self.merge.clauses:
            is_clause = column_of(self.names.clause) == item.number
            kinds = sf.when(is_clause, kinds_of(_KINDS[item.clause.action])).otherwise(kinds)
        return kinds

    @property
    def before_names(self) -> Mapping[str, str]:
        """For the columns that may change, those with the values before."""
        return {item.name: self.names.before(at) for at, item in self._recorded_fields}

    # The parts of a join

    def _joined(
        self,
        own: DataFrame,
        other: DataFrame,
        how: str,
        *,
        carried: Sequence[str],
        with_values: bool,
    ) -> DataFrame:
        """Rows of the table with their clauses; a row is there once for each match."""
        names, merge = self.names, self.merge
        matched, by_source = merge.of_kind("MATCHED"), merge.of_kind("NOT MATCHED BY SOURCE")
        joined = own.join(other, merge.on.column, how)
        clause = sf.when(self._is_there(names.other), _first(matched)).otherwise(COPIED)
        frame = joined.select("*", clause.alias(names.clause))
        copies = self._copies(own) if with_values else {}
        values = self._values(matched, names.clause, copies) if with_values else []
        kept = [name for name in own.columns if name not in carried] if by_source else []
        if with_values:
            values += [
                copies[item.name].alias(names.before(at)) for at, item in self._recorded_fields
            ]
        frame = frame.select(
            *map(column_of, (*carried, names.clause)), *self._hide(own, kept), *values
        )
        if with_values:
            carried = [*carried, *self._before_names]
        if not by_source:
            return frame
        shown = self._shown(
            frame, kept, [*carried, names.clause, *(self._value_names if with_values else ())]
        )
        return self._after(
            shown,
            ~self._is_there(names.other),
            by_source,
            carried=carried,
            otherwise=COPIED,
            with_values=with_values,
        )

    def _copies(self, own: DataFrame) -> Mapping[str, Column]:
        """The values that rows of the table have, in the types that they have afterwards."""
        copies = {}
        for _, item in self._stored_fields:
            before = self.before.find(item.name) or self.carried.find(item.name)
            if before is None or before.data_type == VOID:
                copies[item.name] = self._null(item)
            else:
                value = own[quoted(before.name)]
                types = (before.data_type, item.data_type)
                copies[item.name] = self._reshaping.reshaped(value, *types, (item.name,))
        return copies

    def _values(
        self, clauses: Sequence[ResolvedClause], number: str, current: Mapping[str, Column]
    ) -> list[Column]:
        """The values after the clauses.

        Args:
            clauses: Clauses of one kind.
            number: The column with the number of each row's clause.
            current: The values before, which rows keep that get none of the clauses.
        """
        values = []
        for at, item in self._stored_fields:
            value = current[item.name]
            for clause in clauses:
                changed = self._changed(clause, item, current[item.name])
                if changed is not None:
                    is_clause = column_of(number) == clause.number
                    value = sf.when(is_clause, changed).otherwise(value)
            values.append(value.alias(self.names.value(at)))
        return values

    def _changed(self, clause: ResolvedClause, item: StructField, current: Column) -> Column | None:
        """The value that a clause gives a column; None if it leaves it as it is."""
        if item in self.carried.fields[1:]:
            return self._null(item)  # the version of a changed row is that of its new file
        new = clause.assignments
        if new is not None and item.name in new.columns:
            return new.new_value(item, current)
        return self._unnamed(item) if clause.clause.action == "insert" else None

    def _unnamed(self, item: StructField) -> Column:
        """The value of a column that an INSERT does not name; one that is computed comes later."""
        if generation_expression(item) is not None:
            return self._null(item)
        store = self._reshaping.store
        default = store.cast(self.sql.default(item), None, item.data_type, item.name)
        return with_declared_length(default, item)

    def _after(
        self,
        frame: DataFrame,
        is_meant: Column,
        clauses: Sequence[ResolvedClause],
        *,
        carried: Sequence[str],
        otherwise: int,
        with_values: bool = True,
    ) -> DataFrame:
        """The rows after clauses of one kind, whose expressions see the columns of the frame.

        Args:
            frame: The rows, with their clauses and values so far.
            is_meant: Which rows the clauses are for.
            clauses: The clauses.
            carried: Other columns that are needed afterwards.
            otherwise: What such rows get for which no clause is.
            with_values: Whether the frame has values.
        """
        names = self.names
        number = f"{names.clause}_next"
        first = _first(clauses, otherwise)
        numbered = sf.when(is_meant, first).otherwise(column_of(names.clause)).alias(number)
        current = {item.name: column_of(names.value(at)) for at, item in self._stored_fields}
        return frame.select("*", numbered).select(
            *map(column_of, carried),
            column_of(number).alias(names.clause),
            *(self._values(clauses, number, current) if with_values else ()),
        )

    @property
    def _identities(self) -> dict[str, tuple[str, Column]]:
        """By identity column: the name of a column that tells which rows need a number, and it."""
        found = {}
        for at, item in self._stored_fields:
            needing = [
                clause.number
                for clause in self.merge.of_kind("NOT MATCHED")
                if clause.assignments is None or item.name not in clause.assignments.columns
            ]
            if needing and is_identity_column(item):
                needs = column_of(self.names.clause).isin(needing)
                found[item.name] = (self.names.missing(at), needs)
        return found

    def _generated(self, item: StructField, text: str) -> Column:
        """A generated column: as the row's clause assigns it, or computed from the others."""
        assigning = [
            clause.number
            for clause in self.merge.clauses
            if clause.assignments is not None and item.name in clause.assignments.columns
        ]
        made = self.sql.generated(item.name, text).cast(to_spark_type(item.data_type))
        if not assigning:
            return made
        is_assigned = column_of(self.names.clause).isin(assigning)
        return sf.when(is_assigned, column_of(item.name)).otherwise(made)

    # Small parts

    @property
    def _reshaping(self) -> Reshaping:
        return Reshaping(StoreAssignment.of(self.sql.spark), self.sql)

    @property
    def _stored_fields(self) -> list[tuple[int, StructField]]:
        columns = enumerate((*self.sql.schema, *self.carried))
        return [(at, item) for at, item in columns if item.data_type != VOID]

    @property
    def _recorded_fields(self) -> list[tuple[int, StructField]]:
        """The columns whose values before the MERGE are kept: those that it may change."""
        if not self.records_changes:
            return []
        assigned = {
            name
            for item in self.merge.clauses
            if item.clause.action == "update" and item.assignments is not None
            for name in item.assignments.columns
        }
        return [
            (at, item)
            for at, item in self._stored_fields
            if item.name in assigned or generation_expression(item) is not None
        ]

    @property
    def _before_names(self) -> list[str]:
        return [self.names.before(at) for at, _ in self._recorded_fields]

    @property
    def _value_names(self) -> list[str]:
        return [self.names.value(at) for at, _ in self._stored_fields]

    def _null(self, item: StructField) -> Column:
        return sf.lit(None).cast(to_spark_type(item.data_type))

    def _is_there(self, mark: str) -> Column:
        return column_of(mark).isNotNull()

    def _hide(self, own: DataFrame, names: Sequence[str]) -> list[Column]:
        """The table's columns under names that no expression can mean."""
        return [own[quoted(name)].alias(self.names.hidden(at)) for at, name in enumerate(names)]

    def _shown(self, frame: DataFrame, names: Sequence[str], carried: Sequence[str]) -> DataFrame:
        """The table's columns under their own names again, and no others but those carried."""
        columns = [column_of(self.names.hidden(at)).alias(name) for at, name in enumerate(names)]
        return aliased(frame.select(*columns, *map(column_of, carried)), self.alias)


def _first(clauses: Sequence[ResolvedClause], otherwise: int = COPIED) -> Column:
    """The number of the first clause whose condition is true; null is not true."""
    number = sf.lit(otherwise)
    for item in reversed(clauses):
        own = sf.lit(item.number)
        number = (
            own if item.condition is None else sf.when(item.condition.column, own).otherwise(number)
        )
    return number
