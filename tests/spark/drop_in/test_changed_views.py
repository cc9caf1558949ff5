"""Temporary views that are changed: those of a whole table are the table, as with Delta's jar."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from optimist.core.errors import UsageError
from optimist.spark import read, write


@pytest.fixture
def path(spark, table_path):
    """A table of three rows."""
    write(spark.range(3).selectExpr("id", "'old' AS s"), table_path)
    return table_path


def into_a_view(spark, view):
    """Every way in which Spark inserts into a temporary view, with what is there afterwards."""
    rows = spark.range(9, 10).selectExpr("id", "'new' AS s")
    yield lambda: spark.sql(f"INSERT INTO {view} VALUES (9, 'new')"), [0, 1, 2, 9]
    yield lambda: spark.sql(f"INSERT INTO {view} (s, id) VALUES ('new', 9)"), [0, 1, 2, 9, 9]
    yield lambda: rows.write.insertInto(view), [0, 1, 2, 9, 9, 9]
    yield lambda: spark.sql(f"INSERT OVERWRITE {view} VALUES (9, 'new')"), [9]
    yield lambda: rows.write.insertInto(view, overwrite=True), [9]


@pytest.mark.parametrize("made", ["query", "frame of a query", "outlives the session"])
@pytest.mark.sample(3)
def test_spark_refuses_to_insert_into_a_view_that_a_query_makes(enabled, path, made):
    query = f"SELECT * FROM delta.`{path}`"
    if made == "frame of a query":
        enabled.sql(query).createTempView("queried")
    else:
        kind = "TEMPORARY VIEW" if made == "query" else "VIEW"
        enabled.sql(f"CREATE {kind} queried AS {query}")
    try:
        for insert, _ in into_a_view(enabled, "queried"):
            with pytest.raises(PySparkException):
                insert()
    finally:
        enabled.sql("DROP VIEW queried")
    assert ids(enabled, path) == [0, 1, 2]


def ids(spark, path):
    return sorted(row.id for row in read(spark, path).collect())


@pytest.mark.again
@pytest.mark.parametrize("made", ["of_sql", "of_format"])
def test_rows_are_inserted_into_the_table_behind_a_view(enabled, path, plane, made):
    if made == "of_sql":
        enabled.sql(f"CREATE TEMPORARY VIEW of_sql USING delta OPTIONS (path '{path}')")
    else:
        enabled.read.format("delta").load(path).createTempView("of_format")
    try:
        for insert, left in into_a_view(enabled, made):
            insert()
            assert ids(enabled, path) == left
            assert sorted(row.id for row in enabled.table(made).collect()) == left
    finally:
        enabled.catalog.dropTempView(made)


@pytest.mark.again
@pytest.mark.parametrize("rows", ["SELECT * FROM {t}", "SELECT v.id, s FROM (TABLE {t}) v", "{t}"])
def test_statements_change_the_table_behind_a_view(enabled, path, plane, rows):
    if rows == "{t}":
        enabled.read.format("delta").load(path).createTempView("seen")
    else:
        query = rows.format(t=f"delta.`{path}`")
        enabled.sql(f"CREATE TEMPORARY VIEW seen AS {query}")
    try:
        write(enabled.range(3, 5).selectExpr("id", "'old' AS s"), path, mode="append")
        told = enabled.sql("DELETE FROM seen AS v WHERE v.id = 4").collect()
        assert [row.num_affected_rows for row in told] == [1]
        enabled.sql("UPDATE seen SET id = id + 10, s = 'new' WHERE seen.id IN (0, 3)")
        enabled.sql(
            "MERGE INTO seen t USING (SELECT 1L AS id, 'new' AS s UNION SELECT 7L, 'new') q "
            "ON t.id = q.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        )
        assert ids(enabled, path) == [2, 7, 10, 13]
        assert read(enabled, path).where("s = 'new'").count() == 3
    finally:
        enabled.catalog.dropTempView("seen")


@pytest.mark.again
@pytest.mark.parametrize(
    "rows",
    [
        "SELECT id FROM {t}",
        "SELECT s, id FROM {t}",
        "SELECT id + 0 AS id, s FROM {t}",
        "SELECT s AS id, id AS s FROM {t}",
        "SELECT DISTINCT * FROM {t}",
        "SELECT * FROM {t} VERSION AS OF 0",
    ],
)
def test_a_view_of_anything_else_is_not_changed(enabled, path, rows):
    query = rows.format(t=f"delta.`{path}`")
    enabled.sql(f"CREATE TEMPORARY VIEW part AS {query}")
    try:
        with pytest.raises(UsageError) as caught:
            enabled.sql("DELETE FROM part")
        assert caught.value.kind == "DELTA_UNSUPPORTED_SOURCE"
    finally:
        enabled.catalog.dropTempView("part")
    assert ids(enabled, path) == [0, 1, 2]


def test_a_view_without_a_column_that_came_later_is_not_changed(enabled, path):
    enabled.read.format("delta").load(path).createTempView("before")
    enabled.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN more INT")
    try:
        for statement in ("DELETE FROM before", "INSERT INTO before VALUES (9, 'new')"):
            with pytest.raises(UsageError) as caught:
                enabled.sql(statement)
            assert caught.value.kind == "DELTA_UNSUPPORTED_SOURCE"
    finally:
        enabled.catalog.dropTempView("before")
    assert ids(enabled, path) == [0, 1, 2]


def test_a_view_of_one_partition_is_not_changed(enabled, table_path):
    rows = enabled.range(4).selectExpr("id", "id % 2 AS p")
    write(rows, table_path, partitionBy="p")
    enabled.read.format("delta").load(f"{table_path}/p=1").createTempView("one")
    try:
        for statement in ("DELETE FROM one", "INSERT OVERWRITE one VALUES (9, 1)"):
            with pytest.raises((UsageError, PySparkException)):
                enabled.sql(statement)
    finally:
        enabled.catalog.dropTempView("one")
    assert ids(enabled, table_path) == [0, 1, 2, 3]


@pytest.mark.again
def test_an_insert_into_rows_of_a_version_is_refused_and_harms_no_table(enabled, path, tmp_path):
    """To Spark such a view is a folder of files, which an INSERT OVERWRITE would empty."""
    options = f"OPTIONS (path '{path}', versionAsOf '0')"
    enabled.sql(f"CREATE TEMPORARY VIEW of_sql USING delta {options}")
    read(enabled, path).createTempView("of_rows")
    enabled.read.format("delta").option("versionAsOf", 0).load(path).createTempView("of_format")
    files = sorted(tmp_path.rglob("*"))
    for view in ("of_sql", "of_rows", "of_format"):
        for insert, _ in into_a_view(enabled, view):
            with pytest.raises(UsageError) as caught:
                insert()
            assert caught.value.kind == "DELTA_UNSUPPORTED_SOURCE"
            assert path in str(caught.value)
        enabled.catalog.dropTempView(view)
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.again
def test_an_insert_into_a_view_harms_no_table_without_the_drop_in_either(spark, path, tmp_path):
    read(spark, path).createTempView("of_rows")
    files = sorted(tmp_path.rglob("*"))
    for insert, _ in into_a_view(spark, "of_rows"):
        with pytest.raises(PySparkException):
            insert()
    spark.catalog.dropTempView("of_rows")
    assert sorted(tmp_path.rglob("*")) == files
