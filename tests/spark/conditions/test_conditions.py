"""Conditions find, change and skip the same rows, however they are written and on either plane."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from optimist.core import NewColumn
from optimist.core.errors import UsageError
from optimist.spark import DeltaTable, count, read, write

# Numbers that no float holds exactly: beside the statistics of a float column, as doubles, they lie
# outside of every file.
FLOAT_CONDITIONS = [
    "f = 1.1F",
    "f <= 1.1F AND f >= 1.1F",
    "f IN (1.1F, 7.7F)",
    "f <=> 1.1F",
    "f BETWEEN 1.1F AND 1.1F",
    "st.f = 1.1F",
    "NOT (f <> 1.1F)",
    "CAST(i AS FLOAT) = 1.0F AND f = 1.1F",
]


@pytest.fixture
def floats(spark, copied):
    frame = spark.sql(
        "SELECT CAST(id AS INT) AS i, CAST(id + 0.1 AS FLOAT) AS f, CAST(id + 0.1 AS FLOAT) AS p, "
        "named_struct('f', CAST(id + 0.1 AS FLOAT)) AS st FROM range(3)"
    )
    return copied("floats", lambda path: write(frame.coalesce(1), path, partitionBy="p"))


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_float_constants_match_the_rows_of_float_columns(spark, floats):
    frame = read(spark, floats)
    for condition in (*FLOAT_CONDITIONS, "p = 1.1F", "p <=> 1.1F"):
        assert [row.i for row in frame.where(condition).collect()] == [1], condition
        assert count(spark, floats, condition) == 1, condition
    assert frame.where(sf.col("f") == sf.lit(1.1).cast("float")).count() == 1
    assert (
        frame.where(sf.col("f").isin(*[sf.lit(n + 0.1).cast("float") for n in range(20)])).count()
        == 3
    )


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_float_constants_match_in_commands(spark, floats, rows_of):
    table = DeltaTable.forPath(spark, floats)
    table.update("f = 1.1F", {"i": "100"})
    table.delete("st.f <= 0.1F")
    new = read(spark, floats).where("i = 2").withColumn("i", sf.lit(200))
    write(new, floats, mode="overwrite", replaceWhere="f = 2.1F")
    assert rows_of(read(spark, floats).select("i")) == [(100,), (200,)]


# What Spark resolves is what prunes, whatever the names and the confs


@pytest.fixture
def structs(spark, copied):
    """A file for each row, so that a wrong reading of a condition prunes the file it is about."""
    frame = spark.sql(
        r"SELECT id, named_struct('id', id + 3) AS st, concat('a\\n', id) AS s, string(id) AS p, "
        "id AS __optimist_path, id AS __optimist_ordinal, id AS __optimist_file FROM range(3)"
    )
    split = frame.repartitionByRange(3, "id")
    return copied("structs", lambda path: write(split, path, partitionBy="p"))


def ids(spark, path):
    return sorted(row.id for row in read(spark, path).select("id").collect())


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_alias_named_like_a_struct_means_the_table(spark, structs):
    table = DeltaTable.forPath(spark, structs).alias("st")
    table.delete("st.id = 1")
    assert ids(spark, structs) == [0, 2]
    table.update("ST.Id = 2", {"id": "20"})
    DeltaTable.forPath(spark, structs).delete("st.id = 3")
    assert ids(spark, structs) == [20]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_confs_of_the_parser_hold_for_pruning_too(spark, structs, conf):
    table = DeltaTable.forPath(spark, structs)
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    table.delete("\"s\" = 'a\\\\n1' AND \"p\" = '1'")
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "false")
    conf("spark.sql.parser.escapedStringLiterals", "true")
    table.update(r"s = 'a\n2'", {"id": "20"})
    new = read(spark, structs).where("id = 0").selectExpr("* EXCEPT (id)", "100L AS id")
    write(new, structs, mode="overwrite", replaceWhere=r"s = 'a\n0'")
    assert ids(spark, structs) == [20, 100]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_columns_of_the_tables_own_frame_are_conditions_and_values(spark, structs):
    table = DeltaTable.forPath(spark, structs)
    table.delete(table.toDF()["id"] == 1)
    frame = table.toDF()
    table.update(frame.st.id == 3, {"id": frame["id"] + frame.st["id"] + 10})
    table.alias("t").update(table.toDF()["p"] == "2", {"id": sf.expr("t.id") + frame["id"] * 10})
    assert ids(spark, structs) == [13, 22]


@pytest.mark.usefixtures("plane")
def test_own_columns_mean_the_same_fields_once_structs_have_others_before_them(spark, table_path):
    frame = spark.sql(
        "SELECT id, named_struct('a', id, 'b', 9 - id) AS s, "
        "array(named_struct('a', id, 'b', 9 - id)) AS l FROM range(4)"
    )
    write(frame.coalesce(1), table_path)
    table = DeltaTable.forPath(spark, table_path)
    own, source = table.toDF(), spark.range(2, 3).alias("source")
    added = [NewColumn(name, "bigint", first=True) for name in ("s.z", "l.element.z")]
    table.alter.add_columns(added)
    table.update("id > 1", {"s.z": "0L"})
    table.delete((own["s.a"] == 0) & (own["l.a"][0] == 0) & own["s.b"].between(8, 9))
    table.update((own["s.a"] == 1) & (own["l"][0]["a"] == 1), {"id": own["s.b"]})
    merge = table.merge(source, own["s.a"] == source["id"])
    merge.whenMatchedUpdate(own["s.b"] == 7, {"id": own["s.b"] + own["s.a"] * 10}).execute()
    assert ids(spark, table_path) == [3, 8, 27]


@pytest.mark.usefixtures("plane")
def test_columns_of_other_frames_are_refused(spark, structs):
    table, other = DeltaTable.forPath(spark, structs), read(spark, structs)
    with pytest.raises(AnalysisException):
        table.delete(other["id"] == 1)
    assert ids(spark, structs) == [0, 1, 2]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_own_columns_with_the_names_of_ours_are_kept(spark, structs, rows_of):
    table = DeltaTable.forPath(spark, structs)
    table.delete("__optimist_path = 0 AND __optimist_ordinal = 0 AND __optimist_file = 0")
    table.update("p = '1' AND s LIKE '%1'", {"__optimist_path": "10"})
    table.delete("p = '2'")
    kept = read(spark, structs).select("__optimist_path", "__optimist_ordinal", "__optimist_file")
    assert rows_of(kept) == [(10, 1, 1)]


@pytest.mark.usefixtures("plane")
def test_stars_and_patterns_in_conditions_are_refused(spark, structs, conf):
    table, row = DeltaTable.forPath(spark, structs), sf.to_json(sf.struct("*"))
    for condition in (
        (sf.col("p") == "1") & ~row.contains("keep"),
        "to_json(struct(*)) = 'x'",
        "p = '1' AND size(array(t.* EXCEPT (st, s, p))) > 0",
    ):
        for change in (table.alias("t").delete, lambda c: table.alias("t").update(c, {"id": "1"})):
            with pytest.raises(UsageError) as caught:
                change(condition)
            assert caught.value.kind == "INVALID_USAGE_OF_STAR_OR_REGEX"
    with pytest.raises(UsageError, match="Name the columns"):
        write(read(spark, structs), structs, mode="overwrite", replaceWhere="hash(*) > 0")
    conf("spark.sql.parser.quotedRegexColumnNames", "true")
    with pytest.raises(UsageError, match="Name the columns"):
        table.delete("hash(`i.*`) > 0")
    assert ids(spark, structs) == [0, 1, 2]


def test_metadata_of_files_is_no_condition_of_commands(spark, structs):
    table = DeltaTable.forPath(spark, structs)
    for condition in ("_metadata.file_name = 'x'", sf.col("_metadata.file_path").contains("x")):
        for change in (table.delete, lambda c: table.update(c, {"id": "1"})):
            with pytest.raises(UsageError) as caught:
                change(condition)
            assert caught.value.kind == "OPTIMIST_NO_COLUMN_OF_THE_TABLE"
    assert ids(spark, structs) == [0, 1, 2]
