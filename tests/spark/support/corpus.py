"""The corpus of SQL: tables of odd rows, the queries over them, and what they must answer.

`queries.txt` has a query in each line: `{f}` is a table of flights, `{f0}` its first version,
`{fa}` that by `@v0`, `{c}` a table of carriers. `rows.jsonl` has the rows of each query in a line.
They were computed over the plain rows below, in views of Spark, without a table of ours: `main`.
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from optimist.spark import write

FOLDER = Path(__file__).parents[1] / "drop_in" / "corpus"
FLIGHTS = (
    "id LONG, month INT, carrier STRING, delay DOUBLE, price DECIMAL(10, 2), at TIMESTAMP,"
    " day DATE, tags ARRAY<STRING>, pos STRUCT<lat: DOUBLE, lon: DOUBLE>, props MAP<STRING, INT>,"
    " `odd name` STRING"
)
_CARRIERS = ["AA", "UA", "DL", None, "", "AAA"]
_DELAYS = [12.5, -3.0, None, float("nan"), 0.0, 75.0, 10.0]
_TEXTS = ["it's", "a;b -- c", None, "x /* y */", ""]
NUM_FIRST = 8


def flight_rows() -> list[tuple]:
    """Twelve flights: nulls, NaN, empty texts, odd characters; the month is a partition."""
    return [
        (
            number,
            None if number == 7 else number % 3 + 1,
            _CARRIERS[number % len(_CARRIERS)],
            _DELAYS[number % len(_DELAYS)],
            None if number == 4 else Decimal(1234 * number) / 100,
            dt.datetime(2026, 1, 1 + number // 4, 10, number, tzinfo=dt.timezone.utc),
            dt.date(2026, 1, 1 + number // 4),
            None if number == 5 else ["x", "y", "z"][: number % 4],
            None if number == 6 else (50.0 + number % 3, None if number == 2 else float(number)),
            {"a": number % 2} if number % 3 else {"b": 2},
            _TEXTS[number % len(_TEXTS)],
        )
        for number in range(1, 13)
    ]


def make_views(spark: SparkSession) -> dict[str, str]:
    """The plain rows as views, by the names that queries have for the tables."""
    flights = spark.createDataFrame(flight_rows(), FLIGHTS)
    flights.createOrReplaceTempView("plain_f")
    flights.where(f"id <= {NUM_FIRST}").createOrReplaceTempView("plain_f0")
    _carriers(spark).createOrReplaceTempView("plain_c")
    return {"f": "plain_f", "f0": "plain_f0", "fa": "plain_f0", "c": "plain_c"}


def make_tables(spark: SparkSession, folder: str) -> dict[str, str]:
    """The same rows as tables, by path."""
    flights = spark.createDataFrame(flight_rows(), FLIGHTS).coalesce(1)
    path = f"{folder}/flights"
    mapped = {"delta.columnMapping.mode": "name"}  # for the name with a blank
    write(flights.where(f"id <= {NUM_FIRST}"), path, partitionBy="month", **mapped)
    write(flights.where(f"id > {NUM_FIRST}"), path, mode="append")
    write(_carriers(spark), f"{folder}/carriers")
    name = f"delta.`{path}`"
    return {
        "f": name,
        "f0": f"{name} VERSION AS OF 0",
        "fa": f"delta.`{path}@v0`",
        "c": f"delta.`{folder}/carriers`",
    }


def queries() -> list[str]:
    """The queries, in order."""
    return (FOLDER / "queries.txt").read_text(encoding="utf-8").splitlines()


def expected() -> list[list]:
    """Their rows, in the same order."""
    lines = (FOLDER / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line, parse_constant=str) for line in lines]


def with_names(query: str, names: dict[str, str]) -> str:
    """The query over these tables."""
    for key, name in names.items():
        query = query.replace(f"{{{key}}}", name)
    return query


def told(frame: DataFrame) -> list[list]:
    """The rows as JSON has them; NaN is a text, which equals itself."""
    text = json.dumps([list(row) for row in frame.collect()], default=_text)
    return json.loads(text, parse_constant=str)


def ordered(query: str, rows: list[list]) -> list[list]:
    """The rows in the order of the query, or else in any that is always the same."""
    return rows if "ORDER BY" in query else sorted(rows, key=repr)


def _text(value: object) -> object:
    if isinstance(value, dt.datetime):
        return str(value.astimezone(dt.timezone.utc).replace(tzinfo=None))
    return list(value) if isinstance(value, (tuple, bytearray)) else str(value)


def _carriers(spark: SparkSession) -> DataFrame:
    rows = [("AA", "US"), ("UA", "US"), ("LH", "DE"), (None, "XX")]
    return spark.createDataFrame(rows, "carrier STRING, country STRING").coalesce(1)


def main() -> None:
    """Compute the rows over the plain views, and write them down."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    names = make_views(spark)
    lines = [json.dumps(told(spark.sql(with_names(query, names)))) for query in queries()]
    (FOLDER / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
