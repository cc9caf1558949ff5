"""Do one piece of work without Spark and print seconds and peak memory.

`python benchmarks/without_spark_once.py ENGINE WORK PATH ROWS SOURCE` prints one line of JSON;
`without_spark.py` runs it. deltalake is loaded only where it does the work, because what is loaded
counts for the memory.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engines import OURS
from open_once import peak_mib
from optimist.core import DeltaLog
from row_tables import FILES, PEOPLE, rows_between

__all__ = ["WORKS"]

PARTITIONS = 50
BATCH_ROWS = 100_000
DELETE_RANGE = "DELETE of a key range"
DELETE_SCATTERED = "DELETE of 0.1 %, scattered"
UPDATE = "UPDATE of 1 %, scattered"
MERGE = "MERGE, 90 % matched"
TO_ARROW = "scan with a filter, to Arrow"
BY_POLARS = "scan with a filter, by Polars"
BY_DUCKDB = "scan with a filter, by DuckDB"
WRITE = "write by a reader"
WRITE_PARTITIONED = f"write by a reader, {PARTITIONS} partitions"
_PERSON = PEOPLE // 2
_SCANNED = PEOPLE // 10
_SETS = {"visits": "visits + 1"}

Work = Callable[[str, int, str], object]


def _range(rows: int) -> str:
    per_file = rows // FILES
    start = per_file * 10 + per_file // 4
    return f"key >= {start} AND key < {start + per_file // 2}"


def _people(share: int) -> str:
    return f"person >= {_PERSON} AND person < {_PERSON + PEOPLE // share}"


def _batches(rows: int, *, partitioned: bool) -> pa.RecordBatchReader:
    """Rows to come, of which no more than a batch is in memory."""

    def made() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, BATCH_ROWS):
            found = rows_between(start, min(rows, start + BATCH_ROWS))
            if partitioned:
                number = pc.bit_wise_and(found["person"], 63)
                part = pc.min_element_wise(number, PARTITIONS - 1)
                found = found.append_column("part", part)
            yield from found.to_batches()

    first = next(made())
    return pa.RecordBatchReader.from_batches(first.schema, made())


def _our_merge(path: str, source: str) -> None:
    merge = DeltaLog.for_path(path).merge(pq.read_table(source), ["key"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _their_merge(path: str, source: str) -> None:
    merge = _theirs(path).merge(
        pq.read_table(source), "t.key = s.key", source_alias="s", target_alias="t"
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _by_duckdb(scanned: object) -> object:
    question = f"SELECT key, value FROM scanned WHERE person < {_SCANNED}"
    return duckdb.connect().register("scanned", scanned).sql(question).to_arrow_table()


def _deltalake() -> Any:
    return importlib.import_module("deltalake")


def _theirs(path: str) -> Any:
    return _deltalake().DeltaTable(path)


def _of_polars(frame: pl.LazyFrame) -> object:
    return frame.filter(pl.col("person") < _SCANNED).select("key", "value").collect()


_OURS: Mapping[str, Work] = {
    DELETE_RANGE: lambda path, rows, _: DeltaLog.for_path(path).delete(_range(rows)),
    DELETE_SCATTERED: lambda path, *_: DeltaLog.for_path(path).delete(_people(1000)),
    UPDATE: lambda path, *_: DeltaLog.for_path(path).update(set=_SETS, predicate=_people(100)),
    MERGE: lambda path, _, source: _our_merge(path, source),
    TO_ARROW: lambda path, *_: DeltaLog.for_path(path).to_arrow(
        f"person < {_SCANNED}", ["key", "value"]
    ),
    BY_POLARS: lambda path, *_: _of_polars(DeltaLog.for_path(path).scan().to_polars_lazy()),
    BY_DUCKDB: lambda path, *_: _by_duckdb(DeltaLog.for_path(path).scan().to_dataset()),
    WRITE: lambda path, rows, _: DeltaLog.for_path(path).append(_batches(rows, partitioned=False)),
    WRITE_PARTITIONED: lambda path, rows, _: DeltaLog.for_path(path).append(
        _batches(rows, partitioned=True), partition_by=["part"]
    ),
}
_THEIRS: Mapping[str, Work] = {
    DELETE_RANGE: lambda path, rows, _: _theirs(path).delete(_range(rows)),
    DELETE_SCATTERED: lambda path, *_: _theirs(path).delete(_people(1000)),
    UPDATE: lambda path, *_: _theirs(path).update(updates=_SETS, predicate=_people(100)),
    MERGE: lambda path, _, source: _their_merge(path, source),
    TO_ARROW: lambda path, *_: (
        _theirs(path)
        .to_pyarrow_dataset()
        .to_table(columns=["key", "value"], filter=pc.field("person") < _SCANNED)
    ),
    BY_POLARS: lambda path, *_: _of_polars(
        pl.scan_pyarrow_dataset(_theirs(path).to_pyarrow_dataset())
    ),
    BY_DUCKDB: lambda path, *_: _by_duckdb(_theirs(path).to_pyarrow_dataset()),
    WRITE: lambda path, rows, _: _deltalake().write_deltalake(
        path, _batches(rows, partitioned=False), mode="append"
    ),
    WRITE_PARTITIONED: lambda path, rows, _: _deltalake().write_deltalake(
        path, _batches(rows, partitioned=True), mode="append", partition_by=["part"]
    ),
}
WORKS = tuple(_OURS)


def main(engine: str, work: str, path: str, rows: str, source: str) -> None:
    """Measure in this process and print the result."""
    done = (_OURS if engine == OURS else _THEIRS)[work]
    _warm_up(engine, done, source, is_write=work in (WRITE, WRITE_PARTITIONED))
    started_s = time.perf_counter()
    done(path, int(rows), source)
    seconds = time.perf_counter() - started_s
    print(json.dumps({"seconds": seconds, "peak_mib": peak_mib()}), flush=True)
    # At the end of a process that read deltalake's dataset, threads of Arrow may end it by force.
    os._exit(0)


def _warm_up(engine: str, done: Work, source: str, *, is_write: bool) -> None:
    """Do the work on a small table that the engine itself has made, so that no import counts."""
    with tempfile.TemporaryDirectory() as small:
        rows = rows_between(0, FILES)
        if engine == OURS:
            DeltaLog.for_path(f"{small}/table").append(rows)
        else:
            _deltalake().write_deltalake(f"{small}/table", rows)
        done(f"{small}/{'written' if is_write else 'table'}", FILES, source)


if __name__ == "__main__":
    main(*sys.argv[1:])
