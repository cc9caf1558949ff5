"""What our entry points say of arguments that are of the wrong type: Delta's words, builtin types.

The phrases are those of Delta's Python API, which its users' tests look for.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as sf

from optimist.core.errors import ArgumentTypeError, UsageError
from optimist.spark import DeltaTable, count, read, write


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("arguments") / "table"
    write(
        spark.sql("SELECT CAST(id AS INT) AS id, id % 2 AS p FROM range(2)"), path, partitionBy="p"
    )
    return path


CONDITION = r"'condition' must be a Spark SQL Column or a string \(expression in SQL syntax\)"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.delete(condition=1), CONDITION + ", found to be of type <class 'int'>"),
        (lambda t: t.update(True, {"id": "1"}), CONDITION),
        (lambda t: t.update(1, set=[]), "'set' must be a dict, found to be <class 'list'>"),
        (lambda t: t.update(set="id"), "'set' must be a dict"),
        (
            lambda t: t.update(set={1: "2"}),
            "Keys of dict in 'set' must contain only strings with column names, found '1' of type",
        ),
        (
            lambda t: t.update(set={"id": 2}),
            r"Values of dict in 'set' must contain only Spark SQL Columns or strings \(expressions "
            r"in SQL syntax\) as values, found '2' of type '<class 'int'>'",
        ),
        (lambda t: t.update(set={"id": None}), "Values of dict in 'set' must contain only"),
        (lambda t: t.alias(None), "aliasName must be a str"),
        (lambda t: t.history("1"), "limit must be a int"),
        (lambda t: t.history(True), "limit must be a int"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused_in_the_words_of_delta(spark, table, call, words):
    with pytest.raises(TypeError, match=words) as caught:
        call(DeltaTable.forPath(spark, table))
    assert isinstance(caught.value, ArgumentTypeError)
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT_TYPE"


def test_update_asks_for_what_to_set_before_anything_else(spark, table):
    target = DeltaTable.forPath(spark, table)
    for call in (lambda: target.update("id = 1"), lambda: target.update(condition=1)):
        with pytest.raises(ValueError, match="'set' cannot be None") as caught:
            call()
        assert not isinstance(caught.value, TypeError)


@pytest.mark.parametrize("path", [None, 5, b"/tmp/t", ["/tmp/t"]])
def test_what_is_no_path_is_refused_by_every_entry_point(spark, path):
    for call in (
        lambda: read(spark, path),
        lambda: write(spark.range(1), path),
        lambda: DeltaTable.forPath(spark, path),
        lambda: DeltaTable.isDeltaTable(spark, path),
    ):
        with pytest.raises(TypeError, match=r"must be text or a pathlib\.Path") as caught:
            call()
        assert isinstance(caught.value, UsageError)


@pytest.mark.again
def test_paths_of_pathlib_are_taken_by_every_entry_point(spark, table, tmp_path):
    assert isinstance(table, Path)
    assert read(spark, table).count() == 2
    assert DeltaTable.forPath(spark, table).toDF().count() == 2
    assert DeltaTable.isDeltaTable(spark, table)
    assert write(spark.range(1), tmp_path / "new").version == 0


def test_whatever_lies_in_a_table_is_part_of_one(spark, table, tmp_path):
    (data,) = (entry for entry in table.iterdir() if entry.name.startswith("data-"))
    for path in (data / "p=1", data, f"{table}/", f"file://{data}", f"delta.`{data}`"):
        assert DeltaTable.isDeltaTable(spark, path)
    for path in (table / "_delta_log", table.parent, tmp_path, tmp_path / "nothing" / "here"):
        assert not DeltaTable.isDeltaTable(spark, path)


@pytest.mark.parametrize("data", [None, [(1, 2)], {"id": [1]}])
def test_only_a_frame_can_be_written(data, tmp_path):
    with pytest.raises(TypeError, match=r"df must be a DataFrame, found to be .*createDataFrame"):
        write(data, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "options",
    [
        {"partitionBy": 5},
        {"partitionBy": [None]},
        {"partitionBy": {"p": 1}},
        {"mode": None},
        {"mode": "overwrite", "replaceWhere": sf},
        {"maxRecordsPerFile": "many"},
        {"txnAppId": "a", "txnVersion": -1},
        {"partitionOverwriteMode": "sometimes"},
    ],
)
def test_options_that_are_no_options_are_refused(spark, options, tmp_path):
    with pytest.raises(UsageError):
        write(spark.range(1), tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_a_predicate_of_count_is_text_or_a_column(spark, table):
    with pytest.raises(ArgumentTypeError, match=CONDITION):
        count(spark, table, 0)
    assert count(spark, table, "id = 0") == 1
