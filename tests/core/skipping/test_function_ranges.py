"""Files are left out by conditions on functions of a column, and only where no row is true."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from optimist.core import DeltaLog
from optimist.core.predicates import Predicate, evaluate
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.skipping.function_ranges import range_implied_by

UTC = dt.timezone.utc
SCHEMA = pa.schema(
    [
        ("d", pa.date32()),
        ("z", pa.timestamp("us", "UTC")),
        ("w", pa.timestamp("us")),
        ("s", pa.string()),
    ]
)
STARTS = [dt.datetime(2023, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 1, 1)]
STARTS += [dt.datetime(2024, 6, 30, 12), dt.datetime(2025, 1, 1), dt.datetime(1969, 7, 20)]
WORDS = ["", "ab", "abc", "abcd", "b", "\U0001f600x", "a\u00e9"]


def _row(moment, word):
    return {"d": moment.date(), "z": moment.replace(tzinfo=UTC), "w": moment, "s": word}


ROWS = [_row(moment, WORDS[at % len(WORDS)]) for at, moment in enumerate(STARTS * 7)]
ROWS.append({"d": None, "z": None, "w": None, "s": None})


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A table with one row in each file."""
    log = DeltaLog.for_path(str(tmp_path_factory.mktemp("ranges") / "t"))
    log.create(SCHEMA)
    with log.transaction() as txn:
        for row in ROWS:
            txn.append(pa.Table.from_pylist([row], SCHEMA))
    return log


HITS = [
    *(f"year({one}) {op} 2024" for one in "dzw" for op in ("=", "<", "<=", ">", ">=")),
    "2024 = year(d)",
    "year(z) BETWEEN 2020 AND 2023",
    *(f"trunc(d, '{unit}') = DATE '2024-01-01'" for unit in ("year", "month", "quarter", "week")),
    "trunc(z, 'MM') > '2024-05-02'",
    "date_trunc('day', z) = TIMESTAMP '2024-06-30 00:00:00Z'",
    "date_trunc('week', z) = TIMESTAMP '2024-06-24 00:00:00Z'",
    "year(d) = 2025 OR s = 'b'",
    "date_trunc('hour', z) <= TIMESTAMP '1999-01-01 00:00:00Z'",
    "substring(s, 1, 2) = 'ab'",
    "left(s, 1) > 'b'",
    "substr(s, 0, 3) >= 'abc'",
]
MISSES = [
    "year(d) <> 2024",
    "NOT (year(d) = 2024)",
    "year(d) = month(d) + 2022",
    "year(d) = 10000",
    "substring(s, 2, 1) = 'b'",
    "left(s, 2) < 'b'",
    "month(d) = 1",
    "date_trunc('century', z) = TIMESTAMP '2024-06-30 00:00:00Z'",
    "coalesce(year(d), 2024) = 2024",
    # Spark raises an error for each of these rows.
    "left(s, CAST(s AS INT)) = 'ab'",
    "substring(s, 1, 1 DIV (length(s) - length(s))) = 'ab'",
    "left(s, 'x') = 'ab'",
]


@pytest.mark.parametrize("condition", HITS)
def test_a_condition_on_a_function_leaves_files_out_but_no_row(log, condition):
    kept = log.snapshot().scan(condition).files.num_rows
    wanted = evaluate(Predicate.parse(condition), pa.Table.from_pylist(ROWS, SCHEMA))
    assert log.count(condition) == pc.sum(wanted).as_py() > 0
    assert kept < len(ROWS)


@pytest.mark.parametrize("condition", MISSES)
def test_a_condition_that_says_nothing_of_a_range_keeps_all_files(log, condition):
    assert log.snapshot().scan(condition).files.num_rows == len(ROWS)


@pytest.mark.parametrize("condition", HITS)
def test_a_row_for_which_the_condition_is_true_is_in_the_range(condition):
    days = [dt.datetime(2023, 1, 1) + dt.timedelta(hours=7 * step) for step in range(1_500)]
    rows = pa.Table.from_pylist([_row(day, word) for day in days for word in WORDS[:1]], SCHEMA)
    predicate = Predicate.parse(condition)
    implied = range_implied_by(predicate, from_arrow_schema(SCHEMA))
    if " OR " in condition:  # its parts are leaves of their own
        assert implied == Predicate.TRUE
        return
    is_true, is_in = evaluate(predicate, rows), evaluate(implied, rows)
    assert not pc.any(pc.and_not(pc.fill_null(is_true, False), is_in)).as_py()


def test_a_partition_column_is_pruned_by_a_function_of_it(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create(SCHEMA, partition_by=["d"])
    log.append(pa.Table.from_pylist(ROWS, SCHEMA))
    assert log.snapshot().scan("year(d) = 2024").files.num_rows == 2
