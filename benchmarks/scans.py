"""Seconds to query a table whose files have deletion vectors, beside the same table without.

A vector costs the same per row whatever is read. So its cost is shown for the cheapest query that
there is, of one column of integers, and for one of every column.
"""

from __future__ import annotations

import base64
import json
import statistics
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from optimist.core import DeltaLog
from optimist.spark import read

__all__ = ["QUERIES", "ScanResult", "measure_scans"]

FILES = 4
EVERY = 100  # every 100th row is deleted
QUERIES = {
    "one column": "sum(value), count(*) AS rows",
    "every column": "sum(value), max(city), sum(price), max(day), count(*) AS rows",
}
"""What each query computes over all rows; its column `rows` checks the answer."""

_CITIES = np.array([f"city of the plain {number}" for number in range(997)])
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The time of one of `QUERIES` over a whole table; `what` is `plain` or `vectors`."""

    engine: str
    query: str
    what: str
    rows: int
    best_s: float
    median_s: float


def measure_scans(directory: Path, *, rows: int, rounds: int) -> list[ScanResult]:
    """Query both tables `rounds` times with either engine, in turns, so that noise hits all alike.

    Raises:
        RuntimeError: An engine counted the wrong number of rows.
    """
    tables = {"plain": _table(directory / "plain", rows), "vectors": directory / "vectors"}
    _table(tables["vectors"], rows)
    _delete_by_vectors(tables["vectors"])
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    engines: dict[str, Callable[[Path, str], int]] = {
        "optimist": lambda path, query: _our_count(spark, path, query),
        "deltalake": _their_count,
    }
    live = {"plain": rows, "vectors": rows - rows // EVERY}
    times: dict[tuple[str, str, str], list[float]] = {}
    for number, query, engine, what in product(range(rounds + 2), QUERIES, engines, tables):
        started = time.perf_counter()
        found = engines[engine](tables[what], QUERIES[query])
        if number >= 2:  # the first turns warm up
            times.setdefault((engine, query, what), []).append(time.perf_counter() - started)
        if found != live[what]:
            raise RuntimeError(f"{engine} found {found} rows in {what}, not {live[what]}.")
    spark.stop()
    return [
        ScanResult(*key, rows, min(taken), statistics.median(taken)) for key, taken in times.items()
    ]


def _table(path: Path, rows: int) -> Path:
    log = DeltaLog.for_path(str(path))
    each = rows // FILES
    for start in range(0, rows, each):
        values = np.arange(start, start + each)
        columns = {
            "value": values,
            "city": pa.array(_CITIES).take(pa.array(values % len(_CITIES))),
            "price": values * 0.37,
            "day": pa.array((values // 5000 % 10_000).astype("int32")).cast(pa.date32()),
        }
        log.append(pa.table(columns))
    return path


def _delete_by_vectors(path: Path) -> None:
    """Commit vectors over every 100th row of each file by hand: no engine here writes any."""
    snapshot = DeltaLog.for_path(str(path)).snapshot()
    features = ["deletionVectors"]
    lines: list[dict[str, object]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        }
    ]
    for file in snapshot.files.select(["path", "size", "stats"]).to_pylist():
        rows = json.loads(file["stats"])["numRecords"]
        common = {"path": file["path"], "dataChange": True, "partitionValues": {}}
        add = {"size": file["size"], "modificationTime": 1, "stats": file["stats"]}
        lines.append({"remove": {**common, "deletionTimestamp": 1, "extendedFileMetadata": True}})
        lines.append({"add": {**common, **add, "deletionVector": _vector(rows)}})
    name = f"{snapshot.version + 1:020d}.json"
    (path / "_delta_log" / name).write_text("\n".join(map(json.dumps, lines)))


def _vector(rows: int) -> dict[str, object]:
    deleted = BitMap64(range(0, rows, EVERY))
    data = struct.pack("<i", 1681511377) + deleted.serialize()
    padded = data + b"\0" * (-len(data) % 4)
    text = base64.b85encode(padded).translate(bytes.maketrans(_B85, _Z85)).decode()
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(data),
        "cardinality": len(deleted),
    }


def _our_count(spark: SparkSession, path: Path, query: str) -> int:
    frame = read(spark, str(path))
    frame.createOrReplaceTempView("t")
    (row,) = spark.sql(f"SELECT {query} FROM t").collect()
    return int(row["rows"])


def _their_count(path: Path, query: str) -> int:
    table = deltalake.DeltaTable(str(path))
    builder = deltalake.QueryBuilder().register("t", table)
    found = pa.table(builder.execute(f"SELECT {query} FROM t").read_all())
    return int(found["rows"][0].as_py())
