"""A condition with a subquery, as Spark has resolved it, for rows that a command reads later.

A subquery names columns of the outer row deep inside its own plan, so such a condition can't be
turned back into names. Instead the rows get the very columns to which Spark has bound the
condition, and the condition does not change. Only Spark evaluates it, as the filter of a SELECT, by
its own semi and anti joins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate

__all__ = ["BoundCondition", "conjuncts", "has_subquery", "rebound"]

_SUBQUERIES = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression$"
_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern$"


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition that holds a subquery.

    Attributes:
        spark: A classic session.
        expression: The resolved condition, a Java `Expression`.
        attributes: The columns of the rows around the subquery, a Scala `Seq` of attributes.
        text: SQL, for the history.
    """

    spark: SparkSession
    expression: Any
    attributes: Any
    text: str

    @classmethod
    def of(cls, rows: DataFrame, analyzed: Column, text: str) -> BoundCondition:
        """Return a condition as Spark has analysed it over some rows."""
        spark = rows.sparkSession
        return cls(spark, Jvm.of(spark).tree(analyzed), analyzed_plan(rows).output(), text)

    @property
    def column(self) -> Column:
        """The condition, which fits only the rows that `over` returns."""
        return Jvm.of(self.spark).column(self.expression)

    @property
    def parts(self) -> tuple[Column | None, Column]:
        """The conjuncts without subqueries (None if there are none), and the others."""
        jvm = Jvm.of(self.spark)
        plain: list[Any] = []
        asking: list[Any] = []
        for part in conjuncts(self.expression):
            (asking if has_subquery(jvm, part) else plain).append(part)
        both = jvm.catalyst.expressions.And
        return (
            jvm.column(reduce(both, plain)) if plain else None,
            jvm.column(reduce(both, asking)),
        )

    def over(self, rows: DataFrame) -> DataFrame:
        """Give rows of the table the columns to which the condition is bound.

        Raises:
            TableError: See `rebound`.
        """
        return rebound(rows, self.attributes, needed=self.expression.references())

    def matching(self, rows: DataFrame) -> DataFrame:
        """Return the table's rows for which the condition is true."""
        jvm = Jvm.of(self.spark)
        plan = analyzed_plan(self.over(rows))
        return jvm.frame(jvm.catalyst.plans.logical.Filter(self.expression, plan))

    def analyzed_as(self, column: Column) -> BoundCondition:
        """Return the condition as Spark has analysed it over the rows of `over`."""
        return replace(self, expression=Jvm.of(self.spark).tree(column))

    def as_rows(self) -> DataFrame:
        """Return a query that reads only what the subqueries read."""
        jvm = Jvm.of(self.spark)
        logical = jvm.catalyst.plans.logical
        nothing = logical.LocalRelation(self.attributes, jvm.nil, False, jvm.none)
        return jvm.frame(logical.Filter(self.expression, nothing))

    def reading(self, rows: DataFrame) -> BoundCondition:
        """Return the condition, with its subqueries bound as in `rows`.

        `rows` is made from the result of `as_rows`.
        """
        plan = analyzed_plan(rows)
        return replace(self, expression=plan.condition())


def conjuncts(expression: Any) -> Iterator[Any]:
    """Yield the conditions that a Spark expression joins by AND."""
    if str(expression.getClass().getSimpleName()) == "And":
        yield from conjuncts(expression.left())
        yield from conjuncts(expression.right())
    else:
        yield expression


def has_subquery(jvm: Jvm, expression: Any) -> bool:
    """Check whether one of Spark's expressions, resolved or not, holds a subquery."""
    if not expression.containsPattern(jvm.module(_PATTERNS).PLAN_EXPRESSION()):
        return False
    return bool(jvm.module(_SUBQUERIES).hasSubquery(expression))


def rebound(rows: DataFrame, attributes: Any, *, needed: Any = None) -> DataFrame:
    """Bind the rows' columns to attributes of the same names.

    Args:
        rows: The rows, in a classic session.
        attributes: A Scala `Seq` of attributes.
        needed: The attributes that the rows must have, a Java `AttributeSet`; None for none.

    Raises:
        TableError: The rows lack one, or its type differs (kind
            `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
    """
    jvm, plan = Jvm.of(rows.sparkSession), analyzed_plan(rows)
    wanted = {str(item.name()): item for item in iterate(attributes)}
    columns, found = [], set()
    for item in iterate(plan.output()):
        name = str(item.name())
        given = wanted.get(name)
        if given is None or not item.dataType().sameType(given.dataType()):
            columns.append(item)
            continue
        found.add(name)
        columns.append(_alias_as(jvm, item, given))
    for item in iterate(needed.toSeq()) if needed is not None else ():
        name = str(item.name())
        if name in wanted and name not in found:
            raise _changed_column(name)
    return jvm.frame(jvm.catalyst.plans.logical.Project(jvm.seq(columns), plan))


def _alias_as(jvm: Jvm, item: Any, given: Any) -> Any:
    """Return a column under the id and the qualifier of another."""
    alias = jvm.catalyst.expressions.Alias
    return alias(item, given.name(), given.exprId(), given.qualifier(), jvm.none, jvm.nil)


def _changed_column(name: str) -> TableError:
    return TableError(
        f"The column {shown(name)}, which a condition with a subquery reads, was renamed, dropped "
        "or given another type since the statement was analysed. Nothing was written. Run it "
        "again.",
        kind="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
        column=name,
    )
