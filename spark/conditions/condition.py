"""A condition on rows in two forms: as Spark evaluates it, and as the engine tracks it (spec 1.3).

In classic sessions both are the expression that Spark analysed. A client of Spark Connect has only
what it sends: it reads texts and messages only if their meaning is certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.predicates import Predicate
from optimist.core.schema.types import StructType
from optimist.spark.conditions.analysis import read_analyzed_condition
from optimist.spark.conditions.attributes import analyzed_by_name
from optimist.spark.conditions.bound_condition import BoundCondition
from optimist.spark.conditions.condition_reading import ConditionReading, Obstacle
from optimist.spark.conditions.connect_condition import read_sent_condition
from optimist.spark.conditions.fixed_now import FixedNow
from optimist.spark.conditions.subquery_text import SubqueryText
from optimist.spark.session.pyspark_versions import is_connect

__all__ = [
    "Condition",
    "JoinedCondition",
    "resolve_condition",
    "resolve_joined_condition",
    "subquery_refused",
]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was resolved against a table.

    Attributes:
        text: SQL, for the history.
        column: The column by which Spark filters.
        predicate: The predicate by which the engine prunes, and which it records as read; parts
            that it can't understand match every file.
        columns: The top-level columns that it needs, in the table's spelling.
        is_partition_only: Only partition columns are named, so each file matches as a whole or not
            at all.
        source: Other rows that the column names, too: a row matches if the column is true for it
            and one of them. None for a condition on the table's rows alone.
        bound: The condition, if it holds a subquery; `column` fits no rows then. None on Spark
            Connect.
        has_sent_subquery: True for a condition of Spark Connect that holds a subquery.
    """

    text: str
    column: Column
    predicate: Predicate
    columns: frozenset[str]
    is_partition_only: bool
    source: DataFrame | None = None
    bound: BoundCondition | None = None
    has_sent_subquery: bool = False

    @property
    def never_fails(self) -> bool:
        """True if it has a value for every possible row, even for deleted rows.

        For other conditions this is unknown: `1 / id > 0` may be used on a table whose zeros are
        all deleted.
        """
        return self.is_of_the_row and self.predicate.is_exact

    @property
    def is_always_true(self) -> bool:
        """True if it is true for every possible row."""
        return self.is_of_the_row and self.predicate == Predicate.TRUE

    @property
    def is_of_the_row(self) -> bool:
        """True if its value depends on the row alone."""
        return self.source is None and not self.is_asked_once

    @property
    def is_asked_once(self) -> bool:
        """True if one pass decides which rows match, and no other pass may evaluate it.

        A subquery may read or choose other rows the next time.
        """
        return self.bound is not None or self.has_sent_subquery

    def matching(self, rows: DataFrame) -> DataFrame:
        """Return the table's rows for which the condition is true."""
        if self.bound is not None:
            return self.bound.matching(rows)
        if self.source is None:
            return rows.where(self.column)
        return rows.join(self.source, self.column, "left_semi")

    def others(self, rows: DataFrame) -> DataFrame:
        """Return the rows for which it is false or null, for conditions without a subquery."""
        if self.source is None:
            return rows.where(~sf.coalesce(self.column, sf.lit(False)))
        return rows.join(self.source, self.column, "left_anti")


def resolve_condition(
    frame: DataFrame,
    condition: Column | str | BoundCondition,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    alias: str | None = None,
    began_ms: int | None = None,
) -> Condition:
    """Resolve a condition against the rows of a table.

    Args:
        frame: The table's rows, under its alias if it has one.
        condition: SQL text, a column, or a condition that may hold a subquery: one that Spark has
            resolved, or on Spark Connect a `SubqueryText`.
        schema: The table's schema.
        partition_columns: The table's partition columns.
        alias: The frame's alias.
        began_ms: The start of a command that evaluates it more than once, in milliseconds since the
            epoch; it replaces the current time.

    Raises:
        pyspark.errors.AnalysisException: Spark can't resolve it.
        UsageError: It is not deterministic, holds a subquery or a `*`, or names something that is
            not a column of the table, such as `_metadata`.
    """
    if isinstance(condition, BoundCondition):
        return _resolve_bound(frame, condition, schema, partition_columns, began_ms)
    found, analyzed = _resolve_over_rows(frame, condition, schema, partition_columns, alias)
    if began_ms is None or found.is_asked_once:
        return found
    names = frozenset(name.lower() for name in frame.columns)
    fixed = FixedNow(frame.sparkSession, 1000 * began_ms, names).fixed(found.column)
    if fixed is not found.column:
        # The pass that finds the rows and the pass that reads them again must use the same time.
        at_once, analyzed = _resolve_over_rows(frame, fixed, schema, partition_columns, alias)
        found = replace(found, column=fixed, predicate=at_once.predicate)
    if found.is_partition_only:
        # One query over partition values finds the files, and no pass reads rows by it. These
        # values come from the log, without the padding that scans give to char columns.
        return found
    return replace(found, column=_for_every_pass(found.column, analyzed, frame, alias))


