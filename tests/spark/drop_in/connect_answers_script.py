"""Run by test_connect_answers.py in a process of its own: prints what happened as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from connect_process import kind_of, tell
from far_filters import OF_ONE_PARTITION, QUERIES
from optimist.spark import DeltaTable, enable, read, write
from optimist.spark.arrow import source
from optimist.spark.commands.dml.target import Target
from optimist.spark.drop_in.connect import client as connect
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.session.conf import open_log
from parameter_answers import ZONE, parameter_answers
from read_back import ids


def rows(frame):
    return [list(row) for row in frame.collect()]


def over_itself(name: str, frame, path: str) -> None:
    """Put a frame of a table in the table's place, in one of several ways."""
    table = f"delta.`{path}`"
    writer = frame.write.format("delta").mode("overwrite")
    if name == "overwrite":
        writer.save(path)
    elif name == "replaceWhere":
        writer.option("replaceWhere", "id < 1000").save(path)
    elif name == "replaceOn":
        matching = frame.alias("s").write.format("delta").mode("overwrite")
        matching.option("replaceOn", "t.id >= 0").option("targetAlias", "t").save(path)
    elif name == "replace":
        frame.writeTo(table).createOrReplace()
    elif name == "insert":
        frame.sparkSession.sql(f"INSERT OVERWRITE {table} SELECT * FROM {{rows}}", rows=frame)
    else:
        merge = DeltaTable.forPath(frame.sparkSession, path).alias("t")
        merge = merge.merge(frame.alias("s"), "t.id = s.id").whenNotMatchedBySourceDelete()
        merge.execute()


def tell_cached(spark: SparkSession, folder: str) -> None:
    """A table is overwritten with a cached frame of its own, and others have committed since."""
    for name in ("overwrite", "replaceWhere", "replaceOn", "replace", "insert", "merge"):
        path = f"{folder}/cached_{name}"
        spark.range(3).write.format("delta").save(path)
        frame = spark.read.format("delta").load(path).cache()
        write(spark.range(10, 12), path, mode="append")
        how = kind_of(lambda frame=frame, path=path, name=name: over_itself(name, frame, path))
        tell(f"cached: {name}", [how, ids(read(spark, path))])
    kept = connect._PLANS[spark.client]._persisted
    tell("kept", len(kept) > 0)
    del frame
    gc.collect()
    tell("kept without a frame", len(kept))
    frame = spark.read.format("delta").load(f"{folder}/cached_merge").where("id > 0").cache()
    write(spark.range(20, 21), f"{folder}/cached_merge", mode="append")
    before = ids(frame)
    spark.sql("/* all */ clear CACHE;")
    tell("cleared", [before, ids(frame)])


def tell_subqueries(spark: SparkSession, folder: str) -> None:
    """A frame is fixed to one version of a table that its subquery reads as well."""
    path = f"{folder}/subqueries"
    spark.range(3).write.format("delta").save(path)
    frame, inner = (spark.read.format("delta").load(path) for _ in range(2))
    largest = frame.where(frame.id == inner.agg(sf.max("id")).scalar())
    write(spark.range(3, 5), path, mode="append")
    fixed = of_fixed_versions(largest)
    write(spark.range(5, 7), path, mode="append")
    tell("fixed subqueries", [ids(fixed), ids(largest)])


def tell_made_anew(spark: SparkSession, folder: str) -> None:
    """Another table of the same version stands at the place of one that a frame follows."""
    path = f"{folder}/anew"
    spark.range(3).write.format("delta").save(path)
    frame = spark.read.format("delta").load(path)
    shutil.rmtree(path)
    spark.range(10, 12).write.format("delta").save(path)
    frame.write.format("delta").save(f"{folder}/copy_of_anew")
    gc.collect()
    tell("made anew", [ids(spark.read.format("delta").load(f"{folder}/copy_of_anew")), ids(frame)])


