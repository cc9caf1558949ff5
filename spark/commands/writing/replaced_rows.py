"""The rows that a write by `replaceOn` and `replaceUsing` replaces: those that match a new row.

A row of the table matches if the condition is true for it and some new row. `replaceUsing` names
columns whose values must be equal, and null equals nothing, as in Delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.spark.commands.dml.target import TARGET_ALIAS, Target
from optimist.spark.commands.merge.source import facts_of
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.conditions.condition import (
    Condition,
    resolve_joined_condition,
    subquery_refused,
)
from optimist.spark.conditions.join_condition import read_join
from optimist.spark.rows.row_shape import column_of
from optimist.spark.rows.row_shape import quoted as quoted_name

__all__ = ["rows_to_replace"]

_NEW_ALIAS = "__optimist_new_rows"


def rows_to_replace(target: Target, rows: DataFrame, request: WriteRequest) -> Condition:
    """Return the condition by which rows of the table match new ones.

    The new rows are read once, for the values that decide which files can hold matching rows.

    Args:
        target: The table, under the alias of its rows.
        rows: The new rows; each read must return the same rows.
        request: The write; it has one of the two options.

    Raises:
        UsageError: A column is in neither, or in both, of the table's rows and the new ones (kinds
            `DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION`,
            `DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION`), or one of `replaceUsing` is
            not in both (`UNRESOLVED_INSERT_REPLACE_USING_COLUMN`); or the condition is not
            deterministic or holds a subquery.
    """
    own, schema = target.columns(), target.snapshot.schema
    names, text = request.replace_using, request.replace_on or ""
    wanted: Column | str = text
    if names is not None:
        text = listed(names)
        rows, wanted = _match_by_columns(target, rows, names)
    else:
        _ensure_resolved(own.crossJoin(rows), text)
    alias = target.alias or TARGET_ALIAS
    found = resolve_joined_condition(
        own.crossJoin(rows),
        wanted,
        target=own,
        schema=schema,
        alias=alias,
        time=target.fixed_now(own, rows),
    )
    if found.is_asked_once:
        raise subquery_refused(found.text)
    reading = read_join(
        own,
        rows,
        found.readable,
        schema=schema,
        partition_columns=target.snapshot.partition_columns,
        alias=alias,
    )
    facts = facts_of(rows, reading, target, own)
    return Condition(
        text=text,
        column=found.column,
        predicate=reading.target & facts.predicate,
        columns=frozenset(item.name for item in schema if item.name.lower() in found.names),
        is_partition_only=False,
        source=rows,
    )


def _match_by_columns(
    target: Target, rows: DataFrame, names: Sequence[str]
) -> tuple[DataFrame, Column]:
    """Return the new rows' values of the columns, and the condition that they are equal."""
    there = {
        "table": {name.lower() for name in target.snapshot.schema.names},
        "query": {name.lower() for name in rows.columns},
    }
    for name in names:
        for side, known in there.items():
            if name.lower() not in known:
                raise UsageError(
                    f"The option replaceUsing names {quoted(name)}, which is not a column of the "
                    f"{side}. Nothing was written. Name columns that the table and the rows have: "
                    f"{listed(sorted(there['table'] & there['query']))}.",
                    kind="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
                    column=name,
                    side=side,
                )
    values = rows.select(*map(column_of, names)).alias(_NEW_ALIAS)
    sides = [(f"{target.alias}.{quoted_name(n)}", f"{_NEW_ALIAS}.{quoted_name(n)}") for n in names]
    return values, reduce(and_, [sf.col(own) == sf.col(new) for own, new in sides])


def _ensure_resolved(both: DataFrame, text: str) -> None:
    """Refuse columns of `replaceOn` that are unknown, or that both sides have."""
    try:
        both.where(text).schema  # noqa: B018 - a Connect client asks the server here
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition == "AMBIGUOUS_REFERENCE":
            problem, kind = "is in both", "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"
        elif condition.startswith("UNRESOLVED_COLUMN"):
            problem, kind = "is in none", "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"
        else:
            raise
        parameters = error.getMessageParameters() or {}
        name = parameters.get("objectName") or parameters.get("name", "")
        raise UsageError(
            f"The option replaceOn {quoted(text)} names {shown(name)}, which {problem} of the "
            "table's rows and the new ones. Nothing was written. Give both an alias, with "
            'df.alias("s") and the option targetAlias, and write s.column and t.column.',
            kind=kind,
            condition=text,
            column=name,
        ) from None
