"""CLONE as SQL and as methods of `DeltaTable`, to paths and to names, in a classic session."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimist.core.errors import OptimistError, UsageError
from optimist.core.statements.result_columns import CLONED
from optimist.spark import DeltaTable, write
from optimist.spark.rows.local_rows import spark_columns


@pytest.fixture
def table(delta, table_path):
    """Version 0 has the rows 0 to 3, version 1 the row 9 as well."""
    write(delta.range(4), table_path)
    write(delta.range(9, 10), table_path, mode="append")
    return f"delta.`{table_path}`"


@pytest.fixture
def place(tmp_path):
    return f"delta.`{tmp_path}/clone`"


def ids(delta, table: str) -> list[int]:
    return sorted(row.id for row in delta.sql(f"SELECT id FROM {table}").collect())


@pytest.mark.again
@pytest.mark.parametrize("how", ["SHALLOW", "DEEP"])
def test_a_path_is_cloned_to_a_path_and_both_go_their_own_ways(delta, table, place, how):
    told = delta.sql(f"CREATE TABLE {place} {how} CLONE {table}")
    assert told.schema == spark_columns(CLONED)
    row = told.collect()[0]
    files = delta.sql(f"DESCRIBE DETAIL {table}").collect()[0].numFiles
    assert row.source_num_of_files == files
    assert row.num_copied_files == (files if how == "DEEP" else 0)
    delta.sql(f"DELETE FROM {place} WHERE id = 2")
    delta.sql(f"UPDATE {place} SET id = 70 WHERE id = 3")
    delta.sql(f"INSERT INTO {place} VALUES (100)")
    delta.sql(f"DELETE FROM {table} WHERE id = 0")
    assert ids(delta, place) == [0, 1, 9, 70, 100]
    assert ids(delta, table) == [1, 2, 3, 9]
    assert delta.sql(f"CREATE TABLE IF NOT EXISTS {place} {how} CLONE {table}").collect() == []
    with pytest.raises(UsageError) as caught:
        delta.sql(f"CREATE OR REPLACE TABLE {place} {how} CLONE {table}")
    assert caught.value.kind == "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"


def test_executors_copy_where_the_bytes_are_many(delta, table, table_path, place, monkeypatch):
    monkeypatch.setattr("optimist.spark.commands.clone_copies._FILES_PER_TASK", 1)
    delta.conf.set("spark.optimist.spark.driverShortcut.maxBytes", "0")
    try:
        delta.sql(f"CREATE TABLE {place} DEEP CLONE {table}")
        assert ids(delta, place) == [0, 1, 2, 3, 9]
        for file in Path(table_path).rglob("*.parquet"):
            file.unlink()
        assert ids(delta, place) == [0, 1, 2, 3, 9]
        with pytest.raises(OptimistError) as caught:
            delta.sql(f"CREATE TABLE {place[:-1]}-again` DEEP CLONE {table}")
        assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    finally:
        delta.conf.unset("spark.optimist.spark.driverShortcut.maxBytes")


@pytest.mark.again
def test_an_old_version_a_time_and_other_properties(delta, table, table_path, tmp_path):
    at = DeltaTable.forPath(delta, table_path).history().orderBy("version").collect()[0].timestamp
    one, two = (f"delta.`{tmp_path}/{name}`" for name in ("one", "two"))
    delta.sql(
        f"CREATE TABLE {one} SHALLOW CLONE {table} VERSION AS OF 0 "
        "TBLPROPERTIES ('a' = 'b', delta.appendOnly = true)"
    )
    delta.sql(f"CREATE TABLE {two} SHALLOW CLONE {table} TIMESTAMP AS OF '{at}'")
    assert ids(delta, one) == ids(delta, two) == [0, 1, 2, 3]
    properties = delta.sql(f"DESCRIBE DETAIL {one}").collect()[0].properties
    origin = {
        "optimist.clone.source": f"file:{table_path}",
        "optimist.clone.sourceVersion": "0",
    }
    assert properties == {"a": "b", "delta.appendOnly": "true", **origin}


def test_names_are_cloned_and_clones_get_names(delta, table, tmp_path):
    names = ("cloned_source", "cloned_here", "cloned_there")
    for name in names:
        delta.sql(f"DROP TABLE IF EXISTS {name}")
    try:
        delta.sql(f"CREATE TABLE cloned_source DEEP CLONE {table}")
        told = delta.sql("DESCRIBE EXTENDED cloned_source").collect()
        assert {row.data_type for row in told if row.col_name == "Type"} == {"MANAGED"}
        delta.sql("CREATE TABLE default.cloned_here SHALLOW CLONE cloned_source")
        delta.sql(
            "CREATE TABLE spark_catalog.default.cloned_there SHALLOW CLONE cloned_source "
            f"LOCATION '{tmp_path}/there'"
        )
        for name in names:
            delta.sql(f"DELETE FROM {name} WHERE id = 1")
            assert ids(delta, name) == [0, 2, 3, 9]
        told = delta.sql("DESCRIBE EXTENDED cloned_there").collect()
        assert {row.data_type for row in told if row.col_name == "Type"} == {"EXTERNAL"}
        assert ids(delta, f"delta.`{tmp_path}/there`") == [0, 2, 3, 9]
        with pytest.raises(UsageError) as caught:
            delta.sql(f"CREATE TABLE cloned_here SHALLOW CLONE {table}")
        assert caught.value.kind == "DELTA_TABLE_ALREADY_EXISTS"
        assert delta.sql(f"CREATE TABLE IF NOT EXISTS cloned_here DEEP CLONE {table}").count() == 0
        delta.sql("TRUNCATE TABLE cloned_here")
        delta.sql(f"REPLACE TABLE cloned_here DEEP CLONE {table}")
        assert ids(delta, "cloned_here") == [0, 1, 2, 3, 9]
    finally:
        for name in names:
            delta.sql(f"DROP TABLE IF EXISTS {name}")


def test_the_methods_clone_as_the_statement_does(delta, table, table_path, tmp_path):
    source = DeltaTable.forPath(delta, table_path)
    at = source.history().orderBy("version").collect()[0].timestamp
    deep = source.clone(f"{tmp_path}/deep")
    shallow = source.clone(f"{tmp_path}/shallow", isShallow=True, properties={"x": "y"})
    first = source.cloneAtVersion(0, f"{tmp_path}/first", True)
    timed = source.cloneAtTimestamp(str(at), f"delta.`{tmp_path}/timed`", True)
    assert [made.toDF().count() for made in (deep, shallow, first, timed)] == [5, 5, 4, 4]
    told = shallow.detail().collect()[0].properties
    assert told.pop("optimist.clone.source") == f"file:{table_path}"
    assert set(told) == {"x", "optimist.clone.sourceVersion"}
    first.delete()
    again = source.clone(f"{tmp_path}/first", isShallow=True, replace=True)
    assert sorted(row.id for row in again.toDF().collect()) == [0, 1, 2, 3, 9]
    delta.sql("DROP TABLE IF EXISTS cloned_by_method")
    try:
        named = source.cloneAtVersion(0, "cloned_by_method", properties={"it's": "a 'b'"})
        assert named.toDF().count() == 4
        assert named.detail().collect()[0].properties == {"it's": "a 'b'"}
    finally:
        delta.sql("DROP TABLE IF EXISTS cloned_by_method")


def test_what_can_not_be_cloned_is_refused_and_leaves_nothing(delta, table, table_path, tmp_path):
    source = DeltaTable.forPath(delta, table_path)
    place = f"delta.`{tmp_path}/clone`"
    delta.range(3).createOrReplaceTempView("no_table")
    cases = {
        f"CREATE TABLE {place} SHALLOW CLONE no_table": "DELTA_CLONE_UNSUPPORTED_SOURCE",
        f"CREATE TABLE {place} SHALLOW CLONE delta.`/nothing`": "DELTA_MISSING_DELTA_TABLE",
        f"CREATE TABLE {place} SHALLOW CLONE {table} LOCATION '/x'": "DELTA_CLONE_AMBIGUOUS_TARGET",
        f"CREATE TABLE {place} SHALLOW CLONE {table} VERSION AS OF 7": "DELTA_VERSION_NOT_FOUND",
        f"CREATE TABLE {place} SHALLOW CLONE {table} TIMESTAMP AS OF 'x'": (
            "DELTA_TIMESTAMP_INVALID"
        ),
        f"REPLACE TABLE {place} SHALLOW CLONE {table}": "DELTA_CANNOT_REPLACE_MISSING_TABLE",
        f"CREATE OR REPLACE TABLE {table} SHALLOW CLONE {table}": (
            "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE"
        ),
        f"CREATE TABLE no_table_at_all SHALLOW CLONE {table} VERSION AS OF 7": (
            "DELTA_VERSION_NOT_FOUND"
        ),
    }
    found = {}
    for text in cases:
        with pytest.raises(OptimistError) as caught:
            delta.sql(text)
        found[text] = caught.value.kind
    assert found == cases
    with pytest.raises(OptimistError) as caught:
        source.clone("a/b")
    assert caught.value.kind == "DELTA_INVALID_CLONE_PATH"
    assert not (tmp_path / "clone").exists()
    assert not delta.catalog.tableExists("no_table_at_all")
    delta.catalog.dropTempView("no_table")
