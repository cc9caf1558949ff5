"""Names that mean less than a table, or could mean more than one thing of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.spark import DeltaTable, read, write


@pytest.fixture
def path(enabled, table_path):
    """A table of two versions: of three rows, and then of six."""
    rows = enabled.range(6).selectExpr("id", "id % 2 AS p").coalesce(1)
    write(rows.where("id < 3"), table_path, partitionBy="p")
    write(rows.where("id >= 3"), table_path, mode="append")
    return table_path


def ids(frame):
    """By a frame of its own each time: Spark plans each frame once."""
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.parametrize("older", ["@v0", "@V0/", "@20261120103000000"])
def test_no_write_makes_a_table_at_a_path_that_means_a_version(enabled, path, older):
    """A reader of that path would see the older version before, and other rows afterwards."""
    name, rows = f"{path}{older}", enabled.range(3)
    writing = rows.write.format("delta")
    making = {
        "save": lambda: writing.save(name),
        "append": lambda: writing.mode("append").save(name),
        "overwrite": lambda: writing.mode("overwrite").save(name),
        "clusterBy": lambda: writing.clusterBy("id").mode("append").save(name),
        "write": lambda: write(rows, name),
        "CREATE": lambda: enabled.sql(f"CREATE TABLE delta.`{name}` (id BIGINT) USING delta"),
        "CTAS": lambda: enabled.sql(f"CREATE TABLE delta.`{name}` USING delta AS SELECT 1 AS id"),
        "REPLACE": lambda: enabled.sql(f"CREATE OR REPLACE TABLE delta.`{name}` (id BIGINT)"),
        "builder": lambda: (
            DeltaTable.create(enabled).location(name).addColumn("id", "BIGINT").execute()
        ),
        "CLONE": lambda: DeltaTable.forPath(enabled, path).clone(name),
    }
    for make in making.values():
        with pytest.raises(UsageError) as caught:
            make()
        assert caught.value.kind == "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"
    assert not Path(name).exists()


def test_a_path_with_a_version_of_no_table_is_a_place_of_its_own(enabled, tmp_path):
    name = str(tmp_path / "base@v0")
    for _ in range(2):
        enabled.range(3).write.format("delta").mode("append").save(name)
    assert enabled.read.format("delta").load(name).count() == 6
    assert enabled.read.format("delta").load(f"{name}@v0").count() == 3


def test_no_statement_changes_a_table_by_a_name_with_a_version(enabled, path, log_of, plane):
    name, rows = f"delta.`{path}@v0`", enabled.sql("SELECT 0L AS id, 0L AS p")
    enabled.sql(f"CREATE TEMPORARY VIEW older AS SELECT * FROM {name}")
    changing = {
        "DELETE": lambda: enabled.sql(f"DELETE FROM {name} WHERE id = 1"),
        "UPDATE": lambda: enabled.sql(f"UPDATE {name} AS t SET id = 9"),
        "MERGE": lambda: enabled.sql(
            f"MERGE INTO {name} AS t USING {name} AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
        ),
        "INSERT": lambda: enabled.sql(f"INSERT INTO {name} VALUES (9, 9)"),
        "OVERWRITE": lambda: enabled.sql(f"INSERT OVERWRITE {name} VALUES (9, 9)"),
        "REPLACE": lambda: enabled.sql(
            f"INSERT INTO {name} REPLACE WHERE id = 1 SELECT 1L AS id, 1L AS p"
        ),
        "append": lambda: rows.writeTo(name).append(),
        "overwrite": lambda: rows.writeTo(name).overwrite(rows.id == 0),
        "partitions": lambda: rows.writeTo(name).overwritePartitions(),
        "insertInto": lambda: rows.write.insertInto(name),
        "saveAsTable": lambda: rows.write.format("delta").mode("append").saveAsTable(name),
        "TRUNCATE": lambda: enabled.sql(f"TRUNCATE TABLE {name}"),
    }
    try:
        for change in changing.values():
            with pytest.raises(UsageError) as caught:
                change()
            assert caught.value.kind == "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"
        for change in ("DELETE FROM older WHERE id = 1", "INSERT INTO older VALUES (9, 9)"):
            with pytest.raises(PySparkException):
                enabled.sql(change)
        for change in (
            lambda: enabled.sql(f"OPTIMIZE {name}"),
            lambda: enabled.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')"),
            lambda: DeltaTable.forName(enabled, name).delete("id = 1"),
        ):
            with pytest.raises(TableNotFoundError):
                change()
        assert ids(read(enabled, path)) == [0, 1, 2, 3, 4, 5]
        assert log_of(path).snapshot().version == 1
    finally:
        enabled.catalog.dropTempView("older")


@pytest.mark.again
def test_frames_of_a_partition_follow_the_table(enabled, path, plane):
    below = f"{path}/p=1"
    loaded = enabled.read.format("delta").load(below)
    named = enabled.sql(f"SELECT * FROM delta.`{below}`")
    enabled.sql(f"CREATE TEMPORARY VIEW of_odd AS SELECT * FROM delta.`{below}`")
    fixed = enabled.read.format("delta").load(f"{path}/p=1@v0")
    try:
        frames = [loaded, named, enabled.table("of_odd"), loaded.where("id > 1")]
        assert [ids(frame) for frame in frames] == [[1, 3, 5], [1, 3, 5], [1, 3, 5], [3, 5]]
        DeltaTable.forPath(enabled, path).delete("id = 3")
        write(enabled.sql("SELECT 7L AS id, 1L AS p"), path, mode="append")
        assert [ids(frame) for frame in frames] == [[1, 5, 7], [1, 5, 7], [1, 5, 7], [5, 7]]
        with pytest.raises(UsageError) as caught:
            enabled.sql("DELETE FROM of_odd")
        assert caught.value.kind == "DELTA_UNSUPPORTED_SOURCE"
        with pytest.raises(TableNotFoundError) as caught:
            enabled.sql(f"TRUNCATE TABLE delta.`{below}`")
        assert caught.value.kind == "DELTA_TABLE_NOT_FOUND"
        DeltaTable.forPath(enabled, path).delete("p = 1")
        assert [ids(frame) for frame in frames] == [[], [], [], []]
        assert ids(fixed) == [1]
    finally:
        enabled.catalog.dropTempView("of_odd")


_NAMESAKES = """
SELECT 1 AS id, 1 AS x, 1 AS a,
       named_struct('s', named_struct('x', 1), 'x', 1, 'a', 1) AS s,
       named_struct('s', 1) AS t
