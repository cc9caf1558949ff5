"""Rows keep their ids and commit versions through commands, held against a model row by row."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as OtherTable
from deltalake import QueryBuilder
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from merged_features import MERGED_TOLD, merged
from optimist.core import DeltaLog
from optimist.core.log.file_table import add_files
from optimist.spark import read
from table_contents import read_locally
from tracked_rows import Tracked

DEFAULTS = "spark.databricks.delta.properties.defaults."


@pytest.fixture
def tracked(spark, table_path, log_of, conf, plane, request):
    vectors = getattr(request, "param", False)
    conf(f"{DEFAULTS}enableRowTracking", "true")
    conf(f"{DEFAULTS}enableDeletionVectors", str(vectors).lower())
    table = Tracked(spark, table_path, log_of(table_path), partitionBy="p")
    table.append({k: (k % 3, f"r{k}") for k in range(12)})
    return table


@pytest.mark.sample(2)
@pytest.mark.parametrize("tracked", [False, True], ids=["copies", "vectors"], indirect=True)
def test_rows_keep_their_ids_through_every_command(tracked):
    tracked.delete("k IN (1, 5)", lambda k, p, v: k in (1, 5))
    tracked.update("k % 4 = 0", lambda k, p, v: k % 4 == 0)
    source = {2: (0, "new"), 3: (0, "gone"), 4: (0, "stays"), 20: (1, "in"), 21: (2, "gone")}
    tracked.merge(source, by_source=9)
    tracked.replace({11: (1, "again"), 30: (0, "more")}, 10)
    tracked.update(None, lambda k, p, v: True)
    tracked.append({40: (0, "last")})
    seen = read(tracked.spark, tracked.path)
    assert sorted(row.k for row in seen.collect()) == sorted(tracked.rows)
    assert tracked.log.history(1)[0].info.tags["delta.rowTracking.preserved"] == "true"
    engine = QueryBuilder().register("t", OtherTable(tracked.path))
    found = pa.table(engine.execute("SELECT k, p, v FROM t").read_all()).to_pylist()
    assert {row["k"]: (row["p"], row["v"]) for row in found} == tracked.rows


STEPS = st.tuples(
    st.sampled_from(["delete", "update", "merge"]),
    st.integers(0, 11),
    st.integers(1, 3),
    st.dictionaries(st.integers(0, 15), st.sampled_from(["gone", "stays", "put"]), max_size=5),
)


@pytest.mark.again
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
)
@given(st.lists(STEPS, min_size=3, max_size=4), st.booleans())
def test_rows_keep_their_ids_through_any_history(spark, tmp_path_factory, steps, has_vectors):
    path = str(tmp_path_factory.mktemp("history") / "table")
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": str(has_vectors).lower(),
    }
    tracked = Tracked(spark, path, DeltaLog.for_path(path, {}), **properties)
    tracked.append({k: (k % 3, f"r{k}") for k in range(12)})
    for number, (command, least, step, source) in enumerate(steps):
        condition, is_hit = f"k >= {least} AND k % {step} = 0", partial(is_multiple, least, step)
        if command == "merge":
            rows = {k: (k % 3, v) for k, v in source.items()} | {100 + number: (1, "new")}
            tracked.merge(rows, by_source=least)
        else:
            getattr(tracked, command)(condition, is_hit)


def is_multiple(least, step, k, p, v):
    return k >= least and k % step == 0


@pytest.mark.again
def test_ids_and_versions_go_with_rows_whose_changes_are_recorded(spark, table_path, log_of, plane):
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": "name" if plane == "native" else "id",
    }
    tracked = Tracked(spark, table_path, log_of(table_path), partitionBy="p", **properties)
    tracked.append({k: (k % 3, f"r{k}") for k in range(9)})
    tracked.delete("k = 4", lambda k, p, v: k == 4)
    tracked.update("k > 6", lambda k, p, v: k > 6)
    tracked.merge({2: (0, "new"), 3: (0, "gone"), 50: (1, "in")}, by_source=5)
    tracked.replace({8: (1, "again"), 30: (0, "more")}, 8)
    feed = read(spark, table_path, readChangeFeed=True, startingVersion=1)
    assert feed.columns[:3] == ["k", "p", "v"]
    kinds = [(row._commit_version, row._change_type, row.k) for row in feed.collect()]
    assert sorted(kinds) == [
        (1, "delete", 4),
        *((2, f"update_{when}image", k) for when in ("post", "pre") for k in (7, 8)),
        (3, "delete", 3),
        (3, "insert", 50),
        *((3, f"update_{when}image", k) for when in ("post", "pre") for k in (2, 5)),
        *((4, "delete", k) for k in (8, 50)),
        *((4, "insert", k) for k in (8, 30)),
    ]


@pytest.mark.again
def test_statistics_and_the_schema_leave_the_carried_columns_out(tracked, table_path):
    tracked.delete("k = 0", lambda k, p, v: k == 0)
    configuration = tracked.log.snapshot().metadata.configuration
    names = [value for key, value in configuration.items() if "materialized" in key]
    (add,) = (add for add in add_files(tracked.log.snapshot().files) if add.base_row_id == 12)
    assert sorted(pq.read_schema(f"{table_path}/{add.path}").names) == sorted(["k", "v", *names])
    assert "row-" not in add.stats
    assert read_locally(table_path).column_names == ["k", "p", "v"]


@pytest.mark.parametrize("vectors", [True, pytest.param(False, marks=pytest.mark.again)])
def test_a_merge_gives_ids_numbers_values_and_changes_at_once(
    spark, table_path, every_plane, vectors
):
    assert merged(spark, table_path, vectors=vectors) == MERGED_TOLD
