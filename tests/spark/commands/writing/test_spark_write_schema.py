"""Writing DataFrames whose schema is not the table's: refused, fitted, merged or taken over."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.core.protocol.actions import DomainMetadata, Protocol
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read, write
from read_back import data_directories, ids


def test_a_new_column_is_refused_by_name(numbers, table):
    with pytest.raises(SchemaError, match="extra") as caught:
        write(numbers.withColumn("extra", sf.lit(1)), table, mode="append")
    assert caught.value.kind == "DELTA_METADATA_MISMATCH"
    assert caught.value.fields["columns"] == ("extra",)


def test_a_column_of_another_type_is_refused_by_name(numbers, table):
    with pytest.raises(SchemaError, match="name") as caught:
        write(numbers.withColumn("name", sf.lit(1.5)), table, mode="append")
    assert caught.value.kind == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert caught.value.fields["column"] == "name"


def test_a_refused_write_leaves_nothing_behind(numbers, table, log_of):
    before = data_directories(table)
    with pytest.raises(SchemaError):
        write(numbers.withColumn("extra", sf.lit(1)), table, mode="append")
    assert data_directories(table) == before
    assert log_of(table).snapshot().version == 0


def test_a_column_type_that_no_table_holds_is_refused_by_name(spark, table_path):
    frame = spark.sql("SELECT 1 AS id, INTERVAL '1' DAY AS pause")
    with pytest.raises(SchemaError, match="pause"):
        write(frame, table_path)
    assert not Path(table_path).exists()


@pytest.mark.usefixtures("plane")
def test_merge_schema_adds_the_column_at_the_end(spark, numbers, table):
    write(
        numbers.where("id = 1").withColumn("x", sf.lit("new")),
        table,
        mode="append",
        mergeSchema=True,
    )
    rows = read(spark, table).where("id = 1").select("id", "p", "name", "x").collect()
    assert sorted(rows, key=repr) == sorted([(1, 1, "n1", None), (1, 1, "n1", "new")], key=repr)
    assert read(spark, table).columns == ["id", "p", "name", "x"]


def test_the_conf_for_merging_schemas_counts_and_the_option_wins(numbers, table, conf):
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    wider = numbers.withColumn("x", sf.lit(1))
    with pytest.raises(SchemaError):
        write(wider, table, mode="append", mergeSchema=False)
    assert write(wider, table, mode="append").version == 1


def test_overwrite_schema_replaces_columns_and_partitioning(spark, numbers, table):
    frame = numbers.selectExpr("CAST(id AS STRING) AS id", "p AS q")
    write(frame, table, mode="overwrite", overwriteSchema=True, partitionBy="q")
    assert dict(read(spark, table).dtypes) == {"id": "string", "q": "int"}
    assert DeltaTable.forPath(spark, table).detail().first().partitionColumns == ["q"]
    assert read(spark, table, versionAsOf=0).columns == ["id", "p", "name"]


@pytest.mark.again
def test_columns_are_matched_in_any_case_and_order(spark, numbers, table):
    write(numbers.selectExpr("name AS NAME", "p AS P", "id + 100 AS Id"), table, mode="append")
    assert read(spark, table).columns == ["id", "p", "name"]
    assert ids(read(spark, table).where("p = 3")) == [3, 7, 11, 15, 19, 103, 107, 111, 115, 119]


@pytest.mark.again
def test_missing_columns_become_null(spark, numbers, table):
    write(numbers.selectExpr("id + 100 AS id", "p").limit(1), table, mode="append")
    assert read(spark, table).where("id >= 100 AND name IS NULL").count() == 1


def test_narrower_integers_are_widened_to_the_column(spark, numbers, table):
    write(
        numbers.limit(1).selectExpr("id", "CAST(p AS TINYINT) AS p", "name"), table, mode="append"
    )
    assert dict(read(spark, table).dtypes)["p"] == "int"


def test_a_null_literal_fits_every_column(spark, numbers, table):
    write(numbers.limit(1).withColumn("name", sf.lit(None)), table, mode="append")
    assert read(spark, table).where("name IS NULL").count() == 1


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_fields_of_structs_are_matched_by_name_at_every_depth(spark, table_path):
    first = spark.sql(
        "SELECT 1 AS id, named_struct('a', 1, 'b', named_struct('x', 'u', 'y', 2)) AS s"
    )
    write(first, table_path)
    second = spark.sql(
        "SELECT named_struct('B', named_struct('Y', 20, 'X', 'v'), 'a', 10) AS S, 2 AS id"
    )
    write(second, table_path, mode="append")
    write(spark.sql("SELECT 3 AS id, named_struct('a', 5) AS s"), table_path, mode="append")
    rows = read(spark, table_path).orderBy("id").select("s.a", "s.b.x", "s.b.y").collect()
    assert [tuple(row) for row in rows] == [(1, "u", 2), (10, "v", 20), (5, None, None)]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_structs_inside_arrays_and_maps_are_matched_by_name(spark, table_path):
    write(
        spark.sql(
            "SELECT array(named_struct('a', 1, 'b', 'x')) AS l, "
            "map('k', named_struct('c', 1, 'd', 2)) AS m"
        ),
        table_path,
    )
    write(
        spark.sql(
            "SELECT array(named_struct('b', 'y', 'a', 3)) AS l, "
            "map('k', named_struct('d', 4, 'c', 3)) AS m"
        ),
        table_path,
        mode="append",
    )
    rows = read(spark, table_path).selectExpr("l[0].a", "l[0].b", "m['k'].c", "m['k'].d").collect()
    assert sorted(tuple(row) for row in rows) == [(1, "x", 1, 2), (3, "y", 3, 4)]


def test_another_partitioning_is_refused(numbers, table):
    with pytest.raises(SchemaError) as caught:
        write(numbers, table, mode="append", partitionBy="name")
    assert caught.value.kind == "DELTA_METADATA_MISMATCH"


@pytest.mark.usefixtures("plane")
def test_partitioning_by_every_column_is_refused(spark, table_path):
    with pytest.raises(SchemaError):
        write(spark.range(3), table_path, partitionBy="id")


def test_partitioning_by_a_column_that_does_not_exist_is_refused(numbers, table_path):
    with pytest.raises(SchemaError, match="month"):
        write(numbers, table_path, partitionBy="month")


@pytest.mark.parametrize(
    ("query", "options", "kind"),
    [
        ("SELECT NULL AS a", {}, "DELTA_EMPTY_DATA"),
        ("SELECT 1 AS p, NULL AS a", {"partitionBy": "p"}, "DELTA_NON_PARTITION_COLUMN_ABSENT"),
        (
            "SELECT 1 AS i, named_struct('a', NULL) AS s",
            {},
            "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
        ),
    ],
)
def test_data_that_no_file_can_hold_is_refused_for_what_it_is(
    spark, table_path, query, options, kind
):
    with pytest.raises(SchemaError) as caught:
        write(spark.sql(query), table_path, **options)
    assert caught.value.kind == kind
    assert not list(Path(table_path).rglob("*.parquet"))


def test_a_schema_without_the_clustering_columns_is_refused_before_rows_are_written(
    spark, table_path
):
    write(spark.sql("SELECT 1 AS a, 2 AS b"), table_path)
    clustering = DomainMetadata("delta.clustering", '{"clusteringColumns":[["a"]]}')
    features = ("appendOnly", "clustering", "domainMetadata", "invariants")
    txn = DeltaLog.for_path(table_path).start_transaction()
    txn.commit([Protocol(1, 7, None, features), clustering], Operation("CLUSTER BY"))
    files = sorted(Path(table_path).rglob("*.parquet"))
    never = spark.sql("SELECT raise_error('written') AS b")
    with pytest.raises(SchemaError) as caught:
        write(never, table_path, mode="overwrite", overwriteSchema=True)
    assert caught.value.kind == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    with pytest.raises(SchemaError) as caught:
        write(
            spark.sql("SELECT 1 AS a, raise_error('written') AS b"),
            table_path,
            mode="overwrite",
            overwriteSchema=True,
            partitionBy=["a"],
        )
    assert "PARTITIONED_TABLE" in caught.value.kind
    assert sorted(Path(table_path).rglob("*.parquet")) == files
