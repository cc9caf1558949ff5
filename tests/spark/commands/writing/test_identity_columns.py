"""Identity columns on Spark: new rows get numbers that no other row has, whoever writes them."""

from __future__ import annotations

import json

import pytest
from deltalake import DeltaTable as OtherTable

from optimist.core import DeltaLog
from optimist.core.errors import MetadataChangedException, SchemaError, UsageError
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.writing.data_writer import DataWriter

MARK = "delta.identity.highWaterMark"


def field(name, data_type="long", **metadata):
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def identity(name, start=1, step=1, *, by_default=False):
    keys = {"start": start, "step": step, "allowExplicitInsert": by_default}
    return field(name, **{f"delta.identity.{key}": value for key, value in keys.items()})


def make_table(path, *fields, partition_columns=(), **configuration):
    log = DeltaLog.for_path(path, {})
    schema = json.dumps({"type": "struct", "fields": fields})
    txn = log.start_transaction()
    txn.update_metadata(
        Metadata(
            "", schema, partition_columns=tuple(partition_columns), configuration=configuration
        )
    )
    txn.commit((), Operation("CREATE TABLE"))
    return log


def mark(log, name="i.d"):
    return log.snapshot().schema.find(name).metadata.get(MARK)


@pytest.fixture
def table(table_path, plane):
    fields = (identity("i.d", 10, -2), field("x"), field("p", "string"), identity("`n`", 0, 5))
    feed = {"delta.enableChangeDataFeed": "true"}
    return make_table(table_path, *fields, partition_columns=["p"], **feed)


def rows(spark, start, end, num_tasks=3):
    return spark.range(start, end, 1, num_tasks).selectExpr("id AS x", "concat('p', id % 2) AS p")


def contents(spark, path):
    return {row.x: (row["i.d"], row["`n`"]) for row in read(spark, path).collect()}


def ensure_apart(found, log):
    """Every number is of its sequence and there once, and the marks are where they must be."""
    ids, others = zip(*found.values(), strict=True)
    assert len(set(ids)) == len(set(others)) == len(found)
    assert all(number <= 10 and number % 2 == 0 for number in ids)
    assert all(number >= 0 and number % 5 == 0 for number in others)
    assert mark(log) <= min(ids)
    assert mark(log, "`n`") >= max(others)


@pytest.mark.again
def test_every_command_gives_out_numbers_once_and_keeps_them(spark, table_path, table):
    write(rows(spark, 0, 9), table_path, mode="append")
    first = contents(spark, table_path)
    ensure_apart(first, table)
    assert mark(table) == min(number for number, _ in first.values())
    assert mark(table, "`n`") == max(number for _, number in first.values())
    assert table.history(1)[0].info.tags == {"delta.identity.schemaUpdate": "true"}
    target = DeltaTable.forPath(spark, table_path)
    target.update("x < 3", {"p": "'p9'"})
    target.delete("x = 8")
    assert table.history(1)[0].info.tags is None
    kept = contents(spark, table_path)
    assert kept == {x: values for x, values in first.items() if x != 8}
    source = spark.sql("SELECT * FROM VALUES (1L, 'p1'), (20L, 'p1'), (21L, 'p0') AS (x, p)")
    merge = target.alias("t").merge(source.alias("s"), "t.x = s.x")
    merge.whenMatchedUpdate(set={"p": "'m'"}).whenNotMatchedInsertAll().execute()
    merged = contents(spark, table_path)
    assert {x: values for x, values in merged.items() if x < 20} == kept
    assert sorted(merged) == [0, 1, 2, 3, 4, 5, 6, 7, 20, 21]
    ensure_apart(merged, table)
    feed = read(spark, table_path, readChangeFeed=True, startingVersion=table.snapshot().version)
    inserted = feed.where("_change_type = 'insert'").collect()
    assert {row.x: (row["i.d"], row["`n`"]) for row in inserted} == {
        x: values for x, values in merged.items() if x >= 20
    }
    write(rows(spark, 30, 34), table_path, mode="overwrite", replaceWhere="x >= 20")
    replaced = contents(spark, table_path)
    assert {x: values for x, values in replaced.items() if x < 20} == kept
    ensure_apart(replaced, table)
    assert not set(replaced[30]) & {number for x in (20, 21) for number in merged[x]}
    assert OtherTable(table_path).to_pyarrow_table().num_rows == 12


