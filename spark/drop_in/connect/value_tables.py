"""Delta tables that subqueries of conditions and new values name, on Spark Connect.

The server resolves an expression in each pass of a command, so it finds such a table as a temporary
view, which is there as long as the command runs and shows one version.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from optimist.core.sql import PathRelation, RowNeeds, names_of_relations, path_relations
from optimist.core.sql.statements import SqlText
from optimist.spark.conditions.subquery_text import SubqueryText
from optimist.spark.drop_in.connect.path_qualifiers import Aliases, with_aliases
from optimist.spark.drop_in.connect.queries import frame_of
from optimist.spark.drop_in.connect.relations import RelationFrames
from optimist.spark.drop_in.connect.replaced_names import replaced_names
from optimist.spark.drop_in.connect.statement_names import StatementNames
from optimist.spark.session.lost_server import is_of_lost_server

__all__ = ["ValueTables", "value_tables"]


class ValueTables:
    """The views of one statement."""

    def __init__(self, spark: SparkSession, names: StatementNames) -> None:
        self._spark = spark
        self._names = names
        self._frames = RelationFrames(spark, None)
        self._views: dict[PathRelation, str] = {}

    def text(self, value: SqlText, aliases: Aliases) -> str:
        """Return an expression, in which the names of views stand for those of Delta tables.

        Args:
            value: The expression.
            aliases: See `with_aliases`.
        """
        self._names.learn(names_of_relations(value.sql))
        relations = path_relations(value.sql, None, self._names.place_of)
        text = with_aliases(replaced_names(value.sql, relations, self._view), aliases)
        return text if text == value.sql else SubqueryText.of(text, value.sql, self._renew)

    def drop(self) -> None:
        """Drop the views."""
        for name in self._views.values():
            with suppress(PySparkException):  # the rows are written, and the view is the session's
                self._spark.catalog.dropTempView(name)

    def _view(self, relation: PathRelation) -> str:
        if relation not in self._views:
            name = f"optimist_table_{uuid4().hex}"
            self._frame(relation).createTempView(name)
            self._views[relation] = name
        return self._views[relation]

    def _renew(self) -> None:
        """Let the views show the newest versions, for another try after a conflict."""
        self._frames = RelationFrames(self._spark, None)
        for relation, name in self._views.items():
            self._frame(relation).createOrReplaceTempView(name)

    def _frame(self, relation: PathRelation) -> DataFrame:
        view = self._names.view_of(relation)
        return frame_of(self._spark, self._frames, relation, RowNeeds(), view)


@contextmanager
def value_tables(spark: SparkSession, names: StatementNames) -> Iterator[ValueTables]:
    """Give views for the tables in a statement's expressions, and drop them at the end.

    A server that is gone is not asked: the client would wait as long as its retry policies say.
    """
    tables, is_gone = ValueTables(spark, names), False
    try:
        yield tables
    except Exception as error:
        is_gone = is_of_lost_server(error)
        raise
    finally:
        if not is_gone:
            tables.drop()
