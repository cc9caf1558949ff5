"""Functions of texts, by code points, with the meaning that they have in Spark.

Patterns, positions and lengths must be constants.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.letters import ensure_letters
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    STRING,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
)
from optimist.core.predicates.text import like_parts, like_regex
from optimist.core.schema.types import PrimitiveType

__all__ = [
    "concat",
    "concat_ws",
    "ilike",
    "initials",
    "instr",
    "left",
    "like",
    "locate",
    "mapped",
    "matched",
    "measured",
    "padded",
    "plain",
    "repeat",
    "replace",
    "right",
    "split_part",
    "substring",
    "translated",
    "trimmed",
]

_INTEGER = PrimitiveType("integer")
_LARGEST = 2**31 - 1
_LONGEST = 1_000
"""The longest text that is padded or repeated; Spark makes longer ones, too."""


def translated(given: Arguments) -> Value | None:
    """Replace characters by others, or leave them out; both lists are constants."""
    old, new = _text_of(given, 1), _text_of(given, 2)
    if given.types[0] != STRING or old is None or new is None:
        return None
    table: dict[int, str | None] = {}
    for at, letter in enumerate(old):
        other = new[at] if at < len(new) and new[at] != "\0" else None
        table.setdefault(ord(letter), other)

    def kernel(values: Array) -> Array:
        coded = one_array(values).dictionary_encode()
        texts = [text.translate(table) for text in coded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(coded.indices)

    return computed(STRING, given.values[:1], kernel)


def _text_of(given: Arguments, index: int) -> str | None:
    """Return a constant text among the arguments."""
    literal = given.values[index].literal
    found = None if literal is None else literal.value
    return found if isinstance(found, str) else None


def _number_of(given: Arguments, index: int) -> int | None:
    """Return a constant int among the arguments."""
    literal = given.values[index].literal
    found = None if literal is None else literal.value
    is_int = given.types[index] == _INTEGER and isinstance(found, int)
    return found if is_int and isinstance(found, int) and abs(found) < _LARGEST else None


def _is_text(given: Arguments) -> bool:
    return given.types[0] == STRING


def concat(given: Arguments) -> Value | None:
    """Join texts; the result is null if one of them is."""
    if any(data_type != STRING for data_type in given.types):
        return None

    def kernel(*parts: Array) -> Array:
        return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")

    return computed(STRING, given.values, kernel)


def concat_ws(given: Arguments) -> Value | None:
    """Join texts with a separator; nulls are left out."""
    separator = _text_of(given, 0)
    if separator is None or any(data_type != STRING for data_type in given.types):
        return None

    def kernel(first: Array, *others: Array) -> Array:
        is_empty = reduce(pc.and_, map(pc.is_null, (first, *others)))
        # Arrow drops a row in which all parts are null.
        kept = pc.if_else(is_empty, "", first)
        return pc.binary_join_element_wise(kept, *others, separator, null_handling="skip")

    return computed(STRING, given.values[1:], kernel) if len(given.values) > 1 else None


def mapped(kernel: Callable[[Array], Array], given: Arguments) -> Value | None:
    """Return another text for each text, whose letters must have one meaning."""
    if not _is_text(given):
        return None

    def compute(values: Array) -> Array:
        ensure_letters(values, given.text)
        return kernel(values)

    return computed(STRING, given.values, compute)


def initials(given: Arguments) -> Value | None:
    """Return the text with a capital at the start of each word, and small letters else.

    Only a blank ends a word.
    """

    def kernel(values: Array) -> Array:
        words = pc.split_pattern(one_array(values), " ")
        capitalized = pc.utf8_capitalize(words.values)
        lists = pa.ListArray.from_arrays(words.offsets, capitalized, mask=words.is_null())
        return pc.binary_join(lists, " ")

    return mapped(kernel, given)


def plain(kernel: Callable[[Array], Array], given: Arguments) -> Value | None:
    """Return another text for each text."""
    return computed(STRING, given.values, kernel) if _is_text(given) else None


def measured(kernel: Callable[[Array], Array], given: Arguments) -> Value | None:
    """Return a number for each text."""
    if not _is_text(given):
        return None
    return computed(_INTEGER, given.values, lambda values: kernel(values).cast(pa.int32()))


def trimmed(kernel: Callable[..., Array], given: Arguments) -> Value | None:
    """Cut off blanks, or the characters of the second argument."""
    characters = " " if len(given.values) == 1 else _text_of(given, 1)
    if not _is_text(given) or not characters:
        return None
    kept = characters
    return computed(STRING, given.values[:1], lambda values: kernel(values, characters=kept))


def substring(given: Arguments) -> Value | None:
    """Return the part from a position on, which counts from 1, or from the end if negative."""
    start = _number_of(given, 1)
    length = _LARGEST if len(given.values) == 2 else _number_of(given, 2)
    if not _is_text(given) or start is None or length is None:
        return None
    begin = max(start - 1, 0) if start >= 0 else start
    end = begin + length
    stop = None if start < 0 <= end else end
    return _sliced(given, begin, stop, is_empty=length <= 0)


def _sliced(given: Arguments, begin: int, stop: int | None, *, is_empty: bool) -> Value:
    def kernel(values: Array) -> Array:
        if is_empty:
            return pc.if_else(pc.is_valid(values), "", pa.scalar(None, pa.string()))
        return pc.utf8_slice_codeunits(values, begin, stop)

    return computed(STRING, given.values[:1], kernel)


def left(given: Arguments) -> Value | None:
    """Return the first characters."""
    count = _number_of(given, 1)
    if not _is_text(given) or count is None:
        return None
    return _sliced(given, 0, count, is_empty=count <= 0)


def right(given: Arguments) -> Value | None:
    """Return the last characters."""
    count = _number_of(given, 1)
    if not _is_text(given) or count is None:
        return None
    return _sliced(given, -count, None, is_empty=count <= 0)


def replace(given: Arguments) -> Value | None:
    """Replace each occurrence of a text."""
    searched = _text_of(given, 1)
    other = "" if len(given.values) == 2 else _text_of(given, 2)
    if not _is_text(given) or searched is None or other is None:
        return None

    def kernel(values: Array) -> Array:
        return pc.replace_substring(values, searched, other) if searched else values

    return computed(STRING, given.values[:1], kernel)


def repeat(given: Arguments) -> Value | None:
    """Return the text several times."""
    count = _number_of(given, 1)
    if not _is_text(given) or count is None or count > _LONGEST:
        return None
    times = max(count, 0)
    return computed(STRING, given.values[:1], lambda values: pc.binary_repeat(values, times))


def padded(kernel: Callable[..., Array], given: Arguments) -> Value | None:
    """Return a text of a length, padded with a character or cut off."""
    length = _number_of(given, 1)
    padding = " " if len(given.values) == 2 else _text_of(given, 2)
    is_known = length is not None and padding is not None and len(padding) == 1
    if not _is_text(given) or not is_known or length is None or length > _LONGEST:
        return None
    width = max(length, 0)

    def compute(values: Array) -> Array:
        return pc.utf8_slice_codeunits(kernel(values, width, padding), 0, width)

    return computed(STRING, given.values[:1], compute)


def matched(kernel: Callable[..., Array], given: Arguments) -> Value | None:
    """Test whether texts begin or end with a text, or contain it."""
    pattern = _text_of(given, 1)
    if not _is_text(given) or pattern is None:
        return None
    return computed(BOOLEAN, given.values[:1], lambda values: kernel(values, pattern))


def like(given: Arguments) -> Value | None:
    """Match texts with a pattern, in which `%` and `_` stand for other characters."""
    return _like(given, given.values[0], _text_of(given, 1))


def ilike(given: Arguments) -> Value | None:
    """Match texts with a pattern, without regard to case."""
    value, pattern = mapped(pc.utf8_lower, _first_of(given)), _text_of(given, 1)
    if value is None or pattern is None or not pattern.isascii():
        return None
    return _like(given, value, pattern.lower())


def _first_of(given: Arguments) -> Arguments:
    """Return the first argument alone."""
    return Arguments(given.values[:1], given.text, given.zone)


def _like(given: Arguments, value: Value, pattern: str | None) -> Value | None:
    mark = "\\" if len(given.values) == 2 else _text_of(given, 2)
    if not _is_text(given) or pattern is None or mark is None or len(mark) != 1:
        return None
    parts = like_parts(pattern, mark)
    if parts is None:
        return None
    regex = like_regex(parts)
    return computed(BOOLEAN, [value], lambda values: pc.match_substring_regex(values, regex))


def instr(given: Arguments) -> Value | None:
    """Return the position of a text, counted from 1; 0 if it is not there."""
    return _position(given.values[0], _text_of(given, 1))


def locate(given: Arguments) -> Value | None:
    """Return the position of the first argument in the second one."""
    return _position(given.values[1], _text_of(given, 0))


def _position(value: Value, searched: str | None) -> Value | None:
    if value.data_type != STRING or not searched:
        return None
    text = searched

    def kernel(values: Array) -> Array:
        array = one_array(values)
        is_found = pc.match_substring(array, text)
        before = pc.list_element(pc.split_pattern(array, text, max_splits=1), 0)
        at: Any = pc.add(pc.utf8_length(before), pa.scalar(1, pa.int32()))
        return pc.if_else(is_found, at, pa.scalar(0, pa.int32()))

    return computed(_INTEGER, [value], kernel)


def split_part(given: Arguments) -> Value | None:
    """Return one of the parts between separators; it is empty if there are fewer parts."""
    separator, number = _text_of(given, 1), _number_of(given, 2)
    if not _is_text(given) or not separator or number is None or number < 1:
        return None
    text, index = separator, number - 1

    def kernel(values: Array) -> Array:
        parts = pc.split_pattern(one_array(values), text)
        cut = pc.list_slice(parts, index, index + 1, return_fixed_size_list=True)
        part = pc.list_element(cut, 0)
        return pc.if_else(pc.is_valid(values), pc.fill_null(part, ""), part)

    return computed(STRING, given.values[:1], kernel)