"""
_MATCHED = "USING (SELECT 1 AS k) AS o ON true WHEN MATCHED THEN UPDATE SET"
_ASSIGNED = {
    "UPDATE {t} AS s SET s.s.x = 2": ("s.x", 2),
    "UPDATE {t} AS s SET s.s.s.x = 3": ("s.s.x", 3),
    "UPDATE {t} AS s SET s.s.a = 4, s.a = s.a + 0": ("s.a", 4),
    "UPDATE {t} AS s SET s.x = 5": ("x", 5),
    "UPDATE {t} AS t SET t.t.s = 6": ("t.s", 6),
    "UPDATE {t} AS t SET t.s.x = t.t.s + 1": ("s.x", 7),
    f"MERGE INTO {{t}} AS s {_MATCHED} s.s.x = s.s.x + 1": ("s.x", 8),
    f"MERGE INTO {{t}} AS s {_MATCHED} s.s.a = 9, s.a = s.a": ("s.a", 9),
    f"MERGE INTO {{t}} AS t {_MATCHED} t.s.x = 10, t.x = 5": ("s.x", 10),
    f"MERGE INTO {{t}} AS id {_MATCHED} t.s = id.t.s + 5": ("t.s", 11),
}


@pytest.mark.again
def test_a_name_means_the_column_that_spark_takes_it_for(enabled, table_path, log_of, plane):
    """A struct, the table's alias and a field of the struct have one name, in each combination."""
    write(enabled.sql(_NAMESAKES), table_path)
    (row,) = log_of(table_path).to_arrow().to_pylist()
    for statement, (path, value) in _ASSIGNED.items():
        enabled.sql(statement.format(t=f"delta.`{table_path}`"))
        *above, last = path.split(".")
        parent = row
        for name in above:
            parent = parent[name]
        parent[last] = value
        assert log_of(table_path).to_arrow().to_pylist() == [row], statement


@pytest.mark.again
def test_all_columns_of_a_source_are_taken_by_their_very_names(enabled, conf, table_path, plane):
    """Where a session tells `id` from `ID`, a source may have both, in either order."""
    conf("spark.sql.caseSensitive", "true")
    write(enabled.sql("SELECT 1 AS id, 'old' AS v"), table_path)
    for first in ("'new' AS v, 'wrong' AS V", "'wrong' AS V, 'new' AS v"):
        source = enabled.sql(f"SELECT explode(array(1, 2)) AS id, {first}")
        source.createOrReplaceTempView("both")
        enabled.sql(
            f"MERGE INTO delta.`{table_path}` AS t USING both AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        rows = read(enabled, table_path).collect()
        assert sorted(map(tuple, rows)) == [(1, "new"), (2, "new")]
    enabled.catalog.dropTempView("both")


@pytest.mark.again
@pytest.mark.parametrize("word", ["DELTA", "Delta"])
def test_the_word_before_a_path_may_have_any_case(enabled, path, word):
    """Spark finds its catalogs by the very case of their names."""
    name = f"{word}.`{path}//`"
    enabled.sql(f"DELETE FROM {name} WHERE id = 1")
    enabled.sql(f"UPDATE {name} SET id = id + 10 WHERE id = 2")
    enabled.sql(f"INSERT INTO {name} VALUES (20, 0)")
    enabled.range(21, 22).selectExpr("id", "0L AS p").writeTo(name).append()
    enabled.sql(
        f"MERGE INTO {name} t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    enabled.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
    assert ids(enabled.sql(f"SELECT * FROM {name}")) == [0, 4, 5, 12, 20, 21]
    assert ids(enabled.table(name)) == [0, 4, 5, 12, 20, 21]
    other = f"{word}.`{path}_made`"
    enabled.sql(f"CREATE TABLE {other} (id BIGINT) USING delta")
    enabled.sql(f"CREATE OR REPLACE TABLE {other} USING delta AS SELECT 1L AS id")
    assert ids(read(enabled, f"{path}_made")) == [1]
    with pytest.raises(UsageError) as caught:
        enabled.sql(f"DELETE FROM {word}.`{path}@v0`")
    assert caught.value.kind == "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"
