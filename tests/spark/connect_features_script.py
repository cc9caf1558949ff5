"""Run by test_features_connect.py in a process of its own: prints what happened as JSON lines.

What a table has beyond rows that are read, written and changed: mapped columns, identities, row
ids, definitions of columns and their changes, names and times, blocks of several operations.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from altered_session import tell_altered
from connect_process import kind_of, tell
from created_session import tell_created
from hand_made_tables import data_file, field, make_table, struct_of
from mapped_session import tell_mapped
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read, write
from optimist.spark.planes.sources import table_sources
from optimist.spark.session.conf import open_log
from read_back import ids


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    tell_mapped(spark, f"{folder}/mapped")
    tell_created(spark, f"{folder}/created")
    tell_altered(spark, f"{folder}/altered")
    tell_registrations(spark, folder)
    tell_times(spark, f"{folder}/times")
    tell_cut_plans(spark, folder)
    several(spark, f"{folder}/several")
    numbers_of_rows(spark, folder)
    tell_columns(spark, folder)
    spark.stop()


def tell_times(spark, path: str) -> None:
    """The times that one MERGE writes, in all of its passes."""
    write(spark.range(2).selectExpr("id", "CAST(NULL AS TIMESTAMP) AS at"), path)
    source = spark.range(1, 4).alias("s")
    table = DeltaTable.forPath(spark, path).alias("t")
    merge = table.merge(source, "t.id = s.id AND now() > '2000-01-01'")
    merge = merge.whenMatchedUpdate(set={"at": "current_timestamp"})
    merge = merge.whenNotMatchedInsert(values={"id": "s.id", "at": sf.now()})
    merge.whenNotMatchedBySourceUpdate(set={"at": sf.expr("current_timestamp()")}).execute()
    rows = read(spark, path).collect()
    tell("times", [len(rows), len({row["at"] for row in rows})])


def tell_registrations(spark, folder: str) -> None:
    """What a session registers stays in the server's memory until it ends."""
    registered = []
    kind = type(spark.dataSource)
    register = kind.register
    kind.register = lambda self, source: (registered.append(source), register(self, source))[1]
    path = f"{folder}/versions"
    for start in range(3):
        write(spark.range(start, start + 1), path, mode="append")
        tell(f"version {start}", ids(read(spark, path)))
    kind.register = register
    tell("registered", len(registered))
    read(spark, path, versionAsOf=1).createOrReplaceTempView("asked")
    read(spark, path).createOrReplaceTempView("newest")
    both = spark.sql("SELECT a.id FROM asked a JOIN newest n ON a.id = n.id")
    found = sorted((item.version, item.is_time_travel) for item in table_sources(both))
    tell("behind views", found)


def tell_cut_plans(spark, folder: str) -> None:
    """Overwrites from a view of the table itself, while the server cuts the texts of plans."""
    path = f"{folder}/cut"
    write(spark.range(3), path)
    read(spark, path).createOrReplaceTempView("before")
    write(spark.range(9, 10), path, mode="append")
    view = spark.sql("SELECT id FROM before")
    rearranged = {"mode": "overwrite", "dataChange": False}
    cuts = {
        "spark.sql.maxPlanStringLength": ["0", "200", "1000"],
        "spark.sql.redaction.string.regex": ["[0-9a-f]{16}"],
    }
    found, sources = [], set()
    for key, values in cuts.items():
        for value in values:
            spark.conf.set(key, value)
            found.append(kind_of(lambda: write(view, path, mode="overwrite")))
            other = spark.sql("SELECT id FROM range(5) WHERE id IN (SELECT 1L)")
            found.append(kind_of(lambda frame=other: write(frame, path, **rearranged)))
            of_path = [item for item in table_sources(view) if item.path.endswith("/cut")]
            sources |= {(key, item.version, item.is_assumed) for item in of_path}
            assert spark.conf.get(key) == value
            spark.conf.unset(key)
    tell("cut plans", sorted(set(found)))
    tell("sources of cut plans", sorted(sources))
    tell("rows of cut plans", ids(read(spark, path)))
    spark.conf.set("spark.sql.maxPlanStringLength", "200")
    read(spark, path).createOrReplaceTempView("before")
    tell("appended by a cut plan", kind_of(lambda: write(view, path, mode="append")))
    spark.conf.unset("spark.sql.maxPlanStringLength")
    tell("blind append of a cut plan", open_log(spark, path).history(1)[0].info.is_blind_append)


