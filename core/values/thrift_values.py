"""Values of Thrift's compact protocol, in which Parquet has its footer and its page index.

A struct is read without knowing its fields, and written again with every field that it had. So a
reader that changes one field keeps all others. One that looks for few fields of many structs names
them, since to go past a value takes a fifth of the time. Types that Parquet does not use there are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

__all__ = [
    "ALL",
    "I16",
    "I32",
    "I64",
    "LIST",
    "STRUCT",
    "Struct",
    "Wanted",
    "read_struct",
    "write_struct",
]

Struct: TypeAlias = dict[int, tuple[int, Any]]
"""The fields of a struct by their numbers, each with its type and its value.

A list is its elements' type and the elements. A struct in it may be the bytes of one.
"""
Element: TypeAlias = Callable[[Struct, bytes], Any]
"""Makes what is kept of a struct, from the struct and its bytes."""


class Wanted(dict[int, "Wanted"]):
    """The fields of a struct that are read, each with those of its value; `ALL` is for all."""


ALL = Wanted()

_TRUE, _FALSE, _BYTE, I16, I32, I64, _DOUBLE, _BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_DOUBLE_BYTES = 8
_INTEGERS = frozenset({I16, I32, I64})
_LONGEST_NUMBER = 10
_DEEPEST = 32
_LONG_LIST = 15


def read_struct(
    data: bytes,
    start: int = 0,
    lists: Mapping[int, Element] = MappingProxyType({}),
    wanted: Wanted = ALL,
) -> tuple[Struct, int]:
    """Read one struct, and return it with the place behind it.

    Args:
        data: Bytes with a struct.
        start: Where it begins.
        lists: What is kept of the structs in long lists, by the numbers of the lists.
        wanted: The fields that are read; the others are not in the result.

    Raises:
        ValueError, IndexError: The bytes are no struct.
    """
    return _read_struct(data, start, 0, wanted, lists)


def write_struct(fields: Struct) -> bytes:
    """Return the bytes of a struct."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def _read_struct(
    data: bytes,
    at: int,
    depth: int,
    wanted: Wanted = ALL,
    lists: Mapping[int, Element] = MappingProxyType({}),
) -> tuple[Struct, int]:
    if depth > _DEEPEST:
        raise ValueError("a value is nested too deeply")
    fields: Struct = {}
    number = 0
    while header := data[at]:
        at += 1
        kind, delta = header & 15, header >> 4
        if delta:
            number += delta
        else:
            number, at = _read_signed(data, at)
        if wanted and number not in wanted:
            at = _past(data, at, kind, depth)
        elif kind in _INTEGERS:
            value, at = _read_signed(data, at)
            fields[number] = kind, value
        elif kind in (_TRUE, _FALSE):
            fields[number] = kind, kind == _TRUE
        else:
            if kind == LIST:
                within = wanted.get(number, ALL)
                other, at = _read_list(data, at, depth + 1, within, lists.get(number))
            else:
                other, at = _read_value(data, at, kind, depth, wanted.get(number, ALL))
            fields[number] = kind, other
    return fields, at + 1


def _read_value(
    data: bytes, at: int, kind: int, depth: int, wanted: Wanted = ALL
) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _read_signed(data, at)
    if kind == STRUCT:
        return _read_struct(data, at, depth + 1, wanted)
    if kind == LIST:
        return _read_list(data, at, depth + 1, wanted)
    if kind == _BINARY:
        length, at = _read_unsigned(data, at)
        if length > len(data) - at:
            raise ValueError("a text ends behind the last byte")
        return data[at : at + length], at + length
    if kind in (_TRUE, _FALSE, _BYTE):  # a truth value of a list is a byte of its own
        return data[at], at + 1
    if kind == _DOUBLE:  # as in the bounds of places on Earth; nobody here asks for one
        return data[at : at + _DOUBLE_BYTES], at + _DOUBLE_BYTES
    raise ValueError(f"a value has the type {kind}, which Parquet does not use here")


def _read_list(
    data: bytes, at: int, depth: int, wanted: Wanted = ALL, make: Element | None = None
) -> tuple[tuple[int, list[Any]], int]:
    if depth > _DEEPEST:
        raise ValueError("a value is nested too deeply")
    kind, count = data[at] & 15, data[at] >> 4
    at += 1
    if count == _LONG_LIST:
        count, at = _read_unsigned(data, at)
    elements = []
    for _ in range(count):
        begin = at
        value, at = _read_value(data, at, kind, depth, wanted)
        elements.append(value if make is None else make(value, data[begin:at]))
    return (kind, elements), at


def _past(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return the place behind a value of a field."""
    if kind in (_TRUE, _FALSE):
        return at
    if kind in _INTEGERS:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == _BINARY:
        length, at = _read_unsigned(data, at)
        return at + length
    if kind == STRUCT and depth < _DEEPEST:
        while header := data[at]:
            at += 1
            if header < 16:
                _, at = _read_signed(data, at)
            at = _past(data, at, header & 15, depth + 1)
        return at + 1
    return _read_value(data, at, kind, depth)[1]


def _read_signed(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 128:  # most are short
        return (value >> 1) ^ -(value & 1), at + 1
    value, at = _read_unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


def _read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_NUMBER):
        part = data[at + place]
        value |= (part & 127) << (7 * place)
        if part < 128:
            return value, at + place + 1
    raise ValueError("a number is too long")


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number in sorted(fields):
        kind, value = fields[number]
        if 0 < number - last <= 15:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _write_signed(out, number)
        last = number
        if kind not in (_TRUE, _FALSE):  # else the type is the value
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_signed(out, value)
    elif kind == STRUCT:
        if isinstance(value, bytes):
            out += value
        else:
            _write_struct(out, value)
    elif kind == _BINARY:
        _write_unsigned(out, len(value))
        out += value
    elif kind == LIST:
        of_elements, elements = value
        out.append(min(len(elements), _LONG_LIST) << 4 | of_elements)
        if len(elements) >= _LONG_LIST:
            _write_unsigned(out, len(elements))
        for element in elements:
            _write_value(out, of_elements, element)
    elif kind == _DOUBLE:
        out += value
    else:
        out.append(value)


def _write_signed(out: bytearray, value: int) -> None:
    _write_unsigned(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
