"""Which types a write may make wider in a table (spec 6.3 `typeWidening`, 10.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import implied_features
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.type_widening import is_automatic_widening
from optimist.core.schema.types import DataType

__all__ = ["WideningRule", "allowed_widening"]

WideningRule: TypeAlias = Callable[[DataType, DataType], bool]
"""Tells whether the table's type (first) may be widened to the data's type (second)."""


def allowed_widening(metadata: Metadata, protocol: Protocol) -> WideningRule | None:
    """The rule of a table; None where types stay as they are.

    The preview of the feature allows none: its records name the version of the commit, which is not
    known before it has landed.
    """
    is_enabled = TableMetadata.of(metadata).properties.enable_type_widening
    is_there = "typeWidening" in implied_features(protocol)
    return is_automatic_widening if is_enabled and is_there else None
