"""ALTER TABLE over names and paths, as Spark's parser reads it: what the log says afterwards."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from optimist.core.errors import SchemaError, UsageError
from optimist.spark import DeltaTable, read, write


@pytest.fixture
def altered(enabled, numbers, table_path, log_of):
    """Run ALTER TABLE over a table with column mapping; answer its metadata afterwards."""
    write(numbers, table_path, **{"delta.columnMapping.mode": "name"})

    def run(rest):
        enabled.sql(f"ALTER TABLE delta.`{table_path}` {rest}")
        return log_of(table_path).snapshot().metadata

    return run


def test_properties_are_set_and_unset(altered):
    assert altered("SET TBLPROPERTIES (a = '1', 'delta.appendOnly' = 'true')").configuration[
        "delta.appendOnly"
    ]
    assert "a" not in altered("UNSET TBLPROPERTIES (a)").configuration


def test_columns_are_added_renamed_changed_and_dropped(enabled, altered, table_path):
    altered("ADD COLUMNS (x INT COMMENT 'an x' FIRST, `a b` STRUCT<c: STRING> AFTER id)")
    altered("RENAME COLUMN name TO title")
    altered("ALTER COLUMN title COMMENT 'what it is called'")
    altered("ALTER COLUMN title AFTER x")
    altered("ADD COLUMN `a b`.d DECIMAL(38, 10)")
    altered("DROP COLUMN p")
    frame = read(enabled, table_path)
    assert frame.columns == ["x", "title", "id", "a b"]
    assert frame.schema["a b"].dataType.simpleString() == "struct<c:string,d:decimal(38,10)>"
    assert frame.schema["title"].metadata["comment"] == "what it is called"
    assert frame.where("x IS NULL AND title = 'n7' AND id = 7").count() == 1
    with pytest.raises(AnalysisException):
        altered("DROP COLUMN nothing")


def test_types_nullability_and_defaults(enabled, altered, table_path):
    altered(
        "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true', "
        "'delta.feature.allowColumnDefaults' = 'supported')"
    )
    altered("ALTER COLUMN p TYPE BIGINT")
    altered("ALTER COLUMN p SET DEFAULT 5")
    altered("ALTER COLUMN p DROP DEFAULT")
    altered("ALTER COLUMN id DROP NOT NULL")
    assert read(enabled, table_path).schema["p"].dataType.simpleString() == "bigint"


def test_the_list_of_columns_is_replaced(enabled, altered, table_path):
    altered("REPLACE COLUMNS (name STRING COMMENT 'of whom', id BIGINT, p INT, x STRUCT<a: DATE>)")
    frame = read(enabled, table_path)
    assert frame.columns == ["name", "id", "p", "x"]
    assert frame.where("name = 'n7' AND id = 7 AND x IS NULL").count() == 1
    altered("REPLACE COLUMNS (id BIGINT, x STRUCT<a: DATE>)")
    assert read(enabled, table_path).columns == ["id", "x"]
    with pytest.raises(SchemaError) as caught:
        altered("REPLACE COLUMNS (id BIGINT, y INT)")
    assert caught.value.kind == "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"


def test_clustering_and_what_is_refused(altered):
    altered("CLUSTER BY (id, name)")
    altered("CLUSTER BY NONE")
    with pytest.raises(UsageError, match="SET LOCATION"):
        altered("SET LOCATION '/elsewhere'")
    with pytest.raises((SchemaError, AnalysisException)):
        altered("ALTER COLUMN id TYPE STRING")


@pytest.mark.again
def test_names_are_altered_like_paths(enabled, numbers, table_path, entry, log_of):
    write(numbers, table_path)
    name = entry("flights", table_path)
    enabled.sql(f"ALTER TABLE {name} SET TBLPROPERTIES (a = '1')")
    enabled.sql(f"ALTER TABLE {name} ADD COLUMNS (x INT)")
    enabled.sql(f"COMMENT ON TABLE {name} IS 'all flights'")
    metadata = log_of(table_path).snapshot().metadata
    assert metadata.configuration["a"] == "1"
    assert metadata.description == "all flights"
    assert enabled.table(name).columns == ["id", "p", "name", "x"]
    history = DeltaTable.forName(enabled, name).history(3).collect()
    operations = ["SET TBLPROPERTIES", "ADD COLUMNS", "SET TBLPROPERTIES"]
    assert [row.operation for row in history] == operations
