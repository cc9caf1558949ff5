"""CHECK constraints and defaults in appends without Spark: kept, or left to Spark."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, UsageError
from optimist.core.schema.types import schema_to_json
from optimist.core.transaction.conflicts.operations import Operation

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "f": pa.array([0.5, float("nan")]),
        "d": pa.array([Decimal("1.10"), None], pa.decimal128(38, 2)),
        "a.b": ["x", None],
        "s": pa.array([{"x y": 3}, {"x y": 4}], pa.struct([("x y", pa.int32())])),
        "day": pa.array([dt.date(2020, 1, 1), None], pa.date32()),
        "t": pa.array([0, None], pa.timestamp("us", "UTC")),
        "ts": pa.array([[0], None], pa.list_(pa.timestamp("us", "UTC"))),
    }
)


@pytest.fixture
def table_with(tmp_path):
    """Makes a table with the columns of `ROWS`, one row, and CHECK constraints or defaults."""

    def make(constraints=(), **defaults):
        conf = {"spark.databricks.delta.properties.defaults.columnMapping.mode": "name"}
        log = DeltaLog.for_path(str(tmp_path), conf)
        log.append(ROWS.slice(0, 1))
        begun = log.start_transaction()
        checks = {f"delta.constraints.c{at}": sql for at, sql in enumerate(constraints)}
        wanted = {
            **begun.metadata.configuration,
            **checks,
            "delta.feature.allowColumnDefaults": "supported",
        }
        schema = begun.snapshot.schema.map_fields(
            lambda item: replace(
                item,
                metadata={**item.metadata, "CURRENT_DEFAULT": defaults[item.name]}
                if item.name in defaults
                else item.metadata,
            )
        )
        begun.update_metadata(
            replace(begun.metadata, configuration=wanted, schema_string=schema_to_json(schema))
        )
        begun.commit((), Operation("ADD CONSTRAINT"))
        return log

    return make


def refused(log, rows, kind, error=SchemaError):
    files, version = sorted(Path(log.table_path).rglob("*.parquet")), log.snapshot().version
    with pytest.raises(error) as caught:
        log.append(rows)
    assert caught.value.kind == kind
    assert sorted(Path(log.table_path).rglob("*.parquet")) == files
    assert log.snapshot().version == version
    return caught.value


@pytest.mark.parametrize(
    "sql",
    [
        "id > 0",
        "ID <= 2 AND f >= 0.5",
        "`a.b` IS NULL OR `a.b` LIKE 'x%'",
        "s.`x y` IN (3, 4)",
        "d <=> 1.1 OR d IS NULL",
        "day IS NULL OR day < DATE'2021-01-01'",
        "ts IS NULL OR id = 1",
        "true",
    ],
)
def test_rows_that_keep_a_constraint_are_appended(table_with, sql):
    log = table_with([sql])
    log.append(ROWS)
    assert log.to_arrow(columns=["id"])["id"].to_pylist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("id < 2", {"id": 2}),
        ("f < 1", {"f": float("nan")}),
        ("d > 0", {"d": None}),
        ("NOT `a.b` = 'y' AND id > 0", {"id": 2, "a.b": None}),
        ("s.`x y` <> 4", {"s": {"x y": 4}}),
        ("false", {}),
    ],
)
def test_a_row_for_which_a_constraint_is_false_or_null_is_refused_with_its_values(
    table_with, sql, values
):
    error = refused(table_with(["id > 0", sql]), ROWS, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert (error.fields["constraint"], error.fields["expression"]) == ("c1", sql)
    assert repr(json.loads(error.fields["values"])) == repr(values)


@pytest.mark.parametrize(
    "sql",
    [
        "levenshtein(`a.b`, `a.b`) = 0",
        "soundex(`a.b`) < '9'",
        "id > 0 AND rand() < 2",
        "t > TIMESTAMP'1969-01-01 00:00:00'",
        "t IS NULL OR id > 0",
        "id > 0 OR year(ts[0]) = 1970",
        "day < TIMESTAMP'2021-01-01 00:00:00'",
        "nothing > 0",
        "id >",
        "id IN (SELECT 1)",
    ],
)
def test_a_constraint_that_only_spark_knows_for_certain_is_left_to_spark(table_with, sql):
    refused(table_with(["id > 0", sql]), ROWS, "OPTIMIST_NEEDS_SPARK", UsageError)


def test_an_empty_text_of_a_partition_column_is_null_to_a_constraint(tmp_path):
    log = DeltaLog.for_path(str(tmp_path), {})
    log.append(pa.table({"id": [1], "p": ["a"]}), partition_by=["p"])
    begun = log.start_transaction()
    configuration = {"delta.constraints.c": "p <> 'x'"}
    begun.update_metadata(replace(begun.metadata, configuration=configuration))
    begun.commit((), Operation("ADD CONSTRAINT"))
    refused(log, pa.table({"id": [2], "p": [""]}), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")


def test_a_default_matters_only_where_the_rows_lack_the_column(table_with):
    log = table_with(id="5", **{"x y": "6"})
    log.append(ROWS)
    log.append(ROWS.drop_columns(["id"]))
    assert log.to_arrow(columns=["id"])["id"].to_pylist().count(5) == len(ROWS)
    refused(log, ROWS.drop_columns(["s"]), "OPTIMIST_NEEDS_SPARK", UsageError)
