"""What DESCRIBE EXTENDED and the catalog's list of columns say of a table."""

from __future__ import annotations


def test_a_clustered_table_is_described_as_by_delta(enabled, database, tmp_path):
    enabled.sql(
        f"CREATE TABLE {database}.c (a INT NOT NULL, b STRUCT<c: INT>) USING delta "
        f"CLUSTER BY (a, b.c) LOCATION '{tmp_path}/c'"
    )
    rows = enabled.sql(f"DESCRIBE EXTENDED {database}.c").collect()
    told = {row.col_name: row.data_type for row in rows}
    assert told["Location"] == f"file:{tmp_path}/c"
    assert 'clusteringColumns=[["a"],["b","c"]]' in told["Table Properties"]
    by_path = enabled.sql(f"DESCRIBE EXTENDED delta.`{tmp_path}/c`").collect()
    assert {row.col_name: row.data_type for row in by_path}["Location"] == f"{tmp_path}/c"
    nullable = {column.name: column.nullable for column in enabled.catalog.listColumns("shop.c")}
    assert nullable == {"a": False, "b": True}
