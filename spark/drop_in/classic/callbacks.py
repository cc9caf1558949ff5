"""The questions of Spark's side to Python: words, and the functions that answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from pyspark import SparkContext
from pyspark.sql import SparkSession

from optimist.spark.drop_in import cached_tables, newest_versions, statements
from optimist.spark.drop_in.classic import (
    alter,
    catalog,
    changes,
    relations,
    staged_tables,
    streams,
    writes,
)
from optimist.spark.drop_in.sessions import session_of
from optimist.spark.native.estimates import estimate_rows
from optimist.spark.native.log_answers import answer_from_log
from optimist.spark.session.callback_errors import callback, current_origin
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm

__all__ = ["Answers"]

Answer: TypeAlias = Callable[[SparkSession, Any, Any], Any]
_ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        # DeltaCatalog
        "load": catalog.load,
        "exists": catalog.exists,
        "drop": catalog.drop,
        "place": cached_tables.place,
        "create": staged_tables.create,
        "stage": staged_tables.stage,
        "alter": alter.alter,
        "save another format": catalog.refuse_another_format,
        # DeltaFormat
        "read": relations.read_format,
        "save": writes.save,
        "sink": streams.sink,
        "stream schema": streams.schema,
        "stream source": streams.source,
        # DeltaSink
        "add batch": streams.add_batch,
        # DeltaTable
        "stream by name": streams.refuse_path_name,
        # RelationRule
        "change rows": changes.change_rows,
        "insert into rows": changes.insert_into_rows,
        "write directory": writes.write_directory,
        # AnswerAggregates
        "aggregates": lambda spark, scans, functions: answer_from_log(
            Jvm.of(spark), scans, functions
        ),
        # EstimateRows
        "estimates": lambda spark, scan, entry: estimate_rows(Jvm.of(spark), scan, entry),
        # QueryVersions
        "newest": newest_versions.newest_versions,
        # ChangesFunction
        "changes": relations.changes,
        # StatementParser
        "parse": statements.plan,
    }
)


class Answers(JavaIdentity):
    """The one object that the JVM calls, with a word for each question."""

    class Java:
        """The interface that py4j makes a proxy of."""

        implements = ["scala.Function5"]  # noqa: RUF012 - py4j wants a list

    def __init__(self, context: SparkContext) -> None:
        super().__init__()
        self._context = context

    def apply(self, what: str, session_id: str, session: Any, about: Any, more: Any) -> Any:
        """Answer a question, which decides what `about` and `more` are."""
        with callback(lambda: current_origin(self._context)):
            answer = _ANSWERS.get(what)
            if answer is None:
                return None
            return answer(session_of(self._context, session, session_id), about, more)
