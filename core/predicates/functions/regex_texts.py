r"""Java's regular expressions as RE2's, for the patterns that mean the same in both.

What is taken: characters, `.`, classes, `\d`, `\w`, `\s`, groups, `|`, `^` at the start, `$` at
the end, and the quantifiers `*`, `+`, `?` and `{n,m}`, greedy or not. Where the two differ, such
as in what `.` and `\s` match, the pattern is written anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["Regex", "java_regex"]

_META = frozenset(".[]{}()*+?^$|\\")
_NO_LINE_END = r"[^\n\r\x{85}\x{2028}\x{2029}]"
"""What Java's `.` matches; RE2's own matches all but the first of these."""
_LAST_LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"
"""Java's `$` also matches before a line end at the end of the text."""
_BLANKS = r"\t\n\x0B\f\r "
_KINDS = {"d": "0-9", "w": "a-zA-Z_0-9", "s": _BLANKS}
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_COUNTS = re.compile(r"\{([0-9]{1,3})(,([0-9]{1,3})?)?\}")


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression for RE2.

    Attributes:
        text: The expression. A group that was asked for has the name `v`.
        num_groups: How many groups the pattern has.
        may_be_empty: Whether it matches the empty text.
    """

    text: str
    num_groups: int
    may_be_empty: bool


class _OtherMeaningError(Exception):
    """A pattern has a part that RE2 lacks or reads differently."""


def java_regex(pattern: str, group: int | None = None) -> Regex | None:
    """Translate a pattern, or return None if its meaning may be another one.

    Args:
        pattern: Java's pattern.
        group: The group that gets the name `v`, 0 for the whole match; None for no group.
    """
    reader = _Reader(pattern, group)
    try:
        text, may_be_empty = reader.alternatives()
    except _OtherMeaningError:
        return None
    if reader.at < len(pattern):
        return None
    if reader.has_end and reader.may_match_line_ends:
        return None
    named = f"(?P<v>{text})" if group == 0 else text
    return Regex(named, reader.num_groups, may_be_empty)


@dataclass(slots=True)
class _Reader:
    """Reads a pattern once, from left to right.

    Attributes:
        pattern: The pattern.
        group: As for `java_regex`.
        at: The index of the next character.
        depth: The number of groups that are open.
        num_groups: The number of capturing groups so far.
        has_end: Whether a `$` was read.
        may_match_line_ends: Whether a part was read that matches the end of a line.
    """

    pattern: str
    group: int | None
    at: int = 0
    depth: int = 0
    num_groups: int = 0
    has_end: bool = False
    may_match_line_ends: bool = field(default=False)

    def alternatives(self) -> tuple[str, bool]:
        """Read up to the end, or to a closing parenthesis."""
        texts: list[str] = []
        empties: list[bool] = []
        while True:
            text, is_empty = self._sequence()
            texts.append(text)
            empties.append(is_empty)
            if not self._take("|"):
                return "|".join(texts), any(empties)

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self, char: str) -> bool:
        if self._peek() != char:
            return False
        self.at += 1
        return True

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise _OtherMeaningError
        self.at += 1
        return char

    def _sequence(self) -> tuple[str, bool]:
        texts: list[str] = []
        is_empty = True
        while self._peek() not in ("", "|", ")"):
            is_first = not texts
            if self._peek() == "^":
                if not is_first or self.depth:
                    raise _OtherMeaningError
                self.at += 1
                texts.append(r"\A")
                continue
            if self._peek() == "$":
                self.at += 1
                if self.depth or self._peek() not in ("", "|") or self.group is not None:
                    raise _OtherMeaningError
                self.has_end = True
                texts.append(_LAST_LINE_END)
                continue
            text, may_be_empty = self._repeated()
            texts.append(text)
            is_empty = is_empty and may_be_empty
        return "".join(texts), is_empty

    def _repeated(self) -> tuple[str, bool]:
        is_group = self._peek() == "("
        text, may_be_empty = self._one()
        marks = self._quantifier()
        if not marks:
            return text, may_be_empty
        # Java and RE2 may end the loop of an empty group at different times.
        if is_group and (may_be_empty or (self.group is not None and marks[0] != "?")):
            raise _OtherMeaningError
        return text + marks, may_be_empty or marks[0] in "*?" or marks.startswith("{0")

    def _quantifier(self) -> str:
        marks = self._peek()
        if marks == "{":
            match = _COUNTS.match(self.pattern, self.at)
            if match is None or (match[3] and int(match[3]) < int(match[1])):
                raise _OtherMeaningError
            marks = match[0]
        elif marks not in ("*", "+", "?") or not marks:
            return ""
        self.at += len(marks)
        if self._take("?"):
            marks += "?"
        if self._peek() in ("*", "+", "?", "{") and self._peek():
            raise _OtherMeaningError  # `a*+` never gives back what it took
        return marks

    def _one(self) -> tuple[str, bool]:
        char = self._next()
        if char == "(":
            return self._read_group()
        if char == "[":
            return self._read_class(), False
        if char == ".":
            return _NO_LINE_END, False
        if char == "\\":
            return self._escaped(), False
        if char in _META:
            raise _OtherMeaningError
        self._note(char)
        return re.escape(char), False

    def _note(self, char: str) -> None:
        if char in "\n\r\x85\u2028\u2029":
            self.may_match_line_ends = True

    def _escaped(self) -> str:
        char = self._next()
        if char in _KINDS:
            self.may_match_line_ends = self.may_match_line_ends or char == "s"
            return f"[{_KINDS[char]}]"
        if char.lower() in _KINDS and char.isupper():
            self.may_match_line_ends = True
            return f"[^{_KINDS[char.lower()]}]"
        return self._escaped_char(char)

    def _escaped_char(self, char: str) -> str:
        if char in _CONTROLS:
            self.may_match_line_ends = self.may_match_line_ends or char in "nr"
            return _CONTROLS[char]
        if not char.isascii() or char.isalnum() or char.isspace() or not char.isprintable():
            raise _OtherMeaningError
        return re.escape(char) if char in _META else f"\\{char}"

    def _read_group(self) -> tuple[str, bool]:
        opening = "(?:"
        if self._take("?"):
            if not self._take(":"):
                raise _OtherMeaningError
        else:
            self.num_groups += 1
            if self.num_groups == self.group:
                opening = "(?P<v>"
        self.depth += 1
        text, may_be_empty = self.alternatives()
        if not self._take(")"):
            raise _OtherMeaningError
        self.depth -= 1
        return f"{opening}{text})", may_be_empty

    def _read_class(self) -> str:
        negation = "^" if self._take("^") else ""
        self.may_match_line_ends = self.may_match_line_ends or bool(negation)
        parts: list[str] = []
        while not self._take("]"):
            char = self._next()
            if char in "[&^" or (char == "-" and parts and self._peek() != "]"):
                raise _OtherMeaningError
            if char == "\\":
                parts.append(self._escaped_in_class())
            elif self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                parts.append(self._read_range(char))
            else:
                self._note(char)
                parts.append(re.escape(char))
        if not parts:
            raise _OtherMeaningError
        return f"[{negation}{''.join(parts)}]"

    def _escaped_in_class(self) -> str:
        char = self._next()
        if char in _KINDS:
            self.may_match_line_ends = self.may_match_line_ends or char == "s"
            return _KINDS[char]
        if self._peek() == "-":
            raise _OtherMeaningError
        return self._escaped_char(char)

    def _read_range(self, low: str) -> str:
        self.at += 1
        high = self._next()
        if high in "\\[]&^" or not low.isalnum() or not high.isalnum() or low > high:
            raise _OtherMeaningError
        return f"{low}-{high}"