def tell_statements(spark: SparkSession, folder: str) -> None:
    name = f"delta.`{folder}/text`"
    spark.sql(f"CREATE TABLE {name} (id INT, p STRING) PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, '1'), (2, '01'), (3, 'abc')")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 1) VALUES (9)")
    tell("text partition", sorted(rows(spark.table(name))))

    name, some = f"delta.`{folder}/formats`", spark.range(3, 8)
    spark.range(5).write.format("delta").save(f"{folder}/formats")
    clauses = "WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE"
    on = "ON t.id = s.id AND s.id < {x}"
    merged = spark.sql(f"MERGE INTO {name} t USING {{s}} s {on} {clauses}", s=some, x=4)
    told = rows(merged)
    spark.sql(f"DELETE FROM {name} WHERE id = {{x}} AND '{{{{}}}}' = concat('{{{{', '}}}}')", x=0)
    spark.sql(f"UPDATE {name} SET id = {{n}} WHERE {{c}} = 1", n=100, c=sf.col("id"))
    spark.sql(f"INSERT INTO {name} SELECT max(id) * {{n}} FROM {{s}}", s=some, n=10)
    query = f"SELECT t.id FROM {name} t JOIN {{s}} USING (id) WHERE id > {{n}} ORDER BY 1"
    tell("formats", [told, ids(spark.table(name)), rows(spark.sql(query, s=some, n=5))])

    spark.sql(f"CACHE LAZY TABLE kept OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT * FROM {name}")
    tell("cached query", [spark.table("kept").count(), spark.catalog.isCached("kept")])
    bad = f"CACHE TABLE bad OPTIONS ('storageLevel' 'NOPE') AS SELECT * FROM {name}"
    tell("badly cached query", [kind_of(lambda: spark.sql(bad)), spark.catalog.tableExists("bad")])
    spark.read.format("delta").load(f"{folder}/formats").createOrReplaceTempView("v")
    tell("into a view", kind_of(lambda: spark.sql("INSERT INTO v VALUES (5)")))

    name = f"delta.`{folder}/defaults`"
    allowed = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING DEFAULT 'none') {allowed}")
    spark.sql(f"INSERT INTO {name} SELECT id, DEFAULT FROM range(2)")
    spark.sql(f"INSERT INTO {name} SELECT id, default FROM (SELECT 7 AS id, 'mine' AS default)")
    spark.sql(f"INSERT INTO {name} SELECT * FROM VALUES (3, DEFAULT), (4, 'x')")
    spark.sql(f"INSERT INTO {name} (SELECT 5, DEFAULT)")
    tell("defaults", sorted(rows(spark.table(name))))
    for case, text in {
        "cache of a path": f"CACHE TABLE {name}",
        "view by the format": f"CREATE TEMP VIEW w USING delta OPTIONS (path '{folder}/defaults')",
        "directory": f"INSERT OVERWRITE LOCAL DIRECTORY '{folder}/d' USING delta SELECT 1 AS id",
    }.items():
        tell(f"refused: {case}", kind_of(lambda text=text: spark.sql(text)))


