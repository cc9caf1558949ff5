"""A table of the catalog is known by its name in its own commands, and by no other table's."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from names_of_tables import Layout, Use, failures
from optimist.spark import DeltaTable

NAMES = ("t", "shop.t", "spark_catalog.shop.t")


@pytest.fixture
def table(enabled, database):
    """A table whose columns, struct and field are called as the table is, or nearly."""
    enabled.sql("USE shop")
    enabled.sql("CREATE TABLE t (id LONG, t STRUCT<id: LONG, t: LONG>, v LONG) USING delta")
    enabled.sql("INSERT INTO t SELECT id, struct(10 + id, 20 + id), 0L FROM range(4)")
    return DeltaTable.forName(enabled, "t")


def rows(table):
    found = table.toDF().select("id", "t.t.id", "t.t.t", "v").collect()
    return sorted(tuple(row) for row in found)


@pytest.mark.again
def test_conditions_and_values_may_name_the_table(enabled, table, plane):
    for at, name in enumerate(NAMES):
        table.update(f"{name}.id = 1", {f"{name}.v": f"{name}.v + 1"})
        table.update(sf.col(f"{name}.id") == 2, {f"{name}.t.t": sf.col(f"{name}.t.id") + 100})
        table.update(f"{name}.t.id = 13", {"t.t.id": sf.expr(f"{name}.t.id - 0"), "v": "t.v - 1"})
        assert rows(table) == [
            (0, 10, 20, 0), (1, 11, 21, at + 1), (2, 12, 112, 0), (3, 13, 23, -at - 1),
        ]  # fmt: skip
    table.delete("shop.t.id = 0")
    table.delete(sf.col("spark_catalog.shop.t.t.id") == 11)
    table.delete("t.id = 3")
    assert rows(table) == [(2, 12, 112, 0)]
    with pytest.raises(AnalysisException):
        table.delete("other.t.id = 2")
    with table.transaction() as txn:
        txn.update("shop.t.id = 2", {"spark_catalog.shop.t.v": "shop.t.v + 5"})
        assert txn.toDF().select("shop.t.v").collect() == [(5,)]


def test_frames_of_the_table_have_its_name(enabled, table):
    frame = table.toDF()
    for name in NAMES:
        assert frame.select(f"{name}.id").count() == 4
        assert frame.where(f"{name}.t.id = 11").select(frame[f"{name}.v"]).collect() == [(0,)]
    assert table.alias("x").toDF().select("x.t.id").count() == 4
    with pytest.raises(AnalysisException):
        table.alias("x").toDF().select("shop.t.v")
    table.delete(frame["shop.t.id"] == 0)
    assert frame.select("t.id").count() == 3


def test_a_merge_knows_the_table_by_its_name(enabled, table, plane):
    source = enabled.sql("SELECT id, 7L AS v FROM range(2, 6)").alias("u")
    (
        table.merge(source, "shop.t.id = u.id AND t.t.id < 13")
        .whenMatchedUpdate("t.v = 0", {"shop.t.v": "u.v + spark_catalog.shop.t.t.id"})
        .whenNotMatchedInsert("u.id > 4", {"t.id": "u.id", "shop.t.v": "u.v"})
        .whenNotMatchedBySourceUpdate("shop.t.id = 0", {"t.t.t": "shop.t.t.id"})
        .execute()
    )
    assert rows(table)[0] == (0, 10, 10, 0)
    assert rows(table)[2:] == [(2, 12, 22, 19), (3, 13, 23, 0), (5, None, None, 7)]


@pytest.fixture
def namesake(enabled, table):
    """A table of the same name in another database."""
    enabled.sql("CREATE DATABASE mall")
    enabled.sql("CREATE TABLE mall.t AS SELECT id, 9L AS v, 1L AS only FROM range(1, 3)")
    yield enabled.table("mall.t")
    enabled.sql("DROP DATABASE mall CASCADE")


def merged(how, enabled, table, namesake, value, on="shop.t.id = mall.t.id"):
    if how == "SQL":
        text = f"MERGE INTO shop.t USING mall.t ON {on} WHEN MATCHED THEN UPDATE SET v = {value}"
        enabled.sql(text)
    elif how == "mergeInto":
        update = namesake.mergeInto("shop.t", sf.expr(on)).whenMatched()
        update.update({"v": sf.expr(value)}).merge()
    else:
        table.merge(namesake, on).whenMatchedUpdate(set={"v": value}).execute()


@pytest.mark.parametrize("how", ["SQL", "mergeInto", "builder"])
@pytest.mark.sample(3)
def test_two_tables_of_one_name_are_told_apart_by_their_databases(
    enabled, table, namesake, plane, how
):
    given = (how, enabled, table, namesake)
    for name in ("t.v", "v"):
        with pytest.raises(AnalysisException) as caught:
            merged(*given, name)
        assert caught.value.getCondition() == "AMBIGUOUS_REFERENCE"
    with pytest.raises(AnalysisException):
        merged(*given, "1", on="t.id = mall.t.id")
    merged(*given, "mall.t.v + shop.t.v + t.only + shop.t.t.id")
    assert [row[3] for row in rows(table)] == [0, 21, 22, 0]


LAYOUT = Layout("t", "t", ("spark_catalog", "t", "a"), ("a", "t", "x"), None, False)
USES = [
    Use(("t", "t", "a"), 0, "update", "text"),
    Use(("spark_catalog", "t", "t", "T", "a"), 3, "update", "column"),
    Use(("t", "a"), 1, "merge", "SQL"),
    Use(("mall", "t", "a"), 2, "merge", "text"),
    Use(("spark_catalog",), 1, "merge", "column"),
    Use(("t", "t", "spark_catalog"), 0, "delete", "text"),
]


def test_a_name_in_a_command_is_that_of_a_query(enabled, tmp_path):
    """A sample of `exhaustive/test_random_table_names.py`, where names are drawn."""
    assert failures(enabled, tmp_path, LAYOUT, USES) == []
