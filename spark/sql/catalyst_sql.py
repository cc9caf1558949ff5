"""SQL of a table's log in classic sessions, judged by what Spark's parser and analyser make of it.

1. Spark's own parser makes a tree of the text. Unlike the session's parser it replaces no variables
   in the text (`${env:...}` would become a value of the environment), and no extension has changed
   it.
2. The tree is judged before Spark analyses it: analysis lists the files of a subquery, and computes
   arguments that must be constants. A function is judged by the class of Spark's builtin function
   of that name.
3. Spark analyses the tree over the table's columns and nothing else, and the result is judged by
   its classes: a name may turn out to mean another function, a variable, or the user.
4. The judged tree itself becomes the column; the text is not read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.schema.types import StructType
from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate
from optimist.spark.spark_schema import to_spark_schema
from optimist.spark.sql.allowed_expressions import is_allowed, is_allowed_before_analysis
from optimist.spark.sql.unfit_sql import InvalidSqlError, UnsafeSqlError

__all__ = ["constant_of_sql", "judged_sql"]

_BUILTIN = "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$"
_IDENTIFIER = "org.apache.spark.sql.catalyst.FunctionIdentifier"
_FUNCTION = "UnresolvedFunction"
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_FOLDING = ("ReplaceExpressions", "RewriteWithExpression", "ComputeCurrentTime", "ConstantFolding")
_FAILURES = (PySparkException, Py4JJavaError)


def judged_sql(spark: SparkSession, sql: str, columns: StructType) -> Column:
    """The text as a column, once it is judged safe.

    Args:
        spark: A classic session.
        sql: The text.
        columns: The only columns that it may name.

    Raises:
        UnsafeSqlError: The text holds something that SQL of a table's log may not.
        InvalidSqlError: Spark can't make an expression over these columns from the text.
    """
    jvm = Jvm.of(spark)
    parsed = _parsed(jvm, sql)
    _ = _analyzed(jvm, parsed, columns)
    return jvm.column(parsed)


def constant_of_sql(spark: SparkSession, sql: str) -> Column:
    """The value of a text that names no column, computed now.

    Args:
        spark: A classic session.
        sql: The text.

    Raises:
        UnsafeSqlError: The text holds something that SQL of a table's log may not, or is not a
            constant.
        InvalidSqlError: Spark can't make an expression from the text.
    """
    jvm = Jvm.of(spark)
    plan = _analyzed(jvm, _parsed(jvm, sql), StructType())
    try:
        with jvm.as_active():
            for name in _FOLDING:
                plan = jvm.module(f"{_OPTIMIZER}.{name}$").apply(plan)
    except _FAILURES as error:
        raise InvalidSqlError(str(error)) from None
    value = _value(plan)
    if _simple_name(str(value.getClass().getName())) != "Literal":
        raise UnsafeSqlError("is not a constant")
    return jvm.column(value)


def _parsed(jvm: Jvm, sql: str) -> Any:
    try:
        tree = jvm.parsed(sql)
        nodes = _nodes(tree)
    except _FAILURES as error:
        raise InvalidSqlError(str(error)) from None
    for node in nodes:
        name = str(node["class"])
        if _simple_name(name) == _FUNCTION:
            _judge_function(jvm, str(node["nameParts"])[1:-1])
        _judge(name, is_allowed_before_analysis)
    return tree


def _analyzed(jvm: Jvm, tree: Any, columns: StructType) -> Any:
    """The analysed plan of a projection of the tree alone, once its nodes are judged safe."""
    bare = columns.without_field_keys(lambda _: True)
    no_rows = jvm.root.java.util.ArrayList()
    rows = jvm.session.createDataFrame(no_rows, jvm.struct(to_spark_schema(bare)))
    try:
        plan = analyzed_plan(DataFrame(rows, jvm.spark).select(jvm.column(tree)))
        nodes = _nodes(_value(plan))
    except _FAILURES as error:
        raise InvalidSqlError(str(error)) from None
    for node in nodes:
        _judge(str(node["class"]), is_allowed)
    if not _value(plan).deterministic():
        raise UnsafeSqlError("is not deterministic")
    return plan


def _value(plan: Any) -> Any:
    """The one expression of a projection."""
    (value,) = iterate(plan.projectList())
    return value.child() if _simple_name(str(value.getClass().getName())) == "Alias" else value


def _judge_function(jvm: Jvm, name: str) -> None:
    # A name of several parts arrives as the text of their list, which is no function's name.
    found = jvm.module(_BUILTIN).builtin().lookupFunction(jvm.module(_IDENTIFIER + "$").apply(name))
    if not found.isDefined() or not is_allowed(str(found.get().getClassName())):
        raise UnsafeSqlError("calls a function that is not on the list of safe ones", name)


def _judge(class_name: str, is_on_list: Callable[[str], bool]) -> None:
    if not is_on_list(class_name):
        raise UnsafeSqlError(
            "holds an expression that is not on the list of safe ones", _simple_name(class_name)
        )


def _nodes(tree: Any) -> Iterator[Mapping[str, object]]:
    """The nodes of a tree, fetched in one round trip."""
    return iter(json.loads(str(tree.toJSON())))


def _simple_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]
