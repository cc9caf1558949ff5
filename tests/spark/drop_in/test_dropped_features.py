"""DROP FEATURE as SQL and as `DeltaTable.dropFeatureSupport`, by paths and by names."""

from __future__ import annotations

import deltalake
import pytest

from optimist.core.errors import OptimistError, ProtocolError
from optimist.spark import DeltaTable


@pytest.fixture
def table(delta, tmp_path):
    name = f"delta.`{tmp_path}/table`"
    delta.sql(
        f"CREATE TABLE {name} (id BIGINT, p STRING, v INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        "'delta.enableTypeWidening' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    delta.sql(f"INSERT INTO {name} SELECT id, if(id < 50, 'a b', 'c%'), 1 FROM range(100)")
    delta.sql(f"ALTER TABLE {name} ALTER COLUMN v TYPE BIGINT")
    delta.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    delta.sql(f"DELETE FROM {name} WHERE id % 3 = 0")
    return name


def features(delta, table: str) -> list[str]:
    return delta.sql(f"DESCRIBE DETAIL {table}").collect()[0].tableFeatures


@pytest.mark.again
def test_feature_after_feature_goes_and_the_rows_stay(delta, table, tmp_path):
    path = str(tmp_path / "table")
    before = delta.sql(f"SELECT * FROM {table} ORDER BY id").collect()
    assert len(before) == 66
    for feature in ("deletionVectors", "typeWidening", "columnMapping"):
        told = delta.sql(f"ALTER TABLE {table} DROP FEATURE {feature}")
        assert (told.columns, told.collect()) == ([], [])
        assert feature not in features(delta, table)
        assert delta.sql(f"SELECT * FROM {table} ORDER BY id").collect() == before
    assert features(delta, table) == ["appendOnly", "checkpointProtection", "invariants"]
    found = deltalake.DeltaTable(path).to_pyarrow_table().sort_by("id")
    assert found["id"].to_pylist() == [row.id for row in before]
    assert found["p"].to_pylist() == [row.p for row in before]
    delta.sql(f"UPDATE {table} SET w = 2 WHERE id = 1")
    delta.sql(f"INSERT INTO {table} VALUES (200, 'a b', 3)")
    assert delta.sql(f"SELECT sum(w) FROM {table} WHERE p = 'a b'").collect() == [(37,)]
    assert delta.sql(f"SELECT count(*) FROM {table} VERSION AS OF 1").collect() == [(100,)]


def test_the_method_drops_as_the_statement_does(delta, table, tmp_path):
    made = DeltaTable.forPath(delta, str(tmp_path / "table"))
    with pytest.raises(ProtocolError) as caught:
        made.dropFeatureSupport("deletionVectors", True)
    assert caught.value.kind == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    with pytest.raises(ProtocolError) as caught:
        delta.sql(f"ALTER TABLE {table} DROP FEATURE 'deletionVectors' TRUNCATE HISTORY")
    assert caught.value.kind == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    made.dropFeatureSupport("deletionVectors")
    assert "deletionVectors" not in features(delta, table)
    with pytest.raises(OptimistError) as caught:
        made.dropFeatureSupport("deletionVectors")
    assert caught.value.kind == "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"


def test_a_name_of_the_catalog_will_do(delta, tmp_path):
    delta.sql("DROP TABLE IF EXISTS with_ids")
    delta.sql(
        f"CREATE TABLE with_ids (id BIGINT) USING delta LOCATION '{tmp_path}/ids' "
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    try:
        delta.sql("INSERT INTO with_ids SELECT * FROM range(10)")
        delta.sql("ALTER TABLE with_ids DROP FEATURE rowTracking")
        delta.sql("ALTER TABLE with_ids DROP FEATURE domainMetadata")
        assert features(delta, "with_ids") == ["appendOnly", "invariants"]
        assert delta.table("with_ids").count() == 10
    finally:
        delta.sql("DROP TABLE with_ids")
