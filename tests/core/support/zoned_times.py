"""Times around the changes of clocks, and expressions whose values depend on a session's zone."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa

from odd_columns import ERROR, as_texts
from optimist.core.errors import SchemaError
from optimist.core.local.values import parse_value
from optimist.core.schema.arrow_types import from_arrow_schema

__all__ = ["EXPRESSIONS", "ZONED_ROWS", "ZONES", "zoned_answers_here"]

_CHANGES = {
    "Europe/Berlin": [
        "1893-03-31T23:06:32",  # from local mean time
        "1945-05-24T00:00:00",
        "2024-03-31T01:00:00",
        "2024-10-27T01:00:00",
        "2999-10-27T01:00:00",
    ],
    # A gap over midnight, and local mean time.
    "America/Toronto": ["1919-03-31T04:30:00", "1895-01-01T05:17:32", "2524-11-05T06:00:00"],
    "Pacific/Apia": ["2011-12-30T10:00:00"],  # a day that there was not
    "America/St_Johns": ["2006-10-29T02:31:00"],  # one minute after midnight
    "America/Sao_Paulo": ["2018-11-04T03:00:00", "2018-02-18T02:00:00"],  # at midnight
    "Asia/Kathmandu": ["1985-12-31T18:30:00"],
}
_FAR = ["0003-01-03T12:00:00", "1582-10-10T00:00:00", "1850-06-30T23:59:59", "9997-12-29T01:00:00"]
_MICROSECOND = dt.timedelta(microseconds=1)
_STEPS = [
    -dt.timedelta(hours=1),
    -dt.timedelta(minutes=30),
    -_MICROSECOND,
    dt.timedelta(0),
    dt.timedelta(minutes=1, microseconds=123_000),
    dt.timedelta(minutes=45),
    dt.timedelta(hours=3),
]
ZONES = (*_CHANGES, "+05:30", "UTC")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
_PARTS = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")
_MOVES = ("1 DAY", "-1 DAY", "3 HOURS", "30 MINUTES", "26 HOURS", "-25 HOURS", "1 MONTH", "-1 YEAR")


def _rows() -> pa.Table:
    """Return the instants of `z`, and what a zone's clocks would show if they did not change."""
    instants: list[dt.datetime | None] = []
    walls: list[dt.datetime | None] = []
    for zone, changes in (*_CHANGES.items(), ("UTC", _FAR)):
        for change in changes:
            at = dt.datetime.fromisoformat(change).replace(tzinfo=dt.timezone.utc)
            before = (at - _MICROSECOND).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
            instants += [at + step for step in _STEPS]
            walls += [before + _MICROSECOND + step for step in _STEPS]
    instants.append(None)
    walls.append(None)
    zoned, plain = (
        pa.array(instants, pa.timestamp("us", "UTC")),
        pa.array(walls, pa.timestamp("us")),
    )
    seconds = [None if at is None else int(at.timestamp()) for at in instants]
    texts = [None if at is None else at.isoformat(" ") for at in walls]
    days = [None if at is None else at.date() for at in walls]
    columns = {"z": zoned, "w": plain, "t": pa.array(days), "s": texts, "n": seconds}
    return pa.table(columns)


ZONED_ROWS = _rows()
"""Instants `z`, wall-clock times `w`, their days `t`, their texts `s`, and `z` in seconds, `n`."""
_SCHEMA = from_arrow_schema(ZONED_ROWS.schema)

EXPRESSIONS = (
    *(f"{part}({column})" for part in _PARTS for column in "z"),
    *(f"{part}({column})" for part in ("hour", "minute", "second") for column in "zw"),
    *(f"date_trunc('{unit}', z)" for unit in _UNITS),
    *(f"CAST(z AS {name})" for name in ("DATE", "STRING", "TIMESTAMP_NTZ")),
    *(f"CAST({column} AS TIMESTAMP)" for column in "wts"),
    *(f"unix_timestamp({column})" for column in "zwt"),
    *(f"date_format({column}, 'yyyy-MM-dd HH:mm:ss')" for column in "zwt"),
    *(f"{column} + INTERVAL {move}" for move in _MOVES for column in "zw"),
    *(f"t - INTERVAL {move}" for move in ("2 HOURS", "49 HOURS")),
    "from_unixtime(n)",
    "to_date(z)",
    "last_day(z)",
    "trunc(z, 'week')",
    "date_add(z, 1)",
    "add_months(z, -1)",
    "datediff(z, t)",
    "extract(MINUTE FROM z)",
    "try_cast(substring(s, 1, 10) AS TIMESTAMP)",
    "z = CAST(w AS TIMESTAMP)",
    "CAST(CAST(z AS TIMESTAMP_NTZ) AS TIMESTAMP) = z",
    "z < TIMESTAMP '2024-03-31 02:30:00'",
    "z >= '2024-10-27 02:30:00'",
    "z >= DATE '1919-03-31'",
    "z > '2011-12-30'",
    "CAST(z AS DATE) = '2024-10-27'",
    "CAST(z AS DATE) <= DATE '2006-10-27'",
    "datediff(z, DATE '2006-10-28') <= 0",
    "CAST(z AS DATE) > '2018-02-17'",
    "t = TIMESTAMP '1919-03-31 00:30:00'",
    "unix_timestamp(CAST(w AS TIMESTAMP)) < 1541302200",
    "hash(z)",
    "next_day(z, 'SU')",
    "months_between(z, t)",
    "months_between(w, z, false)",
    "months_between(t, w)",
    "months_between(t, DATE '2011-12-31')",
)


def zoned_answers_here(sql: str, zone: str) -> tuple[str, list[str | bool | None]]:
    """Return the type and the answer for each row in a zone; `ERROR` for all if one fails."""
    value = parse_value(sql, _SCHEMA, zone=zone)
    name = str(value.data_type)
    try:
        return name, as_texts(value.compute(ZONED_ROWS))
    except SchemaError:
        return name, [ERROR] * ZONED_ROWS.num_rows
