"""What users get wrong in DELETE, UPDATE and MERGE: one clear error, and nothing is written."""

from __future__ import annotations

import pytest

from bad_commands import MISTAKES, append_rows, kind_of_mistake
from optimist.core import DeltaLog
from optimist.spark import DeltaTable


@pytest.fixture
def table(spark, copied, plane):
    return copied("bad commands", append_rows)


@pytest.mark.parametrize(("run", "kind"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_and_writes_nothing(spark, table, run, kind):
    before = DeltaLog.for_path(table, {}).snapshot().version
    assert kind_of_mistake(spark, table, run) == kind
    assert DeltaLog.for_path(table, {}).snapshot().version == before


def test_values_may_come_from_a_source_that_aggregates(spark, table):
    source = spark.sql("SELECT 3L AS id, max(x) AS top FROM VALUES (1), (7) AS (x)").alias("s")
    merge = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"n": "s.top"})
    merge.whenNotMatchedInsert(values={"n": "top"}).execute()
    assert DeltaLog.for_path(table, {}).to_arrow("id = 3")["n"].to_pylist() == [7]
