"""The way into Spark's JVM: one `Jvm` per session, by which other modules look inside Spark.

*Assumes* classic PySpark 4.0 to 4.3 and one Python process per session. *Provides* Scala values,
logical plans and frames made of them. *Does not provide* anything for Spark Connect or forked child
processes.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.forking import ForkSafeLock
from optimist.spark.session.lost_server import is_of_lost_server
from optimist.spark.session.pyspark_versions import (
    CLASSIC_DATASET,
    COLUMN_CONVERTER,
    ensure_classic,
    is_connect,
    spark_arrow_schema,
)

__all__ = [
    "Jvm",
    "analyzed_plan",
    "arrow_of_rows",
    "conf_entries",
    "error_texts",
    "filter_condition",
    "frame_of_rows",
    "iterate",
    "known_to_spark",
    "text_map",
]

_MAX_CAUSES = 20
_PARSER = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"
_PRIMITIVES = ("boolean", "byte", "double", "float", "int", "long", "short")
_ROWS_PER_BATCH = 100_000
_LOCK = ForkSafeLock()
_MUTED: dict[str, int] = {}
_GATEWAYS: weakref.WeakKeyDictionary[SparkSession, Jvm] = weakref.WeakKeyDictionary()


class Jvm:
    """Handles into the JVM of one session, which `Jvm.of` makes anew after `spark.stop()`."""

    def __init__(self, spark: SparkSession) -> None:
        ensure_classic(spark)
        context = spark.sparkContext
        self._spark = weakref.ref(spark)
        self._context = context
        self._pid = os.getpid()
        self.gateway: Any = context._gateway
        ensure_callback_server_started(self.gateway)  # type: ignore[no-untyped-call]  # py4j
        root: Any = _LazyNames(spark._jvm)
        self.root = root
        self.session: Any = spark._jsparkSession
        self._modules: dict[str, Any] = {}
        self._loader = root.java.lang.Thread.currentThread().getContextClassLoader()
        self.none = self.module("scala.None$")
        self.empty_map = root.PythonUtils.toScalaMap({})
        self.nil = self.seq(())
        self.sources: Any = root.org.apache.spark.sql.execution.datasources
        self.catalyst: Any = root.org.apache.spark.sql.catalyst
        self.dataset: Any = self.module(CLASSIC_DATASET + "$")

    @classmethod
    def of(cls, spark: SparkSession) -> Jvm:
        """Return the handles for this session, made at the first use and after each restart.

        Raises:
            UsageError: The session can't be served, or this process was forked from the session's
                process.
        """
        ensure_classic(spark)
        with _LOCK:
            known = _GATEWAYS.get(spark)
            if known is None or not known._is_alive(spark):
                known = _GATEWAYS[spark] = cls(spark)
        known._ensure_same_process()
        return known

    @property
    def spark(self) -> SparkSession:
        """The session of the handles."""
        spark = self._spark()
        if spark is None:
            raise UsageError(
                "The Spark session was stopped. Create a new one.", kind="OPTIMIST_SESSION_STOPPED"
            )
        return spark

    def module(self, name: str) -> Any:
        """Return a Scala object by its class name, which ends in `$`."""
        if name not in self._modules:
            self._modules[name] = self._loader.loadClass(name).getField("MODULE$").get(None)
        return self._modules[name]

    def java_class(self, name: str) -> Any:
        """Return a `java.lang.Class`, by the loader that also sees jars added later."""
        return self._loader.loadClass(name)

    def has_class(self, name: str) -> bool:
        """Check whether a class exists, without a failed load.

        A failed load costs PySpark a hundred round trips.
        """
        return self._loader.getResource(f"{name.replace('.', '/')}.class") is not None

    def seq(self, items: Iterable[object]) -> Any:
        """Make a Scala `Seq`."""
        listed = self.root.java.util.ArrayList()
        for item in items:
            listed.add(item)
        return self.root.scala.jdk.javaapi.CollectionConverters.asScala(listed).toList()

    def array(self, kind: Any, items: Sequence[object]) -> Any:
        """Make a Java array with elements of a class."""
        array = self.gateway.new_array(kind, len(items))
        for at, item in enumerate(items):
            array[at] = item
        return array

    def array_seq(self, array: Any) -> Any:
        """Wrap a Java array as an immutable Scala `Seq`, without a copy."""
        return self.root.scala.collection.immutable.ArraySeq.unsafeWrapArray(array)

    def scala_map(self, items: Mapping[Any, object]) -> Any:
        """Make a Scala `Map`."""
        return self.root.PythonUtils.toScalaMap(dict(items))

    def struct(self, schema: StructType) -> Any:
        """Convert a Spark schema to an object of the JVM.

        Raises:
            SchemaError: Spark's JVM does not know something in it, such as a collation (kind
                `OPTIMIST_UNKNOWN_TYPE`).
        """
        with known_to_spark():
            return self.session.parseDataType(schema.json())

    def cast(self, value: Column, data_type: DataType, mode: str) -> Column:
        """Make a cast that no conf of the session changes.

        Args:
            value: The column to cast.
            data_type: The new type.
            mode: `ansi` or `legacy`.
        """
        nodes = "org.apache.spark.sql.internal.Cast"
        modes = self.root.scala.Option.apply(self.module(f"{nodes}${mode.title()}$"))
        typed = self.session.parseDataType(data_type.json())
        child: Any = value
        node = child._jc.node()
        cast = self.root.org.apache.spark.sql.internal.Cast(node, typed, modes, node.origin())
        return Column(self.root.org.apache.spark.sql.Column(cast))

    def checked_cast(self, cast: Column, column: str) -> Column:
        """Make a cast whose overflow error names the column that the value is for.

        Args:
            cast: The result of `cast`.
            column: The column's name, as SQL writes it.
        """
        expressions = self.root.org.apache.spark.sql.catalyst.expressions
        return self.column(expressions.CheckOverflowInTableInsert(self.tree(cast), column))

    def parsed(self, sql: str) -> Any:
        """Parse an expression with Spark's own parser, without looking anything up.

        The session's parser would first replace variables in the text, even inside names:
        `${env:HOME}` would become a value of the environment.
        """
        with self.as_active():
            return self.module(_PARSER).parseExpression(sql)

    def tree(self, column: Column) -> Any:
        """Return the Catalyst expression of a column, with its names still unresolved."""
        inner: Any = column
        with self.as_active():
            return self.module(f"{COLUMN_CONVERTER}$").apply(inner._jc.node())

    def column(self, tree: Any) -> Column:
        """Return a Catalyst expression as a column."""
        return Column(self.root.org.apache.spark.sql.classic.ExpressionUtils.column(tree))

    def frame(self, plan: Any, session: Any = None) -> DataFrame:
        """Return a DataFrame over a logical plan, in this or another JVM session."""
        return DataFrame(self.dataset.ofRows(session or self.session, plan), self.spark)

    def frame_of_relation(self, relation: Any) -> DataFrame:
        """Return a DataFrame over a `BaseRelation`."""
        return DataFrame(self.session.baseRelationToDataFrame(relation), self.spark)

    def isolated(self, frame: DataFrame, confs: Mapping[str, str]) -> DataFrame:
        """Return the same rows on a clone of their session, on which only `confs` are set."""
        clone = frame._jdf.sparkSession().cloneSession()
        self._share_observations(clone)
        for key, value in confs.items():
            clone.conf().set(key, value)
        return self.frame(analyzed_plan(frame), clone)

    def _share_observations(self, clone: Any) -> None:
        """Let the queries of a clone answer those who wait for this session's observations.

        Spark reports a query's result only to observations of the query's own session.
        """
        own = self.session.observationManager()
        for field in own.getClass().getDeclaredFields():
            if str(field.getType().getSimpleName()) == "ConcurrentHashMap":
                field.setAccessible(True)
                field.set(clone.observationManager(), field.get(own))

    @contextmanager
    def muted(self, logger: str) -> Iterator[None]:
        """Silence one of Spark's loggers while the block runs, in all threads.

        Use it for loggers that only repeat a raised error with its whole stack. A logger whose
        level the user has set is not changed.

        Args:
            logger: The logger's full name.
        """
        log4j = self.root.org.apache.logging.log4j
        context = log4j.LogManager.getContext(False)
        with _LOCK:
            users = _MUTED.get(logger, 0)
            # A logger has its own configuration only if somebody has set it.
            is_ours = (
                users > 0 or context.getConfiguration().getLoggerConfig(logger).getName() != logger
            )
            if is_ours and users == 0:
                silent = log4j.core.config.LoggerConfig(logger, log4j.Level.OFF, False)
                context.getConfiguration().addLogger(logger, silent)
                context.updateLoggers()
            if is_ours:
                _MUTED[logger] = users + 1
        try:
            yield
        finally:
            with _LOCK:
                if is_ours:
                    _MUTED[logger] -= 1
                    if _MUTED[logger] == 0:
                        context.getConfiguration().removeLogger(logger)
                        context.updateLoggers()

    @contextmanager
    def as_active(self) -> Iterator[None]:
        """Make this the thread's active session, so that Spark's code finds it and its conf."""
        sessions = self.root.org.apache.spark.sql.classic.SparkSession
        before = sessions.getActiveSession()
        if before.contains(self.session):
            yield
            return
        sessions.setActiveSession(self.session)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def hadoop_settings(self) -> Any:
        """Return the session's Hadoop configuration, a Java object."""
        return self.session.sessionState().newHadoopConf()

    def opens(self, scheme: str) -> bool:
        """Check whether Hadoop, on this class path, has a file system for a URL scheme.

        Hadoop is asked in a way that raises no error, since an error costs PySpark a hundred round
        trips.
        """
        settings = self.hadoop_settings()
        named = settings.get(f"fs.{scheme}.impl")
        if named is None:
            services = self.root.org.apache.hadoop.fs.FsUrlStreamHandlerFactory(settings)
            return services.createURLStreamHandler(scheme) is not None
        try:
            return settings.getClassByNameOrNull(named) is not None
        except Py4JJavaError:
            return False  # the class is there, but a class that it needs is missing

    def _is_alive(self, spark: SparkSession) -> bool:
        return self._context is spark._sc and self._context._jsc is not None

    def _ensure_same_process(self) -> None:
        if os.getpid() != self._pid:
            raise UsageError(
                "The Spark session can't be used in this process, which was forked from the one "
                "that made the session: two processes can't share one connection to the JVM. Use "
                "threads, or start another session in the child process.",
                kind="OPTIMIST_FORKED_SESSION",
            )