def several(spark: SparkSession, path: str) -> None:
    """Several operations in one commit."""
    write(spark.range(20).selectExpr("id", "id AS v"), path)
    table = DeltaTable.forPath(spark, path).alias("t")
    with table.transaction() as txn:
        txn.write(spark.range(20, 25).selectExpr("id", "-id AS v"))
        txn.delete("t.id < 18")
        txn.update("length('x') + id > 23", {"v": "0"})
        source = spark.range(24, 27).selectExpr("id", "9L AS v").alias("s")
        merge = txn.merge(source, "s.id = t.id").whenMatchedUpdateAll()
        merge.whenNotMatchedInsertAll().execute()
        tell("within", sorted([row.id, row.v] for row in txn.toDF().collect()))
    tell("several", [txn.result.version, sorted([row.id, row.v] for row in table.toDF().collect())])


def numbers_of_rows(spark, folder: str) -> None:
    """Row ids, which rows keep, and identity columns, whose numbers tasks give out."""
    path = f"{folder}/tracked"
    write(spark.range(0, 6, 1, 1), path, **{"delta.enableRowTracking": "true"})
    DeltaTable.forPath(spark, path).delete("id = 1")
    DeltaTable.forPath(spark, path).update("id = 2", {"id": "20L"})
    names = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    rows = open_log(spark, path).to_arrow(columns=names).to_pylist()
    tell("row ids", sorted(list(row.values()) for row in rows))
    read_rows = read(spark, path, columns=names).collect()
    tell("row ids read", sorted(list(row) for row in read_rows))
    path = f"{folder}/identities"
    keys = {f"delta.identity.{key}": value for key, value in (("start", 7), ("step", 2))}
    number = {"name": "n", "type": "long", "nullable": True, "metadata": keys}
    other = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [number, other]})
    txn = open_log(spark, path).start_transaction()
    txn.update_metadata(Metadata("", schema))
    txn.commit((), Operation("CREATE TABLE"))
    write(spark.range(0, 6, 1, 2), path, mode="append")
    write(spark.range(6, 8, 1, 1), path, mode="append")
    tell("identities", sorted(row.n for row in read(spark, path).collect()))


def tell_columns(spark, folder: str) -> None:
    """Reads of some columns: nothing else is decoded, so what can't be read does no harm."""
    root = Path(folder) / "columns"
    st = pa.array([{"a": 5, "b": 6}, None], pa.struct([("a", "int64"), ("b", "int64")]))
    rows = pa.table({"id": [1, 2], "bad": ["x", "y"], "st": st})
    kind = struct_of(field("a", "long"), field("b", "long"))
    fields = [field("id", "long"), field("bad", "long"), field("st", kind)]
    path = str(make_table(root, fields, [data_file(root, "f.parquet", rows)]))
    some = read(spark, path, columns=["st.a", "ID", "id"])
    tell("some columns", [some.columns, [list(row) for row in some.collect()]])
    tell("their scan", [item.version for item in table_sources(some)])
    places = read(spark, path, columns=["_metadata.row_index", "_metadata.file_name"])
    tell("only metadata", sorted(list(row) for row in places.collect()))
    tell("all columns", kind_of(lambda: read(spark, path).collect()))
    tell("no such column", kind_of(lambda: read(spark, path, columns=["gone"])))


if __name__ == "__main__":
    main(sys.argv[1])
