"""`replaceOn`, `replaceUsing` and `dataChange`: which rows a write replaces, and what it tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError, SchemaError, TableError, UsageError
from optimist.spark import read, write

_OLD = [(1, "a", 10), (1, "b", 11), (2, "a", 20), (3, "a", 30), (None, "a", 40), (4, None, 50)]
_NEW = [(1, "a", 100), (1, "z", 101), (None, "a", 102), (4, None, 103), (9, "a", 104)]
_COLUMNS = "k INT, `p.p` STRING, v LONG"
_KINDS = {
    "copies": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "changes": {"delta.enableChangeDataFeed": "true"},
}


@pytest.fixture(params=_KINDS)
def old(request, spark, table_path):
    """A table of the old rows in two files, or in more where it is partitioned."""
    rows = spark.createDataFrame(_OLD, _COLUMNS).coalesce(1)
    write(rows.where("v <= 20"), table_path, **_KINDS[request.param])
    write(rows.where("v > 20"), table_path, mode="append")
    return table_path


def _rows(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


def _replaced(matches):
    """The rows that a write leaves, row by row."""
    kept = [old for old in _OLD if not any(matches(old, new) for new in _NEW)]
    return sorted([*kept, *_NEW], key=repr)


def _is_equal(one, other):
    return one is not None and one == other


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("options", "matches", "told"),
    [
        (
            {"replaceUsing": "K"},
            lambda old, new: _is_equal(old[0], new[0]),
            {"replaceUsingCols": "(K)"},
        ),
        (
            {"replaceUsing": "k , p.p"},
            lambda old, new: _is_equal(old[0], new[0]) and _is_equal(old[1], new[1]),
            {"replaceUsingCols": "(k, p.p)"},
        ),
        (
            {"replaceOn": "t.k <=> s.k AND t.v < 45", "targetAlias": "t"},
            lambda old, new: old[0] == new[0] and old[2] < 45,
            {"replaceOnCond": "t.k <=> s.k AND t.v < 45"},
        ),
    ],
)
def test_rows_that_match_new_ones_are_replaced(spark, old, plane, options, matches, told):
    new = spark.createDataFrame(_NEW, _COLUMNS).alias("s")
    write(new, old, mode="overwrite", **options)
    assert _rows(read(spark, old)) == _replaced(matches)
    info = DeltaLog.for_path(old, {}).history(1)[0].info
    assert info.operation == "WRITE" and "predicate" not in info.operation_parameters
    assert told.items() <= info.operation_parameters.items()
    if DeltaLog.for_path(old, {}).snapshot().properties.enable_change_data_feed:
        changes = read(spark, old, readChangeFeed=True, startingVersion=2)
        kinds = [row._change_type for row in changes.select("_change_type").collect()]
        assert kinds.count("insert") == len(_NEW)
        assert kinds.count("delete") == len(_OLD) + len(_NEW) - len(_replaced(matches))


@pytest.mark.again
def test_rows_that_differ_from_pass_to_pass_are_the_same_in_all(spark, table_path):
    write(spark.range(100).selectExpr("id", "0 AS v"), table_path)
    new = spark.range(100).selectExpr("CAST(rand() * 100 AS LONG) AS id", "1 AS v")
    write(new, table_path, mode="overwrite", replaceUsing="id")
    found = read(spark, table_path)
    assert found.where("v = 1").count() == 100
    assert found.where("v = 0").join(found.where("v = 1"), "id", "left_semi").count() == 0


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"replaceUsing": "k,"}, "DELTA_ILLEGAL_OPTION"),
        ({"replaceUsing": "k", "replaceOn": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"replaceUsing": "k", "dataChange": False}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        (
            {"replaceUsing": "k", "replaceWhere": "k = 1"},
            "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
        ),
        (
            {"replaceUsing": "k", "partitionOverwriteMode": "static"},
            "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
        ),
        ({"replaceUsing": "nope"}, "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"),
        ({"replaceOn": "k = 1"}, "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"),
        ({"replaceOn": "nope = 1"}, "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"),
        ({"dataChange": False, "mode": "append"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"dataChange": False}, "OPTIMIST_NO_REARRANGEMENT"),
    ],
)
def test_options_that_contradict_each_other_are_refused(spark, table_path, options, kind):
    rows = spark.createDataFrame(_OLD, _COLUMNS)
    write(rows, table_path)
    with pytest.raises(UsageError) as caught:
        write(rows, table_path, **{"mode": "overwrite", **options})
    assert caught.value.kind == kind
    assert DeltaLog.for_path(table_path, {}).snapshot().version == 0


def test_spark_writers_replace_rows_that_match(enabled, database, tmp_path):
    name = f"{database}.t"
    rows = enabled.createDataFrame(_OLD, _COLUMNS.replace(".", "_"))
    rows.write.format("delta").saveAsTable(name)
    new = rows.where("k = 1").selectExpr("k", "'new' AS p_p", "v").coalesce(1)
    options = {"replaceUsing": "k"}
    new.write.format("delta").mode("overwrite").options(**options).saveAsTable(name)
    told = DeltaLog.for_path(f"{tmp_path}/shop/t", {}).history(1)[0].info
    assert told.operation == "WRITE"
    assert enabled.table(name).where("p_p = 'new'").count() == 2
    assert enabled.table(name).count() == len(_OLD)
    by_position = new.write.format("delta").mode("overwrite").options(**options)
    by_position.insertInto(name)
    assert enabled.table(name).count() == len(_OLD)
    matched = new.alias("s").write.format("delta").mode("overwrite").option("targetAlias", "T")
    matched.option("replaceOn", "t.k = s.k AND t.v = s.v").insertInto(name)
    assert enabled.table(name).count() == len(_OLD)
    some = new.write.format("delta").mode("overwrite").option("targetAlias", "t")
    some.option("replaceWhere", "k = 1").insertInto(name)
    assert enabled.table(name).count() == len(_OLD)
    turned = new.selectExpr("v AS k2", "p_p", "k")
    for write_wrongly, kind in (
        (
            lambda: (
                turned.write.format("delta").mode("overwrite").options(**options).insertInto(name)
            ),
            "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
        ),
        (
            lambda: (
                turned.write.format("delta")
                .mode("overwrite")
                .option("replaceOn", "v = 1")
                .insertInto(name)
            ),
            "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
        ),
        (
            lambda: new.writeTo(name).using("delta").options(**options).createOrReplace(),
            "DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING",
        ),
        (
            lambda: new.writeTo(name).options(**options).overwrite(sf.col("k") == 1),
            "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
        ),
    ):
        with pytest.raises(OptimistError) as caught:
            write_wrongly()
        assert caught.value.kind == kind


def test_rows_that_are_only_arranged_anew_say_so(spark, table_path):
    write(spark.range(10).selectExpr("id", "id % 2 AS p").repartition(4), table_path)
    options = {"mode": "overwrite", "dataChange": "false"}
    write(read(spark, table_path).coalesce(1), table_path, **options)
    log = DeltaLog.for_path(table_path, {})
    assert log.snapshot().num_files == 1
    commit = Path(table_path, "_delta_log", f"{1:020}.json").read_text(encoding="utf-8")
    assert '"dataChange":false' in commit and '"dataChange":true' not in commit
    with pytest.raises(TableError) as fewer:
        write(read(spark, table_path).where("id > 3"), table_path, **options)
    with pytest.raises(SchemaError) as wider:
        more = read(spark, table_path).withColumn("more", sf.lit(1))
        write(more, table_path, mergeSchema=True, **options)
    with pytest.raises(UsageError) as older:
        write(read(spark, table_path, versionAsOf=0), table_path, **options)
    assert fewer.value.kind == "DELTA_NUM_RECORDS_MISMATCH"
    assert wider.value.kind == "DELTA_DATA_CHANGE_FALSE"
    assert older.value.kind == "OPTIMIST_NO_REARRANGEMENT"
    assert read(spark, table_path).count() == 10