class _LazyNames:
    """Packages and classes by name, without a query to the JVM.

    py4j asks the JVM at every dot, and the JVM searches all jars for a class with each package's
    name. By Java's convention, package names begin with a small letter, and class names do not.
    """

    def __init__(self, view: Any, package: str = "") -> None:
        self._view = view
        self._package = package

    def __getattr__(self, name: str) -> Any:
        full = f"{self._package}{name}"
        if name[0].islower() and full not in _PRIMITIVES:
            found: Any = _LazyNames(self._view, f"{full}.")
        elif self._package:
            found = JavaClass(full, self._view._gateway_client)
        else:
            found = getattr(self._view, name)  # PySpark has imported it, or it is a primitive type
        setattr(self, name, found)
        return found


@contextmanager
def known_to_spark() -> Iterator[None]:
    """Wrap a call that hands a table's schema to Spark.

    Raises:
        SchemaError: Spark's JVM does not know something in it, such as a collation (kind
            `OPTIMIST_UNKNOWN_TYPE`).
    """
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        if is_of_lost_server(error):
            raise
        own, *causes = error_texts(error)
        # A Connect client gets no causes; the server's stack follows the first line of the text.
        reason = causes[0] if causes else own.strip().partition("\n")[0]
        raise SchemaError(
            "The table's schema has a type or a collation that this Spark does not know: "
            f"{shown(reason).rstrip('.')}. Nothing was read or written. Use a Spark that knows it.",
            kind="OPTIMIST_UNKNOWN_TYPE",
        ) from None


