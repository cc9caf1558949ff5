"""The types that a write may make wider in a table (spec 6.3 `typeWidening`, 10.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import implied_features, supports
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.type_widening import is_automatic_widening
from optimist.core.schema.types import DataType

__all__ = ["WideningRule", "allowed_widening", "is_widening_enabled"]

WideningRule: TypeAlias = Callable[[DataType, DataType], bool]
"""Returns whether the table's type (first) may be widened to the data's type (second)."""


def is_widening_enabled(metadata: Metadata, protocol: Protocol) -> bool:
    """Return whether columns of the table may get wider types, each change with a record.

    The preview of the feature allows none: its records name the version of the commit, which is
    unknown before the commit has landed.
    """
    is_enabled = TableMetadata.of(metadata).properties.enable_type_widening
    return is_enabled and "typeWidening" in implied_features(protocol)


def allowed_widening(metadata: Metadata, protocol: Protocol) -> WideningRule | None:
    """Return the widening rule of a table, or None for a table without the feature.

    Without the feature, byte, short and int may still become each other (`is_stored_alike`). If the
    feature is listed and its property is off, writers must keep all types.
    """
    if is_widening_enabled(metadata, protocol):
        return is_automatic_widening
    return _allow_none if supports(protocol, "typeWidening") else None


def _allow_none(_old: DataType, _new: DataType) -> bool:
    return False
