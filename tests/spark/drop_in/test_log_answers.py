"""Aggregates that the log answers in place of the files: what it answers, and that it is right."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from pyspark.sql import functions as sf

from odd_partitions import PARTITIONS, parted_twice
from odd_session import odd_rows
from optimist.core import DeltaLog
from optimist.spark import write
from optimist.spark.planes.sources import of_fixed_versions, table_sources

ANSWERS = "spark.databricks.delta.optimizeMetadataQuery.enabled"
ROWS = """
    SELECT id, IF(id % 3 = 0, NULL, date_add(DATE'2026-01-01', CAST(id AS INT))) AS d,
        string(id) AS s, IF(id = 7, double('NaN'), id / 2) AS x, struct(id AS y) AS st,
        IF(id % 5 = 4, NULL, CAST(id % 5 AS INT)) AS p, IF(id % 2 = 0, 'a b%/=ä', NULL) AS q
    FROM range(0, 40, 1, 2)
"""
BY_COUNTS = [
    "SELECT count(*) FROM t",
    "SELECT count(1) + 1 AS n, 'x' AS y, count(p) FROM t WHERE p = 1",
    "SELECT p, count(*) FROM t GROUP BY p",
    "SELECT q AS k, p + 1, count(*) AS c, max(p) FROM t WHERE p > 0 OR q IS NULL GROUP BY q, p",
    "SELECT DISTINCT p FROM t",
    "SELECT max(p), min(q), count(q) FROM t",
    "SELECT count(*), min(id) FROM t WHERE p > 90",
    "SELECT p, count(*) FROM t WHERE p > 90 GROUP BY p",
    "SELECT count(*) FROM (SELECT p FROM t UNION ALL SELECT p + 1 FROM t)",
    "SELECT max(p) - 1 FROM t HAVING count(*) > 3",
    "SELECT * FROM (SELECT p, count(*) AS c FROM t GROUP BY p) WHERE c > 1 ORDER BY p LIMIT 2",
]
BY_BOUNDS = [
    "SELECT min(id), max(id), min(d), max(d), count(d), count(s), count(*) FROM t",
    "SELECT p, min(id) FROM t WHERE q IS NULL GROUP BY p",
    "SELECT t.p, m FROM t JOIN (SELECT p, max(id) AS m FROM t GROUP BY p) b ON t.p = b.p",
]
BY_FILES = [
    "SELECT count(*) FROM t WHERE id > 5",
    "SELECT count(*) FROM t WHERE p = id",
    "SELECT min(s) FROM t",
    "SELECT max(x), count(x) FROM t",
    "SELECT min(st.y) FROM t",
    "SELECT count(DISTINCT id) FROM t",
    "SELECT count(*) FILTER (WHERE id > 5) FROM t",
    "SELECT p % 2, count(*) FROM t GROUP BY 1",
    "SELECT count(id, d) FROM t",
    "SELECT sum(id) FROM t",
    "SELECT count(*) FROM (SELECT * FROM t LIMIT 7)",
    "SELECT max(id + 1) FROM t",
    "SELECT count(*) FROM t WHERE p = (SELECT max(p) FROM t)",
    "SELECT p, count(*) FROM t GROUP BY ROLLUP(p)",
]
if pyspark.__version__ >= "4.2":  # an alias hides it for good before
    BY_FILES += [
        "SELECT _metadata.file_name IS NULL, count(*) FROM t GROUP BY 1",
        "SELECT count(*) FROM t WHERE _metadata.row_index < 1",
    ]

CORRELATED = [
    "SELECT n.k, (SELECT count(*) FROM t WHERE t.p = n.k) FROM VALUES (0), (99) AS n(k)",
    "SELECT n.k FROM VALUES (0), (99) AS n(k) WHERE (SELECT count(*) FROM t WHERE t.p = n.k) = 0",
]


@pytest.fixture(params=["plain", "mapped", "vectors", "tracked"])
def table(enabled, tmp_path, request):
    """Forty rows in partitions, as a view `t`; where there are vectors, some rows are deleted."""
    path = str(tmp_path / "counted")
    properties = {
        "plain": {},
        "mapped": {"delta.columnMapping.mode": "id"},
        "vectors": {"delta.enableDeletionVectors": "true"},
        "tracked": {"delta.enableRowTracking": "true"},
    }[request.param]
    rows = enabled.sql(ROWS)
    writer = rows.write.format("delta").partitionBy("p", "q")
    for key, value in properties.items():
        writer = writer.option(key, value)
    writer.save(path)
    if request.param == "vectors":
        DeltaLog.for_path(path).delete("id IN (1, 21, 8)")
    return path


def spread(frame):
    return sorted(map(str, frame.collect()))


def reads_files(frame):
    return "FileScan" in frame._jdf.queryExecution().sparkPlan().toString()


def both(enabled, conf, path, query):
    """The answer of the log, and that of the files."""
    found = []
    for given in ("true", "false"):
        conf(ANSWERS, given)
        frame = enabled.sql(query.replace("FROM t", f"FROM delta.`{path}` t"))
        found.append((spread(frame), reads_files(frame)))
    assert found[1][1]
    return found


@pytest.mark.sample(5)
@pytest.mark.parametrize("number", range(3))
def test_answers_of_the_log_are_those_of_the_files(enabled, conf, table, number):
    is_whole = not DeltaLog.for_path(table).snapshot().has_active("deletionVectors")
    kinds = [(BY_COUNTS, False), (BY_BOUNDS, not is_whole), (BY_FILES, True)]
    queries, is_read = kinds[number]
    for query in queries:
        (by_log, log_reads), (by_files, _) = both(enabled, conf, table, query)
        assert by_log == by_files, query
        assert log_reads == (is_read or "JOIN" in query), query


def test_subqueries_count_no_rows_as_zero(enabled, conf, table):
    for query in CORRELATED:
        (by_log, _), (by_files, _) = both(enabled, conf, table, query)
        assert by_log == by_files, query


@pytest.mark.parametrize("name", sorted(PARTITIONS))
@pytest.mark.sample(6)
def test_odd_partitions_are_counted_as_in_files(enabled, conf, tmp_path, name):
    path = str(tmp_path / "odd")
    parted_twice(path, name)
    for query in (
        f"SELECT string(`{name}`), count(*), min(id) FROM t GROUP BY `{name}`",
        f"SELECT string(min(`{name}`)), string(max(`{name}`)), count(`{name}`) FROM t",
        f"SELECT count(*) FROM t WHERE `{name}` IS NULL",
        f"SELECT count(*) FROM t WHERE `{name}` >= (SELECT max(`{name}`) FROM t) OR 1 = 0",
    ):
        (by_log, _), (by_files, _) = both(enabled, conf, path, query)
        assert by_log == by_files, query


@pytest.mark.again
def test_bounds_of_odd_values_are_those_in_files(enabled, conf, tmp_path):
    path = str(tmp_path / "odd")
    rows = odd_rows()
    log = DeltaLog.for_path(path)
    for at in range(0, rows.num_rows, 3):
        log.append(rows.slice(at, 3))
    for name in rows.column_names:
        functions = ("min", "max", "count")
        shown = ", ".join(f"string({function}(`{name}`))" for function in functions)
        (by_log, _), (by_files, _) = both(enabled, conf, path, f"SELECT {shown}, count(*) FROM t")
        assert by_log == by_files, name
        (by_log, _), (by_files, _) = both(enabled, conf, path, f"SELECT count(`{name}`) FROM t")
        assert by_log == by_files, name


def test_frames_names_and_versions_are_counted_without_files(enabled, entry, table_path, jobs):
    write(enabled.range(0, 20, 1, 2), table_path)
    write(enabled.range(5), table_path, mode="append")
    name = entry("counted", table_path)
    load = enabled.read.format("delta")
    for file in Path(table_path).glob("*.parquet"):
        file.unlink()
    before = jobs()
    frame = load.load(table_path)
    older = load.option("versionAsOf", 0).load(table_path)
    assert (frame.count(), enabled.table(name).count(), older.count()) == (25, 25, 20)
    assert frame.agg(sf.max("id"), sf.count("*")).first() == (19, 25)
    assert enabled.sql(f"SELECT count(*) FROM {name} VERSION AS OF 0").first()[0] == 20
    assert jobs() == before
    write(enabled.range(3), table_path, mode="append")
    assert (frame.count(), older.count()) == (28, 20)


def test_a_cached_answer_tells_what_it_was_made_of(enabled, table_path):
    write(enabled.range(4), table_path)
    load = enabled.read.format("delta").load(table_path)
    cached = load.groupBy().count().where("count > 1").selectExpr("count + 1 AS n").cache()
    try:
        assert cached.collect() == [(5,)]
        assert not reads_files(cached)
        (source,) = table_sources(of_fixed_versions(cached))
        assert source.path.endswith(table_path)
    finally:
        cached.unpersist(blocking=True)


def test_a_column_that_files_lack_is_read(enabled, conf, table_path):
    write(enabled.range(4), table_path)
    enabled.sql(f"ALTER TABLE delta.`{table_path}` ADD COLUMN n INT")
    write(enabled.sql("SELECT id, CAST(7 AS INT) AS n FROM range(2)"), table_path, mode="append")
    query = "SELECT count(n), min(n), max(n) FROM t"
    (by_log, _), (by_files, _) = both(enabled, conf, table_path, query)
    assert by_log == by_files == ["Row(count(n)=2, min(n)=7, max(n)=7)"]
    (by_log, log_reads), _ = both(enabled, conf, table_path, "SELECT count(*) FROM t")
    assert not log_reads


@pytest.mark.parametrize(
    ("key", "value"), [(ANSWERS, "false"), ("spark.sql.files.ignoreMissingFiles", "true")]
)
def test_the_conf_of_the_query_decides(enabled, conf, table_path, key, value):
    write(enabled.range(4), table_path)
    frame = enabled.read.format("delta").load(table_path)
    assert not reads_files(frame.groupBy().count())
    conf(key, value)
    assert reads_files(frame.groupBy().count())