def conf_entries(spark: SparkSession) -> dict[str, str]:
    """Return all entries of a session's conf, its context's included."""
    if is_connect(spark):
        return spark.conf.getAll
    return text_map(spark, spark.conf._jconf.getAllAsJava())


def text_map(spark: SparkSession, entries: Any) -> dict[str, str]:
    """Fetch a Java map of texts as one text, since each entry would cost round trips."""
    root: Any = spark._jvm
    mapper = root.com.fasterxml.jackson.databind.ObjectMapper()
    found: dict[str, str] = json.loads(mapper.writeValueAsString(entries))
    return found


def analyzed_plan(frame: DataFrame) -> Any:
    """Return the analyzed logical plan of a frame, a Java object."""
    return frame._jdf.queryExecution().analyzed()


def filter_condition(plan: Any) -> Any:
    """Return the condition of the filter at the top of a plan.

    A projection that hides the metadata column may stand above it.
    """
    while plan.nodeName() != "Filter":
        plan = plan.child()
    return plan.condition()


def iterate(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala collection, with one round trip each."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def error_texts(error: BaseException) -> Iterator[str]:
    """Yield the message of an error from Spark, then those of its causes inside the JVM."""
    yield str(error)
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return
        yield str(cause.getMessage())
        cause = cause.getCause()


def frame_of_rows(jvm: Jvm, table: pa.Table, schema: StructType) -> DataFrame:
    """Make a frame of a small Arrow table, as part of the plan and without a job.

    Args:
        jvm: The session's handles.
        table: Columns in the order and of the types of `schema` (timestamps in microseconds).
        schema: Spark's types of the columns.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_ROWS_PER_BATCH)
    java = jvm.root.java
    stream = java.io.ByteArrayInputStream(sink.getvalue().to_pybytes())
    converters = jvm.module("org.apache.spark.sql.execution.arrow.ArrowConverters$")
    batches = converters.getBatchesFromStream(java.nio.channels.Channels.newChannel(stream))
    return DataFrame(
        jvm.root.PythonSQLUtils.toDataFrame(batches, schema.json(), jvm.session), jvm.spark
    )


def arrow_of_rows(jvm: Jvm, relation: Any, schema: StructType) -> pa.Table:
    """Return the rows of a `LocalRelation` as Arrow, without a job and with times in UTC.

    Args:
        jvm: The session's handles.
        relation: The plan.
        schema: Spark's types of its columns.
    """
    converters = jvm.module("org.apache.spark.sql.execution.arrow.ArrowConverters$")
    rows, types = relation.data().iterator(), jvm.struct(schema)
    given = (rows, types, _ROWS_PER_BATCH, "UTC", True, False, None)
    batches = converters.toBatchIterator(*given)
    target = spark_arrow_schema(schema)
    found = [pa.ipc.read_record_batch(pa.py_buffer(item), target) for item in iterate(batches)]
    return pa.Table.from_batches(found, schema=target)
