"""Joined rows to the rows that a MERGE writes.

The rows of the table and of the source are joined once. What follows are projections, which Spark
makes one step of:

1. Both sides are visible: clauses for rows that match.
2. Only the source's columns are visible: clauses for rows of the source that match none.
3. Only the table's columns are visible: clauses for rows of the table that match none.

Each computes the clause of its rows, and with it their new values; those of other rows are carried
along. So a name means what it means in its clause, and no expression is evaluated for a row that
its clause does not get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.types import StructField, StructType
from optimist.spark.commands.merge.resolution import ResolvedClause, ResolvedMerge
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
    def own(self) -> str:
        """True where there is a row of the table."""
        return f"{self.prefix}own"

    @property
    def other(self) -> str:
        """True where there is a row of the source."""
        return f"{self.prefix}other"

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
    """

    merge: ResolvedMerge
    before: StructType
    names: Names
    alias: str
    carried: StructType

    @property
    def sql(self) -> TableSql:
        """The SQL of the table, with its schema after the MERGE."""
        return self.merge.sql

    def marked(self, frame: DataFrame, mark: str) -> DataFrame:
        """The rows with a mark that shows, behind an outer join, that they are there."""
        return frame.select("*", sf.lit(True).alias(mark))

    def matches(self, own: DataFrame, other: DataFrame) -> DataFrame:
        """Where the rows of the table stand, with their clauses, and whether they match.

        Args:
            own: The table's rows with `Names.places`, marked, under the alias.
            other: The source's rows, marked.
        """
        names, by_source = self.names, self.merge.of_kind("NOT MATCHED BY SOURCE")
        joined = own.join(other, self.merge.on.column, "left" if by_source else "inner")
        carried = [names.path, names.position, names.other]
        columns = [column_of(name) for name in carried]
        clause = sf.when(self._is_there(names.other), _first(self.merge.of_kind("MATCHED")))
        if not by_source:
            return joined.select(*columns, clause.alias(names.clause))
        kept = [name for name in own.columns if name not in (*carried, names.own)]
        frame = joined.select(*columns, clause.alias(names.clause), *self._hide(own, kept))
        return self._shown(frame, kept, [*carried, names.clause]).select(
            *columns,
            sf.when(self._is_there(names.other), column_of(names.clause))
            .otherwise(_first(by_source))
            .alias(names.clause),
        )

    def rewritten(self, own: DataFrame, other: DataFrame) -> DataFrame:
        """The rows that are written in place of those of the touched files, and the new ones.

        Args:
            own: The rows of the touched files, marked, under the alias, with the columns `carried`.
            other: The source's rows, marked.
        """
        names, merge = self.names, self.merge
        inserts, by_source = merge.of_kind("NOT MATCHED"), merge.of_kind("NOT MATCHED BY SOURCE")
        joined = own.join(other, merge.on.column, "full" if inserts else "left")
        is_both = self._is_there(names.own) & self._is_there(names.other)
        clause = sf.when(is_both, _first(merge.of_kind("MATCHED"))).otherwise(sf.lit(COPIED))
        frame = joined.select("*", clause.alias(names.clause))
        values = self._values(merge.of_kind("MATCHED"), names.clause, self._copies(own))
        kept = [name for name in own.columns if name != names.own] if by_source else []
        carried = [names.own, names.other, names.clause]
        frame = frame.select(
            *([other["*"]] if inserts else [column_of(names.other)]),
            *(column_of(name) for name in (names.own, names.clause)),
            *self._hide(own, kept),
            *values,
        )
        if inserts:
            hidden = [names.hidden(at) for at in range(len(kept))]
            frame = self._inserted(frame, [names.own, names.other, *hidden])
        if by_source:
            shown = self._shown(frame, kept, [*carried, *self._value_names])
            is_alone = self._is_there(names.own) & ~self._is_there(names.other)
            frame = self._after(shown, is_alone, by_source, carried=(), otherwise=COPIED)
        return self._finished(frame, *self.carried.names)

    def only_inserted(self, other: DataFrame) -> DataFrame:
        """The rows that are added for rows of the source that match none.

        Args:
            other: Those rows.
        """
        nothing = [self._null(item).alias(self.names.value(at)) for at, item in self._stored_fields]
        absent = sf.lit(None).cast("boolean").alias(self.names.own)
        copied = sf.lit(COPIED).alias(self.names.clause)
        frame = other.select("*", absent, copied, *nothing)
        return self._finished(self._inserted(frame, ()))

    def _inserted(self, frame: DataFrame, carried: Sequence[str]) -> DataFrame:
        is_new = ~self._is_there(self.names.own)
        inserts = self.merge.of_kind("NOT MATCHED")
        return self._after(frame, is_new, inserts, carried=carried, otherwise=LEFT_OUT)

    # The parts of a rewrite

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
    ) -> DataFrame:
        """The rows after clauses of one kind, whose expressions see the columns of the frame.

        Args:
            frame: The rows, with their clauses and values so far.
            is_meant: Which rows the clauses are for.
            clauses: The clauses.
            carried: Other columns that are needed afterwards.
            otherwise: What such rows get for which no clause is.
        """
        names = self.names
        number = f"{names.clause}_next"
        first = _first(clauses, otherwise)
        numbered = sf.when(is_meant, first).otherwise(column_of(names.clause)).alias(number)
        current = {item.name: column_of(names.value(at)) for at, item in self._stored_fields}
        return frame.select("*", numbered).select(
            *map(column_of, carried),
            column_of(number).alias(names.clause),
            *self._values(clauses, number, current),
        )

    def _finished(self, frame: DataFrame, *carried: str) -> DataFrame:
        """The rows that stay, in the table's columns; generated ones are computed again."""
        names = self.names
        gone = [LEFT_OUT]
        gone += [item.number for item in self.merge.clauses if item.clause.action == "delete"]
        values = (column_of(names.value(at)).alias(item.name) for at, item in self._stored_fields)
        kept = frame.where(~column_of(names.clause).isin(gone))
        rows = kept.select(column_of(names.clause), *values)
        generated = {
            item.name: self._generated(item, text)
            for _, item in self._stored_fields
            if (text := generation_expression(item))
        }
        if generated:
            rows = rows.withColumns(generated)
        return without_void(rows, self.sql.schema, *carried)

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