def _resolve_over_rows(
    frame: DataFrame,
    condition: Column | str,
    schema: StructType,
    partition_columns: Sequence[str],
    alias: str | None,
) -> tuple[Condition, Column | None]:
    """Return the condition, and the column that Spark made of it."""
    column = sf.expr(condition) if isinstance(condition, str) else condition
    if is_connect(frame.sparkSession):
        reading = read_sent_condition(frame, condition, schema, alias)
    else:
        reading = read_analyzed_condition(frame, column, schema, partition_columns)
    text = _shown_text(condition, reading)
    asks = _asks(condition, reading)
    if reading.obstacle is not None and not asks:
        raise _condition_refused(text, reading.obstacle)
    _ensure_own_columns(reading.names, schema, text)
    found = Condition(
        text=text,
        column=column,
        predicate=reading.predicate,
        columns=frozenset(item.name for item in schema if item.name.lower() in reading.names),
        is_partition_only=bool(reading.names)
        and not asks  # the subquery may decide otherwise for each row
        and reading.names <= {name.lower() for name in partition_columns},
        has_sent_subquery=asks,
    )
    return found, reading.analyzed


def _shown_text(condition: Column | str, reading: ConditionReading) -> str:
    if isinstance(condition, SubqueryText):
        return condition.shown
    return condition if isinstance(condition, str) else reading.text


def _asks(condition: Column | str, reading: ConditionReading) -> bool:
    """Check whether a command that may evaluate a subquery has sent one."""
    return isinstance(condition, SubqueryText) and reading.obstacle == "subquery"


def _resolve_bound(
    frame: DataFrame,
    condition: BoundCondition,
    schema: StructType,
    partition_columns: Sequence[str],
    began_ms: int | None,
) -> Condition:
    """Resolve a condition with a subquery, whose other parts on the row still prune."""
    rows = condition.over(frame)
    column = condition.column
    if began_ms is not None:
        names = frozenset(name.lower() for name in frame.columns)
        column = FixedNow(frame.sparkSession, 1000 * began_ms, names).fixed(column)
    reading = read_analyzed_condition(rows, column, schema, partition_columns)
    if reading.obstacle not in (None, "subquery"):
        raise _condition_refused(condition.text, reading.obstacle)
    _ensure_own_columns(reading.names, schema, condition.text)
    bound = condition if reading.analyzed is None else condition.analyzed_as(reading.analyzed)
    return Condition(
        text=condition.text,
        column=column,
        predicate=reading.predicate,
        columns=frozenset(item.name for item in schema if item.name.lower() in reading.names),
        is_partition_only=False,  # the subquery may decide otherwise for each row
        bound=bound,
    )


def _for_every_pass(
    column: Column, analyzed: Column | None, own: DataFrame, alias: str | None
) -> Column:
    """Return a condition as Spark has analysed it, for the rows that each pass reads.

    If each pass analysed it again, each could choose other rows: a text's meaning depends on the
    session's time zone, ANSI mode and so on, which another thread may change.

    Args:
        column: The condition.
        analyzed: The column that Spark made of it, if it is known.
        own: The rows of the table, to which `analyzed` is bound.
        alias: The alias that the rows have in each pass.
    """
    if analyzed is None:
        return column
    return analyzed_by_name(own, analyzed, qualifier=alias)


