"""What the passes of a MERGE agree on, while the session is changed between them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.spark import read
from optimist.spark.commands.merge.changes import MergeSearch
from small_merges import FEED, VECTORS, numbers, target, upsert

SPLITS = ["spark.sql.leafNodeDefaultParallelism", "spark.sql.files.maxPartitionBytes"]
MANY = 24


def rows(count):
    ids = pa.array(range(count), pa.int64())
    return pa.table({"id": ids, "v": [f"w{i}" for i in range(count)]})


def rows_in_the_plan(spark, path):
    return spark.createDataFrame(rows(MANY))


def a_view_of_values(spark, path):
    values = ", ".join(f"({i}L, 'w{i}')" for i in range(MANY))
    return spark.sql(f"SELECT id, v FROM VALUES {values} AS s (id, v)")


def table_of_many_files(spark, path):
    log = DeltaLog.for_path(path, {})
    for at in range(0, MANY, 3):
        log.append(rows(MANY).slice(at, 3))
    return read(spark, path)


@pytest.fixture
def splits_change(monkeypatch, conf):
    """Have Spark divide what it reads otherwise once the rows that match are known."""
    real = MergeSearch._gathered
    seen = []

    def gathered(self, *arguments):
        found = real(self, *arguments)
        for key, value in zip(SPLITS, ("7", "100"), strict=True):
            conf(key, value)
        seen.append(self)
        return found

    for key, value in zip(SPLITS, ("2", str(1 << 30)), strict=True):
        conf(key, value)
    monkeypatch.setattr(MergeSearch, "_gathered", gathered)
    yield
    assert seen


@pytest.mark.again
@pytest.mark.parametrize("source_of", [rows_in_the_plan, a_view_of_values, table_of_many_files])
@pytest.mark.parametrize("properties", [{}, VECTORS | FEED], ids=["copies", "vectors"])
@pytest.mark.usefixtures("plane", "splits_change")
def test_no_row_is_new_and_matched_where_the_source_is_divided_anew(
    spark, table_path, tmp_path, source_of, properties
):
    log = DeltaLog.for_path(table_path, properties)
    log.append(numbers(0, MANY // 2))
    source = source_of(spark, str(tmp_path / "source")).alias("s")
    counts = upsert(spark, table_path, source).execute().collect()[0]
    assert tuple(counts) == (MANY, MANY // 2, 0, MANY // 2)
    assert sorted(row.id for row in read(spark, table_path).collect()) == list(range(MANY))


@pytest.mark.parametrize("with_matched", [True, False])
@pytest.mark.parametrize("kinds", ["text", "also null"])
@pytest.mark.usefixtures("every_plane")
def test_no_key_is_computed_of_rows_that_the_condition_leaves_out(
    spark, table_path, with_matched, kinds
):
    DeltaLog.for_path(table_path, {}).append(numbers(0, 4))
    other = {"text": "'text'", "also null": "CAST(NULL AS STRING)"}[kinds]
    source = spark.sql(
        f"SELECT * FROM VALUES ('2', 'id'), ('x', {other}), ('9', 'id') AS s (k, kind)"
    ).alias("s")
    condition = "s.kind = 'id' AND t.id = CAST(s.k AS BIGINT)"
    merge = target(spark, table_path).merge(source, condition)
    if with_matched:
        merge = merge.whenMatchedUpdate(set={"v": "s.k"})
    merge = merge.whenNotMatchedInsert("s.kind = 'id'", {"id": "CAST(s.k AS BIGINT)", "v": "'new'"})
    merge.execute()
    rows = {row.id: row.v for row in read(spark, table_path).collect()}
    assert rows == {0: "v0", 1: "v1", 2: "2" if with_matched else "v2", 3: "v3", 9: "new"}
