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

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.spark.commands.merge.columns import COPIED, LEFT_OUT, MergeColumns
from optimist.spark.commands.merge.names import Names
from optimist.spark.commands.merge.resolution import ResolvedClause, ResolvedMerge
from optimist.spark.rows.row_shape import column_of, quoted

__all__ = ["Stages"]


@dataclass(frozen=True, slots=True)
class Stages:
    """The projections of one MERGE.

    Attributes:
        columns: Computes its columns.
        alias: The alias of the table's rows.
    """

    columns: MergeColumns
    alias: str

    @property
    def merge(self) -> ResolvedMerge:
        """The expressions of the MERGE."""
        return self.columns.merge

    @property
    def names(self) -> Names:
        """Names of columns."""
        return self.columns.names

    @property
    def number(self) -> Column:
        """The number of a row of the source; it is drawn once, and stored with the row."""
        return sf.monotonically_increasing_id().alias(self.names.other)

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

    def kept(self, own: DataFrame) -> DataFrame:
        """Rows of the table that stay as they are, as rows with their clauses and values.

        Args:
            own: The rows, with the columns `carried`.
        """
        names, columns = self.names, self.columns
        copies = columns.copies(own)
        fields, before = columns.stored_fields, columns.before_names
        values = [copies[item.name].alias(names.value(at)) for at, item in fields]
        values += [copies[name].alias(hidden) for name, hidden in before.items()]
        return own.select(sf.lit(COPIED).alias(names.clause), *values)

    def changed(self, changes: DataFrame) -> DataFrame:
        """Those of `changes` that are written: updated rows, and deleted ones to be recorded."""
        numbers = self.merge.numbers_of("update")
        if self.columns.records_changes:
            numbers += self.merge.numbers_of("delete")
        rows = changes.where(column_of(self.names.clause).isin(numbers))
        if self.columns.records_changes and self.merge.takes_several_matches:
            rows = rows.dropDuplicates([self.names.path, self.names.position])
        return rows

    def matching(self, own: DataFrame, other: DataFrame) -> DataFrame:
        """The pairs of a row of the table and one of the source for which ON is true.

        Subqueries are asked of pairs that match otherwise: Spark takes few of them within a join.
        """
        on = self.merge.on
        if on.bound is None:
            return own.join(other, on.column, "inner")
        plain, asking = on.bound.parts
        pairs = own.crossJoin(other) if plain is None else own.join(other, plain, "inner")
        return pairs.where(asking)

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
        clause = sf.lit(COPIED).alias(self.names.clause)
        frame = self.merge.with_other_columns(other).select("*", clause, *self.columns.nothing)
        inserts = self.merge.of_kind("NOT MATCHED")
        before = list(self.columns.before_names.values())
        # Always true, but not deterministic to Spark: a filter by the clause would otherwise get
        # below the join that leaves out rows that match, and evaluate conditions for these.
        is_left = sf.monotonically_increasing_id() >= 0
        return self._after(frame, is_left, inserts, carried=before, otherwise=LEFT_OUT)

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
        names, merge, columns = self.names, self.merge, self.columns
        matched, by_source = merge.of_kind("MATCHED"), merge.of_kind("NOT MATCHED BY SOURCE")
        joined = (
            self.matching(own, other) if how == "inner" else own.join(other, merge.on.column, how)
        )
        clause = sf.when(self._is_there(names.other), columns.clause_of(matched)).otherwise(COPIED)
        frame = joined.select("*", clause.alias(names.clause))
        kept = [name for name in own.columns if name not in carried] if by_source else []
        values = self._values_of_matches(own, how) if with_values else []
        frame = frame.select(
            *map(column_of, (*carried, names.clause)), *self._hide(own, kept), *values
        )
        if with_values:
            carried = [*carried, *columns.before_names.values()]
        if not by_source:
            return frame
        shown = self._shown(
            frame, kept, [*carried, names.clause, *(columns.value_names if with_values else ())]
        )
        return self._after(
            shown,
            ~self._is_there(names.other),
            by_source,
            carried=carried,
            otherwise=COPIED,
            with_values=with_values,
        )

    def _values_of_matches(self, own: DataFrame, how: str) -> list[Column]:
        """The values of joined rows after the clauses for matches, and those before."""
        columns, matched = self.columns, self.merge.of_kind("MATCHED")
        copies = columns.copies(own)
        has_updates = any(item.clause.action == "update" for item in matched)
        all_have_one = how == "inner" and has_updates and matched[-1].condition is None
        values = columns.values(matched, self.names.clause, copies, all_have_one=all_have_one)
        before = columns.before_names
        return [*values, *(copies[name].alias(hidden) for name, hidden in before.items())]

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
            otherwise: The result for rows that no clause is for.
            with_values: Whether the frame has values.
        """
        names, columns = self.names, self.columns
        number = f"{names.clause}_next"
        first = columns.clause_of(clauses, otherwise)
        numbered = sf.when(is_meant, first).otherwise(column_of(names.clause)).alias(number)
        current = {item.name: column_of(names.value(at)) for at, item in columns.stored_fields}
        return frame.select("*", numbered).select(
            *map(column_of, carried),
            column_of(number).alias(names.clause),
            *(columns.values(clauses, number, current) if with_values else ()),
        )

    # Small parts

    def _is_there(self, mark: str) -> Column:
        return column_of(mark).isNotNull()

    def _hide(self, own: DataFrame, names: Sequence[str]) -> list[Column]:
        """The table's columns under names that no expression can mean."""
        return [own[quoted(name)].alias(self.names.hidden(at)) for at, name in enumerate(names)]

    def _shown(self, frame: DataFrame, names: Sequence[str], carried: Sequence[str]) -> DataFrame:
        """The table's columns under their own names again, and no others but those carried."""
        columns = [column_of(self.names.hidden(at)).alias(name) for at, name in enumerate(names)]
        rows = frame.select(*columns, *map(column_of, carried))
        return self.merge.with_own_columns(rows, self.alias)
