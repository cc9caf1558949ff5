"""The tables of the benchmark of commands by row, and the commands, as every engine gets them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core import DeltaLog

__all__ = ["FILES", "PEOPLE", "Command", "RowTables", "commands_of", "rows_between"]

FILES = 100
PEOPLE = 1_000_000
"""Each row has one of so many people, scattered over all files."""

_CITIES = np.array([f"city of the plain {number}" for number in range(997)])
_SEED = 2026


@dataclass(frozen=True, slots=True)
class Command:
    """One command, in one round; no two rounds change the same rows.

    Attributes:
        what: What it is, for the results.
        where: The rows that a DELETE or UPDATE is about.
        values: What an UPDATE sets, as SQL; None for another command.
        source: The Parquet file whose rows a MERGE brings or an append adds.
        is_merge: Whether the source is merged rather than appended.
    """

    what: str
    where: str | None = None
    values: dict[str, str] | None = None
    source: Path | None = None
    is_merge: bool = False

    def sql(self, table: str) -> str:
        """Return the command in Delta's SQL."""
        target = f"delta.`{table}`"
        if self.values is not None:
            sets = ", ".join(f"{name} = {value}" for name, value in self.values.items())
            return f"UPDATE {target} SET {sets} WHERE {self.where}"
        if self.where is not None:
            return f"DELETE FROM {target} WHERE {self.where}"
        rows = f"parquet.`{self.source}`"
        if not self.is_merge:
            return f"INSERT INTO {target} SELECT * FROM {rows}"
        return (
            f"MERGE INTO {target} t USING {rows} s ON t.key = s.key "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


class RowTables:
    """The same rows as a table with deletion vectors, one without, and as bare Parquet files.

    Args:
        directory: Where they are made, and copied to.
        rows: How many rows each has, in `FILES` files.
    """

    def __init__(self, directory: Path, rows: int) -> None:
        self.directory = directory
        self.rows = rows
        self.parquet = directory / "parquet"
        self._made = {
            "vectors": directory / "vectors",
            "plain": directory / "plain",
        }
        self.parquet.mkdir(parents=True)
        for name, path in self._made.items():
            has_vectors = str(name == "vectors").lower()
            defaults = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
            log = DeltaLog.for_path(str(path), {defaults: has_vectors})
            for number, table in enumerate(_files(rows)):
                log.append(table)
                if name == "plain":
                    pq.write_table(table, self.parquet / f"part-{number:05d}.parquet")

    def copy(self, kind: str, name: str) -> str:
        """Make a fresh copy, which one engine may change, and return its path."""
        path = self.directory / f"{kind}-{name}"
        shutil.copytree(self._made[kind], path)
        return str(path)

    def merge_source(self, rows: int, number: int) -> Path:
        """Rows for a MERGE: 90 % have the key of a row that is there, scattered; others are new."""
        path = self.directory / f"source-{rows}-{number}.parquet"
        if not path.exists():
            chance = np.random.default_rng(_SEED + number)
            known = chance.choice(self.rows, rows * 9 // 10, replace=False)
            first_new = self.rows * (number + 2)
            fresh = np.arange(first_new, first_new + rows - len(known))
            pq.write_table(_rows(np.concatenate([known, fresh])), path)
        return path


def commands_of(tables: RowTables, what: str, rounds: int) -> list[Command]:
    """Return the commands of one measurement, one for each round."""
    per_file = tables.rows // FILES
    found = []
    for number in range(rounds):
        start = per_file * (10 + 7 * number) + per_file // 4
        person = PEOPLE // 2 + 20_000 * number
        commands = {
            "DELETE, range in one file": Command(
                what, f"key >= {start} AND key < {start + per_file // 2}"
            ),
            "DELETE, 0.1 % scattered": Command(
                what, f"person >= {person} AND person < {person + PEOPLE // 1000}"
            ),
            "UPDATE, 1 % scattered": Command(
                what,
                f"person >= {person} AND person < {person + PEOPLE // 100}",
                {"visits": "visits + 1"},
            ),
            "append of all rows": Command(what, source=tables.parquet),
        }
        for rows in (1_000, 100_000):
            limited = min(rows, tables.rows // 4)
            name = f"MERGE of {rows:,} rows"
            if what == name:
                source = tables.merge_source(limited, number)
                commands[name] = Command(what, source=source, is_merge=True)
        found.append(commands[what])
    return found


def _files(rows: int) -> Iterator[pa.Table]:
    per_file = rows // FILES
    for start in range(0, rows, per_file):
        yield rows_between(start, start + per_file)


def rows_between(start: int, end: int) -> pa.Table:
    """Return the rows with the keys from one on, up to another."""
    return _rows(np.arange(start, end))


def _rows(keys: np.ndarray) -> pa.Table:
    return pa.table(
        {
            "key": keys,
            "person": keys * 2_654_435_761 % PEOPLE,
            "city": pa.array(_CITIES).take(pa.array(keys % len(_CITIES))),
            "visits": keys % 7,
            "value": keys * 0.37,
            "day": pa.array((keys // 5000 % 10_000).astype("int32")).cast(pa.date32()),
        }
    )
