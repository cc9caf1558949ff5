"""What scripts do to Delta tables, and by which answers they decide: errors, confs, formats, names.

`corpus/habits.txt` has a habit in each block of lines, a few lines of Python; the value of the last
one is the answer. It needs PySpark alone, and a class `DeltaTable` that it is given:
`benchmarks/record_delta_spark.py` runs it beside Delta's jar, in another environment.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

__all__ = ["DATABASE", "HABITS", "Habits"]

Answer: TypeAlias = "list[str] | str | dict[str, str]"
"""Rows as texts, another value as text, or an error's condition (or class) and its text."""
_FILE = Path(__file__).parents[1] / "drop_in" / "corpus" / "habits.txt"
_COMMENT = re.compile(r"^#.*\n", re.MULTILINE)
HABITS = _COMMENT.sub("", _FILE.read_text(encoding="utf-8")).strip().split("\n\n")
DATABASE = "habits"


class Habits:
    """Runs habits in a session.

    Args:
        spark: The session; it gets a database.
        folder: Where the tables are to be.
        tables: The class `DeltaTable`.
    """

    def __init__(self, spark: SparkSession, folder: str, tables: Any) -> None:
        self._spark = spark
        self._folder = folder
        self._known = {
            "spark": spark,
            "sql": spark.sql,
            "sf": sf,
            "DeltaTable": tables,
            "table": f"{folder}/table",
            "folder": folder,
        }
        self._prepare()

    def answer(self, habit: str) -> Answer:
        """What the last line of a habit gives."""
        before = self._spark.conf.getAll
        self._spark.sql(f"USE {DATABASE}")
        try:
            return self._as_text(self._run(habit))
        except Exception as error:  # noqa: BLE001 - any may come, and the caller compares it
            return self._told(error)
        finally:
            for key, value in self._spark.conf.getAll.items():
                if key not in before:
                    self._spark.conf.unset(key)
                elif before[key] != value:
                    self._spark.conf.set(key, before[key])

    def _prepare(self) -> None:
        """A table, a directory of Parquet files, an empty one, and names of several kinds."""
        spark, folder = self._spark, self._folder
        spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{folder}/{DATABASE}'")
        spark.sql(f"USE {DATABASE}")
        spark.range(3).write.format("delta").save(f"{folder}/table")
        spark.range(2).write.parquet(f"{folder}/files")
        Path(folder, "empty").mkdir()
        spark.sql("CREATE TABLE named (id BIGINT) USING delta")
        spark.sql("CREATE TABLE of_parquet (id BIGINT) USING parquet")
        spark.sql("CREATE VIEW a_view AS SELECT 1L AS id")
        spark.range(1).createOrReplaceTempView("a_temporary_view")
        spark.sql("DECLARE OR REPLACE VARIABLE a_variable BIGINT DEFAULT 7")

    def _run(self, habit: str) -> Any:
        names = dict(self._known)
        *first, last = ast.parse(habit).body
        exec(compile(ast.Module(first, []), "habit", "exec"), names)
        assert isinstance(last, ast.Expr), habit
        return eval(compile(ast.Expression(last.value), "habit", "eval"), names)

    def _as_text(self, value: Any) -> Answer:
        if isinstance(value, DataFrame):
            rows = [str([str(cell) for cell in row]) for row in value.collect()]
            return sorted(self._without_places(row) for row in rows)
        return self._without_places(str(value))

    def _told(self, error: Exception) -> dict[str, str]:
        condition = getattr(error, "getCondition", lambda: None)()
        is_python = isinstance(error, TypeError | ValueError) and not condition
        # Scripts catch these by the class, which may be one of several.
        classes = [each.__name__ for each in (TypeError, ValueError) if isinstance(error, each)]
        return {
            "error": " ".join(classes) if is_python else condition or type(error).__name__,
            "text": self._without_places(str(error).split("\n")[0]),
        }

    def _without_places(self, text: str) -> str:
        return text.replace(self._folder, "~")
