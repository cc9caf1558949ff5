"""Functions of regular expressions, for patterns that mean the same in Java and in Arrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.regex_texts import Regex, java_regex
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    STRING,
    Arguments,
    Array,
    Value,
    computed,
)

__all__ = ["extracted", "matched_by_pattern", "replaced_by_pattern"]

_LARGEST_GROUP = 50


def matched_by_pattern(given: Arguments) -> Value | None:
    """Test whether a part of a text matches a pattern."""
    regex = _regex_of(given, None)
    if regex is None:
        return None
    text = regex.text
    return computed(BOOLEAN, given.values[:1], lambda it: pc.match_substring_regex(it, text))


def replaced_by_pattern(given: Arguments) -> Value | None:
    """Replace each part of a text that matches a pattern."""
    regex, other = _regex_of(given, 0), _text_of(given, 2)
    plain = _regex_of(given, None)
    if regex is None or plain is None or other is None or regex.may_be_empty:
        return None
    if "$" in other or "\\" in other:
        return None  # they stand for groups of the match
    text = plain.text
    return computed(
        STRING, given.values[:1], lambda it: pc.replace_substring_regex(it, text, other)
    )


def extracted(given: Arguments) -> Value | None:
    """Return a group of the first match of a pattern; an empty text without a match."""
    group = 1
    if len(given.values) > 2:
        literal = given.values[2].literal
        number = None if literal is None else literal.value
        if not isinstance(number, int) or isinstance(number, bool):
            return None
        group = number
    regex = _regex_of(given, group) if 0 <= group <= _LARGEST_GROUP else None
    if regex is None or group > regex.num_groups:
        return None
    text = regex.text

    def kernel(values: Array) -> Array:
        found = pc.struct_field(pc.extract_regex(values, text), ["v"])
        filled = pc.fill_null(found, "")
        return pc.if_else(pc.is_valid(values), filled, pa.scalar(None, pa.string()))

    return computed(STRING, given.values[:1], kernel)


def _text_of(given: Arguments, index: int) -> str | None:
    literal = given.values[index].literal
    found = None if literal is None else literal.value
    return found if isinstance(found, str) else None


def _regex_of(given: Arguments, group: int | None) -> Regex | None:
    pattern = _text_of(given, 1)
    if given.types[0] != STRING or pattern is None:
        return None
    regex = java_regex(pattern, group)
    return regex if regex is not None and _is_compiled(regex.text) else None


def _is_compiled(text: str) -> bool:
    try:
        pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowInvalid:  # it needs more memory than RE2 takes
        return False
    return True
