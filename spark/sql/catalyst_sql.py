"""SQL of a table's log in classic sessions, judged by the trees of Spark's parser and analyser.

1. Spark's own parser parses the text. Unlike the session's parser, it replaces no variables in the
   text (`${env:...}` would become a value of the environment), and no extension has changed it.
2. The tree is judged before Spark analyses it, since analysis lists the files of a subquery and
   computes constant arguments. A function is judged by the class of Spark's builtin function of
   that name.
3. Spark analyses the tree over only the table's columns. The result is judged by its classes: a
   name may turn out to be another function, a variable, or the user.
4. The judged tree itself becomes the column. The text is not parsed again.
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
_FOLDING = (
    "ReplaceExpressions",
    "RewriteWithExpression",
    "ComputeCurrentTime",
    "SpecialDatetimeValues",  # before constants are folded, which knows no `'today'`
    "ConstantFolding",
)
_FAILURES = (PySparkException, Py4JJavaError)


def judged_sql(spark: SparkSession, sql: str, columns: StructType) -> Column:
    """Return the text as a column, once it is judged safe.

    Args:
        spark: A classic session.
        sql: The text.
        columns: The only columns that it may name.

    Raises:
        UnsafeSqlError: The text holds something that SQL of a table's log may not.
        InvalidSqlError: Spark can't make an expression over these columns from the text.
    """
    jvm = Jvm.of(spark)
    parsed = _parse_and_judge(jvm, sql)
    _ = _analyze_and_judge(jvm, parsed, columns)
    return jvm.column(parsed)


def constant_of_sql(spark: SparkSession, sql: str) -> Column:
    """Compute the value of a text that names no column.

    Args:
        spark: A classic session.
        sql: The text.

    Raises:
        UnsafeSqlError: The text holds something that SQL of a table's log may not, or is not a
            constant.
        InvalidSqlError: Spark can't make an expression from the text.
    """
    jvm = Jvm.of(spark)
    plan = _analyze_and_judge(jvm, _parse_and_judge(jvm, sql), StructType())
    try:
        with jvm.as_active():
            for name in _FOLDING:
                plan = jvm.module(f"{_OPTIMIZER}.{name}$").apply(plan)
    except _FAILURES as error:
        raise InvalidSqlError(str(error)) from None
    value = _projected_value(plan)
    if _simple_name(str(value.getClass().getName())) != "Literal":
        raise UnsafeSqlError("is not a constant")
    return jvm.column(value)


def _parse_and_judge(jvm: Jvm, sql: str) -> Any:
    try:
        tree = jvm.parsed(sql)
        nodes = _fetch_nodes(tree)
    except _FAILURES as error:
        raise InvalidSqlError(str(error)) from None
    for node in nodes:
        name = str(node["class"])
        if _simple_name(name) == _FUNCTION:
            _judge_function(jvm, str(node["nameParts"])[1:-1])
        _judge(name, is_allowed_before_analysis)
    return tree


def _analyze_and_judge(jvm: Jvm, tree: Any, columns: StructType) -> Any:
    """Return the analysed plan of a projection of the tree, once its nodes are judged safe."""
    bare = columns.without_field_keys(lambda _: True)
    no_rows = jvm.root.java.util.ArrayList()
    rows = jvm.session.createDataFrame(no_rows, jvm.struct(to_spark_schema(bare)))
    try:
        plan = analyzed_plan(DataFrame(rows, jvm.spark).select(jvm.column(tree)))
        nodes = _fetch_nodes(_projected_value(plan))
    except _FAILURES as error:
        raise InvalidSqlError(str(error)) from None
    for node in nodes:
        _judge(str(node["class"]), is_allowed)
    if not _projected_value(plan).deterministic():
        raise UnsafeSqlError("is not deterministic")
    return plan


def _projected_value(plan: Any) -> Any:
    """Return the one expression of a projection."""
    (value,) = iterate(plan.projectList())
    return value.child() if _simple_name(str(value.getClass().getName())) == "Alias" else value


def _judge_function(jvm: Jvm, name: str) -> None:
    # A name of several parts arrives as the text of their list, which matches no function.
    found = jvm.module(_BUILTIN).builtin().lookupFunction(jvm.module(_IDENTIFIER + "$").apply(name))
    if not found.isDefined() or not is_allowed(str(found.get().getClassName())):
        raise UnsafeSqlError("calls a function that is not on the list of safe ones", name)


def _judge(class_name: str, is_on_list: Callable[[str], bool]) -> None:
    if not is_on_list(class_name):
        raise UnsafeSqlError(
            "holds an expression that is not on the list of safe ones", _simple_name(class_name)
        )


def _fetch_nodes(tree: Any) -> Iterator[Mapping[str, object]]:
    """Return the nodes of a tree, fetched in one round trip."""
    return iter(json.loads(str(tree.toJSON())))


def _simple_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]