@dataclass(frozen=True, slots=True)
class JoinedCondition:
    """A condition over the rows of a table and another frame, or of only one of them.

    Attributes:
        text: SQL, for the history.
        column: The column that Spark evaluates.
        names: The columns that it reads, and perhaps more, in lower case.
        readable: The form that `read_join` reads: `column`, or on Spark Connect the user's
            condition.
        bound: The condition, if it holds a subquery. Then it fits only rows with the columns of the
            frame against which it was resolved, and is evaluated once; see `Condition`.
        reads: On Spark Connect, a query that reads what its subquery reads.
    """

    text: str
    column: Column
    names: frozenset[str]
    readable: Column | str
    bound: BoundCondition | None = None
    reads: DataFrame | None = None

    @property
    def is_asked_once(self) -> bool:
        """See `Condition.is_asked_once`."""
        return self.bound is not None or self.reads is not None

    def reading(self, rows: DataFrame) -> JoinedCondition:
        """Return the condition, with its subqueries bound as in `rows`.

        See `BoundCondition.reading`.
        """
        if self.bound is None:
            return self
        bound = self.bound.reading(rows)
        return replace(self, bound=bound, column=bound.column, readable=bound.column)


def resolve_joined_condition(
    frame: DataFrame,
    condition: Column | str,
    *,
    target: DataFrame,
    schema: StructType,
    alias: str,
    time: FixedNow,
) -> JoinedCondition:
    """Resolve a condition against rows that are not, or not only, a table's.

    Args:
        frame: The rows.
        condition: SQL text or a column.
        target: Those of them that are the table's.
        schema: The table's schema.
        alias: The alias of the table's rows.
        time: Makes the current time a constant.

    Raises:
        pyspark.errors.AnalysisException: Spark can't resolve it.
        UsageError: It is not deterministic, holds a `*`, or on Spark Connect holds a subquery and
            is no `SubqueryText`.
    """
    column = sf.expr(condition) if isinstance(condition, str) else condition
    if is_connect(frame.sparkSession):
        reading = read_sent_condition(frame, condition, schema, alias)
    else:
        reading = read_analyzed_condition(frame, column, schema, ())
    text = _shown_text(condition, reading)
    is_bound = reading.obstacle == "subquery" and reading.analyzed is not None
    asks = _asks(condition, reading)
    if reading.obstacle is not None and not is_bound and not asks:
        raise _condition_refused(text, reading.obstacle, _KINDS_OF_JOINED)
    if asks:
        return JoinedCondition(text, column, reading.names, condition, reads=frame.where(column))
    fixed, analyzed = time.fixed(column), reading.analyzed
    if fixed is not column and analyzed is not None:
        analyzed = read_analyzed_condition(frame, fixed, schema, ()).analyzed
    if is_bound and analyzed is not None:
        bound = BoundCondition.of(frame, analyzed, text)
        return JoinedCondition(text, analyzed, reading.names, analyzed, bound)
    found = _for_every_pass(fixed, analyzed, target, alias)
    readable = condition if is_connect(frame.sparkSession) else found
    return JoinedCondition(text, found, reading.names, readable)


_REFUSALS: dict[Obstacle, tuple[str, str]] = {
    "non-deterministic": (
        "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        "is not deterministic: two passes over the same rows would choose different ones. Compute "
        "the value first.",
    ),
    "subquery": (
        "DELTA_UNSUPPORTED_SUBQUERY",
        "holds a subquery, which is not supported here. Compute its answer first, or use SQL text "
        "in a DELETE, UPDATE or MERGE.",
    ),
    "star": (
        "INVALID_USAGE_OF_STAR_OR_REGEX",
        "holds a `*` or a pattern of column names, which may mean other columns in each pass over "
        "the rows. Name the columns.",
    ),
}


_KINDS_OF_JOINED: Mapping[Obstacle, str] = {
    "non-deterministic": "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
}
"""Error kinds for which Delta has other names in a MERGE."""


def subquery_refused(text: str) -> UsageError:
    """Return the error for a subquery in a condition that can't hold one."""
    return _condition_refused(text, "subquery")


def _condition_refused(
    text: str, obstacle: Obstacle, kinds: Mapping[Obstacle, str] | None = None
) -> UsageError:
    kind, reason = _REFUSALS[obstacle]
    return UsageError(
        f"The condition {quoted(text)} {shown(reason)} Nothing was written.",
        kind=(kinds or {}).get(obstacle, kind),
        condition=text,
    )


def _ensure_own_columns(names: frozenset[str], schema: StructType, text: str) -> None:
    unknown = sorted(names - {name.lower() for name in schema.names})
    if unknown:
        raise UsageError(
            f"The condition {quoted(text)} names {listed(unknown)}, which is not a column of the "
            "table but what Spark knows about its files; commands can't select rows by that. "
            "Nothing was written. Use a column of the table.",
            kind="OPTIMIST_NO_COLUMN_OF_THE_TABLE",
            condition=text,
            columns=tuple(unknown),
        )
