"""Rows as files: partition values, statistics, skipping, reading, writing. No Spark."""

# Skipping joins predicates and statistics, and is part of the face of `optimist.core.predicates`.
# That package therefore has to be whole before any module of this one is.
import optimist.core.predicates  # noqa: F401
