"""Statements over a path with parameters of each Python type that every session of Spark takes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

__all__ = ["ZONE", "parameter_answers"]

ZONE = "Asia/Tokyo"
"""Where Python runs; the session is elsewhere."""


def _stored() -> dict[str, object]:
    """Values of all types that a table can hold, by the names of parameters and of columns."""
    east = dt.timezone(dt.timedelta(hours=5, minutes=30))
    return {
        "yes": True,
        "small": -5,
        "least": -(2**31),
        "big": 2**40,
        "real": 1.5,
        "nan": float("nan"),
        "infinite": float("-inf"),
        "exponent": 1e300,
        "price": Decimal("1.50"),
        "thousand": Decimal("1E+3"),
        "text": 'it\'s \\ a "text"\n{}:x ?',
        "empty": "",
        "data": bytearray(b"\x00x"),
        "day": dt.date(2024, 2, 29),
        "old": dt.date(1700, 1, 1),
        "naive": dt.datetime(2024, 7, 1, 12, 30, 0, 5),
        "earlier": dt.datetime(1960, 1, 1),
        "aware": dt.datetime(2024, 7, 1, 12, 30, tzinfo=east),
        "list": [1, 2],
        "texts": ["a'b", "c"],
        "lists": [[1.5], [2.5]],
        "map": sf.create_map(sf.lit("a"), sf.lit(1)),
        "struct": sf.struct(sf.lit(1).alias("x"), sf.lit(dt.date(2024, 1, 1)).alias("d e")),
        "array": sf.array(sf.lit(dt.datetime(2024, 7, 1))),
    }


def parameter_answers(spark: SparkSession, path: str) -> list[str]:
    """What statements say and leave behind whose values are parameters."""
    name, args = f"delta.`{path}`", _stored()
    shown = f"SELECT id, to_json(struct(*)) FROM {name} ORDER BY id"
    told: list[str] = []

    def run(text: str, given: object = args) -> None:
        spark.sql(text.format(t=name), args=given)

    def tell() -> None:
        told.extend(f"{row[0]} {row[1]}" for row in spark.sql(shown).collect())

    columns = ", ".join(f":{key} AS `{key}`" for key in args)
    mapping = "'delta.columnMapping.mode' = 'name'"
    run(f"CREATE TABLE {{t}} TBLPROPERTIES ({mapping}) AS SELECT 1 AS id, {columns}")
    told.append(spark.table(name).schema.simpleString())
    tell()
    run(f"INSERT INTO {{t}} SELECT 2, {', '.join('?' * len(args))}", list(args.values()))
    run("INSERT INTO {t} (id, naive, text) VALUES (3, :day, :big)")
    tell()
    tested = [f"`{key}` <=> :{key}" for key in args if key != "map"]
    run(f"DELETE FROM {{t}} AS t WHERE id = 2 AND {' AND '.join(tested)}")
    run(f"UPDATE {{t}} SET {', '.join(f'`{key}` = :{key}' for key in args)} WHERE naive <> :naive")
    spark.sql("SELECT 4 AS id").createOrReplaceTempView("four")
    values = ", ".join(f":{key}" for key in args)
    into = f"INSERT (id, {', '.join(f'`{key}`' for key in args)}) VALUES (s.id, {values})"
    run(
        "MERGE INTO {t} t USING four s ON t.id = s.id AND t.naive = :naive WHEN NOT MATCHED THEN "
        f"{into} WHEN NOT MATCHED BY SOURCE AND t.texts = :texts THEN UPDATE SET text = :text"
    )
    spark.catalog.dropTempView("four")
    tell()
    types = ", ".join(f"typeof(:{key})" for key in args)
    rows = spark.sql(f"SELECT {types} FROM {name} LIMIT 1", args=args).collect()
    told += map(str, rows[0])
    asked = spark.sql(f"SELECT count(*) FROM {name} WHERE {' AND '.join(tested)}", args=args)
    told.append(str(asked.collect()[0][0]))
    told.append(
        str(spark.sql(f"SELECT ? FROM {name} VERSION AS OF ? LIMIT 1", [None, 0]).collect())
    )
    return told
