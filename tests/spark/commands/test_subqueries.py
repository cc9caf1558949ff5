"""Conditions with subqueries: the rows that a SELECT by the same condition finds are changed."""

from __future__ import annotations

import shutil

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.spark import DeltaTable, write

CONDITIONS = {
    "in": "id IN (SELECT k FROM o)",
    "not in with a null": "id NOT IN (SELECT k FROM o)",
    "not in": "id NOT IN (SELECT k FROM o WHERE k IS NOT NULL)",
    "not in nothing": "id NOT IN (SELECT k FROM o WHERE w > 9)",
    "pairs": "(id, a) IN (SELECT k, w FROM o)",
    "exists": "EXISTS (SELECT 1 FROM o WHERE o.k = t.id)",
    "not exists": "NOT EXISTS (SELECT 1 FROM o WHERE o.k = t.id AND o.w <= t.a)",
    "scalar of the table itself": "id > (SELECT avg(id) FROM {own})",
    "correlated with the table itself": "a = (SELECT max(x.a) FROM {own} x WHERE x.p = t.p)",
    "with a partition": "p = 1 AND id IN (SELECT k FROM o)",
    "over a partition column": "p IN (SELECT max(w) FROM o WHERE w < 2)",
    "below or": "a = 3 OR id IN (SELECT k FROM o)",
    "below not": "NOT (a > 2 OR id IN (SELECT k FROM o WHERE k > 1))",
    "nested": "id IN (SELECT k FROM o WHERE w IN (SELECT x.a FROM {own} x WHERE x.id = o.k))",
    "a common table expression": "id IN (WITH c AS (SELECT k + 1 AS k FROM o) SELECT k FROM c)",
    "no row": "id IN (SELECT k FROM o WHERE false)",
}
KINDS = ["vectors", "vectors and feed", "files", "files and feed"]
DEFAULTS = "spark.databricks.delta.properties.defaults."
OWN_ROWS = """
SELECT /*+ COALESCE(1) */ if(id = 9, NULL, id) AS id, CAST(id % 4 AS INT) AS a,
       CAST(id % 2 AS INT) AS p FROM range(12)
"""


@pytest.fixture(scope="module")
def originals(enabled, tmp_path_factory):
    """A table of each kind, and the view `o` over another table."""
    base = tmp_path_factory.mktemp("originals")
    other = "VALUES (1L, 1), (2L, 5), (7L, 1), (CAST(NULL AS LONG), 2) AS v(k, w)"
    write(enabled.sql(f"SELECT * FROM {other}").coalesce(1), str(base / "other"))
    enabled.sql(f"CREATE OR REPLACE TEMPORARY VIEW o AS SELECT * FROM delta.`{base}/other`")
    for kind in KINDS:
        given = {
            f"{DEFAULTS}enableDeletionVectors": str("vectors" in kind).lower(),
            f"{DEFAULTS}enableChangeDataFeed": str("feed" in kind).lower(),
        }
        rows = enabled.sql(OWN_ROWS).toArrow()
        DeltaLog.for_path(str(base / kind), given).append(rows, partition_by=["p"])
    yield base
    enabled.catalog.dropTempView("o")


@pytest.fixture
def own(originals, table_path):
    """Copies the table of a kind, and gives its path."""
    return lambda kind: shutil.copytree(originals / kind, table_path)


def rows_of(path):
    """The table as another engine reads it, sorted."""
    engine = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    table = pa.table(engine.execute("SELECT id, a, p FROM t").read_all())
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def chosen(spark, path, condition):
    """The rows that a SELECT finds."""
    found = spark.sql(f"SELECT id, a, p FROM delta.`{path}` t WHERE {condition}").collect()
    return sorted(map(tuple, found), key=repr)


def changes_of(path):
    """The changes of the newest version, each with its kind."""
    log = DeltaLog.for_path(path, {})
    table = log.changes(
        columns=["id", "a", "p", "_change_type"], starting_version=log.snapshot().version
    )
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def raised(row):
    return (row[0], row[1] + 10, row[2])


def cases(step):
    """Each condition with a kind of table and a plane, so that all of them meet."""
    planes = ["native", "arrow"]
    return [
        pytest.param(
            condition, KINDS[(at + step) % 4], planes[(at // 2 + step) % 2], id=f"{name}-{step}"
        )
        for at, (name, condition) in enumerate(CONDITIONS.items())
    ]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("condition", "kind", "plane"), [*cases(0), *cases(1)])
def test_rows_that_a_select_finds_are_deleted(enabled, own, conf, condition, kind, plane):
    conf("spark.optimist.spark.plane", plane)
    path = own(kind)
    condition = condition.format(own=f"delta.`{path}`")
    before, found = rows_of(path), chosen(enabled, path, condition)
    made = enabled.sql(f"DELETE FROM delta.`{path}` AS t WHERE {condition}").collect()
    assert made[0].num_affected_rows == len(found)
    assert sorted([*rows_of(path), *found], key=repr) == before
    if found:
        told = DeltaTable.forPath(enabled, path).history(1).first()
        assert told.operationParameters["predicate"] == f'["{condition}"]'
        if "feed" in kind:
            assert changes_of(path) == [(*row, "delete") for row in found]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("condition", "kind", "plane"), [*cases(2), *cases(3)])
def test_rows_that_a_select_finds_are_updated(enabled, own, conf, condition, kind, plane):
    conf("spark.optimist.spark.plane", plane)
    path = own(kind)
    condition = condition.format(own=f"delta.`{path}`")
    before, found = rows_of(path), chosen(enabled, path, condition)
    DeltaTable.forPath(enabled, path).alias("t").update(condition, {"a": "a + 10"})
    wanted = [raised(row) if row in found else row for row in before]
    assert rows_of(path) == sorted(wanted, key=repr)
    if found and "feed" in kind:
        images = [(*row, "update_preimage") for row in found]
        images += [(*raised(row), "update_postimage") for row in found]
        assert changes_of(path) == sorted(images, key=repr)
