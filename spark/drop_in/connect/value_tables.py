"""Tables that subqueries of conditions and new values name by their paths, on Spark Connect.

The server resolves an expression in each pass of a command, so it finds such a table as a temporary
view, which is there as long as the command runs and shows one version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from optimist.core.sql import PathRelation, RowNeeds, path_relations
from optimist.core.sql.statements import SqlText
from optimist.spark.conditions.subquery_text import SubqueryText
from optimist.spark.drop_in.connect.path_qualifiers import with_aliases
from optimist.spark.drop_in.connect.relations import RelationFrames
from optimist.spark.session.lost_server import is_of_lost_server

__all__ = ["ValueTables", "value_tables"]


class ValueTables:
    """The views of one statement."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._frames = RelationFrames(spark, None)
        self._views: dict[PathRelation, str] = {}

    def text(self, value: SqlText, aliases: Mapping[str, str]) -> str:
        """Return an expression, in which the names of views stand for paths.

        Args:
            value: The expression.
            aliases: See `with_aliases`.
        """
        pieces, end = list[str](), 0
        relations = path_relations(value.sql)
        by_path = {each.path: self._view(each) for each in relations if not each.is_qualifier}
        for relation in relations:
            name = by_path[relation.path] if relation.is_qualifier else self._view(relation)
            pieces += value.sql[end : relation.span.start], name
            end = relation.span.end
        text = with_aliases("".join([*pieces, value.sql[end:]]), aliases)
        return text if text == value.sql else SubqueryText.of(text, value.sql, self._renew)

    def drop(self) -> None:
        """Drop the views."""
        for name in self._views.values():
            with suppress(PySparkException):  # the rows are written, and the view is the session's
                self._spark.catalog.dropTempView(name)

    def _view(self, relation: PathRelation) -> str:
        if relation not in self._views:
            name = f"optimist_table_{uuid4().hex}"
            self._frames.frame(relation, RowNeeds()).createTempView(name)
            self._views[relation] = name
        return self._views[relation]

    def _renew(self) -> None:
        """Let the views show the newest versions, for another try after a conflict."""
        self._frames = RelationFrames(self._spark, None)
        for relation, name in self._views.items():
            self._frames.frame(relation, RowNeeds()).createOrReplaceTempView(name)


@contextmanager
def value_tables(spark: SparkSession) -> Iterator[ValueTables]:
    """Give views for the paths in a statement's expressions, and drop them at the end.

    A server that is gone is not asked: the client would wait as long as its retry policies say.
    """
    tables, is_gone = ValueTables(spark), False
    try:
        yield tables
    except Exception as error:
        is_gone = is_of_lost_server(error)
        raise
    finally:
        if not is_gone:
            tables.drop()
