"""Every command on tables with column mapping: what the files hold, and what readers find."""

from __future__ import annotations

from dataclasses import replace

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from mapped_files import assert_files_are_mapped, rows_of_deltalake
from optimist.core import DeltaLog
from optimist.core.schema.types import COLUMN_ID, PHYSICAL_NAME
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read, write
from table_contents import read_locally, values

pytestmark = pytest.mark.usefixtures("plane")

ODD, PART, INNER = "a.b`c d", "p,q;r", "x.y z"
QUOTED = "`a.b``c d`"
TYPE = pa.struct([(INNER, pa.float64()), ("tags", pa.list_(pa.struct([("t=1", pa.string())])))])
MAP = pa.map_(pa.string(), pa.struct([("f()", pa.int32())]))


def rows(start, count):
    numbers = list(range(start, start + count))
    structs = [
        None if n % 5 == 4 else {INNER: n / 2, "tags": [{"t=1": f"t{n}"}, None]} for n in numbers
    ]
    maps = [None if n % 3 == 2 else [(f"k{n}", {"f()": n})] for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            ODD: [f"row {n}" for n in numbers],
            PART: pa.array(["u v" if n % 2 else None for n in numbers], pa.string()),
            "s": pa.array(structs, TYPE),
            "m": pa.array(maps, MAP),
        }
    )


def expected(*tables):
    return values(pa.concat_tables(tables))


def check(spark, path, wanted):
    """Every reader finds the rows, and every file is as the mapping demands."""
    assert values(read_locally(path)) == wanted
    assert values(read(spark, path).toArrow()) == wanted
    found = rows_of_deltalake(path)
    place = found.column_names.index(PART)
    nulls = pa.array([value or None for value in found[PART].to_pylist()], pa.string())
    assert values(found.set_column(place, PART, nulls)) == wanted  # it reads a null as empty text
    assert_files_are_mapped(path)


@pytest.fixture
def mapped(spark, copied):
    """The path of a mapped table that both Spark and `DeltaLog.append` have written to."""
    return copied("mapped", lambda path: write_both_ways(spark, path, "name"))


def write_both_ways(spark, path, mode):
    properties = {"delta.columnMapping.mode": mode}
    write(spark.createDataFrame(rows(0, 8)), path, partitionBy=[PART], **properties)
    DeltaLog.for_path(path, {}).append(rows(8, 4))


@pytest.mark.again
@pytest.mark.parametrize("mode", ["name", "id"])
def test_appends_of_spark_and_without_spark_are_read_by_everyone(spark, table_path, mode):
    write_both_ways(spark, table_path, mode)
    write(spark.createDataFrame(rows(12, 2)), table_path, mode="append")
    check(spark, table_path, expected(rows(0, 14)))
    schema = DeltaLog.for_path(table_path, {}).snapshot().schema
    assert all(item.physical_name.startswith("col-") for item in schema)


@pytest.mark.again
def test_statistics_skip_files_by_the_names_of_the_table(spark, mapped):
    log = DeltaLog.for_path(mapped, {})
    assert log.snapshot().scan(f"{QUOTED} = 'row 9' AND id > 7").files.num_rows == 1
    assert log.snapshot().scan(f"s.`{INNER}` = 5.5").files.num_rows == 1
    found = read(spark, mapped).where(f"s.`{INNER}` > 4 AND `{PART}` IS NULL").select("id")
    assert sorted(row.id for row in found.collect()) == [10]


@pytest.mark.again
def test_delete_update_and_replace_where_write_mapped_files(spark, mapped):
    table = DeltaTable.forPath(spark, mapped)
    table.delete(f"{QUOTED} = 'row 3'")
    table.update(f"s.`{INNER}` = 0.5", {QUOTED: "'changed'", f"s.`{INNER}`": "7.25D"})
    kept = rows(4, 8).slice(0, 4)
    changed = rows(1, 1).to_pylist()
    changed[0] |= {ODD: "changed", "s": {**changed[0]["s"], INNER: 7.25}}
    new = rows(20, 2)
    write(spark.createDataFrame(new), mapped, mode="overwrite", replaceWhere="id >= 8")
    wanted = expected(rows(0, 1), pa.Table.from_pylist(changed, kept.schema), rows(2, 1), kept, new)
    check(spark, mapped, wanted)


