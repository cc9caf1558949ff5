"""Commands on tables whose conditions, values and rules call functions, held against a model."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, UsageError

ROWS = [
    {"id": i, "k": i % 5 - 2 if i % 7 else None, "s": f" Ab{i} ", "day": dt.date(2024, 1, 1)}
    for i in range(40)
]
SCHEMA = pa.schema(
    [("id", pa.int64()), ("k", pa.int32()), ("s", pa.string()), ("day", pa.date32())]
)


@pytest.fixture(params=[True, False], ids=["vectors", "rewriting"])
def log(request, tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    text = str(request.param).lower()
    log.create(SCHEMA, properties={"delta.enableDeletionVectors": text})
    for start in range(0, 40, 10):
        log.append(pa.Table.from_pylist(ROWS[start : start + 10], SCHEMA))
    return log


def ids(log):
    return sorted(log.to_arrow(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    ("condition", "model"),
    [
        ("k <> 0 AND 10 / k > 4", lambda row: bool(row["k"]) and 10 / row["k"] > 4),
        ("k = 0 OR id % k = 1", lambda row: row["k"] == 0 or _mod(row["id"], row["k"]) == 1),
        ("length(trim(s)) = 3 AND id > 4", lambda row: 4 < row["id"] < 10),
        ("upper(s) LIKE '%AB1%'", lambda row: "Ab1" in row["s"]),
        ("s NOT ILIKE '%AB1%'", lambda row: "Ab1" not in row["s"]),
        ("coalesce(k, 9) = 9", lambda row: row["k"] is None),
        ("CASE WHEN k > 0 THEN id > 20 ELSE id < 3 END", lambda row: _chosen(row)),
        ("date_add(day, CAST(id AS INT)) >= '2024-02-01'", lambda row: row["id"] >= 31),
    ],
)
def test_a_delete_takes_the_rows_for_which_the_condition_is_true(log, condition, model):
    log.delete(condition)
    assert ids(log) == [row["id"] for row in ROWS if not model(row)]


def _mod(number, divisor):
    return None if divisor is None else abs(number) % abs(divisor) * (1 if number >= 0 else -1)


def _chosen(row):
    return row["id"] > 20 if row["k"] is not None and row["k"] > 0 else row["id"] < 3


def test_an_update_computes_its_values_from_the_old_row(log):
    values = {"s": "concat_ws('-', upper(trim(s)), CAST(k AS STRING))", "id": "id * 2 + abs(k)"}
    log.update(set=values, predicate="pmod(k, 3) = 1 AND last_day(day) = DATE '2024-01-31'")
    wanted = []
    for row in ROWS:
        k, old = row["k"], row["id"]
        hit = k is not None and k % 3 == 1
        new = (f"AB{old}-{k}", old * 2 + abs(k)) if hit else (row["s"], old)
        wanted.append(new)
    found = log.to_arrow()
    rows = zip(found["s"].to_pylist(), found["id"].to_pylist(), strict=True)
    assert sorted(rows) == sorted(wanted)


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("10 / k > 4", "DIVIDE_BY_ZERO"),
        ("CAST(trim(s) AS INT) = 1", "CAST_INVALID_INPUT"),
        ("k * 2000000000 > 1", "OPTIMIST_VALUE_DOES_NOT_FIT"),
    ],
)
def test_an_error_in_a_row_changes_nothing(log, condition, kind):
    before = log.snapshot().version
    for run in (
        lambda: log.delete(condition),
        lambda: log.update(set={"id": "1"}, predicate=condition),
    ):
        with pytest.raises(SchemaError, match=r"Nothing was (written|changed)") as caught:
            run()
        assert caught.value.kind == kind
    assert (log.snapshot().version, len(ids(log))) == (before, 40)


@pytest.mark.parametrize(
    "condition", ["levenshtein(s, 'a') = 1", "rand() < 0.5", "id > 1 AND soundex(s) = ''"]
)
def test_a_function_beyond_the_table_is_refused_before_a_row_is_read(log, condition):
    before = log.snapshot().version
    with pytest.raises(UsageError) as caught:
        log.delete(condition)
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    assert log.snapshot().version == before


def test_a_value_beyond_the_table_is_refused_by_the_name_of_its_function(log):
    with pytest.raises(UsageError, match="soundex") as caught:
        log.update(set={"s": "concat(soundex(s), 'x')"})
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"


def test_a_constraint_may_call_functions(log):
    log.alter.add_constraint("short", "length(trim(s)) <= 5 AND coalesce(k, 0) + id < 1000")
    log.append(pa.Table.from_pylist([{**ROWS[0], "id": 999}], SCHEMA))
    with pytest.raises(SchemaError) as caught:
        log.append(pa.Table.from_pylist([{**ROWS[0], "s": "too long"}], SCHEMA))
    assert caught.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    with pytest.raises(SchemaError):
        log.update(set={"id": "id + 999"}, predicate="id = 3")