def tell_values(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/values"
    is_even = sf.udf(lambda value: value % 2 == 0, "boolean")
    spark.udf.register("drawn", is_even.asNondeterministic())
    spark.udf.register("is_one", sf.udf(lambda value: value == 1, "boolean"))
    both = "named_struct('a', id, 'b', id) AS st"
    spark.range(200).selectExpr("id", both).write.format("delta").save(path)
    name = f"delta.`{path}`"
    calls = {
        "delete": lambda: spark.sql(f"DELETE FROM {name} WHERE drawn(id)"),
        "quoted": lambda: spark.sql(f"DELETE FROM {name} WHERE `rand`() < 0.5"),
        "update": lambda: spark.sql(f"UPDATE {name} SET id = 0 WHERE drawn(id)"),
        "merge": lambda: spark.sql(
            f"MERGE INTO {name} t USING (SELECT 1 AS k) s ON t.id = k AND drawn(t.id) "
            "WHEN MATCHED THEN DELETE"
        ),
        "replaceWhere": lambda: spark.table(name).writeTo(name).overwrite(sf.expr("drawn(id)")),
    }
    for case, call in calls.items():
        tell(f"drawn: {case}", kind_of(call))
    spark.sql(f"DELETE FROM {name} WHERE is_one(id)")
    one, two = "named_struct('a', 1, 'b', 1)", "named_struct('a', 2, 'b', 2)"
    spark.sql(f"UPDATE {name} SET st = if(rand() < 0.5, {one}, {two})")
    tell("drawn once", rows(spark.sql(f"SELECT count(*), sum(st.a - st.b) FROM {name}")))
    spark.conf.set("spark.sql.caseSensitive", "true")
    tell("other case", kind_of(lambda: DeltaTable.forPath(spark, path).update(set={"ID": "0"})))
    spark.conf.unset("spark.sql.caseSensitive")
    spark.range(2).selectExpr("id", both).writeTo(name).overwrite(sf.lit(True))
    metrics = open_log(spark, path).history(1)[0].info.operation_metrics
    tell("all rows", [metrics["numDeletedRows"], spark.table(name).count()])


def tell_named(spark: SparkSession, folder: str) -> None:
    """Writers that name a table cast to its types, and change no version but the newest."""
    path = f"{folder}/named"
    spark.range(2).write.format("delta").save(path)
    name = f"delta.`{path}`"
    given = spark.sql("SELECT CAST(7 AS DECIMAL(5, 0)) AS id")
    given.writeTo(name).append()
    given.write.mode("append").saveAsTable(name)
    tell("cast: append", [ids(spark.table(name)), spark.table(name).schema.simpleString()])
    given.writeTo(name).overwrite(sf.col("id") == 7)
    tell("cast: overwrite", ids(spark.table(name)))
    given.writeTo(name).overwritePartitions()
    tell("cast: partitions", ids(spark.table(name)))
    older, rows = f"delta.`{path}@v0`", spark.range(3, 4)
    calls = {
        "delete": lambda: spark.sql(f"DELETE FROM {older}"),
        "update": lambda: spark.sql(f"UPDATE {older} SET id = 1"),
        "insert": lambda: spark.sql(f"INSERT INTO {older} VALUES (1)"),
        "merge": lambda: spark.sql(
            f"MERGE INTO {older} t USING {older} s ON t.id = s.id WHEN MATCHED THEN DELETE"
        ),
        "insertInto": lambda: rows.write.insertInto(older),
        "saveAsTable": lambda: rows.write.mode("append").saveAsTable(older),
        "append": lambda: rows.writeTo(older).append(),
        "partitions": lambda: rows.writeTo(older).overwritePartitions(),
        "truncate": lambda: spark.sql(f"TRUNCATE TABLE {older}"),
    }
    for case, call in calls.items():
        tell(f"a version: {case}", kind_of(call))
    tell("a version: afterwards", [ids(spark.table(name)), Path(f"{path}@v0").exists()])


def tell_changed_conf(spark: SparkSession, folder: str) -> None:
    """The zone changes once rows are found, and the meaning of a text before it is queried."""
    path, matching = f"{folder}/changed_conf", Target.search
    spark.sql(
        f"CREATE TABLE delta.`{path}` AS SELECT id, timestamp_seconds(id) AS at FROM range(9)"
    )

    def then_change(self, *args, **kwargs):
        found = matching(self, *args, **kwargs)
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        return found

    Target.search = then_change
    table = DeltaTable.forPath(spark, path)
    tell("changed conf", kind_of(lambda: table.delete("at >= '1970-01-01 00:00:05'")))
    Target.search = matching
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    tell("changed conf left", spark.table(f"delta.`{path}`").count())
    names = f"{folder}/names"
    made = spark.sql("VALUES (1, 'x', 'x'), (2, 'a', 'b')").toDF("id", "p", "a")
    write(made, names, partitionBy="p")
    kept = spark.sql(f'SELECT id FROM delta.`{names}` WHERE p = "a"')
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    tell("changed quotes", rows(kept))
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "false")