def test_a_merge_with_evolution_maps_the_columns_that_it_adds(spark, mapped):
    before = DeltaLog.for_path(mapped, {}).snapshot()
    source = spark.createDataFrame(rows(10, 4)).withColumn("new.one", sf.lit(1))
    source = source.withColumn("s", sf.col("s").withField("`deep er`", sf.lit("d")))
    merge = DeltaTable.forPath(spark, mapped).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    after = DeltaLog.for_path(mapped, {}).snapshot()
    assert [item.metadata for item in after.schema][:5] == [item.metadata for item in before.schema]
    new, deep = after.schema.find("new.one"), after.schema.find("s").data_type.find("deep er")
    largest = before.properties.max_column_id
    assert sorted(item.metadata[COLUMN_ID] for item in (new, deep)) == [largest + 1, largest + 2]
    assert after.properties.max_column_id == largest + 2
    found = read(spark, mapped).where("id >= 9").orderBy("id")
    shown = found.select("id", "`new.one`", "s.`deep er`").collect()
    assert [tuple(row) for row in shown] == [
        (9, None, None), (10, 1, "d"), (11, 1, "d"), (12, 1, "d"), (13, 1, "d"),
    ]  # fmt: skip
    assert values(read_locally(mapped)) == values(read(spark, mapped).toArrow())


@pytest.mark.again
def test_an_overwritten_schema_keeps_the_ids_of_columns_that_stay_alike(spark, mapped):
    before = DeltaLog.for_path(mapped, {}).snapshot()
    frame = spark.createDataFrame(rows(0, 4)).withColumn(ODD, sf.lit(1)).drop("m")
    write(frame, mapped, mode="overwrite", overwriteSchema=True, partitionBy=[PART])
    after = DeltaLog.for_path(mapped, {}).snapshot()
    keys = {
        snapshot.version: {item.name: item.metadata[PHYSICAL_NAME] for item in snapshot.schema}
        for snapshot in (before, after)
    }
    same = {name for name in keys[2] if keys[2][name] == keys[1][name]}
    assert same == {"id", PART, "s"}
    assert after.schema.find(ODD).metadata[COLUMN_ID] == before.properties.max_column_id + 1
    assert values(read_locally(mapped)) == values(frame.toArrow())
    assert_files_are_mapped(mapped)


def test_a_dynamic_overwrite_replaces_partitions_by_physical_names(spark, mapped):
    new = rows(40, 1)
    frame = spark.createDataFrame(new)
    write(frame, mapped, mode="overwrite", partitionOverwriteMode="dynamic")
    odd = rows(0, 12).take([1, 3, 5, 7, 9, 11])
    check(spark, mapped, expected(odd, new))


@pytest.mark.again
@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_mapped_table_of_deltalake_is_appended_to_and_changed(spark, table_path, mode):
    configuration = {
        "delta.columnMapping.mode": mode,
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
    }
    deltalake.write_deltalake(
        table_path, rows(0, 6), partition_by=[PART], configuration=configuration
    )
    write(spark.createDataFrame(rows(6, 2)), table_path, mode="append")
    DeltaLog.for_path(table_path, {}).append(rows(8, 2))
    DeltaTable.forPath(spark, table_path).delete("id = 3")
    deltalake.write_deltalake(table_path, rows(10, 1), mode="append")
    check(spark, table_path, expected(rows(0, 3), rows(4, 7)))


@pytest.mark.again
def test_files_of_before_the_mapping_stay_readable(spark, table_path):
    plain = pa.table({"id": pa.array(range(4), pa.int64()), "q": [{"f": n} for n in range(4)]})
    write(spark.createDataFrame(plain), table_path)
    log = DeltaLog.for_path(table_path, {})
    begun = log.start_transaction()
    begun.update_metadata(
        replace(begun.metadata, configuration={"delta.columnMapping.mode": "name"})
    )
    begun.commit((), Operation("SET TBLPROPERTIES"))
    more = pa.table({"id": pa.array([9], pa.int64()), "q": [{"f": 9}]})
    write(spark.createDataFrame(more), table_path, mode="append")
    log.append(more)
    wanted = expected(plain, more, more)
    assert values(read_locally(table_path)) == values(read(spark, table_path).toArrow()) == wanted
    assert values(rows_of_deltalake(table_path)) == wanted
    DeltaTable.forPath(spark, table_path).update("q.f < 9", {"id": "-id"})
    assert_files_are_mapped(table_path)
