"""Queries over Delta tables by path, by name and by format give what `read` gives."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from optimist.core.errors import TableError, TableNotFoundError, UsageError
from optimist.spark import DeltaTable, read, write


@pytest.fixture
def versions(numbers, table_path):
    """A table of two versions with change data: rows 0 to 19, then 19 rows, without row 7."""
    write(numbers, table_path, partitionBy="p", **{"delta.enableChangeDataFeed": "true"})
    DeltaTable.forPath(numbers.sparkSession, table_path).delete("id = 7")
    return table_path


@pytest.mark.again
def test_a_path_stands_wherever_a_relation_may(enabled, versions, plane, rows_of):
    here = f"delta.`{versions}`"
    queries = {
        f"SELECT count(*) FROM {here}": [(19,)],
        f"SELECT count(*) FROM {here} VERSION AS OF 0": [(20,)],
        f"SELECT count(*) FROM delta.`{versions}@v0`": [(20,)],
        f"SELECT a.id FROM {here} VERSION AS OF 0 a LEFT ANTI JOIN {here} b ON a.id = b.id": [(7,)],
        f"WITH x AS (SELECT * FROM {here}) SELECT count(*) FROM x, x AS y WHERE x.id = y.id": [
            (19,)
        ],
        f"SELECT id FROM range(9) WHERE id NOT IN (SELECT id FROM {here})": [(7,)],
        f"SELECT (SELECT max(id) FROM {here}) + count(*) FROM {here}": [(38,)],
        f"SELECT id FROM {here} WHERE p = 3 AND id > 11 UNION ALL SELECT id FROM {here} "
        "WHERE id = 1": [(1,), (15,), (19,)],
    }
    assert {text: rows_of(enabled.sql(text)) for text in queries} == queries


@pytest.mark.again
def test_frames_that_follow_are_the_same_to_spark_and_one_of_a_version_is_not(
    enabled, versions, plane
):
    by_sql = enabled.sql(f"SELECT * FROM delta.`{versions}`")
    by_format = enabled.read.format("delta").load(versions)
    by_read = read(enabled, versions)
    assert by_sql.schema == by_format.schema == by_read.schema
    assert by_sql.sameSemantics(by_format)
    assert not by_format.sameSemantics(by_read)
    assert by_read.sameSemantics(read(enabled, versions))


@pytest.mark.again
def test_options_of_the_reader_travel_in_time(enabled, versions):
    reader = enabled.read.format("delta")
    assert reader.option("versionAsOf", 0).load(versions).count() == 20
    assert enabled.read.format("DELTA").load(f"{versions}@v0").count() == 20
    late = enabled.read.format("delta").option("TimestampAsOf", "2999-01-01")
    with pytest.raises(TableError) as caught:
        late.load(versions)
    assert caught.value.kind == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


@pytest.mark.again
def test_options_that_delta_does_not_know_are_ignored(enabled, versions):
    reader = enabled.read.format("delta").options(mergeSchema=True, header="true", nonsense=1)
    assert reader.load(versions).count() == 19


def test_changes_are_read_by_options_and_by_functions(enabled, versions, rows_of):
    deleted = [(7, "delete", 1)]
    columns = ("id", "_change_type", "_commit_version")
    reader = enabled.read.format("delta").option("readChangeFeed", "true")
    by_options = reader.option("startingVersion", 1).load(versions).select(*columns)
    listed = ", ".join(columns)
    by_name = f"SELECT {listed} FROM table_changes('delta.`{versions}`', 1)"
    by_path = f"SELECT {listed} FROM table_changes_by_path('{versions}', 1, 1)"
    assert rows_of(by_options) == deleted
    assert rows_of(enabled.sql(by_name)) == rows_of(enabled.sql(by_path)) == deleted


@pytest.mark.parametrize("arguments", ["", "'{path}'", "1, 1", "'{path}', rand()"])
def test_functions_for_changes_refuse_other_arguments(enabled, versions, arguments):
    with pytest.raises(UsageError) as caught:
        enabled.sql(f"SELECT * FROM table_changes_by_path({arguments.format(path=versions)})")
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT"


@pytest.mark.again
def test_only_the_columns_and_files_of_the_query_are_read(enabled, versions):
    frame = enabled.sql(f"SELECT id FROM delta.`{versions}` WHERE p = 3 AND id > 100")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<id:bigint>" in plan
    assert "PartitionFilters: [isnotnull(p" in plan
    assert frame.rdd.getNumPartitions() == 0  # no file can have such an id
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,100)]" in plan


def test_a_missing_table_is_named_by_its_path(enabled, tmp_path):
    for look in (
        lambda path: enabled.sql(f"SELECT * FROM delta.`{path}`"),
        lambda path: enabled.read.format("delta").load(path),
        lambda path: enabled.table(f"delta.`{path}`"),
    ):
        with pytest.raises(TableNotFoundError, match="nothing"):
            look(str(tmp_path / "nothing"))


def test_a_reader_needs_one_path_and_no_schema(enabled, versions):
    for reader, kind in (
        (lambda: enabled.read.format("delta").load(), "OPTIMIST_NO_TABLE_PATH"),
        (lambda: enabled.read.format("delta").load([versions, versions]), "OPTIMIST_NO_TABLE_PATH"),
        (
            lambda: enabled.read.format("delta").schema("id LONG").load(versions),
            "DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        ),
    ):
        with pytest.raises(UsageError) as caught:
            reader()
        assert caught.value.kind == kind


@pytest.mark.again
def test_a_name_of_the_catalog_is_read_like_its_path(enabled, versions, entry, rows_of):
    name = entry("flights", versions)
    expected = rows_of(read(enabled, versions))
    assert rows_of(enabled.table(name)) == expected
    assert rows_of(enabled.read.table(f"spark_catalog.{name}")) == expected
    assert rows_of(enabled.sql(f"SELECT * FROM {name}")) == expected
    assert enabled.read.option("versionAsOf", 0).table(name).count() == 20
    assert enabled.sql(f"SELECT * FROM {name} VERSION AS OF 0").count() == 20
    enabled.sql("USE shop")
    assert enabled.table("flights").count() == 19
    assert DeltaTable.forName(enabled, "flights").toDF().count() == 19
    assert DeltaTable.isDeltaTable(enabled, "shop.flights")
    changes = enabled.sql("SELECT * FROM table_changes('flights', 1)")
    assert changes.count() == 1
    reader = enabled.read.option("readChangeFeed", "true").option("startingVersion", 1)
    assert rows_of(reader.table("flights").select("id", "_change_type")) == [(7, "delete")]


@pytest.mark.again
def test_views_read_the_newest_version(enabled, versions, entry):
    name = entry("flights", versions)
    enabled.sql(f"CREATE VIEW shop.of_name AS SELECT * FROM {name} WHERE p = 3")
    enabled.sql(f"CREATE VIEW shop.of_path AS SELECT * FROM delta.`{versions}` WHERE p = 3")
    assert enabled.table("shop.of_name").count() == enabled.table("shop.of_path").count() == 4
    DeltaTable.forPath(enabled, versions).delete("id = 3")
    assert enabled.table("shop.of_name").count() == enabled.table("shop.of_path").count() == 3


def test_names_of_views_and_of_other_formats_are_no_delta_tables(enabled, database):
    enabled.sql("CREATE TABLE shop.plain (id INT) USING parquet")
    enabled.sql("CREATE VIEW shop.seen AS SELECT 1 AS id")
    for name in ("shop.plain", "shop.seen"):
        with pytest.raises(TableNotFoundError, match="is not a Delta table") as caught:
            DeltaTable.forName(enabled, name)
        assert caught.value.kind == "DELTA_MISSING_DELTA_TABLE"
        assert not DeltaTable.isDeltaTable(enabled, name)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        enabled.table("shop.nothing")


@pytest.mark.again
def test_other_formats_and_statements_stay_sparks(enabled, tmp_path, database):
    path = str(tmp_path / "plain")
    enabled.range(3).write.parquet(path)
    assert enabled.sql(f"SELECT * FROM parquet.`{path}`").count() == 3
    enabled.sql("CREATE TABLE shop.other USING parquet AS SELECT 1 AS id")
    enabled.sql("INSERT INTO shop.other VALUES (2)")
    assert enabled.table("shop.other").count() == 2
    enabled.sql("DROP TABLE shop.other")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        enabled.sql("SELECT nope FROM range(1)")


def test_a_path_is_never_dropped(enabled, versions, tmp_path):
    with pytest.raises(UsageError) as caught:
        enabled.sql(f"DROP TABLE delta.`{versions}`")
    assert caught.value.kind == "OPTIMIST_NOT_FOR_A_PATH"
    enabled.sql(f"DROP TABLE IF EXISTS delta.`{tmp_path}/nothing`")
    assert read(enabled, versions).count() == 19


@pytest.mark.again
def test_commands_show_what_the_log_says(enabled, versions, entry, rows_of):
    name = entry("flights", versions)
    described = [row[:2] for row in enabled.sql(f"DESCRIBE TABLE {name}").collect()]
    assert described[:3] == [("id", "bigint"), ("p", "int"), ("name", "string")]
    properties = dict(enabled.sql(f"SHOW TBLPROPERTIES {name}").collect())
    assert properties["delta.enableChangeDataFeed"] == "true"
    assert properties["delta.minWriterVersion"] == "7"
    created = enabled.sql(f"SHOW CREATE TABLE {name}").collect()[0][0]
    assert "USING delta" in created and "PARTITIONED BY (p)" in created and versions in created
    extended = dict(row[:2] for row in enabled.sql(f"DESCRIBE EXTENDED {name}").collect())
    assert extended["Provider"] == "delta" and extended["Location"] == f"file:{versions}"
    columns = enabled.sql(f"SHOW COLUMNS IN {name}").collect()
    assert [row.col_name for row in columns] == ["id", "p", "name"]


def test_partitions_are_shown_as_the_log_has_them(enabled, versions, entry):
    name = entry("flights", versions)
    for table in (name, f"delta.`{versions}`"):
        shown = enabled.sql(f"SHOW PARTITIONS {table}")
        assert (shown.dtypes, shown.collect()) == ([("p", "int")], [(0,), (1,), (2,), (3,)])
    one = enabled.sql(f"SHOW PARTITIONS {name} PARTITION (P = '02')")
    assert one.collect() == [(2,)]
    for statement, kind in (
        ("SHOW PARTITIONS {} PARTITION (id = 1)", "SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN"),
        ("TRUNCATE TABLE {} PARTITION (p = 1)", "TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"),
    ):
        with pytest.raises(AnalysisException) as caught:
            enabled.sql(statement.format(name))
        assert caught.value.getCondition() == f"DELTA_{kind}"
        (place,) = caught.value.getQueryContext()
        assert name in place.fragment()
    assert enabled.sql(f"DESCRIBE DETAIL {name}").first().name == f"spark_catalog.{name}"
    assert DeltaTable.forName(enabled, name).detail().first().name == f"spark_catalog.{name}"
    assert DeltaTable.forPath(enabled, versions).detail().first().name is None


@pytest.mark.again
def test_partitions_are_shown_with_the_types_of_their_columns(enabled, tmp_path):
    table = f"delta.`{tmp_path}/t`"
    partitions = "d DATE, t TIMESTAMP, n DECIMAL(38, 2), `a.b` STRING, b BOOLEAN"
    enabled.sql(
        f"CREATE TABLE {table} (id INT, {partitions}) USING delta PARTITIONED BY "
        "(d, t, n, `a.b`, b)"
    )
    enabled.sql(f"SHOW PARTITIONS {table}").collect()
    nines = "9" * 36 + ".99"
    rows = f"(1, DATE'0001-01-01', TIMESTAMP'2020-02-29 01:02:03.000004', {nines}, 'x=/y', true)"
    enabled.sql(f"INSERT INTO {table} VALUES {rows}, (2, NULL, NULL, NULL, NULL, NULL)")
    enabled.sql(f"INSERT INTO {table} VALUES {rows}")
    shown = enabled.sql(f"SHOW PARTITIONS {table}")
    assert (
        shown.collect()
        == enabled.sql(
            f"SELECT DISTINCT d, t, n, `a.b`, b FROM {table} ORDER BY d NULLS LAST"
        ).collect()
    )
    assert shown.dtypes == enabled.table(table).drop("id").dtypes


@pytest.mark.again
def test_names_are_emptied_renamed_and_dropped(enabled, versions, entry):
    name = entry("flights", versions)
    enabled.sql(f"ALTER TABLE {name} RENAME TO shop.trips")
    assert enabled.table("shop.trips").count() == 19
    enabled.sql("TRUNCATE TABLE shop.trips")
    assert enabled.table("shop.trips").count() == 0
    assert read(enabled, versions, versionAsOf=1).count() == 19
    enabled.sql("DROP TABLE shop.trips")
    assert not enabled.catalog.tableExists("shop.trips")
    enabled.sql("DROP TABLE IF EXISTS shop.trips")
    assert read(enabled, versions).count() == 0


@pytest.mark.again
def test_a_cached_table_is_the_version_that_was_cached(enabled, versions, entry):
    name = entry("flights", versions)
    enabled.sql(f"CACHE TABLE {name}")
    assert "InMemory" in enabled.table(name)._jdf.queryExecution().executedPlan().toString()
    DeltaTable.forName(enabled, name).delete("id = 3")
    assert enabled.table(name).count() == 18
    enabled.sql(f"UNCACHE TABLE IF EXISTS {name}")
