"""A table row by row, in Python, and what each command changes of it.

Commands are random, made of a few conditions and values, each as SQL and as a function.
"""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from pyspark.sql import SparkSession

from optimist.spark import DeltaTable, write

__all__ = ["COLUMNS", "SCHEMA", "ChangingTable", "Row"]

Row = tuple[object, ...]
Change = tuple[object, ...]
"""A row, and the kind of its change."""

ODD, PART = "a.`b", "p/%"
COLUMNS = ("id", ODD, "d", "s", PART)
SCHEMA = f"id long, `a.``b` int, d decimal(38,2), s struct<`x.y`: string>, `{PART}` string"
_NINES, _BELOW = Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")
_PARTS = [None, "a", "b=%2F c", "ü`'"]
_INTS = [None, 0, 1, 7]
_DECIMALS = [None, _NINES, _BELOW, Decimal("0.01")]


def _is_above(value: int | None) -> bool:
    return value is not None and value > 0


_CONDITIONS: list[tuple[str, Callable[[Row], bool]]] = [
    ("id % 3 = 1", lambda row: row[0] % 3 == 1),
    ("`a.``b` > 0", lambda row: _is_above(row[1])),
    ("d IS NULL OR id < 4", lambda row: row[2] is None or row[0] < 4),
    (f"`{PART}` = 'a'", lambda row: row[4] == "a"),
    (f"`{PART}` IS NULL AND id > 2", lambda row: row[4] is None and row[0] > 2),
    ("s.`x.y` = 'n'", lambda row: row[3] == ("n",)),
    ("id < 0", lambda row: row[0] < 0),
    ("id >= 0", lambda row: True),
]
_SETS: list[tuple[dict[str, str], Callable[[Row], Row]]] = [
    ({"`a.``b`": "id"}, lambda row: (row[0], row[0], *row[2:])),
    ({"d": "NULL", "s": "named_struct('x.y', 'n')"}, lambda row: (*row[:2], None, ("n",), row[4])),
    (
        {f"`{PART}`": "if(id % 2 = 0, 'a', '')"},
        lambda row: (*row[:4], "a" if row[0] % 2 == 0 else None),
    ),
    ({"s.`x.y`": "concat('u', id)"}, lambda row: (*row[:3], (f"u{row[0]}",), row[4])),
]


@dataclass
class ChangingTable:
    """A table, its rows, and the changes of each version from 1 on."""

    path: str
    seed: int
    rows: list[Row] = field(default_factory=list)
    changes: dict[int, Counter[Change]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._next = 0

    def create(self, spark: SparkSession, partition_by: list[str]) -> None:
        """Make the table, with some rows in several files."""
        self.rows = list(self._new_rows(8))
        frame = spark.createDataFrame(self.rows, SCHEMA).repartition(2)
        write(frame, self.path, partitionBy=partition_by)

    def run(self, spark: SparkSession, name: str) -> None:
        """Run a command on the table, and on the rows in memory."""
        deleted, inserted, updated = getattr(self, f"_{name}")(spark)
        found: Counter[Change] = Counter()
        found.update((*row, "delete") for row in deleted)
        found.update((*row, "insert") for row in inserted)
        found.update((*row, "update_preimage") for row, _ in updated)
        found.update((*row, "update_postimage") for _, row in updated)
        if found:
            self.changes[len(self.changes) + 1] = found

    def _delete(self, spark: SparkSession) -> tuple[list[Row], list[Row], list[tuple[Row, Row]]]:
        text, matches = self._chance.choice(_CONDITIONS[:-1])
        DeltaTable.forPath(spark, self.path).delete(text)
        return self._split(matches), [], []

    def _update(self, spark: SparkSession) -> tuple[list[Row], list[Row], list[tuple[Row, Row]]]:
        text, matches = self._chance.choice(_CONDITIONS)
        values, changed = self._chance.choice(_SETS)
        DeltaTable.forPath(spark, self.path).update(text, values)
        before = self._split(matches)
        after = [changed(row) for row in before]
        self.rows += after
        return [], [], list(zip(before, after, strict=True))

    def _replace(self, spark: SparkSession) -> tuple[list[Row], list[Row], list[tuple[Row, Row]]]:
        text, matches = self._chance.choice(_CONDITIONS[:-2])
        new = [row for row in self._new_rows(12) if matches(row)]
        frame = spark.createDataFrame(new, SCHEMA).coalesce(1)
        write(frame, self.path, mode="overwrite", replaceWhere=text)
        return self._replaced(matches, new)

    def _overwrite(self, spark: SparkSession) -> tuple[list[Row], list[Row], list[tuple[Row, Row]]]:
        new = list(self._new_rows(6))
        write(spark.createDataFrame(new, SCHEMA).coalesce(1), self.path, mode="overwrite")
        return self._replaced(lambda row: True, new)

    def _append(self, spark: SparkSession) -> tuple[list[Row], list[Row], list[tuple[Row, Row]]]:
        new = list(self._new_rows(4))
        write(spark.createDataFrame(new, SCHEMA).coalesce(1), self.path, mode="append")
        return self._replaced(lambda row: False, new)

    def _replaced(
        self, matches: Callable[[Row], bool], new: list[Row]
    ) -> tuple[list[Row], list[Row], list[tuple[Row, Row]]]:
        deleted = self._split(matches)
        self.rows += new
        return deleted, new, []

    def _split(self, matches: Callable[[Row], bool]) -> list[Row]:
        """Take the matching rows out of the table."""
        found = [row for row in self.rows if matches(row)]
        self.rows = [row for row in self.rows if not matches(row)]
        return found

    def _new_rows(self, count: int) -> Iterator[Row]:
        pick = self._chance.choice
        for _ in range(count):
            yield (self._next, pick(_INTS), pick(_DECIMALS), (f"n{self._next}",), pick(_PARTS))
            self._next += 1
