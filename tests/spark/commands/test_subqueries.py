"""Conditions with subqueries: the rows that a SELECT by the same condition finds are changed."""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
import shutil

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from optimist.core import DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException, UsageError
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.resolution import SparkResolvedMerge
from subquery_runs import COMMANDS, run_case

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


@pytest.mark.sample(16)
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


@pytest.mark.sample(16)
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


_SOURCE = "VALUES (1L, 10), (2L, 20), (3L, 30), (20L, 1), (21L, 2) AS v(id, x)"
_NEW = {20: 1, 21: 2}
_BY_ID = {1: 10, 2: 20, 3: 30, **_NEW}


def _set(rows, ids):
    return [(i, _BY_ID[i] if i in ids else a, p) for i, a, p in rows]


def _added(ids):
    return [(i, _BY_ID[i], 7) for i in ids]


INSERT = "INSERT (id, a, p) VALUES (s.id, s.x, 7)"
SET = "UPDATE SET a = s.x"
MERGES = {
    "matched": (
        "t.id = s.id",
        f"WHEN MATCHED AND s.id IN (SELECT k FROM o) THEN {SET}",
        lambda rows: _set(rows, {1, 2}),
    ),
    "matched, correlated with both": (
        "t.id = s.id",
        "WHEN MATCHED AND EXISTS (SELECT 1 FROM o WHERE o.k = t.id AND o.w < s.x AND o.w > t.a) "
        f"THEN {SET}",
        lambda rows: _set(rows, {2}),
    ),
    "matched, over the table itself": (
        "t.id = s.id",
        "WHEN MATCHED AND t.id >= (SELECT max(x.id) - 9 FROM {own} x) THEN DELETE",
        lambda rows: [row for row in rows if row[0] not in {2, 3}],
    ),
    "not matched": (
        "t.id = s.id",
        "WHEN MATCHED THEN DELETE "
        f"WHEN NOT MATCHED AND s.id NOT IN (SELECT k + 19 FROM o WHERE k = 1) THEN {INSERT}",
        lambda rows: [row for row in rows if row[0] not in {1, 2, 3}] + _added([21]),
    ),
    "not matched, with a null": (
        "t.id = s.id",
        f"WHEN NOT MATCHED AND s.id NOT IN (SELECT k FROM o) THEN {INSERT}",
        lambda rows: rows,
    ),
    "not matched by source": (
        "t.id = s.id",
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id IN (SELECT k FROM o) "
        "THEN UPDATE SET a = 99",
        lambda rows: [(i, 99 if i == 7 else a, p) for i, a, p in rows if i not in {1, 2, 3}],
    ),
    "on": (
        "t.id = s.id AND t.id IN (SELECT k FROM o)",
        f"WHEN MATCHED THEN {SET} WHEN NOT MATCHED THEN {INSERT}",
        lambda rows: _set(rows, {1, 2}) + _added([3, 20, 21]),
    ),
    "on, only inserts": (
        "t.id = s.id AND EXISTS (SELECT 1 FROM o WHERE o.k = t.id)",
        f"WHEN NOT MATCHED THEN {INSERT}",
        lambda rows: rows + _added([3, 20, 21]),
    ),
    "on, without an equality": (
        "EXISTS (SELECT 1 FROM o WHERE o.k = t.id AND o.k = s.id)",
        "WHEN MATCHED THEN DELETE",
        lambda rows: [row for row in rows if row[0] not in {1, 2}],
    ),
}


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    ("name", "kind", "plane"),
    [
        (name, KINDS[(at + step) % 4], ["native", "arrow"][(at // 2 + step) % 2])
        for step in (0, 1)
        for at, name in enumerate(MERGES)
    ],
)
def test_a_merge_takes_subqueries_in_on_and_when(enabled, own, conf, name, kind, plane):
    conf("spark.optimist.spark.plane", plane)
    path = own(kind)
    on, clauses, model = MERGES[name]
    table, before = f"delta.`{path}`", rows_of(path)
    sql = f"MERGE INTO {table} t USING (SELECT * FROM {_SOURCE}) s ON {on} {clauses}"
    enabled.sql(sql.format(own=table))
    assert rows_of(path) == sorted(model(before), key=repr)


def test_a_merge_by_methods_takes_them_and_where_it_does_not_it_says_so(enabled, own):
    table = DeltaTable.forPath(enabled, own("files")).alias("t")
    source = enabled.sql(f"SELECT * FROM {_SOURCE}").alias("s")
    before = rows_of(table._path)
    merge = table.merge(source, "t.id = s.id AND t.id IN (SELECT k FROM o)")
    with pytest.raises(UsageError) as caught:
        merge.whenNotMatchedBySourceDelete().execute()
    assert caught.value.kind == "DELTA_UNSUPPORTED_SUBQUERY"
    merge.whenMatchedUpdate("s.x > (SELECT min(k) + 9 FROM o)", {"a": "s.x"}).execute()
    assert rows_of(table._path) == sorted(_set(before, {2}), key=repr)


def test_what_a_subquery_reads_of_the_table_itself_is_a_conflict(enabled, own, meeting):
    path = own("vectors and feed")
    log, table = DeltaLog.for_path(path, {}), f"delta.`{path}`"
    far = pa.table({"id": [500], "a": pa.array([0], pa.int32()), "p": pa.array([0], pa.int32())})
    condition = f"p = 1 AND id > (SELECT avg(x.id) FROM {table} x)"
    meeting(lambda: log.append(far))
    with pytest.raises(DeltaConcurrentModificationException):
        enabled.sql(f"UPDATE {table} SET a = 99 WHERE {condition}")
    assert not chosen(enabled, path, "a = 99")
    meeting(lambda: log.append(far))
    with pytest.raises(DeltaConcurrentModificationException):
        enabled.sql(
            f"MERGE INTO {table} t USING (SELECT 1L AS id) s ON t.id = s.id "
            f"WHEN MATCHED AND t.id < (SELECT avg(x.id) FROM {table} x) THEN UPDATE SET a = 99"
        )
    assert not chosen(enabled, path, "a = 99")


def test_a_conflict_asks_the_subquery_anew(enabled, own, conf, meeting):
    conf("spark.optimist.conflict.retry", "true")
    path = own("files")
    log, table = DeltaLog.for_path(path, {}), f"delta.`{path}`"
    far = pa.table({"id": [500], "a": pa.array([0], pa.int32()), "p": pa.array([0], pa.int32())})
    meeting(lambda: log.append(far))
    enabled.sql(f"UPDATE {table} SET a = 99 WHERE id = (SELECT max(x.id) FROM {table} x)")
    assert chosen(enabled, path, "a = 99") == [(500, 99, 0)]


def test_each_try_of_a_merge_resolves_its_subqueries_once(enabled, own, conf, meeting, monkeypatch):
    conf("spark.optimist.conflict.retry", "true")
    resolve, versions = SparkResolvedMerge.of, []

    def counted(target, *given):
        versions.append(target.snapshot.version)
        return resolve(target, *given)

    monkeypatch.setattr(SparkResolvedMerge, "of", counted)
    path = own("files")
    log, table = DeltaLog.for_path(path, {}), f"delta.`{path}`"
    far = pa.table({"id": [500], "a": pa.array([0], pa.int32()), "p": pa.array([0], pa.int32())})
    meeting(lambda: log.append(far))
    enabled.sql(
        f"MERGE INTO {table} t USING (SELECT 500L AS id UNION ALL SELECT 11L) s ON t.id = s.id "
        f"WHEN MATCHED AND t.id = (SELECT max(x.id) FROM {table} x) THEN UPDATE SET a = 99"
    )
    assert chosen(enabled, path, "a = 99") == [(500, 99, 0)]
    assert versions == [0, 1]


def test_commits_that_no_part_of_the_condition_meets_are_no_conflict(enabled, own, meeting):
    path = own("files")
    log, table = DeltaLog.for_path(path, {}), f"delta.`{path}`"

    def row(p):
        return pa.table({"id": [1], "a": pa.array([0], pa.int32()), "p": pa.array([p], pa.int32())})

    sql = f"UPDATE {table} SET a = 99 WHERE p = 1 AND id IN (SELECT k FROM o)"
    meeting(lambda: log.append(row(0)))
    enabled.sql(sql)
    assert chosen(enabled, path, "a = 99") == [(1, 99, 1), (7, 99, 1)]
    meeting(lambda: log.append(row(1)))
    with pytest.raises(DeltaConcurrentModificationException):
        enabled.sql(sql)


def test_a_view_of_an_old_frame_of_the_table_misses_no_commit(enabled, own):
    path = own("vectors")
    read(enabled, path).createOrReplaceTempView("old_rows")
    enabled.sql(f"UPDATE delta.`{path}` SET a = a + 1 WHERE id = 3")
    condition = "id IN (SELECT id FROM old_rows WHERE a = 3)"
    with pytest.raises(DeltaConcurrentModificationException):
        enabled.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
    read(enabled, path, versionAsOf=0).createOrReplaceTempView("old_rows")
    enabled.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
    enabled.catalog.dropTempView("old_rows")
    assert not chosen(enabled, path, "id IN (3, 7, 11)")


@pytest.mark.parametrize("command", ["delete", "update"])
def test_no_second_pass_asks_a_subquery_again(enabled, own, tmp_path, monkeypatch, command):
    """What is no table of ours has no versions, and may hold other rows a moment later."""
    path, keys = own("files and feed"), str(tmp_path / "keys")
    enabled.sql("SELECT 3L AS k").coalesce(1).write.parquet(keys)
    search = Target.search

    def search_then_change(*given, **more):
        found = search(*given, **more)
        enabled.sql("SELECT 5L AS k").coalesce(1).write.mode("overwrite").parquet(keys)
        return found

    monkeypatch.setattr(Target, "search", search_then_change)
    table, condition = DeltaTable.forPath(enabled, path), f"id IN (SELECT k FROM parquet.`{keys}`)"
    if command == "delete":
        table.delete(condition)
        assert [row[0] for row in changes_of(path)] == [3]
        assert not chosen(enabled, path, "id = 3")
    else:
        table.update(condition, {"a": "99"})
        assert chosen(enabled, path, "a = 99") == [(3, 99, 1)]
    assert chosen(enabled, path, "id = 5") == [(5, 1, 1)]


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (SELECT CAST(rand() * 9 AS LONG) FROM o)",
        "id = (SELECT k FROM o WHERE k IS NOT NULL)",
    ],
)
def test_what_spark_can_not_decide_changes_nothing(enabled, own, condition):
    path = own("vectors")
    before = rows_of(path)
    with pytest.raises(Exception, match=r"(?i)deterministic|more than one row"):
        enabled.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
    assert rows_of(path) == before


def test_unknown_columns_are_told_as_in_a_select(enabled, own):
    path = own("vectors")
    with pytest.raises(AnalysisException) as caught:
        enabled.sql(f"DELETE FROM delta.`{path}` WHERE id IN (SELECT nothing FROM o)")
    assert caught.value.getCondition().startswith("UNRESOLVED_COLUMN")
    with pytest.raises(UsageError) as refused:
        write(enabled.sql(OWN_ROWS), path, mode="overwrite", replaceWhere="id IN (SELECT k FROM o)")
    assert refused.value.kind == "DELTA_UNSUPPORTED_SUBQUERY"


@pytest.mark.again
@pytest.mark.parametrize("command", COMMANDS)
def test_a_random_subquery_chooses_the_rows_of_a_select(enabled, tmp_path, command):
    run_case(enabled, tmp_path, random.Random(f"7 {command}"), command)