@pytest.mark.parametrize("plane", ["native"], indirect=True)
def test_numbers_are_not_the_users_to_choose(spark, table_path, table):
    kind = "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    data = spark.sql("SELECT 1L AS x, 'p' AS p, 5L AS `I.D`")
    target = DeltaTable.forPath(spark, table_path).alias("t")
    inserts = target.merge(data.alias("s"), "t.x = s.x").whenNotMatchedInsert(
        values={"`i.d`": "7L", "x": "s.x"}
    )
    for call in (lambda: write(data, table_path, mode="append"), inserts.execute):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.kind == kind
    updates = target.merge(data.alias("s"), "t.x = s.x").whenMatchedUpdate(set={"`i.d`": "7L"})
    for call in (lambda: target.update(set={"```n```": "1L"}), updates.execute):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.kind == "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"
    assert table.snapshot().version == 0


def test_default_is_no_number_of_a_merge(spark, table_path):
    """It is none for delta-spark's MERGE either; it must not become a null."""
    table = make_table(table_path, identity("id", by_default=True), field("x"))
    data = spark.sql("SELECT 1L AS x")
    target = DeltaTable.forPath(spark, table_path).alias("t")
    merge = target.merge(data.alias("s"), "t.x = s.x")
    with pytest.raises(SchemaError) as caught:
        merge.whenNotMatchedInsert(values={"t.ID": " Default ", "x": "s.x"}).execute()
    assert caught.value.kind == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    with pytest.raises(UsageError) as refused:
        merge.whenMatchedUpdate(set={"id": "DEFAULT"}).execute()
    assert refused.value.kind == "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"
    assert table.snapshot().version == 0
    merge.whenNotMatchedInsert(values={"x": "DEFAULT"}).execute()
    assert [tuple(row) for row in read(spark, table_path).collect()] == [(1, None)]


@pytest.mark.usefixtures("plane")
def test_a_sequence_that_ends_refuses_more_rows(spark, table_path):
    log = make_table(table_path, identity("i.d", 2**63 - 4, 3), field("x"))
    with pytest.raises(SchemaError) as caught:
        write(spark.range(0, 3, 1, 1).selectExpr("id AS x"), table_path, mode="append")
    assert caught.value.kind == "OPTIMIST_IDENTITY_COLUMN_EXHAUSTED"
    write(spark.range(0, 1, 1, 1).selectExpr("id AS x"), table_path, mode="append")
    assert mark(log) == 2**63 - 4


@pytest.mark.parametrize("plane", ["native"], indirect=True)
def test_checks_and_generated_columns_see_the_numbers(spark, table_path, plane):
    log = make_table(
        table_path,
        identity("i", 1, 1, by_default=True),
        field("x"),
        field("twice", **{"delta.generationExpression": "i * 2"}),
        **{"delta.constraints.small": "i < 100"},
    )
    write(spark.range(2).selectExpr("id AS x"), table_path, mode="append")
    write(spark.sql("SELECT 5L AS x, 99L AS i"), table_path, mode="append")
    found = read(spark, table_path)
    assert found.where("twice = 2 * i").count() == 3
    assert mark(log, "i") == found.where("x < 5").agg({"i": "max"}).first()[0]
    source = spark.sql("SELECT 7L AS x, 1L AS ignored")
    merge = DeltaTable.forPath(spark, table_path).alias("t").merge(source.alias("s"), "t.x = s.x")
    merge.whenNotMatchedInsert(values={"x": "s.x"}).execute()
    assert read(spark, table_path).where("x = 7 AND twice = 2 * i").count() == 1
    with pytest.raises(SchemaError):
        write(spark.sql("SELECT 8L AS x, 100L AS i"), table_path, mode="append")


@pytest.mark.again
@pytest.mark.parametrize("plane", ["native"], indirect=True)
def test_of_two_writers_that_give_out_the_same_numbers_one_fails(
    spark, table_path, table, monkeypatch
):
    put = DataWriter.write

    def write_after_another(writer, *arguments, **options):
        monkeypatch.undo()
        write(rows(spark, 0, 4), table_path, mode="append")
        return put(writer, *arguments, **options)

    monkeypatch.setattr(DataWriter, "write", write_after_another)
    with pytest.raises(MetadataChangedException):
        write(rows(spark, 10, 14), table_path, mode="append")
    found = contents(spark, table_path)
    assert sorted(found) == [0, 1, 2, 3]
    ensure_apart(found, table)


@pytest.mark.again
def test_rows_are_numbered_by_the_tasks_that_write_them(spark, table_path, table, conf):
    """After a shuffle, a task that ran again could give numbers that are in files already."""
    conf("spark.databricks.delta.optimizeWrite.enabled", "true")
    write(rows(spark, 0, 60), table_path, mode="append")
    assert table.snapshot().num_files > 2
    numbered = contents(spark, table_path)
    assert len({found[0] for found in numbered.values()}) == len(numbered) == 60
