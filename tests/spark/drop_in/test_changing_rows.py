"""DELETE, UPDATE and MERGE INTO in SQL do what `DeltaTable` does, on odd data and odd names."""

from __future__ import annotations

import shutil
from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from optimist.core.errors import UsageError
from optimist.spark import DeltaTable, read, write

_ROWS = """
SELECT id, CAST(id % 3 AS INT) AS `Part.Of`,
       CAST(concat(id, '12345678901234567890.12345678') AS DECIMAL(38, 8)) AS Amount,
       IF(id = 4, NULL, concat('n', id)) AS `Ünïcode`,
       IF(id = 5, double('NaN'), id / 2) AS d,
       IF(id = 6, NULL, named_struct('Inner.x', id, 'list', array(id, NULL))) AS s
FROM range(12)
"""


@pytest.fixture(scope="module")
def original(enabled, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("original") / "table")
    write(enabled.sql(_ROWS).coalesce(2), path, partitionBy="Part.Of")
    return path


@pytest.fixture
def by_sql(original, tmp_path):
    return shutil.copytree(original, str(tmp_path / "by sql"))


@pytest.fixture
def by_method(enabled, original, tmp_path):
    return DeltaTable.forPath(enabled, shutil.copytree(original, str(tmp_path / "method")))


def _rows(frame):
    return sorted(map(repr, frame.collect()))  # NaN equals itself as text


_SOURCE = "SELECT id + 9 AS id, 'new' AS `Ünïcode`, CAST(7 AS INT) AS `Part.Of` FROM range(6)"


def _source(table):
    return table._spark.sql(_SOURCE).alias("s")


