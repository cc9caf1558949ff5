"""Queries of a Spark Connect client whose filters stand far above the table that they are about.

A table and a frame of the same rows must answer alike, whatever files of the table are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

__all__ = ["OF_ONE_PARTITION", "QUERIES"]

Query = Callable[[DataFrame, DataFrame], DataFrame]

OF_ONE_PARTITION: Mapping[str, Query] = {
    "a join": lambda t, o: t.join(o, "id").where("p = 1 AND n = 0"),
    "a condition": lambda t, o: (
        t.alias("t")
        .join(o.alias("o"), sf.expr("t.id = o.m"))
        .where((sf.col("t.p") == 1) & (sf.col("n") < 2))
    ),
    "a left join": lambda t, o: t.join(o, "id", "left").where("p = 1"),
    "a right join": lambda t, o: o.join(t, "id", "right").where("p = 1"),
    "rows that meet some": lambda t, o: t.join(o, "id", "semi").where("p = 1"),
    "rows that meet none": lambda t, o: t.join(o, "id", "anti").where("p = 1"),
    "a product": lambda t, o: t.crossJoin(o.limit(2).select("m")).where("p = 1"),
    "groups": lambda t, o: t.groupBy("p").agg(sf.sum("n").alias("n")).where("p = 1"),
    "distinct rows": lambda t, o: t.select("n", "p").distinct().where("p = 1"),
    "one row of each": lambda t, o: t.dropDuplicates(["n", "p"]).where("p = 1").select("n", "p"),
    "renamed": lambda t, o: t.withColumnRenamed("p", "part").where("part = 1"),
    "an alias": lambda t, o: t.select("id", sf.col("p").alias("n")).where("n = 1"),
    "dropped": lambda t, o: t.drop("n").where("p = 1"),
    "everything": lambda t, o: (
        t.withColumnRenamed("p", "part")
        .join(o, "id")
        .groupBy("part")
        .agg(sf.sum("m").alias("m"))
        .withColumn("again", sf.col("part"))
        .where("again = 1 AND m > 0")
    ),
}
"""Those that can do with the files of `p = 1`."""
QUERIES: Mapping[str, Query] = {
    **OF_ONE_PARTITION,
    "rows without a partner": lambda t, o: o.join(t, "id", "left").where("p IS NULL OR p = 1"),
    "no partner at all": lambda t, o: o.join(t, "id", "left").where("p IS NULL"),
    "a full join": lambda t, o: t.join(o, "id", "full").where("p = 1 OR m > 70"),
    "by a key of both": lambda t, o: t.join(o, "id", "full").where("id > 30"),
    "by a key of texts": lambda t, o: t.join(
        o.select(sf.col("id").cast("string"), "m"), "id"
    ).where("id < 9"),
    "a name of the other side": lambda t, o: (
        t.drop("p").join(o.select("id", sf.col("m").alias("p")), "id").where("p = 18")
    ),
    "a sum under the name of its key": lambda t, o: (
        t.groupBy("p")
        .agg(sf.sum("n").alias("q"))
        .withColumnsRenamed({"p": "key", "q": "p"})
        .where("p = 9")
    ),
    "sets of groups": lambda t, o: t.rollup("p", "n").count().where("p IS NULL OR p = 1"),
    "by the frame": lambda t, o: t.join(o, "id").where(t.p == 1).where(o.m > 10),
    "with itself": lambda t, o: (
        t.alias("a").join(t.alias("b"), sf.expr("a.id = b.n")).where("a.p = 1 AND b.p = 3")
    ),
    "a struct or a table": lambda t, o: (
        t.select("id", sf.struct("p", "n").alias("o"))
        .join(o.alias("o").select("id", sf.col("m").alias("p")).alias("o"), "id")
        .where("o.p = 18")
    ),
}
"""All of them."""
