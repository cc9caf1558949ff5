"""Texts of a declared length: `char(n)` and `varchar(n)` are strings to Delta (spec 10.5)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import SchemaError
from optimist.core.foreign_text import quoted, shown
from optimist.core.schema.types import DECLARED_TYPE, PrimitiveType, StructField

__all__ = ["DeclaredText", "declared_text", "with_declared_length"]

_DECLARED = re.compile(r"(char(?=\([0-9]{1,5}\))|varchar)\(([0-9]{1,9})\)")  # char is padded


@dataclass(frozen=True, slots=True)
class DeclaredText:
    """What a text column was declared as.

    Attributes:
        length: The most characters of a value.
        is_padded: Whether shorter values are filled up with blanks, as `char` requires.
    """

    length: int
    is_padded: bool


def declared_text(item: StructField) -> DeclaredText | None:
    """The declared length of a column's texts, or None if any length is allowed.

    Raises:
        SchemaError: Lengths are declared inside a nested type (kind
            `OPTIMIST_NESTED_CHAR_VARCHAR`).
    """
    declared = item.metadata.get(DECLARED_TYPE)
    if declared is None:
        return None
    match = _DECLARED.fullmatch(str(declared))
    if match is None:
        raise SchemaError(
            f"The column {shown(item.name)} declares char or varchar inside {quoted(declared)}, "
            "whose lengths can't be checked yet. Nothing was written. Write with another engine.",
            kind="OPTIMIST_NESTED_CHAR_VARCHAR",
            column=item.name,
        )
    return DeclaredText(int(match.group(2)), match.group(1) == "char")


def with_declared_length(values: pa.ChunkedArray, item: StructField) -> pa.ChunkedArray:
    """The values as the column takes them: blanks beyond the length are cut, `char` is padded.

    Raises:
        SchemaError: A value is too long even without its trailing blanks (kind
            `DELTA_EXCEED_CHAR_VARCHAR_LIMIT`), or as in `declared_text`.
    """
    declared = declared_text(item)
    if declared is None or item.data_type != PrimitiveType("string"):
        return values
    length = declared.length
    if (pc.max(pc.utf8_length(pc.utf8_rtrim(values, " "))).as_py() or 0) > length:
        kind = shown(item.metadata[DECLARED_TYPE])
        raise SchemaError(
            f"A value of the column {shown(item.name)} is longer than {kind} allows. Nothing was "
            "written. Shorten the values.",
            kind="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
            column=item.name,
            type=str(item.metadata[DECLARED_TYPE]),
        )
    is_longer = pc.greater(pc.utf8_length(values), length)
    fitted = pc.if_else(is_longer, pc.utf8_slice_codeunits(values, 0, length), values)
    return pc.utf8_rpad(fitted, length, " ") if declared.is_padded else fitted
