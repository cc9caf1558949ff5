"""SQL functions that may give other results each time the same rows are read."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["NON_DETERMINISTIC_FUNCTIONS", "function_names"]

NON_DETERMINISTIC_FUNCTIONS = frozenset(
    {
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "monotonically_increasing_id",
        "rand",
        "randn",
        "random",
        "randstr",
        "shuffle",
        "spark_partition_id",
        "uniform",
        "uuid",
    }
)
"""Spark's, in lower case. `now()` is not among them: the clock stands still within a statement."""


def function_names(call: exp.Func) -> frozenset[str]:
    """The names, in lower case, by which SQL may call the function of this call."""
    names = [call.name] if isinstance(call, exp.Anonymous) else call.sql_names()
    return frozenset(name.lower() for name in names)
