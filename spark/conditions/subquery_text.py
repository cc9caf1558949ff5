"""The text of a condition or a new value with a subquery, from a client of Spark Connect.

The server resolves such a text in the pass that evaluates it, and no second pass asks the subquery
of a condition. The text names temporary views, which show one version each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import Column, DataFrame

from optimist.spark.conditions.connect_text import text_has_subquery
from optimist.spark.rows.touched_files import aliased

__all__ = ["SubqueryText", "reading_only", "renew_subqueries", "with_subqueries_marked"]


class SubqueryText(str):
    """SQL with a subquery, or with other names than the user wrote.

    Attributes:
        shown: The text as the user wrote it, for the history.
        renew: Gives the views that stand for paths in the text their tables' newest versions.
    """

    __slots__ = ("renew", "shown")

    shown: str
    renew: Callable[[], None]

    @classmethod
    def of(
        cls, text: str, shown: str | None = None, renew: Callable[[], None] = lambda: None
    ) -> SubqueryText:
        """Return a text that holds a subquery."""
        made = cls(text)
        made.shown, made.renew = text if shown is None else shown, renew
        return made


def with_subqueries_marked(given: Any) -> Any:
    """Return a `SubqueryText` for a text that holds a subquery, and others as they are."""
    if isinstance(given, SubqueryText) or not isinstance(given, str):
        return given
    return SubqueryText.of(given) if text_has_subquery(given) else given


def renew_subqueries(given: Iterable[Column | str | None]) -> None:
    """Let the texts among some expressions read the newest versions, for another try."""
    for item in given:
        if isinstance(item, SubqueryText):
            item.renew()


def reading_only(rows: DataFrame, alias: str | None) -> DataFrame:
    """Return rows with the columns of a table, by a query that does not read the table.

    So a condition or a value over them shows what it reads beside the rows of its table.

    Args:
        rows: The table's rows, of a Connect session.
        alias: The alias of these rows.
    """
    return aliased(rows.sparkSession.createDataFrame([], rows.schema), alias)
