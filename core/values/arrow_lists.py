"""Arrow's types of lists: a file's notes may name any of them for the lists of a table."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["is_list"]


def is_list(data_type: pa.DataType) -> bool:
    """Return whether a type is a list, of whatever layout."""
    return bool(
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
        or pa.types.is_list_view(data_type)
        or pa.types.is_large_list_view(data_type)
    )
