"""The methods of `DeltaTable` in an enabled session of Spark Connect.

Subqueries in their conditions and new values may name Delta tables, as in a statement. Each method
is given the one of `DeltaTable` as `original`, bound to the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from optimist.core.sql.statements import Span, SqlText
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.conditions.connect_text import text_has_subquery
from optimist.spark.drop_in.connect.frames import Original, session_of
from optimist.spark.drop_in.connect.statement_names import StatementNames
from optimist.spark.drop_in.connect.value_tables import ValueTables, value_tables

__all__ = ["ROW_CHANGES"]


def _delete(original: Original, table: Any, condition: Any = None) -> Any:
    with _tables(table) as tables:
        return original(_named(tables, condition))


def _update(original: Original, table: Any, condition: Any = None, set: Any = None) -> Any:
    with _tables(table) as tables:
        given = set
        if isinstance(given, Mapping):
            given = {name: _named(tables, value) for name, value in given.items()}
        return original(_named(tables, condition), given)


def _merge(original: Original, table: Any, request: MergeRequest) -> Any:
    """Run a MERGE, whose clauses the user has given one after the other."""
    with _tables(table) as tables:
        return original(request.expressions_changed(lambda value, _: _named(tables, value), str))


def _tables(table: Any) -> Any:
    spark = session_of(table)
    return value_tables(spark, StatementNames(spark))


def _named(tables: ValueTables, value: Any) -> Any:
    """Return a text with the names of views in its subqueries, and other values as they are."""
    if not isinstance(value, str) or not text_has_subquery(value):
        return value
    return tables.text(SqlText(value, Span(0, len(value))), {})


ROW_CHANGES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"delete": _delete, "update": _update, "_merge": _merge}
)
