"""Tables that subqueries of new values name by their paths, for a client of Spark Connect.

The server resolves a value in each pass of a command, so it finds such a table as a temporary view,
which is there as long as the command runs and shows one version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from optimist.core.sql import PathRelation, RowNeeds, path_relations
from optimist.core.sql.statements import SqlText
from optimist.spark.drop_in.connect.relations import RelationFrames

__all__ = ["value_tables"]


@contextmanager
def value_tables(spark: SparkSession) -> Iterator[Callable[[SqlText], str]]:
    """Give a function that names views in place of paths in values, and drop them at the end."""
    frames, views = RelationFrames(spark, None), dict[PathRelation, str]()

    def view_of(relation: PathRelation) -> str:
        if relation not in views:
            name = f"optimist_table_{uuid4().hex}"
            frames.frame(relation, RowNeeds()).createTempView(name)
            views[relation] = name
        return views[relation]

    def readable(value: SqlText) -> str:
        pieces, end = list[str](), 0
        relations = path_relations(value.sql)
        by_path = {each.path: view_of(each) for each in relations if not each.is_qualifier}
        for relation in relations:
            name = by_path[relation.path] if relation.is_qualifier else view_of(relation)
            pieces += value.sql[end : relation.span.start], name
            end = relation.span.end
        return "".join([*pieces, value.sql[end:]])

    try:
        yield readable
    finally:
        for name in views.values():
            with suppress(PySparkException):  # the rows are written, and the view is the session's
                spark.catalog.dropTempView(name)
