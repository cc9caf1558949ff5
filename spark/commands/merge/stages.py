"""The projections that turn joined rows into the rows that a MERGE writes.

The rows of the table and of the source are joined once. Spark merges the projections that follow
into one step:

1. Both sides are visible, for clauses of rows that match.
2. Only the table's columns are visible, for clauses of rows that match no row of the source.

Rows of the source that match no row take another path, where only the source's columns are visible.

Each projection computes the clause of its rows and their new values, and carries the other rows
along. So a name in a clause means a column that the clause can see, and an expression is evaluated
only for the rows that get its clause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.spark.commands.merge.columns import COPIED, LEFT_OUT, MergeColumns
from optimist.spark.commands.merge.names import Names
from optimist.spark.commands.merge.resolution import SparkResolvedClause, SparkResolvedMerge
from optimist.spark.rows.row_shape import column_of, quoted
from optimist.spark.rows.touched_files import aliased

__all__ = ["Stages"]


@dataclass(frozen=True, slots=True)
class Stages:
    """The projections of one MERGE.

    Attributes:
        columns: Computes the columns.
        alias: The alias of the table's rows.
    """

    columns: MergeColumns
    alias: str

    @property
    def merge(self) -> SparkResolvedMerge:
        """The expressions of the MERGE."""
        return self.columns.merge

    @property
    def names(self) -> Names:
        """The names of the columns that it adds."""
        return self.columns.names

    @property
    def number(self) -> Column:
        """The number of a row of the source. It is drawn once and stored with the row."""
        return sf.monotonically_increasing_id().alias(self.names.source)

    def changes(self, target: DataFrame, source: DataFrame, *, with_values: bool) -> DataFrame:
        """Return the table's rows that match, once for each match, and others that get a clause.

        Their columns are the path and position, the number of the source's row, and the clause.

        Args:
            target: The table's rows with `Names.places`, under the alias. With values, they have
                all columns and those `carried`.
            source: The source's rows with their numbers.
            with_values: Add the values after the MERGE, too.
        """
        names = self.names
        by_source = self.merge.of_kind("NOT MATCHED BY SOURCE")
        carried = [names.path, names.position, names.source]
        how = "left" if by_source else "inner"
        rows = self._joined(target, source, how, carried=carried, with_values=with_values)
        is_match = self._is_there(names.source)
        return rows.where(is_match | (column_of(names.clause) != COPIED)) if by_source else rows

    def kept(self, target: DataFrame) -> DataFrame:
        """Return rows of the table that stay as they are, with clause and values.

        Args:
            target: The rows, with the columns `carried`.
        """
        names, columns = self.names, self.columns
        copies = columns.copies(target)
        fields, before = columns.stored_fields, columns.before_names
        values = [copies[item.name].alias(names.value(at)) for at, item in fields]
        values += [copies[name].alias(hidden) for name, hidden in before.items()]
        return target.select(sf.lit(COPIED).alias(names.clause), *values)

    def changed(self, changes: DataFrame) -> DataFrame:
        """Select the changes that are written: updates, and deletions if they are recorded."""
        numbers = self.merge.numbers_of("update")
        if self.columns.records_changes:
            numbers += self.merge.numbers_of("delete")
        rows = changes.where(column_of(self.names.clause).isin(numbers))
        if self.columns.records_changes and self.merge.takes_several_matches:
            rows = rows.dropDuplicates([self.names.path, self.names.position])
        return rows

    def matching(self, target: DataFrame, source: DataFrame) -> DataFrame:
        """Return the pairs of a table row and a source row for which ON is true.

        Subqueries filter the pairs for which the rest is true: in a join, Spark allows few of them.
        """
        on = self.merge.join
        if not on.is_asked_once:
            return target.join(source, on.column, "inner")
        if on.bound is None:
            return target.crossJoin(source).where(on.column)
        plain, asking = on.bound.parts
        pairs = target.crossJoin(source) if plain is None else target.join(source, plain, "inner")
        return pairs.where(asking)

    def unmatched(self, source: DataFrame, changes: DataFrame) -> DataFrame:
        """Return the rows of the source that match no row of the table.

        Args:
            source: The source's rows with their numbers.
            changes: What `changes` returned.
        """
        number, met = column_of(self.names.source), self.names.met
        return source.join(changes.select(number.alias(met)), number == column_of(met), "left_anti")

    def inserted(self, source: DataFrame) -> DataFrame:
        """Return the rows to add for rows of the source, with their clauses and values.

        Args:
            source: Rows of the source that match no row of the table.
        """
        clause = sf.lit(COPIED).alias(self.names.clause)
        frame = self.merge.with_source_columns(source).select("*", clause, *self.columns.nothing)
        inserts = self.merge.of_kind("NOT MATCHED")
        before = list(self.columns.before_names.values())
        # Spark takes this for non-deterministic, though it is always true. Otherwise Spark would
        # move a filter by the clause below the anti join, and evaluate conditions for other rows.
        is_left = sf.monotonically_increasing_id() >= 0
        return self._after(frame, is_left, inserts, carried=before, otherwise=LEFT_OUT)

    # The parts of a join

    def _joined(
        self,
        target: DataFrame,
        source: DataFrame,
        how: str,
        *,
        carried: Sequence[str],
        with_values: bool,
    ) -> DataFrame:
        """Return rows of the table with their clauses, a row once for each match."""
        names, merge, columns = self.names, self.merge, self.columns
        matched, by_source = merge.of_kind("MATCHED"), merge.of_kind("NOT MATCHED BY SOURCE")
        joined = (
            self.matching(target, source)
            if how == "inner"
            else target.join(source, merge.join.column, how)
        )
        clause = sf.when(self._is_there(names.source), columns.clause_of(matched)).otherwise(COPIED)
        frame = joined.select("*", clause.alias(names.clause))
        kept = [name for name in target.columns if name not in carried] if by_source else []
        values = self._values_of_matches(target, how) if with_values else []
        frame = frame.select(
            *map(column_of, (*carried, names.clause)), *self._hide(target, kept), *values
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
            ~self._is_there(names.source),
            by_source,
            carried=carried,
            otherwise=COPIED,
            with_values=with_values,
        )

    def _values_of_matches(self, target: DataFrame, how: str) -> list[Column]:
        """Return the values of joined rows after the clauses for matches, and those before."""
        columns, matched = self.columns, self.merge.of_kind("MATCHED")
        copies = columns.copies(target)
        has_updates = any(item.action == "update" for item in matched)
        all_have_one = how == "inner" and has_updates and matched[-1].condition is None
        values = columns.values(matched, self.names.clause, copies, all_have_one=all_have_one)
        before = columns.before_names
        return [*values, *(copies[name].alias(hidden) for name, hidden in before.items())]

    def _after(
        self,
        frame: DataFrame,
        is_meant: Column,
        clauses: Sequence[SparkResolvedClause],
        *,
        carried: Sequence[str],
        otherwise: int,
        with_values: bool = True,
    ) -> DataFrame:
        """Apply clauses of one kind, whose expressions see the columns of the frame.

        Args:
            frame: The rows, with their clauses and values so far.
            is_meant: Which rows the clauses are for.
            clauses: The clauses.
            carried: Other columns that are needed afterwards.
            otherwise: The clause number for rows that get none of the clauses.
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

    def _hide(self, target: DataFrame, names: Sequence[str]) -> list[Column]:
        """Return the table's columns under names that no expression can mean.

        Columns that subqueries are bound to stay as they are. Spark would give them new ids if the
        plan defined them a second time.
        """
        columns = [target[quoted(name)] for name in names]
        if self.merge.bound:
            return columns
        return [column.alias(self.names.hidden(at)) for at, column in enumerate(columns)]

    def _shown(self, frame: DataFrame, names: Sequence[str], carried: Sequence[str]) -> DataFrame:
        """Give the table's columns their own names back, and keep only the carried ones beside."""
        columns = [column_of(name) for name in names]
        if not self.merge.bound:
            hidden = [column_of(self.names.hidden(at)) for at in range(len(names))]
            columns = [column.alias(name) for column, name in zip(hidden, names, strict=True)]
        return aliased(frame.select(*columns, *map(column_of, carried)), self.alias)
