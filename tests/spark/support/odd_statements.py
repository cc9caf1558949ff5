"""Odd statements whose answers two engines must agree on: delta-spark, once, and ours.

`corpus/odd.txt` has a case in each block of lines: statements that are run one after the other on a
table of odd rows, `{t}`. It needs PySpark alone: `benchmarks/record_delta_spark.py` runs it beside
Delta's jar, in another environment, and writes what the jar answered.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

__all__ = ["CASES", "DATABASE", "OddStatements", "condition_of"]

Answer: TypeAlias = "list[str] | str | None"
"""Rows as texts, the condition of an error or its class, or nothing."""
_FILE = Path(__file__).parents[1] / "drop_in" / "corpus" / "odd.txt"
CASES = [block.splitlines() for block in _FILE.read_text(encoding="utf-8").strip().split("\n\n")]
DATABASE = "odd"
_MADE = """
CREATE TABLE {t} (
    id BIGINT, p INT, s STRING, amt DECIMAL(10, 2), n STRUCT<a: INT, b: STRUCT<c: STRING, d: DATE>>,
    arr ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>, ts TIMESTAMP, d DATE, f DOUBLE)
USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')
"""
_FILLED = """
INSERT INTO {t} VALUES
    (1, 1, 'a', 1.5, struct(1, struct('x', DATE'2020-01-01')), array(struct(1)), map('k', 1),
        TIMESTAMP'2020-01-01 00:00:00', DATE'2020-01-01', 0.5),
    (2, 1, 'b', NULL, NULL, NULL, NULL, NULL, NULL, double('NaN')),
    (3, 2, NULL, -2.25, struct(NULL, NULL), array(NULL), map('z', NULL),
        TIMESTAMP'0001-01-01 00:00:00', DATE'0001-01-01', -0.0)
"""
_SHOWS_ROWS = ("SELECT", "DESCRIBE", "DELETE", "UPDATE", "MERGE", "WITH")
_WITHOUT_TEXT = re.compile(r"main error class '(?P<condition>\w+)'")
_IN_TEXT = re.compile(r"\[(?P<condition>[A-Z][A-Z_0-9.]+)\]")


class OddStatements:
    """Runs cases in a session, each on a table of its own.

    Args:
        spark: The session; it gets a database.
        folder: Where the tables are to be.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder
        self._made = 0
        spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{folder}'")
        for text in (_MADE, _FILLED):
            spark.sql(text.format(t=f"{DATABASE}.filled"))

    def answers(self, case: list[str]) -> list[Answer]:
        """What each statement answers, and at last what the table holds."""
        self._made += 1
        name = f"t{self._made}"
        path, table = f"{self._folder}/{name}", f"{DATABASE}.{name}"
        shutil.copytree(f"{self._folder}/filled", path)
        self._spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{path}'")
        statements = [*case, "SELECT * FROM {t}"]
        return [self._answer(text.format(t=table, folder=self._folder)) for text in statements]

    def _answer(self, statement: str) -> Answer:
        try:
            rows = self._as_text(statement)
        except Exception as error:  # noqa: BLE001 - any may come, and the caller compares it
            return condition_of(error)
        return rows if statement.startswith(_SHOWS_ROWS) else None

    def _as_text(self, statement: str) -> list[str]:
        """The rows, sorted; as text in Spark, since Python has no year 0, as some clocks have."""
        frame = self._spark.sql(statement)
        named = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
        rows = named.select(*(sf.col(name).cast("string") for name in named.columns)).collect()
        return sorted(str(list(row)) for row in rows)


def condition_of(error: Exception) -> str:
    """The condition of an error, by its text where Spark does not know it; else its class."""
    text = str(error)
    found = _WITHOUT_TEXT.search(text)
    if found is None and not hasattr(error, "getCondition"):
        found = _IN_TEXT.search(text)
    if found is not None:
        return found["condition"]
    condition = getattr(error, "getCondition", lambda: None)()
    return condition or type(error).__name__
