"""The lines of a program's log, whatever writes it: where a record begins, and when it was written.

A log is foreign text. A line may be endless, binary, or full of codes for a terminal. So a line is
cut at a length, and decoded with a mark for each byte that is no text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import BinaryIO

__all__ = ["LogLine", "log_lines"]

_LONGEST = 1 << 20
"""The bytes of a line that are read: JSON has a whole stack trace in one line."""
_MOST_TEXTS = 1_000
"""The texts of a line of JSON that are read."""
_MOST_LINES = 10_000
"""The lines of such texts that are read."""
_BEGINNING = 200
"""The bytes of a line that show whether it begins a record."""
_CENTURY = "20"
_CODES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
"""What colours a terminal."""
_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2}|[0-9]{2}/[0-9]{2}/[0-9]{2})"
    r"[T ](?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?"
    r"(?: ?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2}))?"
)
"""ISO 8601, and the year of two digits of Spark's own log."""
_BEFORE_TIME = re.compile(r"(?:[\w.-]{1,60} +\| +)?\W{0,3}(?:[A-Za-z]{4,8}[: ]\W{0,3})?")
"""The name of a container, a bracket, a level."""
_CONTINUES = re.compile(
    r"\s|$|Caused by:|Suppressed:|\.\.\. |Traceback \(|During handling of|The above exception"
    r"|Conflicting commit:|Refer to |Help:"
)
"""How a line begins that belongs to the record before it, in a log without times."""
_TIME_KEYS = ("timestamp", "@timestamp", "time", "ts", "asctime", "datetime", "date", "eventTime")
_UNITS = ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000), (1e20, 1_000_000_000))
"""A number of JSON is a time in seconds, milliseconds, microseconds or nanoseconds, by its size."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log, or a line of a text in a line of JSON.

    Attributes:
        number: The number of the line in the log, from 1.
        record: The number of its record: a record is one entry of a log, with a stack trace and
            other lines that belong to it.
        time: When the record was written; None if it does not tell. Without a zone it is UTC.
        text: The text.
    """

    number: int
    record: int
    time: datetime | None
    text: str


def log_lines(stream: BinaryIO, wanted: re.Pattern[bytes]) -> Iterator[LogLine]:
    """Yield the lines of a log in which something is found, with the records that they belong to.

    Args:
        stream: The log.
        wanted: What is looked for. Lines without it are read as far as records need it.
    """
    has_times, in_traceback = False, False
    record, start = 0, None
    for number, line in enumerate(_cut_lines(stream), 1):
        text, is_wanted = _text_of(line[:_BEGINNING]), wanted.search(line) is not None
        if text.startswith("{"):
            found = _json_of(line) if is_wanted else None
            if found is not None:
                record, start = record + 1, None
                yield from _lines_of_json(found, number, record)
                continue
            if not is_wanted:
                record += not has_times
                continue
        begins = _start_of(text)
        is_end = in_traceback and not text[:1].isspace()  # the line of the error itself
        if begins is not None or not (has_times or is_end or _CONTINUES.match(text)):
            record, start = record + 1, begins
        has_times = has_times or begins is not None
        in_traceback = text.startswith("Traceback (") or (in_traceback and not is_end)
        if is_wanted:
            yield LogLine(number, record, _moment(start), _text_of(line))


def _cut_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines, without the rest of those that are too long."""
    while line := stream.readline(_LONGEST):
        yield line
        while len(line) == _LONGEST and not line.endswith(b"\n"):
            line = stream.readline(_LONGEST)
            if line.endswith(b"\n"):
                break


def _text_of(line: bytes) -> str:
    return _CODES.sub("", line.decode("utf-8", "replace"))


def _json_of(line: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _lines_of_json(found: dict[str, object], number: int, record: int) -> Iterator[LogLine]:
    """Yield the lines of the texts in a line of JSON."""
    time, left = _time_of(found), _MOST_LINES
    for text in _texts_in(found):
        lines = _CODES.sub("", text).split("\n", left)[:left]
        left -= len(lines)
        for each in lines:
            yield LogLine(number, record, time or _moment(_start_of(each)), each)


def _texts_in(found: object) -> Iterator[str]:
    """Yield the texts of a JSON value, in their order."""
    waiting, left = [found], _MOST_TEXTS
    while waiting and left:
        each = waiting.pop()
        if isinstance(each, str):
            left -= 1
            yield each
        elif isinstance(each, dict):
            waiting += reversed(each.values())
        elif isinstance(each, list):
            waiting += reversed(each)


def _time_of(found: dict[str, object]) -> datetime | None:
    """Return the time of a record of JSON."""
    for key in _TIME_KEYS:
        value = found.get(key)
        if isinstance(value, str) and (time := _moment(_start_of(value))) is not None:
            return time
        if isinstance(value, int | float) and not isinstance(value, bool):
            for limit, per_second in _UNITS:
                if limit / 1_000 <= value < limit:
                    return _EPOCH + timedelta(seconds=value / per_second)
    return None


def _start_of(text: str) -> re.Match[str] | None:
    """Return the time with which a line begins, as text; None if there is none."""
    text = text[:_BEGINNING]
    before = _BEFORE_TIME.match(text)
    return None if before is None else _TIME.match(text, before.end())


def _moment(found: re.Match[str] | None) -> datetime | None:
    """Return the time that a text tells; None if no calendar has it."""
    if found is None:
        return None
    year, month, day = re.split("[-/]", found["date"])
    hour, minute, second = found["time"].split(":")
    micros = (found["fraction"] or "0").ljust(6, "0")[:6]
    full_year = _CENTURY[: 4 - len(year)] + year
    try:
        date = datetime(int(full_year), int(month), int(day), tzinfo=timezone.utc)
        moment = date.replace(
            hour=int(hour), minute=int(minute), second=int(second), microsecond=int(micros)
        )
        return moment - _offset(found["zone"] or "Z")
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta()
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return -ahead if zone.startswith("-") else ahead
