"""Names in our statements are those of the session's current catalog, as in Spark's own."""

from __future__ import annotations

import pytest

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.spark import DeltaTable

_OTHER = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"


@pytest.fixture
def table(enabled, database, conf):
    """A table in the session's catalog, while another catalog is the current one."""
    conf("spark.sql.catalog.other", _OTHER)
    conf("spark.sql.catalog.other.url", "jdbc:derby:memory:other")
    conf("spark.sql.catalog.other.driver", "org.apache.derby.iapi.jdbc.AutoloadedDriver")
    enabled.sql("CREATE TABLE shop.t (id LONG) USING delta")
    enabled.sql("INSERT INTO shop.t VALUES (1)")
    enabled.sql("INSERT INTO shop.t VALUES (2)")
    enabled.sql("USE other")
    yield "spark_catalog.shop.t"
    enabled.sql("USE spark_catalog")


def versions(enabled, table):
    return enabled.sql(f"DESCRIBE HISTORY {table}").count()


def test_a_name_of_another_catalog_is_none_of_the_session_catalogs(enabled, table):
    for name in ("shop.t", "other.shop.t", "t"):
        for statement in (
            "RESTORE TABLE {} TO VERSION AS OF 1",
            "OPTIMIZE {}",
            "VACUUM {}",
            "DESCRIBE HISTORY {}",
            "REORG TABLE {} APPLY (PURGE)",
            "GENERATE symlink_format_manifest FOR TABLE {}",
            "CONVERT TO DELTA {}",
            "CREATE TABLE {} SHALLOW CLONE spark_catalog.shop.t",
            "CREATE TABLE spark_catalog.shop.u SHALLOW CLONE {}",
            "SELECT * FROM table_changes('{}', 0)",
        ):
            with pytest.raises(UsageError):
                enabled.sql(statement.format(name)).collect()
        with pytest.raises(TableNotFoundError):
            DeltaTable.forName(enabled, name)
        assert not DeltaTable.isDeltaTable(enabled, name)
    assert [row.id for row in enabled.table(table).orderBy("id").collect()] == [1, 2]
    assert versions(enabled, table) == 3


def test_a_whole_name_is_found_whatever_catalog_is_the_current_one(enabled, table):
    enabled.sql(f"OPTIMIZE {table}")
    enabled.sql(f"CREATE TABLE spark_catalog.shop.u SHALLOW CLONE {table}")
    DeltaTable.forName(enabled, table).delete("id = 1")
    left = enabled.table("spark_catalog.shop.u").collect()
    assert sorted(row.id for row in left) == [1, 2]
    before = versions(enabled, table)
    for current, name in {
        "delta": "shop.t",
        "delta.shop": "t",
        "spark_catalog.shop": "t",
        "spark_catalog": "shop.t",
    }.items():
        enabled.sql(f"USE {current}")
        assert versions(enabled, name) == before, current
        with pytest.raises(UsageError):
            enabled.sql("OPTIMIZE other.t")
