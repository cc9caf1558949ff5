"""INSERT and Spark's own writers: what they leave is what `write` leaves."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError, SchemaError, UsageError
from optimist.spark import DeltaTable, enable, read, write
from read_back import ids


def _rows(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.fixture
def table(enabled, database):
    enabled.sql(
        f"CREATE TABLE {database}.t (id BIGINT, p INT, s STRUCT<`x.y`: INT, z: STRING>) "
        "USING delta PARTITIONED BY (p)"
    )
    enabled.sql(
        f"INSERT INTO {database}.t VALUES (1, 1, named_struct('a', 1, 'b', 'u')), (2, 2, NULL)"
    )
    return f"{database}.t"


@pytest.mark.again
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("INSERT INTO {t} VALUES (3, 3, NULL)", {1, 2, 3}),
        ("INSERT INTO {t} (P, ID) VALUES (3, '3')", {1, 2, 3}),
        ("INSERT INTO {t} BY NAME SELECT 3 AS p, 3 AS ID", {1, 2, 3}),
        ("INSERT INTO {t} PARTITION (p = 3) SELECT 3, NULL", {1, 2, 3}),
        ("INSERT OVERWRITE {t} SELECT 3, 3, NULL", {3}),
        ("INSERT OVERWRITE {t} PARTITION (p = 1) SELECT 3, NULL", {2, 3}),
        ("INSERT INTO {t} REPLACE WHERE p = 2 SELECT 3, 2, NULL", {1, 3}),
        (
            "WITH c AS (SELECT id + 2 AS id FROM {t}) INSERT INTO {t} (id) SELECT * FROM c",
            {1, 2, 3, 4},
        ),
        ("INSERT OVERWRITE {t} SELECT id + 2, p, s FROM {t}", {3, 4}),
    ],
)
def test_rows_are_inserted_and_replaced(enabled, table, statement, expected):
    enabled.sql(statement.format(t=table))
    assert {row.id for row in enabled.table(table).collect()} == expected


def test_an_overwrite_of_partitions_is_dynamic_where_the_session_says_so(enabled, table, conf):
    conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    enabled.sql(f"INSERT OVERWRITE {table} SELECT 9, 2, NULL")
    assert {row.id for row in enabled.table(table).collect()} == {1, 9}


@pytest.mark.again
def test_positions_count_and_structs_take_the_names_of_the_table(enabled, table):
    enabled.sql(f"INSERT INTO {table} SELECT 5, 5, named_struct('q', '7', 'r', 8)")
    assert enabled.table(table).where("id = 5").collect() == [(5, 5, (7, "8"))]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("INSERT INTO {t} VALUES (1, 2)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (
            "INSERT INTO {t} VALUES (1, 2, named_struct('a', 1))",
            "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        ),
        ("INSERT INTO {t} VALUES (1, 2, NULL, 4)", "DELTA_METADATA_MISMATCH"),
        (
            "INSERT INTO {t} SELECT 1, 2, named_struct('a', 1, 'b', 'c', 'd', 3)",
            "DELTA_METADATA_MISMATCH",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(enabled, table, statement, kind):
    with pytest.raises(SchemaError) as caught:
        enabled.sql(statement.format(t=table))
    assert caught.value.kind == kind
    assert enabled.table(table).count() == 2


@pytest.mark.again
def test_an_overflow_is_an_error_and_writes_nothing(enabled, table):
    with pytest.raises(PySparkException, match="OVERFLOW"):
        enabled.sql(f"INSERT INTO {table} (p) VALUES (5000000000)")
    assert enabled.table(table).count() == 2


@pytest.mark.again
def test_the_session_lets_an_insert_add_columns(enabled, table, conf):
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    enabled.sql(f"INSERT INTO {table} SELECT 7, 7, NULL, 'more' AS more")
    assert enabled.table(table).where("id = 7").first().more == "more"


@pytest.mark.again
@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_save_does_what_write_does(enabled, tmp_path, mode):
    df = enabled.range(3).selectExpr("id", "id % 2 AS `p.p`")
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    options = {"userMetadata": "who", "maxRecordsPerFile": "1", "delta.appendOnly": "false"}
    write(df, theirs, mode=mode, partitionBy="p.p", **options)
    writer = df.write.format("delta").mode(mode).partitionBy("p.p").options(**options)
    writer.option("header", "ignored by Delta, too").save(ours)
    for again in range(2):
        assert _rows(read(enabled, ours)) == _rows(read(enabled, theirs))
        told, wanted = (DeltaLog.for_path(path, {}).history(1)[0].info for path in (ours, theirs))
        assert told.operation_parameters == wanted.operation_parameters
        assert (told.user_metadata, told.operation) == ("who", "WRITE")
        assert DeltaLog.for_path(ours, {}).snapshot().metadata.partition_columns == ("p.p",)
        if again == 0 and mode != "error":
            write(df, theirs, mode=mode, **options)
            df.write.format("delta").mode(mode).options(**options).save(ours)


def test_a_table_that_exists_is_an_error_unless_the_mode_says_otherwise(enabled, tmp_path):
    df = enabled.range(1)
    df.write.format("delta").save(str(tmp_path / "t"))
    with pytest.raises(UsageError) as caught:
        df.write.format("delta").save(str(tmp_path / "t"))
    assert caught.value.kind == "DELTA_PATH_EXISTS"
    with pytest.raises(UsageError) as caught:
        df.write.format("delta").save()
    assert caught.value.kind == "OPTIMIST_NO_TABLE_PATH"
    df.write.format("parquet").save(str(tmp_path / "plain"))
    assert enabled.read.parquet(str(tmp_path / "plain")).count() == 1


def test_a_writer_clusters_the_table_that_it_makes(enabled, tmp_path):
    df, path = enabled.range(3).withColumn("v", sf.col("id") % 2), str(tmp_path / "t")
    df.write.format("delta").clusterBy("V").save(path)
    df.write.format("delta").mode("append").clusterBy("v").save(path)
    detail = enabled.sql(f"DESCRIBE DETAIL delta.`{path}`").first()
    assert (detail.clusteringColumns, read(enabled, path).count()) == (["v"], 6)
    with pytest.raises(UsageError) as caught:
        df.write.format("delta").mode("append").clusterBy("id").save(path)
    assert caught.value.kind == "DELTA_CLUSTERING_COLUMNS_MISMATCH"


def test_options_that_ask_for_nothing_are_ignored(enabled, tmp_path):
    writer = enabled.range(1).write.format("delta").option("dataChange", True)
    writer.option("WRITEPARTITIONCOLUMNS", "x").option("targetAlias", "t").save(str(tmp_path / "t"))


def test_writers_by_name(enabled, database, tmp_path):
    df, name = enabled.range(2).withColumn("v", sf.col("id") * 2), f"{database}.w"
    df.write.format("delta").saveAsTable(name)
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        df.write.format("delta").saveAsTable(name)
    df.selectExpr("v", "id + 10 AS ID").write.format("delta").mode("append").saveAsTable(name)
    df.selectExpr("id + 20 AS v", "v AS id").write.insertInto(name)
    assert _rows(enabled.table(name)) == [(0, 0), (1, 2), (10, 0), (11, 2), (20, 0), (21, 2)]
    wider = df.withColumn("q", sf.lit("x"))
    with pytest.raises(SchemaError, match="overwriteSchema"):
        wider.write.format("delta").mode("overwrite").saveAsTable(name)
    wider.write.format("delta").mode("overwrite").option("overwriteSchema", True).saveAsTable(name)
    assert _rows(enabled.table(name)) == [(0, 0, "x"), (1, 2, "x")]
    df.withColumn("q", sf.lit("y")).write.insertInto(name, overwrite=True)
    assert _rows(enabled.table(name)) == [(0, 0, "y"), (1, 2, "y")]
    told = [
        record.info.operation for record in DeltaLog.for_path(f"{tmp_path}/shop/w", {}).history()
    ]
    assert told[-1] == "CREATE TABLE AS SELECT"


@pytest.mark.parametrize("query", ["SELECT * FROM {0}", "SELECT 1 / (id - 1) AS id FROM {0}"])
def test_no_table_is_dropped_for_rows_of_another_format(enabled, database, query):
    name = f"{database}.kept"
    enabled.sql(f"CREATE TABLE {name} USING delta AS SELECT explode(array(1, 2)) AS id")
    writer = enabled.sql(query.format(name)).write.format("parquet").mode("overwrite")
    with pytest.raises(UsageError) as caught:
        writer.saveAsTable(name)
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_STATEMENT"
    assert ids(enabled.table(name)) == [1, 2]
    enabled.sql(f"DROP TABLE {name}")
    enabled.range(3).write.format("parquet").mode("overwrite").saveAsTable(name)
    enabled.range(2).write.format("parquet").mode("overwrite").saveAsTable(name)
    assert ids(enabled.table(name)) == [0, 1]


@pytest.mark.again
def test_the_writer_of_the_second_version(enabled, database):
    df, name = enabled.range(4).withColumn("v", sf.col("id") % 2), f"{database}.w"
    df.writeTo(name).using("delta").partitionedBy("v").tableProperty("Own", "1").create()
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        df.writeTo(name).using("delta").create()
    df.writeTo(name).append()
    df.where("v = 1").writeTo(name).overwrite(sf.col("v") == 1)
    assert enabled.table(name).groupBy("v").count().sort("v").collect() == [(0, 4), (1, 2)]
    df.where("v = 0").writeTo(name).overwritePartitions()
    assert enabled.table(name).groupBy("v").count().sort("v").collect() == [(0, 2), (1, 2)]
    more = df.withColumn("m", sf.lit(1))
    with pytest.raises(OptimistError, match="mergeSchema"):
        more.writeTo(name).append()
    more.writeTo(name).option("mergeSchema", "true").append()
    assert enabled.table(name).where("m = 1").count() == 4
    enabled.range(1).writeTo(name).using("delta").replace()
    df.writeTo(f"{database}.other").using("delta").createOrReplace()
    assert enabled.table(name).collect() == [(0,)]
    assert enabled.table(f"{database}.other").count() == 4


@pytest.mark.again
def test_batches_of_a_stream_are_written_and_merged(enabled, database, tmp_path):
    enabled.range(3).selectExpr("id", "id * 2 AS v").write.parquet(str(tmp_path / "in"))
    name, path = f"{database}.t", str(tmp_path / "copy")
    enabled.sql(f"CREATE TABLE {name} (id LONG, v LONG) USING delta")
    enabled.sql(f"INSERT INTO {name} VALUES (1, 100)")
    seen = []

    def each(batch, number):
        session = enable(batch.sparkSession)  # a clone of the stream's
        batch.createOrReplaceTempView("new")
        session.sql(
            f"MERGE INTO {name} t USING new s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        once = batch.write.format("delta").mode("append").option("txnAppId", "stream")
        for _ in range(2):
            once.option("txnVersion", number).save(path)
        ours = DeltaTable.forName(enabled, name).alias("t").merge(batch.alias("s"), "t.id = s.id")
        ours.whenMatchedUpdate("s.id = 2", {"v": "s.v + 1"}).execute()
        DeltaTable.forPath(session, path).update("id = 0", {"v": "7"})
        seen.append(session.read.format("delta").load(path).count())

    rows = enabled.readStream.schema("id LONG, v LONG").parquet(str(tmp_path / "in"))
    writer = rows.writeStream.foreachBatch(each).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert seen == [3]
    assert sorted(map(tuple, enabled.table(name).collect())) == [(0, 0), (1, 2), (2, 5)]
    assert sorted(map(tuple, read(enabled, path).collect())) == [(0, 7), (1, 2), (2, 4)]


def test_frames_by_name_are_cast_to_the_types_of_the_table(enabled, database, tmp_path):
    name, path = f"{database}.t", f"{tmp_path}/shop/t"
    enabled.sql(f"CREATE TABLE {name} (id INT, s SMALLINT) USING delta")
    fits, too_large = (enabled.sql(f"SELECT '5' AS id, {value}L AS s") for value in (7, 70000))
    fits.write.format("delta").mode("append").saveAsTable(name)
    fits.writeTo(name).append()
    fits.writeTo(name).overwrite(sf.col("id") == 5)
    fits.withColumn("z", sf.lit(1)).writeTo(name).option("mergeSchema", "true").append()
    assert enabled.table(name).orderBy("z").collect() == [(5, 7, None), (5, 7, 1)]
    assert enabled.table(name).dtypes[:2] == [("id", "int"), ("s", "smallint")]
    with pytest.raises(Exception, match=r"CAST_OVERFLOW_IN_TABLE_INSERT.*`s`"):
        too_large.write.format("delta").mode("append").saveAsTable(name)
    for mode in ("append", "overwrite"):
        with pytest.raises(SchemaError) as caught:
            fits.write.format("delta").mode(mode).save(path)
        assert caught.value.kind == "DELTA_FAILED_TO_MERGE_FIELDS"


@pytest.mark.again
@pytest.mark.parametrize(
    ("statement", "columns", "rows"),
    [
        (
            "INTO {t} SELECT 2, 2, NULL, 'x' AS more",
            ["id", "p", "s", "more"],
            {(1, None), (2, "x")},
        ),
        (
            "INTO {t} BY NAME SELECT 'x' AS more, 2 AS id",
            ["id", "p", "s", "more"],
            {(1, None), (2, "x")},
        ),
        ("INTO {t} VALUES (2, 2, NULL)", ["id", "p", "s"], {(1,), (2,)}),
        (
            "INTO {t} PARTITION (p = 2) SELECT 2, NULL, 'x' AS more",
            ["id", "p", "s", "more"],
            {(1, None), (2, "x")},
        ),
        ("OVERWRITE {t} BY NAME SELECT 2 AS id, 1 AS n", ["id", "p", "s", "n"], {(2, 1)}),
        (
            "OVERWRITE {t} PARTITION (p = 2) BY NAME SELECT 2 AS id, 1 AS n",
            ["id", "p", "s", "n"],
            {(1, None), (2, 1)},
        ),
        (
            "INTO {t} REPLACE WHERE p = 1 SELECT 2, 1, NULL, 3 AS n",
            ["id", "p", "s", "n"],
            {(2, 3)},
        ),
    ],
)
def test_an_insert_with_schema_evolution_lets_the_table_grow(
    enabled, database, statement, columns, rows
):
    pytest.importorskip("pyspark", minversion="4.2")
    name = f"{database}.grows"
    enabled.sql(
        f"CREATE TABLE {name} (id INT, p INT, s STRUCT<a: INT>) USING delta PARTITIONED BY (p)"
    )
    enabled.sql(f"INSERT INTO {name} VALUES (1, 1, struct(1))")
    enabled.sql(f"INSERT WITH SCHEMA EVOLUTION {statement.format(t=name)}")
    found = enabled.table(name)
    assert found.columns == columns
    assert {tuple(row) for row in found.select("id", *columns[3:]).collect()} == rows


@pytest.mark.again
def test_schema_evolution_reaches_structs_and_types(enabled, database):
    pytest.importorskip("pyspark", minversion="4.2")
    name = f"{database}.grows"
    enabled.sql(
        f"CREATE TABLE {name} (id INT, s STRUCT<a: INT>) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    insert = f"INSERT WITH SCHEMA EVOLUTION INTO {name}"
    enabled.sql(f"{insert} BY NAME SELECT 1 AS id, named_struct('b', 'x', 'a', 2) AS s")
    enabled.sql(f"{insert} SELECT 3000000000L, struct(3000000000L, 'y')")
    late = enabled.range(3, 4).withColumn("late", sf.lit(1))
    late.writeTo(name).option("mergeSchema", "true").append()
    found = enabled.table(name)
    assert found.schema.simpleString() == "struct<id:bigint,s:struct<a:bigint,b:string>,late:int>"
    wide = 3_000_000_000
    assert _rows(found) == [(1, (2, "x"), None), (3, None, 1), (wide, (wide, "y"), None)]
    with pytest.raises(SchemaError):
        enabled.sql(f"INSERT INTO {name} BY NAME SELECT 1 AS id, 1 AS other")
