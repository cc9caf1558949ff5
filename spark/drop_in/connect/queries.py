"""Queries of a Spark Connect client over Delta tables: frames in the places of the tables' names.

The rest stays the user's own text. The server gets the frames along with the statement, so that no
view stays behind.

A view of the catalog that reads Delta tables is a frame of its own query, in which the names of
other tables are written in full: the session may be in another database than the view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.sql import PathRelation, RowNeeds, markers_of, path_relations, query_needs
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.connect.parameters import Arguments, SentParameters
from optimist.spark.drop_in.connect.relations import RelationFrames
from optimist.spark.drop_in.connect.replaced_names import replaced_names
from optimist.spark.drop_in.connect.statement_names import OpenedView, StatementNames
from optimist.spark.rows.row_shape import quoted

__all__ = ["frame_of", "view_rows", "with_frames"]


def with_frames(
    spark: SparkSession,
    original: Callable[..., DataFrame],
    sql: FormattedSql,
    relations: Sequence[PathRelation],
    args: Arguments | None,
    names: StatementNames,
) -> DataFrame:
    """Run a statement with the frames of tables in the places of their names.

    Args:
        spark: The client's session.
        original: Spark's own `sql` of this session.
        sql: The statement.
        relations: The tables that it names.
        args: The values of its parameters.
        names: What the names in it mean.
    """
    parameters = None if args is None else SentParameters(spark=spark, args=args)
    needs = query_needs(sql.text, relations, parameters)
    tables = RelationFrames(spark, needs.mentions)
    qualifiers = {relation.path for relation in relations if relation.is_qualifier}
    opened: dict[tuple[PathRelation, RowNeeds], str] = {}
    views = dict(sql.frames)

    def name_of(relation: PathRelation) -> str:
        view = names.view_of(relation)
        full_name = None if view is not None else names.full_name(relation)
        if full_name is not None:
            return sql.template(_in_full(full_name, relation))
        # A table that is named before a column is one frame, whichever rows are needed where.
        rows = RowNeeds() if relation.path in qualifiers else needs.rows_of(relation)
        key = (relation, rows)
        if key not in opened:
            opened[key] = f"optimist_table_{len(opened)}"
            views[opened[key]] = frame_of(spark, tables, relation, rows, view)
        return f"{{{opened[key]}}}"

    text = replaced_names(sql.text, relations, name_of, sql.template)
    return original(text, _args_left(sql.text, relations, args), **views)


def frame_of(
    spark: SparkSession,
    tables: RelationFrames,
    relation: PathRelation,
    rows: RowNeeds,
    view: OpenedView | None,
) -> DataFrame:
    """Return the frame that stands for a relation: the needed rows of a table, or a view's."""
    return tables.frame(relation, rows) if view is None else view_rows(spark, view)


def view_rows(spark: SparkSession, opened: OpenedView) -> DataFrame:
    """Return the rows of a view of the catalog.

    Raises:
        AnalysisException: Its query has no such columns any more.
        UsageError: The session's settings would give its query another meaning (kind
            `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    view, names = opened.view, opened.names
    view.ensure_same_confs(spark)
    own: Any = type(spark).sql
    relations = path_relations(view.query, None, names.place_of)
    sql = FormattedSql(view.query, {})
    rows = with_frames(spark, partial(own, spark), sql, relations, None, names)
    return view.shaped(rows)


def _in_full(name: tuple[str, ...], relation: PathRelation) -> str:
    """Return the full name of a table that is not ours, with the version that is asked for."""
    text = ".".join(map(quoted, name))
    if relation.version is not None:
        return f"{text} VERSION AS OF {relation.version.sql}"
    if relation.timestamp is not None:
        return f"{text} TIMESTAMP AS OF {relation.timestamp.sql}"
    return text


def _args_left(
    text: str,
    relations: Sequence[PathRelation],
    args: Arguments | None,
) -> Arguments | None:
    """Return the values without those whose markers `?` stand in replaced relations."""
    if args is None or isinstance(args, dict):
        return args
    spans = [relation.span for relation in relations]
    return [
        value
        for value, marker in zip(args, markers_of(text), strict=False)
        if not any(span.start <= marker.start < span.end for span in spans)
    ] or None
