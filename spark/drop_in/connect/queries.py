"""Queries of a Spark Connect client over Delta tables: frames in the places of the tables' names.

The rest stays the user's own text. The server gets the frames along with the statement, so that no
view stays behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from optimist.core.sql import PathRelation, RowNeeds, markers_of, query_needs
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.drop_in.connect.parameters import Arguments, SentParameters
from optimist.spark.drop_in.connect.relations import RelationFrames
from optimist.spark.drop_in.connect.replaced_names import replaced_names

__all__ = ["with_frames"]


def with_frames(
    spark: SparkSession,
    original: Callable[..., DataFrame],
    sql: FormattedSql,
    relations: Sequence[PathRelation],
    args: Arguments | None,
) -> DataFrame:
    """Run a statement with the frames of tables in the places of their names.

    Args:
        spark: The client's session.
        original: Spark's own `sql` of this session.
        sql: The statement.
        relations: The tables that it names.
        args: The values of its parameters.
    """
    parameters = None if args is None else SentParameters(spark=spark, args=args)
    needs = query_needs(sql.text, relations, parameters)
    tables = RelationFrames(spark, needs.mentions)
    qualifiers = {relation.path for relation in relations if relation.is_qualifier}
    opened: dict[tuple[PathRelation, RowNeeds], str] = {}
    views = dict(sql.frames)

    def name_of(relation: PathRelation) -> str:
        # A table that is named before a column is one frame, whichever rows are needed where.
        rows = RowNeeds() if relation.path in qualifiers else needs.rows_of(relation)
        key = (relation, rows)
        if key not in opened:
            opened[key] = f"optimist_table_{len(opened)}"
            views[opened[key]] = tables.frame(relation, rows)
        return f"{{{opened[key]}}}"

    text = replaced_names(sql.text, relations, name_of, sql.template)
    return original(text, _args_left(sql.text, relations, args), **views)


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
