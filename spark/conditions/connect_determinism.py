"""A check whether a Spark Connect client's expression surely has the same value each time.

Only the server knows a function's kind, and a user may have registered a name. So an expression
counts as deterministic only if all its functions have names of Spark's own functions, and none is
on the list of non-deterministic functions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyspark.sql.functions

from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.functions import (
    NON_DETERMINISTIC,
    OF_THE_MOMENT,
    ROW_FUNCTIONS,
)
from optimist.core.expressions.tree import Call, Expression, Parameter, Subquery, walk
from optimist.spark.conditions.connect_expressions import own_expressions

__all__ = ["is_deterministic"]

_VALUE_KINDS = frozenset(
    (
        *("literal", "unresolved_attribute", "alias", "cast", "sort_order", "lambda_function"),
        *("unresolved_named_lambda_variable", "unresolved_extract_value", "update_fields"),
        *("named_argument_expression",),
    )
)
_SURE = ROW_FUNCTIONS | OF_THE_MOMENT


def is_deterministic(expression: Any) -> bool:
    """Check whether a message `Expression` surely has the same value for the same row."""
    kind = expression.WhichOneof("expr_type")
    if kind == "expression_string":
        return _is_deterministic_text(expression.expression_string.expression)
    if kind == "unresolved_function":
        call = expression.unresolved_function
        is_known = not call.is_user_defined_function and _is_known(call.function_name)
    elif kind == "call_function":
        is_known = _is_known(expression.call_function.function_name)
    elif kind == "common_inline_user_defined_function":
        is_known = expression.common_inline_user_defined_function.deterministic
    else:
        is_known = kind in _VALUE_KINDS
    return is_known and all(map(is_deterministic, own_expressions(expression)))


def _is_deterministic_text(text: str) -> bool:
    try:
        nodes = list(walk(parse_expression(text)))
    except NotSqlError:
        return False  # the server reports the error
    return all(map(_is_known_part, nodes))


def _is_known_part(node: Expression) -> bool:
    if isinstance(node, Call):
        return not node.qualifiers and node.name in _SURE
    return not isinstance(node, Subquery | Parameter)


def _is_known(function: str) -> bool:
    name = function.lower()
    return name in _names_of_spark() and name not in NON_DETERMINISTIC


@cache
def _names_of_spark() -> frozenset[str]:
    operators = ("=", "==", "!=", "<", "<=", ">", ">=", "<=>", "!", "+", "-", "*", "/", "%")
    marks = ("&", "|", "^", "~", "getitem", "negative", "in")
    return _SURE | {*pyspark.sql.functions.__all__, *operators, *marks}
