"""Commands of ours in Spark's plans, which run when Spark runs them, not when they are parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from optimist.spark.drop_in.compiler import dropin
from optimist.spark.drop_in.sessions import session_of
from optimist.spark.session.callback_errors import callback
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm

__all__ = ["python_command"]

Run: TypeAlias = Callable[[SparkSession], DataFrame | None]


def python_command(
    spark: SparkSession,
    title: str,
    schema: StructType,
    run: Run,
    origin: Any = None,
) -> Any:
    """Return a logical plan that calls a Python function once, when Spark executes it.

    Args:
        spark: The session whose JVM the plan is for.
        title: What `explain` shows.
        schema: The columns of the result; none for a command that answers nothing.
        run: Gets the session in which the command runs, and answers its rows. They are collected.
        origin: Where the statement stands in the SQL, a Java `Origin`; None if that is not known.
    """
    jvm = Jvm.of(spark)
    return dropin(jvm).PythonCommand(title, _Command(spark, run, origin), jvm.struct(schema))


class _Command(JavaIdentity):
    """The object that the JVM calls to run the function."""

    class Java:
        """The interface that py4j makes a proxy of."""

        implements = ["scala.Function1"]  # noqa: RUF012 - py4j wants a list

    def __init__(self, spark: SparkSession, run: Run, origin: Any) -> None:
        super().__init__()
        self._context = spark.sparkContext
        self._run = run
        self._origin = None if origin is None else lambda: origin

    def apply(self, session: Any) -> Any:
        """Return the rows as a Java list, or null for none."""
        with callback(self._origin):
            frame: Any = self._run(session_of(self._context, session))
            return None if frame is None else frame._jdf.collectAsList()
