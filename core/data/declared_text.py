"""Texts of a declared length: `char(n)` and `varchar(n)` are strings to Delta (spec 10.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.schema.types import (
    DECLARED_TYPE,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = [
    "DeclaredText",
    "Lengths",
    "declared_lengths",
    "lengths_below",
    "with_declarations_of",
    "with_declared_length",
    "with_declared_types",
]

_STRING = PrimitiveType("string")
_TEXT = re.compile(r"string|(char(?=\([0-9]{1,5}\))|varchar)\(([0-9]{1,9})\)")
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


@dataclass(frozen=True, slots=True)
class DeclaredText:
    """The declaration of a text column.

    Attributes:
        length: The most characters of a value.
        is_padded: Whether shorter values are padded with blanks, as `char` requires.
    """

    length: int
    is_padded: bool

    def __str__(self) -> str:
        return f"{'char' if self.is_padded else 'varchar'}({self.length})"


Lengths: TypeAlias = Mapping[tuple[str, ...], DeclaredText]
"""The declarations, by path below a column: fields, `element`, `key`, `value`."""
_NONE: Lengths = MappingProxyType({})


def declared_lengths(item: StructField) -> Lengths:
    """Return the declared lengths of a column's texts, also inside arrays, maps and structs.

    Raises:
        SchemaError: The declaration is not the column's type (kind `OPTIMIST_NESTED_CHAR_VARCHAR`).
    """
    declared = item.metadata.get(DECLARED_TYPE)
    if declared is None:
        return _NONE
    reading = _Reading(str(declared), {})
    if not reading.reads(item.data_type, ()) or reading.at != len(reading.text):
        raise SchemaError(
            f"The column {shown(item.name)} was declared as {quoted(declared)}, which does not fit "
            f"its type {shown(item.data_type)}, so the lengths of its texts can't be checked. "
            "Nothing was written. Correct the column's metadata with the engine that wrote it.",
            kind="OPTIMIST_NESTED_CHAR_VARCHAR",
            column=item.name,
        )
    return reading.found


def lengths_below(declared: Lengths, name: str) -> Lengths:
    """Return the declarations below one field, `element`, `key` or `value`."""
    return {path[1:]: text for path, text in declared.items() if path and path[0] == name}


def with_declared_length(values: pa.ChunkedArray, item: StructField) -> pa.ChunkedArray:
    """Return the values as the column takes them: extra blanks are cut, `char` is padded.

    Raises:
        SchemaError: A value is too long even without its trailing blanks (kind
            `DELTA_EXCEED_CHAR_VARCHAR_LIMIT`), or as in `declared_lengths`.
    """
    declared = declared_lengths(item)
    if not declared:
        return values
    parts = [_fit_values(part, item.data_type, declared, item.name) for part in values.chunks]
    return pa.chunked_array(parts, type=values.type)


def with_declared_types(item: StructField) -> StructField:
    """Return the column with `char(n)` and `varchar(n)` where its texts were declared so.

    New metadata may have such types, at any depth. The engine stores them again as strings and a
    declaration (spec 1.4). So a change within a column changes its declaration, too.

    Raises:
        SchemaError: As `declared_lengths`.
    """
    declared = declared_lengths(item)
    if not declared:
        return item
    metadata = {key: value for key, value in item.metadata.items() if key != DECLARED_TYPE}
    return replace(item, data_type=_to_declared_type(item.data_type, declared), metadata=metadata)


def with_declarations_of(schema: StructType, before: StructType) -> StructType:
    """Return the schema with its declarations where a write has changed the types around them.

    A declaration is that of a whole column, so a new field in a struct makes it wrong. The texts
    that the column had keep their lengths, in the form of `with_declared_types`.

    Args:
        schema: The new schema.
        before: The table's schema until now.

    Raises:
        SchemaError: As `declared_lengths`.
    """

    def keep(item: StructField) -> StructField:
        old, declared = before.find(item.name), item.metadata.get(DECLARED_TYPE)
        if declared is None or old is None or old.data_type == item.data_type:
            return item
        if declared != old.metadata.get(DECLARED_TYPE):
            return item
        metadata = {key: value for key, value in item.metadata.items() if key != DECLARED_TYPE}
        kept = _to_declared_type(item.data_type, declared_lengths(old))
        return replace(item, data_type=kept, metadata=metadata)

    return StructType(tuple(map(keep, schema)))


def _to_declared_type(data_type: DataType, declared: Lengths) -> DataType:
    def inside(inner: DataType, name: str) -> DataType:
        return _to_declared_type(inner, lengths_below(declared, name))

    if isinstance(data_type, StructType):
        fields = (replace(f, data_type=inside(f.data_type, f.name)) for f in data_type)
        return StructType(tuple(fields))
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=inside(data_type.element_type, "element"))
    if isinstance(data_type, MapType):
        return replace(
            data_type,
            key_type=inside(data_type.key_type, "key"),
            value_type=inside(data_type.value_type, "value"),
        )
    return PrimitiveType(str(declared[()])) if () in declared else data_type


@dataclass(slots=True)
class _Reading:
    """A reader of a declared type along the type that it belongs to."""

    text: str
    found: dict[tuple[str, ...], DeclaredText]
    at: int = 0

    def reads(self, data_type: DataType, path: tuple[str, ...]) -> bool:
        """Parse one type and record declared lengths, or return False if none follows."""
        if data_type == _STRING:
            return self._reads_text(path)
        if isinstance(data_type, ArrayType):
            inside = (*path, "element")
            return (
                self._skip_text("array<")
                and self.reads(data_type.element_type, inside)
                and self._skips_end
            )
        if isinstance(data_type, MapType):
            return (
                self._skip_text("map<")
                and self.reads(data_type.key_type, (*path, "key"))
                and self._skip_text(",")
                and self.reads(data_type.value_type, (*path, "value"))
                and self._skips_end
            )
        if isinstance(data_type, StructType):
            return (
                self._skip_text("struct<")
                and self._reads_fields(data_type, path)
                and self._skips_end
            )
        if isinstance(data_type, DecimalType):
            digits = rf"decimal\({data_type.precision}, ?{data_type.scale}\)"
            return self._skip_pattern(re.compile(digits))
        return self._skip_text(_SQL_NAMES.get(str(data_type), str(data_type)))

    @property
    def _skips_end(self) -> bool:
        return self._skip_text(">")

    def _reads_fields(self, struct: StructType, path: tuple[str, ...]) -> bool:
        for index, item in enumerate(struct):
            # A field may have been renamed since. Then the first text that can be a name counts.
            named = rf"(?:`(?:[^`]|``)*`|{re.escape(item.name)}|[^:,<>`]+): ?"
            if index and not self._skip_text(","):
                return False
            if not self._skip_pattern(re.compile(named)):
                return False
            if not self.reads(item.data_type, (*path, item.name)):
                return False
        return True

    def _reads_text(self, path: tuple[str, ...]) -> bool:
        match = _TEXT.match(self.text, self.at)
        if match is None:
            return False
        if match.group(2):
            self.found[path] = DeclaredText(int(match.group(2)), match.group(1) == "char")
        self.at = match.end()
        return True

    def _skip_text(self, part: str) -> bool:
        return self._skip_pattern(re.compile(re.escape(part) + (" ?" if part == "," else "")))

    def _skip_pattern(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match is not None


def _fit_values(values: Any, data_type: DataType, declared: Lengths, column: str) -> Any:
    if not declared:
        return values

    def inside(part: Any, inner: DataType, name: str) -> Any:
        return _fit_values(part, inner, lengths_below(declared, name), f"{column}.{name}")

    if isinstance(data_type, StructType):
        children = zip(values.flatten(), data_type, strict=True)
        parts = [inside(part, item.data_type, item.name) for part, item in children]
        return pa.StructArray.from_arrays(parts, fields=list(values.type), mask=values.is_null())
    if isinstance(data_type, ArrayType):
        # Take only elements of lists that are not null: elements behind a null are not values.
        elements = inside(pc.list_flatten(values), data_type.element_type, "element")
        offsets = _offsets_of_lengths(pc.list_value_length(values))
        return pa.ListArray.from_arrays(offsets, elements, type=values.type, mask=values.is_null())
    if isinstance(data_type, MapType):
        whole = pa.concat_arrays([values]) if values.offset else values
        keys = inside(whole.keys, data_type.key_type, "key")
        items = inside(whole.items, data_type.value_type, "value")
        mask = whole.is_null()
        return pa.MapArray.from_arrays(whole.offsets, keys, items, values.type, mask=mask)
    return _fit_text(values, declared[()], column)


def _offsets_of_lengths(lengths: pa.Array) -> pa.Array:
    ends = pc.cumulative_sum(pc.fill_null(lengths, 0).cast(pa.int64()))
    return pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())


def _fit_text(values: pa.Array, declared: DeclaredText, column: str) -> pa.Array:
    length = declared.length
    if (pc.max(pc.utf8_length(pc.utf8_rtrim(values, " "))).as_py() or 0) > length:
        raise SchemaError(
            f"A value of the column {shown(column)} is longer than {declared} allows. Nothing was "
            "written. Shorten the values.",
            kind="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
            column=column,
            type=str(declared),
        )
    is_longer = pc.greater(pc.utf8_length(values), length)
    fitted = pc.if_else(is_longer, pc.utf8_slice_codeunits(values, 0, length), values)
    return pc.utf8_rpad(fitted, length, " ") if declared.is_padded else fitted
