"""The grammar of Spark's expressions and types, read without Spark: text to frozen trees."""

from optimist.core.expressions.cursor import NotSqlError
from optimist.core.expressions.parser import parse_expression
from optimist.core.expressions.types import SqlType, parse_type

__all__ = ["NotSqlError", "SqlType", "parse_expression", "parse_type"]