_ALIKE = {
    "DELETE FROM {t} WHERE id = 3": lambda t: t.delete("id = 3"),
    "delete from {t} AS x WHERE x.`part.of` = 1 AND x.D > 2": lambda t: t.delete(
        "`Part.Of` = 1 AND d > 2"
    ),
    "DELETE FROM {t} WHERE s.`inner.X` IS NULL OR isnan(d)": lambda t: t.delete(
        "s.`Inner.x` IS NULL OR isnan(d)"
    ),
    "DELETE FROM {t}": lambda t: t.delete(),
    "UPDATE {t} SET amount = amount + 1, `ünïCODE` = DEFAULT WHERE `Part.Of` = 2": lambda t: (
        t.update("`Part.Of` = 2", {"Amount": "Amount + 1", "`Ünïcode`": "DEFAULT"})
    ),
    "UPDATE {t} AS x SET x.s.`Inner.x` = x.id * 10, d = 1 WHERE x.s IS NOT NULL": lambda t: (
        t.update("s IS NOT NULL", {"s.`Inner.x`": "id * 10", "d": "1"})
    ),
    "UPDATE {t} SET id = id + 1": lambda t: t.update(set={"id": sf.col("id") + 1}),
    "UPDATE {t} SET `Part.Of` = if(exists(s.list, x -> x > id), 8, 9)": lambda t: t.update(
        set={"`Part.Of`": "if(exists(s.list, x -> x > id), 8, 9)"}
    ),
    f"""MERGE INTO {{t}} AS t USING ({_SOURCE}) AS s ON t.ID = s.id
        WHEN MATCHED AND s.id = 9 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.`Ünïcode` = s.`ünïcode`, s.`Inner.x` = t.s.`Inner.x` + s.id
        WHEN NOT MATCHED AND s.id > 13 THEN INSERT (ID, `Ünïcode`, d) VALUES (s.id, 'in', DEFAULT)
        WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN UPDATE SET d = double('NaN')
        WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE""": lambda t: (
        t.alias("t")
        .merge(_source(t), "t.id = s.id")
        .whenMatchedDelete("s.id = 9")
        .whenMatchedUpdate(set={"`Ünïcode`": "s.`Ünïcode`", "s.`Inner.x`": "t.s.`Inner.x` + s.id"})
        .whenNotMatchedInsert("s.id > 13", {"id": "s.id", "`Ünïcode`": "'in'", "d": "DEFAULT"})
        .whenNotMatchedBySourceUpdate("t.id = 0", {"d": "double('NaN')"})
        .whenNotMatchedBySourceDelete("t.id = 1")
        .execute()
    ),
    f"""WITH s AS ({_SOURCE})
        MERGE WITH SCHEMA EVOLUTION INTO {{t}} t USING (SELECT *, id AS more FROM s) s
        ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""": lambda t: (
        t.alias("t")
        .merge(t._spark.sql(_SOURCE).withColumn("more", sf.col("id")).alias("s"), "t.id = s.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .withSchemaEvolution()
        .execute()
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("statement", _ALIKE)
def test_a_statement_does_what_the_method_does(enabled, by_sql, by_method, statement):
    made = enabled.sql(statement.format(t=f"delta.`{by_sql}`")).collect()
    _ALIKE[statement](by_method)
    theirs, ours = by_method.toDF(), read(enabled, by_sql)
    assert ours.schema == theirs.schema
    assert _rows(ours) == _rows(theirs)
    told, wanted = (
        DeltaTable.forPath(enabled, path).history(1).first() for path in (by_sql, by_method._path)
    )
    assert told.operation == wanted.operation
    times = {"executionTimeMs", "scanTimeMs", "rewriteTimeMs", "materializeSourceTimeMs"}
    assert {
        k: v for k, v in told.operationMetrics.items() if k not in times and "Bytes" not in k
    } == {k: v for k, v in wanted.operationMetrics.items() if k not in times and "Bytes" not in k}
    assert made[0].num_affected_rows > 0


def test_parameters_variables_and_what_is_said_of_the_rows(enabled, by_sql):
    table = f"delta.`{by_sql}`"
    named = enabled.sql(f"DELETE FROM {table} WHERE id = :id", args={"id": 3})
    assert named.collect() == [(1,)]
    placed = enabled.sql(f"UPDATE {table} SET Amount = ? WHERE id = ?", args=[Decimal("1.5"), 4])
    assert placed.collect() == [(1,)]
    merged = enabled.sql(
        f"MERGE INTO {table} t USING (SELECT explode(:ids) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        args={"ids": sf.array(sf.lit(4), sf.lit(77))},
    )
    assert [tuple(row) for row in merged.collect()] == [(2, 0, 1, 1)]
    assert merged.columns == [
        "num_affected_rows",
        "num_updated_rows",
        "num_deleted_rows",
        "num_inserted_rows",
    ]
    enabled.sql("DECLARE OR REPLACE VARIABLE chosen INT DEFAULT 77")
    assert enabled.sql(f"DELETE FROM {table} WHERE id = chosen").collect() == [(1,)]
    enabled.sql("DROP TEMPORARY VARIABLE chosen")
    assert {row.id for row in read(enabled, by_sql).collect()} == {*range(12)} - {3, 4}


def test_between_names_its_value_twice(enabled, by_sql):
    table = f"delta.`{by_sql}`"
    assert enabled.sql(f"DELETE FROM {table} WHERE id + 1 BETWEEN 2 AND 4").collect() == [(3,)]
    value = "IF(id BETWEEN 4 AND 5, 100, id)"
    where = "id NOT BETWEEN 8 AND 11 AND id BETWEEN 4 AND 20"
    assert enabled.sql(f"UPDATE {table} SET id = {value} WHERE {where}").collect() == [(4,)]
    left = [0, 6, 7, 8, 9, 10, 11, 100, 100]
    assert sorted(row.id for row in read(enabled, by_sql).collect()) == left


def test_names_with_all_their_parts_are_told_apart_from_those_of_the_source(enabled, database):
    enabled.sql(f"CREATE TABLE {database}.t (id INT, s STRUCT<x: INT>) USING delta")
    enabled.sql(f"CREATE TABLE {database}.u USING delta AS SELECT 1 AS id, 5 AS x")
    enabled.sql(f"INSERT INTO {database}.t VALUES (1, named_struct('y', 1)), (2, NULL)")
    full = f"spark_catalog.{database}"
    enabled.sql(
        f"MERGE INTO {database}.t USING {database}.u ON {full}.t.id = {database}.u.id "
        f"WHEN MATCHED THEN UPDATE SET {database}.t.s.x = {database}.t.s.x + u.x"
    )
    assert set(enabled.table(f"{database}.t").collect()) == {(1, (6,)), (2, None)}
    # A table may be the source of its own MERGE, and then has its name twice.
    enabled.sql(
        f"MERGE INTO {database}.t USING {database}.t AS other ON {database}.t.id = other.id + 1 "
        "WHEN MATCHED THEN DELETE"
    )
    assert enabled.table(f"{database}.t").collect() == [(1, (6,))]


@pytest.mark.again
def test_an_alias_may_be_the_name_of_a_struct_too(enabled, table_path):
    rows = enabled.sql("SELECT 1 AS id, named_struct('id', 2) AS t")
    rows.write.format("delta").save(table_path)
    enabled.sql(
        f"MERGE INTO delta.`{table_path}` t USING (SELECT 1 AS key) s ON t.id = s.key "
        "WHEN MATCHED THEN UPDATE SET t.t.id = 5"
    )
    assert read(enabled, table_path).collect() == [(1, (5,))]


def test_explain_changes_nothing_and_a_statement_runs_once(enabled, by_sql):
    plan = enabled.sql(f"EXPLAIN DELETE FROM delta.`{by_sql}` WHERE id = 3").first()[0]
    assert "DELETE FROM" in plan
    frame = enabled.sql(f"DELETE FROM delta.`{by_sql}` WHERE id = 3")
    assert frame.collect() == frame.collect()
    assert DeltaTable.forPath(enabled, by_sql).history().count() == 2


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (
            "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id AND t.id IN (SELECT 1) "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "DELTA_UNSUPPORTED_SUBQUERY",
        ),
        ("DELETE FROM {t} WHERE rand() < 0.5", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("UPDATE {t} SET id = 1, ID = 2", "DELTA_CONFLICT_SET_COLUMN"),
        ("DELETE FROM odd_view WHERE id = 1", "DELTA_UNSUPPORTED_SOURCE"),
        ("UPDATE odd_view SET id = 1", "DELTA_UNSUPPORTED_SOURCE"),
        (
            "MERGE INTO odd_view v USING (SELECT 1 AS id) s ON v.id = s.id "
            "WHEN MATCHED THEN DELETE",
            "DELTA_UNSUPPORTED_SOURCE",
        ),
    ],
)
def test_what_delta_refuses_is_refused_and_nothing_is_written(enabled, by_sql, statement, kind):
    rows = f"SELECT * FROM delta.`{by_sql}` WHERE id >= 0"
    enabled.sql(f"CREATE OR REPLACE TEMP VIEW odd_view AS {rows}")
    with pytest.raises(UsageError) as caught:
        enabled.sql(statement.format(t=f"delta.`{by_sql}`"))
    assert caught.value.kind == kind
    assert DeltaTable.forPath(enabled, by_sql).history().count() == 1
    enabled.catalog.dropTempView("odd_view")


@pytest.mark.parametrize(
    ("statement", "condition", "fragment"),
    [
        ("DELETE FROM {t} WHERE nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
        ("UPDATE {t} SET nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope = 1"),
        ("UPDATE {t} SET s.nope = 1", "FIELD_NOT_FOUND", "s.nope = 1"),
        ("DELETE FROM missing_table", "TABLE_OR_VIEW_NOT_FOUND", "missing_table"),
        (
            "MERGE INTO {t} t USING (SELECT 1 AS id) q ON t.id = q.nope WHEN MATCHED THEN DELETE",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "q.nope",
        ),
    ],
)
def test_what_spark_refuses_names_the_fragment(enabled, by_sql, statement, condition, fragment):
    with pytest.raises(AnalysisException) as caught:
        enabled.sql(statement.format(t=f"delta.`{by_sql}`"))
    assert caught.value.getCondition() == condition
    assert caught.value.getQueryContext()[0].fragment() == fragment


def test_tables_that_are_not_ours_stay_with_spark(enabled, database):
    enabled.sql(f"CREATE TABLE {database}.plain (id INT) USING parquet")
    with pytest.raises(AnalysisException) as caught:
        enabled.sql(f"DELETE FROM {database}.plain WHERE id = 1")
    assert caught.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"
    enabled.sql(f"INSERT INTO {database}.plain VALUES (1)")
    assert enabled.table(f"{database}.plain").count() == 1


_INTO = "MERGE INTO {t} AS t USING (SELECT 1L AS k) AS s ON t.id = s.k WHEN MATCHED THEN "


@pytest.mark.parametrize(
    ("statement", "is_refused"),
    [
        ("UPDATE {t} AS t SET d = (SELECT max(d) FROM {t} AS u WHERE u.id < t.id)", True),
        ("UPDATE {t} AS t SET d = IF(EXISTS (SELECT 1 FROM {t} u WHERE u.id = t.id), 1, 2)", True),
        (f"{_INTO} UPDATE SET d = (SELECT max(d) FROM {{t}} AS u WHERE u.id < t.id)", True),
        ("UPDATE {t} AS t SET d = (SELECT max(id) FROM {t} AS u)", False),
    ],
)
def test_a_new_value_s_subquery_names_no_column_of_the_table(
    enabled, by_sql, statement, is_refused
):
    before = read(enabled, by_sql).where("d = 11").count()
    text = statement.format(t=f"delta.`{by_sql}`")
    if not is_refused:
        enabled.sql(text)
        assert read(enabled, by_sql).where("d = 11").count() == 12
        return
    with pytest.raises(UsageError) as caught:
        enabled.sql(text)
    assert caught.value.kind == "DELTA_UNSUPPORTED_SUBQUERY"
    assert read(enabled, by_sql).where("d = 11").count() == before
