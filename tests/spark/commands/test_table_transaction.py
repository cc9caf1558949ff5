"""Several operations in one commit with Spark, on both planes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable as OtherTable
from pyspark.sql import functions as sf

from optimist.core import NewColumn
from optimist.core.errors import DeltaConcurrentModificationException, SchemaError, UsageError
from optimist.spark import DeltaTable, read, write
from sixty_rows import write_sixty_rows

DEFAULTS = "spark.databricks.delta.properties.defaults."


@pytest.fixture(params=["true", "false"], ids=["vectors", "copies"])
def table(request, spark, tmp_path, every_plane, conf):
    """Sixty rows."""
    conf(f"{DEFAULTS}enableDeletionVectors", request.param)
    path = str(tmp_path / "t")
    write_sixty_rows(spark, path)
    return DeltaTable.forPath(spark, path)


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


def more(spark, *numbers):
    columns = [sf.lit(7).alias("p"), sf.lit(1).alias("x"), sf.lit("new").alias("s")]
    frame = spark.createDataFrame([(number,) for number in numbers], "id long")
    return frame.select("id", *columns)


def path_of(table):
    return table.detail().collect()[0].location.removeprefix("file:")


def files_below(path):
    found = (*Path(path).rglob("*.parquet"), *Path(path).rglob("*.bin"))
    return {str(each) for each in found if "_delta_log" not in each.parts}


def test_operations_see_those_before_them_and_are_one_commit(spark, table, log_of):
    path = path_of(table)
    log = log_of(path)
    before = log.snapshot().version
    with table.alias("t").transaction(user_metadata="why") as txn:
        txn.write(more(spark, 100, 101))
        txn.delete("id < 55 OR id = 100")
        txn.update("id = 101", {"id": "id + length('x')"})
        source = more(spark, 102, 103).withColumn("x", sf.lit(9)).alias("s")
        merge = txn.merge(source, "s.id = t.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        merge.execute()
        assert ids(txn.toDF()) == [55, 56, 57, 58, 59, 102, 103]
        txn.delete(txn.toDF()["id"] == 55)
        assert len(ids(read(spark, path))) == 60  # nobody else sees any of it
    assert txn.result.version == log.snapshot().version == before + 1
    assert ids(read(spark, path)) == [56, 57, 58, 59, 102, 103]
    assert log.to_arrow("id = 102")["x"].to_pylist() == [9]
    info = log.history(1)[0].info
    assert (info.operation, info.user_metadata) == ("TRANSACTION", "why")
    told = json.loads(info.operation_parameters["operations"])
    operations = [each["operation"] for each in told]
    assert operations == ["WRITE", "DELETE", "UPDATE", "MERGE", "DELETE"]
    assert OtherTable(path).version() == before + 1
    newest = table.history(1).collect()[0]
    assert newest.operation == "TRANSACTION"


@pytest.mark.again
def test_an_overwrite_and_new_columns_are_operations_too(spark, table, log_of):
    path = path_of(table)
    with table.transaction() as txn:
        txn.write(more(spark, 1, 2), mode="overwrite")
        txn.alter.add_columns([NewColumn("z", "int")])
        txn.update(set={"z": "CAST(id AS INT) + 1"})
        txn.write(more(spark, 3).withColumn("y", sf.lit("new")), mergeSchema=True)
    found = {row.id: (row.z, row.y) for row in read(spark, path).collect()}
    assert found == {1: (2, None), 2: (3, None), 3: (None, "new")}


@pytest.mark.again
def test_an_error_leaves_the_table_and_its_directory_as_they_were(spark, table, log_of):
    path = path_of(table)
    version, before = log_of(path).snapshot().version, files_below(path)
    with pytest.raises(SchemaError), table.transaction() as txn:
        txn.write(more(spark, 100))
        txn.update("length('x') + id = 1", {"x": "2"})
        txn.delete("id = 7")
        txn.write(more(spark, 5).withColumn("other", sf.lit(1)))
    assert log_of(path).snapshot().version == version
    assert files_below(path) == before


@pytest.mark.again
def test_rows_read_from_the_transaction_are_read_by_its_commit(spark, table, log_of):
    path = path_of(table)
    # The other commit has the number that the block's own rows go by, where planes tell numbers.
    refused = (DeltaConcurrentModificationException, UsageError)
    with pytest.raises(refused), table.transaction() as txn:
        txn.delete("id = 1")
        rows = txn.toDF().where("id = 2").withColumn("id", sf.lit(200).cast("long"))
        log_of(path).delete("id = 2")
        txn.write(rows)
    assert not {2, 200} & set(ids(read(spark, path)))
    assert 1 in ids(read(spark, path))


def test_rows_read_before_the_transaction_do_not_replace_what_it_did(spark, table):
    path = path_of(table)
    old = read(spark, path).where("id < 10")
    with pytest.raises(UsageError) as error, table.transaction() as txn:
        txn.write(more(spark, 100))
        txn.write(old, mode="overwrite")
    assert error.value.kind == "OPTIMIST_STEPS_OUT_OF_ORDER"
    with table.transaction() as txn:
        txn.write(txn.toDF().where("id < 10"), mode="overwrite")
        txn.write(more(spark, 100))
    assert ids(read(spark, path)) == [*range(10), 100]


def test_rows_of_a_version_that_came_within_the_block_are_refused(spark, table, log_of):
    path = path_of(table)
    table.alter.set_properties({"delta.isolationLevel": "WriteSerializable"})
    with pytest.raises(UsageError) as error, table.transaction() as txn:
        txn.alter.set_comment("one step")
        write(more(spark, 100), path, mode="append")
        txn.write(read(spark, path), mode="overwrite")  # would have row 100 twice
    assert error.value.kind == "OPTIMIST_STEPS_OUT_OF_ORDER"
    assert ids(read(spark, path)) == [*range(60), 100]


@pytest.mark.again
def test_another_writer_of_other_rows_is_passed(spark, table, log_of):
    path = path_of(table)
    with table.transaction() as txn:
        txn.write(more(spark, 100))
        txn.update("id = 100", {"x": "5"})
        log_of(path).delete("id < 30")
    assert ids(read(spark, path)) == [*range(30, 60), 100]


@pytest.mark.again
@pytest.mark.parametrize(
    "name",
    [
        *("clone", "cloneAtTimestamp", "cloneAtVersion", "dropFeatureSupport", "optimize"),
        *("restoreToTimestamp", "restoreToVersion", "transaction", "vacuum"),
    ],
)
def test_what_can_be_no_step_is_refused_by_name(spark, numbers, table_path, name):
    write(numbers, table_path)
    table = DeltaTable.forPath(spark, table_path)
    with pytest.raises(UsageError) as error, table.transaction() as txn:
        getattr(txn, name)()
    assert error.value.kind == "OPTIMIST_NOT_A_STEP"


def test_a_write_that_only_arranges_rows_is_refused(spark, table):
    with pytest.raises(UsageError) as error, table.transaction() as txn:
        txn.write(txn.toDF(), mode="overwrite", dataChange=False)
    assert error.value.kind in ("OPTIMIST_NOT_A_STEP", "OPTIMIST_NO_REARRANGEMENT")


def test_an_operation_outside_the_block_is_refused(spark, numbers, table_path):
    write(numbers, table_path)
    txn = DeltaTable.forPath(spark, table_path).transaction()
    with pytest.raises(UsageError) as error:
        txn.delete("true")
    assert error.value.kind == "OPTIMIST_TRANSACTION_FAILED"
    with txn:
        txn.delete("id = 1")
    with pytest.raises(UsageError) as error:
        txn.toDF()
    assert error.value.kind == "OPTIMIST_TRANSACTION_ALREADY_COMMITTED"
