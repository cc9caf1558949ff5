"""Casts of decimals and times to texts, as Spark writes them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.dates import days_of, ensure_years

__all__ = ["decimals_as_texts", "times_as_texts"]


def decimals_as_texts(values: pa.Array) -> pa.Array:
    """Return the digits of decimals, never with an exponent, and with all zeros of their scale."""
    scale = values.type.scale
    whole = pa.Array.from_buffers(
        pa.decimal128(values.type.precision, 0),
        len(values),
        values.buffers(),
        null_count=values.null_count,
        offset=values.offset,
    )
    digits = whole.cast(pa.string())
    if not scale:
        return digits
    is_negative = pc.starts_with(digits, "-")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, characters="-"), scale + 1, "0")
    before, after = (
        pc.utf8_slice_codeunits(padded, 0, -scale),
        pc.utf8_slice_codeunits(padded, -scale),
    )
    number = pc.binary_join_element_wise(before, after, ".")
    return pc.binary_join_element_wise(pc.if_else(is_negative, "-", ""), number, "")


def times_as_texts(text: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function that writes wall-clock times, with only the digits of a second they need.

    Args:
        text: The expression, for errors.
    """

    def write(times: pa.Array) -> pa.Array:
        ensure_years(days_of(times), text)
        long = times.cast(pa.string())
        return pc.utf8_rtrim(pc.utf8_rtrim(long, characters="0"), characters=".")

    return write
