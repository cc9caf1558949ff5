"""Bad input of scripts: the error is one that they catch, and says which fragment it is about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

from optimist.core.errors import OptimistError, TableNotFoundError
from optimist.spark import DeltaTable, disable, enable, write


@pytest.fixture(scope="module")
def bad(spark, tmp_path_factory):
    """A session with a database of tables that are gone, damaged, or no tables."""
    enable(spark)
    folder = tmp_path_factory.mktemp("bad")
    spark.sql(f"CREATE DATABASE bad LOCATION '{folder}/bad'")
    spark.sql("USE bad")
    for name in ("gone", "no_log"):
        spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta")
        spark.sql(f"INSERT INTO {name} VALUES (1)")
    shutil.rmtree(folder / "bad/gone")
    shutil.rmtree(folder / "bad/no_log/_delta_log")
    write(spark.range(3), str(folder / "t"))
    spark.sql(f"CREATE VIEW seen AS SELECT * FROM delta.`{folder}/t`")
    yield folder
    spark.sql("USE default")
    spark.sql("DROP DATABASE bad CASCADE")
    disable(spark)


MISSING = [
    "SELECT 1,\n  x.id FROM {} x",
    "INSERT INTO {} VALUES (7)",
    "INSERT OVERWRITE {} VALUES (7)",
    "DELETE FROM {} WHERE id = 1",
    "UPDATE {} SET id = 2",
    "MERGE INTO {} a USING (SELECT 1 AS id) b ON a.id = b.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE {}",
    "ALTER TABLE {} SET TBLPROPERTIES ('a' = 'b')",
    "SELECT * FROM {} VERSION AS OF 0",
    "DESCRIBE TABLE {}",
]
OF_OURS = ["DESCRIBE HISTORY {}", "DESCRIBE DETAIL {}", "SELECT * FROM table_changes('{}', 0)"]
PLACES = {
    "gone": "DELTA_TABLE_NOT_FOUND",
    "no_log": "DELTA_TABLE_NOT_FOUND",
    "delta.`{folder}/nowhere`": "PATH_NOT_FOUND",
}
ABOUT_TABLES = {
    "TRUNCATE TABLE {}": "DELTA_MISSING_DELTA_TABLE",
    "ALTER TABLE {} SET TBLPROPERTIES ('a' = 'b')": "DELTA_MISSING_DELTA_TABLE",
    "DESCRIBE TABLE {}": "DELTA_MISSING_DELTA_TABLE",
    "DESCRIBE DETAIL {}": "DELTA_MISSING_DELTA_TABLE",
    "DESCRIBE HISTORY {}": "DELTA_TABLE_ONLY_OPERATION",
    "SELECT * FROM table_changes('{}', 0)": "DELTA_TABLE_NOT_FOUND",
}
"""What statements about a table call a path without one."""


@pytest.mark.sample(8)
@pytest.mark.parametrize("text", [*MISSING, *OF_OURS])
@pytest.mark.parametrize("place", PLACES)
def test_a_table_that_is_gone(spark, bad, place, text):
    name = place.format(folder=bad)
    with pytest.raises(AnalysisException) as caught:
        spark.sql(text.replace("{}", name))
    error, of_path = caught.value, ABOUT_TABLES if "nowhere" in place else {}
    condition = of_path.get(text, PLACES[place])
    assert error.getCondition() == condition
    assert isinstance(error, TableNotFoundError) == (condition != "DELTA_TABLE_ONLY_OPERATION")
    if text in MISSING:
        assert any(
            name in place.fragment() or "VERSION" in place.fragment() for place in _of(error)
        )


def _of(error):
    return error.getQueryContext()


def test_the_fragment_stands_in_the_message(spark, bad):
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT 1,\n  x.id FROM gone x")
    (place,) = caught.value.getQueryContext()
    assert (place.fragment(), place.startIndex(), place.stopIndex()) == ("gone", 22, 25)
    assert "== SQL (line 2, position 13) ==" in str(caught.value)
    assert "FROM gone x" in str(caught.value)


@pytest.mark.parametrize(
    "read",
    [
        lambda spark, folder: spark.read.format("delta").load(f"{folder}/nowhere"),
        lambda spark, _: spark.table("no_log"),
        lambda spark, _: spark.range(1).writeTo("gone").append(),
        lambda spark, _: spark.range(1).write.insertInto("gone"),
        lambda spark, _: spark.read.table("gone"),
        lambda spark, _: DeltaTable.forName(spark, "gone").toDF(),
    ],
)
def test_a_table_that_is_gone_in_the_data_frame_api(spark, bad, read):
    with pytest.raises(AnalysisException) as caught:
        read(spark, bad)
    assert isinstance(caught.value, TableNotFoundError)


REFUSED = {
    "INSERT INTO seen VALUES (7)": "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
    "DELETE FROM seen": "DELTA_UNSUPPORTED_SOURCE",
    "UPDATE seen SET id = 2": "DELTA_UNSUPPORTED_SOURCE",
    "DESCRIBE HISTORY seen": "DELTA_TABLE_ONLY_OPERATION",
    "DESCRIBE HISTORY nowhere.bad.t": "DELTA_TABLE_ONLY_OPERATION",
    "SELECT * FROM nowhere.bad.t": "REQUIRES_SINGLE_PART_NAMESPACE",
    "DELETE FROM nowhere.bad.t": "REQUIRES_SINGLE_PART_NAMESPACE",
    "SELECT * FROM {t} VERSION AS OF 99": "DELTA_VERSION_NOT_FOUND",
    "SELECT * FROM delta.`{folder}/t@v0` VERSION AS OF 0": (
        "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"
    ),
    "SELECT nope FROM {t}": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "UPDATE {t} SET id = 1, id = 2": "DELTA_CONFLICT_SET_COLUMN",
    "DELETE FROM {t} WHERE id = rand()": "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    "DELETE FROM {t} WHERE id IN (SELECT rand())": "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    "INSERT INTO {t} VALUES (1, 2)": "DELTA_METADATA_MISMATCH",
    "DROP TABLE {t}": "OPTIMIST_NOT_FOR_A_PATH",
    "ALTER TABLE {t} RENAME COLUMN id TO x": "DELTA_UNSUPPORTED_RENAME_COLUMN",
    "OPTIMIZE {t} ZORDR BY (id)": "PARSE_SYNTAX_ERROR",
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("text", REFUSED)
def test_a_statement_that_is_refused(spark, bad, text):
    with pytest.raises(AnalysisException) as caught:
        spark.sql(text.format(t=f"delta.`{bad}/t`", folder=bad)).collect()
    assert caught.value.getCondition() == REFUSED[text]
    assert isinstance(caught.value, OptimistError) or "DELTA" not in REFUSED[text]


def test_a_writer_still_makes_what_is_not_there(spark, bad):
    path = f"delta.`{bad}/made`"
    spark.range(2).write.format("delta").mode("append").saveAsTable(path)
    spark.range(2).write.format("delta").mode("append").saveAsTable(path)
    assert spark.table(path).count() == 4


CONTRADICTING = [
    {"versionAsOf": "0", "timestampAsOf": "2026-01-01"},
    {"versionAsOf": "x"},
    {"readChangeFeed": "true", "startingVersion": "2", "endingVersion": "1"},
]


@pytest.mark.parametrize("options", CONTRADICTING)
def test_options_of_a_reader_that_contradict(spark, bad, options):
    with pytest.raises(IllegalArgumentException):
        spark.read.format("delta").options(**options).load(f"{bad}/t")


def test_options_of_a_writer_that_contradict(spark, bad):
    writer = spark.range(1).write.format("delta").mode("overwrite").option("replaceWhere", "id = 0")
    with pytest.raises(IllegalArgumentException):
        writer.option("partitionOverwriteMode", "dynamic").save(f"{bad}/t")
    assert len(list(Path(bad / "t/_delta_log").glob("*.json"))) == 1
