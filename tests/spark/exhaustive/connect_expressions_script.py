"""Run by test_hostile_expressions_on_connect.py in its own process: tells results as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from connect_process import kind_of, tell
from hostile_expressions import (
    CANARY,
    FORBIDDEN,
    SECRET,
    USUAL,
    USUAL_COLUMNS,
    field,
    make_table,
    table_with,
)
from optimist.spark import read, write


def usual(spark, folder: str) -> None:
    rows = spark.sql(
        "SELECT 3L AS id, '12' AS x, 1.5D AS d, TIMESTAMP '2021-02-03 04:05:06' AS ts, "
        "named_struct('name', 'n') AS s, array(1L, 2L) AS a, map('k', 1L) AS m, 4L AS `x y`"
    )
    names = {f"made{at}": sql for at, sql in enumerate(USUAL)}
    expected = rows.selectExpr(*(f"{sql} AS {name}" for name, sql in names.items()))
    kinds = {item["name"]: item["type"] for item in json.loads(expected.schema.json())["fields"]}
    made = [
        field(name, kinds[name], **{"delta.generationExpression": sql})
        for name, sql in names.items()
    ]
    checks = {
        f"delta.constraints.{name}": f"({sql}) IS NOT NULL OR 1 = 1" for name, sql in names.items()
    }
    make_table(f"{folder}/usual", [*USUAL_COLUMNS, *made], checks)
    write(rows, f"{folder}/usual", mode="append")
    tell("usual", read(spark, f"{folder}/usual").select(*names).toArrow().to_pylist())
    tell("expected", expected.toArrow().to_pylist())


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    secret = Path(folder) / "secret.txt"
    secret.write_text(SECRET)
    spark.udf.register("of_the_user", lambda value: value)
    spark.sql("DECLARE OR REPLACE VARIABLE of_the_session STRING DEFAULT 'a'")
    rows = spark.sql("SELECT 1L AS id, 'a' AS x")
    for place in ("check", "default"):
        for at, (name, sql) in enumerate(FORBIDDEN.items()):
            path = f"{folder}/{place}{at}"
            table_with(path, place, sql.replace("{file}", str(secret)))
            kind = kind_of(lambda path=path: write(rows, path, mode="append"))
            tell(f"{place}: {name}", kind)
    tell("read", read(spark, f"{folder}/check0").count())
    found = spark.sql(f"SELECT reflect('java.lang.System', 'getProperty', '{CANARY}')").collect()
    tell("canary", [row[0] for row in found])
    defaults = {"n": ("integer", "40 + 2"), "made": ("string", "concat('d', upper('x'))")}
    fields = [field(name, kind, CURRENT_DEFAULT=sql) for name, (kind, sql) in defaults.items()]
    make_table(f"{folder}/defaults", [field("id", "long"), *fields])
    write(spark.range(1), f"{folder}/defaults", mode="append")
    tell("defaults", [[r.n, r.made] for r in read(spark, f"{folder}/defaults").collect()])
    usual(spark, folder)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
