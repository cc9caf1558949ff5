"""The functions of the moment, such as `current_timestamp()`, as constants of one statement.

Spark gives each of them one value for a whole statement. So a command puts the constants into the
text before it is resolved, once, with the time at which the command began.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from dataclasses import dataclass

from optimist.core.expressions.cursor import NotSqlError
from optimist.core.expressions.parser import parse_expression
from optimist.core.expressions.tree import Call, Expression, Interval, Name, Operation, walk
from optimist.core.values.time_zones import session_zone

__all__ = ["Moment"]

_MOST_US = 10**17
_SIGNS = {"+": 1, "-": -1}
_DATES = ("current_date", "curdate")
_MOVED = (*_DATES, "current_timestamp", "now", "localtimestamp")
_INSTANTS = ("current_timestamp", "now", "unix_timestamp")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True, slots=True)
class Moment:
    """The time at which a statement began.

    Attributes:
        epoch_ms: The time.
        zone_name: The zone of the session, which decides what the date is; None for UTC.
    """

    epoch_ms: int
    zone_name: str | None = None

    def fixed(self, sql: str, columns: Collection[str]) -> str:
        """Return the text with constants for the functions of the moment.

        A text that is not SQL stays as it is.

        Args:
            sql: The text of an expression.
            columns: The names of the columns, which come before functions without parentheses.
        """
        names = {name.lower() for name in columns}
        try:
            nodes = list(walk(parse_expression(sql)))
        except (NotSqlError, RecursionError):
            return sql
        # A node comes before its parts, and the constant for it stands for them, too.
        end = len(sql)
        for node in sorted(nodes, key=lambda item: (-item.end, item.start)):
            constant = self._constant(node, names) if node.end <= end else None
            if constant is not None:
                sql = f"{sql[: node.start]}{constant}{sql[node.end :]}"
                end = node.start
        return sql

    def is_instant(self, sql: str) -> bool:
        """Tell whether a text is only a function whose value is the same in every zone."""
        try:
            return _function_of(parse_expression(sql), ()) in _INSTANTS
        except (NotSqlError, RecursionError):
            return False

    def _constant(self, node: Expression, columns: Collection[str]) -> str | None:
        now = _EPOCH + dt.timedelta(milliseconds=self.epoch_ms)
        if isinstance(node, Operation) and node.operator in _SIGNS:
            first, *others = node.operands
            kind = _function_of(first, columns)
            length = _length(others[0], only_days=kind in _DATES)
            step = _SIGNS[node.operator] * (length or dt.timedelta())
            return self._written(kind, now, step) if step and kind in _MOVED else None
        kind = _function_of(node, columns)
        return None if kind is None else self._written(kind, now, dt.timedelta())

    def _written(self, function: str, now: dt.datetime, step: dt.timedelta) -> str | None:
        """Return the constant; if it is moved, statistics of files can be compared with it."""
        zone = session_zone(self.zone_name or "UTC")
        here = now.astimezone(zone)
        if step and (zone != dt.timezone.utc and function not in _DATES):
            return None
        try:
            return _CONSTANTS[function](now + step, here + step)
        except OverflowError:
            return None


def _function_of(node: Expression, columns: Collection[str]) -> str | None:
    """Return the function of the moment that an expression calls, or None."""
    name = ""
    if isinstance(node, Call) and node.is_plain and not node.qualifiers and not node.arguments:
        name = node.name
    elif isinstance(node, Name) and node.is_call and node.path[0].lower() not in columns:
        name = node.path[0].lower()
    return name if name in _CONSTANTS else None


def _length(node: Expression, *, only_days: bool) -> dt.timedelta | None:
    """Return the length of an interval without months, as far as it is known.

    Args:
        node: An operand.
        only_days: Whether its units must be days: Spark makes a time of a date plus 24 hours.
    """
    if not isinstance(node, Interval) or node.micros is None:
        return None
    if only_days and not node.is_of_days:
        return None
    return dt.timedelta(microseconds=node.micros) if abs(node.micros) < _MOST_US else None


def _as_timestamp(now: dt.datetime, here: dt.datetime) -> str:
    del here
    return f"TIMESTAMP '{now.replace(tzinfo=None).isoformat(' ', 'microseconds')}Z'"


def _as_local_time(now: dt.datetime, here: dt.datetime) -> str:
    del now
    return f"TIMESTAMP_NTZ '{here.replace(tzinfo=None).isoformat(' ', 'microseconds')}'"


def _as_date(now: dt.datetime, here: dt.datetime) -> str:
    del now
    return f"DATE '{here.date().isoformat()}'"


def _as_seconds(now: dt.datetime, here: dt.datetime) -> str:
    del here
    return f"CAST({(now - _EPOCH) // dt.timedelta(seconds=1)} AS BIGINT)"


_CONSTANTS: dict[str, Callable[[dt.datetime, dt.datetime], str]] = {
    **dict.fromkeys(("current_date", "curdate"), _as_date),
    **dict.fromkeys(("current_timestamp", "now"), _as_timestamp),
    "localtimestamp": _as_local_time,
    "unix_timestamp": _as_seconds,
}
