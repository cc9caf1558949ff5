"""Filters of pyarrow as predicates, as far as they mean the same.

An expression of pyarrow can't be looked into, but it can be written as a message of Substrait
(https://substrait.io), whose fields have fixed numbers. Only the few that filters consist of are
known here. All else is unknown, which only means that more files are read.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from optimist.core.predicates import Predicate
from optimist.core.predicates.builder import literal
from optimist.core.predicates.tree import Column, Comparison, ComparisonOp, In, IsNull
from optimist.core.schema.types import StructType
from optimist.core.snapshot.row_filter import known_predicate

__all__ = ["translate_filter"]

_Fields = dict[int, list[Any]]

_COMPARISONS: Mapping[str, ComparisonOp] = {
    "equal": "=",
    "not_equal": "<>",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
}
_FLOATS = ("float", "double")
_EPOCH = dt.datetime(1970, 1, 1)
_UTC_EPOCH = _EPOCH.replace(tzinfo=dt.timezone.utc)
_UNKNOWN = (ArithmeticError, IndexError, KeyError, RecursionError, TypeError, ValueError)
"""The errors of a look at an expression that is not of the known kinds."""


def translate_filter(condition: Any, schema: pa.Schema, table: StructType) -> Predicate:
    """Return a predicate that is true wherever a filter of pyarrow is true, TRUE in doubt.

    Args:
        condition: The expression.
        schema: The columns that it may name.
        table: The same columns as the table has them.
    """
    try:
        plain = pa.schema([(item.name, _without_metadata(item.type)) for item in schema])
        message = _fields(bytes(condition.to_substrait(plain, allow_arrow_extensions=True)))
        functions = dict(_declared(each) for each in message.get(2, ()))
        (expression,) = _fields(message[3][0])[1]
        found = _Translator(schema, table, functions).translate(expression, is_whole=False)
    except (*_UNKNOWN, pa.ArrowException):
        return Predicate.TRUE
    return Predicate.TRUE if found is None else found


@dataclass(frozen=True, slots=True)
class _Translator:
    schema: pa.Schema
    table: StructType
    functions: Mapping[int, str]

    def translate(self, message: bytes, *, is_whole: bool) -> Predicate | None:
        """Return the predicate of an expression, or None.

        Args:
            message: The expression.
            is_whole: Whether the answer must mean the same, as below a NOT. Else it may be true for
                more rows.
        """
        ((kind, (content, *_)),) = _fields(message).items()
        if kind == 3:
            call = _fields(content)
            name = self.functions[call.get(1, [0])[0]]
            arguments = [_fields(each)[3][0] for each in call.get(4, ())]
            return self._call(name, arguments, is_whole=is_whole)
        if kind == 6 and not is_whole:
            return self._either_branch(_fields(content))
        if kind == 8 and not is_whole:  # Arrow's is_in is false for null, and never null
            return self._in_list(_fields(content))
        return None

    def _call(self, name: str, arguments: list[bytes], *, is_whole: bool) -> Predicate | None:
        if name in ("and", "or"):
            return self._joined(name, arguments, is_whole=is_whole)
        if name == "not":
            child = self.translate(arguments[0], is_whole=True)
            return None if child is None else ~child
        column = self._column(arguments[0])
        if name in ("is_null", "is_not_null"):
            is_null = known_predicate(IsNull(column), self.table)
            return is_null if is_null is None or name == "is_null" else ~is_null
        constant = _constant(arguments[1])
        # For Arrow, NaN equals nothing and has no order. Here it equals NaN and is the greatest.
        if is_whole and self._is_float(column):
            return None
        if isinstance(constant, float) and math.isnan(constant):
            return None
        compared = Comparison(_COMPARISONS[name], column, literal(constant))
        return known_predicate(compared, self.table)

    def _joined(self, name: str, parts: list[bytes], *, is_whole: bool) -> Predicate | None:
        tried = [self._attempt(part, is_whole=is_whole) for part in parts]
        found = [part for part in tried if part is not None]
        if not found or (len(found) < len(tried) and (name == "or" or is_whole)):
            return None
        joined = found[0]
        for part in found[1:]:
            joined = joined & part if name == "and" else joined | part
        return joined

    def _attempt(self, message: bytes, *, is_whole: bool) -> Predicate | None:
        try:
            return self.translate(message, is_whole=is_whole)
        except _UNKNOWN:
            return None

    def _either_branch(self, choice: _Fields) -> Predicate | None:
        """Return the predicate of `if … then x else null`, which is true at most where `x` is."""
        ((clause,), (otherwise,)) = choice[1], choice[2]
        if _fields(_fields(otherwise)[1][0]).keys().isdisjoint({29}):
            return None
        return self.translate(_fields(clause)[2][0], is_whole=False)

    def _in_list(self, content: _Fields) -> Predicate | None:
        values = tuple(literal(_constant(each)) for each in content[2])
        return known_predicate(In(self._column(content[1][0]), values), self.table)

    def _column(self, message: bytes) -> Column:
        field = _fields(_fields(_fields(_fields(message)[2][0])[1][0])[2][0])
        if 2 in field:
            raise ValueError("a part of a column")
        return Column((self.schema.names[field.get(1, [0])[0]],))

    def _is_float(self, column: Column) -> bool:
        item = self.table.find(column.path[0])
        return item is None or str(item.data_type) in _FLOATS


def _without_metadata(kind: pa.DataType) -> pa.DataType:
    """Return a type without the metadata of its fields, which Substrait can't hold."""
    if pa.types.is_struct(kind):
        return pa.struct([(item.name, _without_metadata(item.type)) for item in kind])
    if pa.types.is_list(kind):
        return pa.list_(_without_metadata(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_without_metadata(kind.key_type), _without_metadata(kind.item_type))
    return kind


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


_CONSTANTS: Mapping[int, Callable[[Any], object]] = {
    1: bool,
    2: _signed,
    3: _signed,
    5: _signed,
    7: _signed,
    10: lambda stored: struct.unpack("<f", stored)[0],
    11: lambda stored: struct.unpack("<d", stored)[0],
    12: lambda stored: stored.decode(),
    13: bytes,
    14: lambda stored: _EPOCH + dt.timedelta(microseconds=_signed(stored)),
    16: lambda stored: (_EPOCH + dt.timedelta(days=_signed(stored))).date(),
    27: lambda stored: _UTC_EPOCH + dt.timedelta(microseconds=_signed(stored)),
}
"""What each kind of constant holds."""


def _constant(message: bytes) -> object:
    """Return the value of a constant. Another expression, or a null, is a `KeyError`."""
    ((kind, (content,)),) = _fields(_fields(message)[1][0]).items()
    return _CONSTANTS[kind](content)


def _declared(extension: bytes) -> tuple[int, str]:
    """Return the number and the name of a function."""
    declared = _fields(_fields(extension)[3][0])
    return declared.get(2, [0])[0], declared[3][0].decode()


def _fields(message: bytes) -> _Fields:
    """Return the fields of a message of Protocol Buffers by their numbers."""
    found: _Fields = {}
    for number, value in _decoded(message):
        found.setdefault(number, []).append(value)
    return found


def _decoded(message: bytes) -> Iterator[tuple[int, Any]]:
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            size, position = _varint(message, position)
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[position]
        position += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, position