def tell_far_filters(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/far"
    rows_of = spark.range(40).selectExpr("id", "id % 4 AS p", "id % 3 AS n")
    rows_of.write.format("delta").partitionBy("p").save(path)
    table, other = spark.read.format("delta").load(path), spark.range(5, 80)
    other = other.selectExpr("id", "id * 3 AS m")
    found = {
        name: [sorted(map(str, rows(query(frame, other)))) for frame in (table, rows_of)]
        for name, query in QUERIES.items()
    }
    tell("far filters that lose rows", [name for name, (one, two) in found.items() if one != two])
    tell("far filters without rows", [name for name, (one, _) in found.items() if not one])
    for file in Path(path).rglob("p=3/*.parquet"):
        file.unlink()  # so that a query that reads all files fails
    queries = {name: query(table, other) for name, query in OF_ONE_PARTITION.items()}
    ends = {name: kind_of(lambda frame=frame: rows(frame)) for name, frame in queries.items()}
    tell("far filters that skip nothing", [name for name, end in ends.items() if end != "nothing"])
    for file in Path(path).rglob("*.parquet"):
        file.unlink()
    by_text = spark.sql(f"SELECT max(p), count(*) FROM delta.`{path}` WHERE p < 2")
    by_group = table.groupBy("p").count().orderBy("p")
    tell("counted without files", [table.count(), rows(by_text), rows(by_group)])
    path = f"{folder}/texts"
    spark.sql(f"CREATE TABLE delta.`{path}` (s STRING NOT NULL) USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ('a'), ('b')")
    counted = spark.sql(f"SELECT count(*) FROM delta.`{path}`")
    tell("texts counted", [spark.read.format("delta").load(path).count(), rows(counted)])


def tell_objects(spark: SparkSession, folder: str) -> SparkSession:
    """`foreachBatch` gives each batch another object for the same session.

    Returns:
        The object, which closes the session for both when nobody holds it.
    """
    registered = {key: dict(value) for key, value in source._SOURCES.items()}
    other = type(spark).__new__(type(spark))
    vars(other).update(vars(spark))
    count = read(other, f"{folder}/values").count()
    tell("other object", [count, registered == source._SOURCES])
    return other


def tell_variables(spark: SparkSession, folder: str) -> None:
    """The server puts in what stands for `${name}`; a client asks it for statements of ours."""
    path = f"{folder}/variables"
    spark.range(3).selectExpr("id", "id * 10 AS v").write.format("delta").save(path)
    confs = {"x.path": path, "x.n": "2", "x.table": f"delta.`{path}`", "x.odd": "it's `odd`"}
    for key, value in confs.items():
        spark.conf.set(key, value)
    told = spark.sql("DESCRIBE HISTORY delta.`${x.path}` LIMIT ${spark:x.n}").count()
    query = "SELECT count(*) FROM ${x.table} WHERE id < ${hiveconf:x.n}"
    tell("variables", [told, rows(spark.sql(query)), rows(spark.sql("SELECT ${x.n} + 1"))])
    spark.sql("UPDATE ${x.table} SET v = length('${env:TZ}${no.such}') WHERE id = 2")
    tell("environment", sorted(rows(spark.table(f"delta.`{path}`")))[2])
    odd = f"UPDATE delta.`{path}` SET v = length(r'${{x.odd}}')"
    tell("odd variable", kind_of(lambda: spark.sql(odd)))
    spark.conf.set("spark.sql.variable.substitute", "false")
    spark.sql(f"UPDATE delta.`{path}` SET v = length('${{x.n}}') WHERE id = 2")
    spark.conf.set("spark.sql.variable.substitute", "true")
    tell("no variables", sorted(rows(spark.table(f"delta.`{path}`")))[2])


def tell_read_values(spark: SparkSession, folder: str) -> None:
    """Subqueries of new values, older sources of a MERGE, and properties as they are written."""
    name, other = f"delta.`{folder}/values_of`", f"delta.`{folder}/other_values`"
    spark.sql(f"CREATE TABLE {name} AS SELECT id, id * 10 AS v FROM range(3)")
    spark.sql(f"CREATE TABLE {other} AS SELECT id, id * 100 AS w FROM range(3)")
    spark.sql(f"UPDATE {name} SET v = (SELECT max({other}.w) + 1 FROM {other}) WHERE id = 1")
    older = f"USING {name} VERSION AS OF 0 s ON t.id = s.id AND t.id = 2"
    value = f"s.v + (SELECT min(w) FROM {other} VERSION AS OF 0)"
    spark.sql(f"MERGE INTO {name} t {older} WHEN MATCHED THEN UPDATE SET v = {value}")
    views = [view.name for view in spark.catalog.listTables() if view.name.startswith("optimist")]
    tell("read values", [sorted(rows(spark.table(name))), views])
    twice = f"CREATE TABLE delta.`{folder}/twice` (id INT) TBLPROPERTIES ('a' = 1, 'a' = 2)"
    tell("a key twice", kind_of(lambda: spark.sql(twice)))
    made = f"delta.`{folder}/adjoining`"
    spark.sql(f"CREATE TABLE {made} (id INT) TBLPROPERTIES ('a' = 'b' 'c', 'n' = 0030)")
    tell("adjoining texts", rows(spark.sql(f"SHOW TBLPROPERTIES {made}"))[:1])
    spark.sql("CREATE TABLE history (id INT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql("INSERT INTO history VALUES (1, 1)")
    tell("Spark's own", spark.sql("DESC history PARTITION (p = 1)").columns)
    spark.sql("DROP TABLE history")


def main(folder: str) -> None:
    os.environ["TZ"] = ZONE
    time.tzset()
    spark = enable(SparkSession.builder.remote("local[2]").getOrCreate())
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    tell_cached(spark, folder)
    tell_made_anew(spark, folder)
    tell_subqueries(spark, folder)
    tell_statements(spark, folder)
    tell_values(spark, folder)
    tell_variables(spark, folder)
    tell_read_values(spark, folder)
    tell_named(spark, folder)
    tell_changed_conf(spark, folder)
    tell_far_filters(spark, folder)
    other = tell_objects(spark, folder)
    tell("parameters", parameter_answers(spark, f"{folder}/parameters"))
    other.stop()


main(sys.argv[1])
