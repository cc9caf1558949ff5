"""An odd table for readers, the same rows in a model, and a count of what readers open."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from optimist.core import ColumnChange, DeltaLog
from optimist.core.data.parquet import parquet_reader

DEFAULTS = "spark.databricks.delta.properties.defaults."
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("v", pa.struct([("a", pa.int64())])),
        ("day", pa.date32()),
        ("p", pa.string()),
    ]
)
FLOATS = [None, float("nan"), float("-inf"), -0.0, 0.0, 2.5]
TEXTS = [None, "", "a", "it's", "é\U0001f600"]
PARTITIONS = [None, "a b", "x=y/z"]

Row = dict[str, Any]


def row(number: int) -> Row:
    """The row of an id."""
    moment = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc) + dt.timedelta(hours=number)
    return {
        "id": number,
        "n": None if number % 7 == 0 else number % 5,
        "x": FLOATS[number % len(FLOATS)],
        "s": TEXTS[number % len(TEXTS)],
        "t": None if number % 11 == 0 else moment,
        "v": None if number % 3 == 0 else {"a": number},
        "day": None if number % 40 < 10 else dt.date(2026, 1, 1 + number % 3),
        "p": PARTITIONS[number % len(PARTITIONS)],
    }


def make_odd_table(path: Path, mode: str, *, has_vectors: bool) -> tuple[DeltaLog, list[Row]]:
    """A table with vectors or copies, partitions, a widened and a new column, and an empty file."""
    given = {
        "enableDeletionVectors": str(has_vectors).lower(),
        "columnMapping.mode": mode,
        "enableTypeWidening": "true",
        "enableRowTracking": "true",
    }
    log = DeltaLog.for_path(str(path), {f"{DEFAULTS}{k}": v for k, v in given.items()})
    rows = [row(number) for number in range(80)]
    for start in (0, 30, 60):
        part = pa.Table.from_pylist(rows[start : start + 30], schema=SCHEMA)
        log.append(part, partition_by=["day", "p"])
    log.delete("id >= 10 AND id < 20")
    log.delete("id IN (31, 33, 62)")
    log.delete("day = DATE '2026-01-02' AND id < 70")  # leaves files without a live row
    log.alter.change_columns([ColumnChange("n", data_type="bigint")])
    if mode != "none":
        log.alter.rename_column("s", "text of it")
    wide = {**row(80), "n": 2**53 + 1}
    new = pa.Table.from_pylist([wide], schema=SCHEMA.set(1, pa.field("n", pa.int64())))
    name = "s" if mode == "none" else "text of it"
    log.append(new.rename_columns([name if each == "s" else each for each in new.column_names]))
    gone = {*range(10, 20), 31, 33, 62}
    second = dt.date(2026, 1, 2)
    kept = [each for each in rows if each["id"] not in gone]
    kept = [each for each in kept if not (each["day"] == second and each["id"] < 70)]
    found = [{(name if k == "s" else k): v for k, v in each.items()} for each in (*kept, wide)]
    return log, found


def spelled(rows: list[Row]) -> list[str]:
    """Rows as text in a fixed order, in which NaN is NaN and the zeros are two."""
    return sorted(repr(_plain(each)) for each in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc).isoformat()
    if isinstance(value, dict):
        return sorted((key, _plain(item)) for key, item in value.items())
    return value


class _Counting:
    """A file that counts the bytes that are read of it."""

    def __init__(self, source: Any, name: str, read: Counter[str]) -> None:
        self._source, self._name, self._read = source, name, read

    def __enter__(self) -> _Counting:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return bool(self._source.closed)

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._source.read(size if size >= 0 else None)
        self._read[self._name] += len(found)
        return found

    def seek(self, *where: int) -> int:
        return int(self._source.seek(*where))

    def tell(self) -> int:
        return int(self._source.tell())

    def close(self) -> None:
        self._source.close()


@contextmanager
def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The bytes that are read of each data file within the context, by the file's path."""
    read: Counter[str] = Counter()
    real = parquet_reader._open

    def counting(filesystem: Any, path: str, name: str) -> Any:
        read[name] += 0
        return _Counting(real(filesystem, path, name), name, read)

    with monkeypatch.context() as patch:
        patch.setattr(parquet_reader, "_open", counting)
        yield read
