"""Which generation expressions of a schema tell something about the rows of the table (spec 9.4).

A column's metadata may name an expression, but no writer has to keep to it unless the protocol
supports generated columns.
"""

from __future__ import annotations

from optimist.core.protocol.actions import Protocol
from optimist.core.protocol.gates import supports
from optimist.core.schema.generated_columns import without_expressions
from optimist.core.schema.types import StructType

__all__ = ["schema_as_kept"]


def schema_as_kept(schema: StructType, protocol: Protocol) -> StructType:
    """The schema with those generation expressions alone that every writer keeps to."""
    return schema if supports(protocol, "generatedColumns") else without_expressions(schema)
