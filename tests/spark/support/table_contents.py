"""The rows of a table on any plane, in a form that can be compared."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.predicates import Predicate
from optimist.core.snapshot.local_scan import to_arrow


def read_locally(path, version=None, predicate=None):
    log = DeltaLog.for_path(str(path), {})
    snapshot = log.snapshot() if version is None else log.snapshot(version)
    return to_arrow(snapshot, Predicate.TRUE if predicate is None else predicate)


def values(table, columns=None):
    """The rows in a form that can be compared, whatever engine they come from."""
    rows = table.select(sorted(columns or table.column_names)).to_pylist(maps_as_pydicts="strict")
    return sorted(repr([plain_value(value) for value in row.values()]) for row in rows)


def plain_value(value):
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    return [plain_value(item) for item in value] if isinstance(value, list) else value


def rows(start, count, **more):
    numbers = range(start, start + count)
    columns = {"id": pa.array(numbers, pa.int64()), "s": [f"row {i}" for i in numbers]}
    return pa.table({**columns, **more})
