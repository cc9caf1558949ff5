"""Functions of texts, by code points, with the meaning that they have in Spark."""

from __future__ import annotations

import pyarrow.compute as pc

from optimist.core.predicates.functions.value import STRING, Arguments, Array, Value, computed

__all__ = ["concat"]


def concat(given: Arguments) -> Value | None:
    """Join texts; the result is null if one of them is."""
    if any(data_type != STRING for data_type in given.types):
        return None

    def kernel(*parts: Array) -> Array:
        return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")

    return computed(STRING, given.values, kernel)
