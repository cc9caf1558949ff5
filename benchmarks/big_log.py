"""Logs of large tables, made without either engine; there are no data files.

Two are of a busy table of flights. One of them has a checkpoint: a classic checkpoint of very many
live files with paths, partition values and statistics as JSON, `_last_checkpoint`, and some commits
after it. The other is a long log of small commits that nobody ever checkpointed.

The third is for growth: a checkpoint with any number of files, a thousand in each partition, so
that the answer to a question about one partition is as long at any size.
"""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = [
    "COMMITS_AFTER_CHECKPOINT",
    "EVEN_BATCH",
    "FILES_OF_A_BATCH",
    "ensure_big_log",
    "ensure_even_log",
    "ensure_long_log",
    "one_even_row",
]

Action: TypeAlias = dict[str, object]
Numbers: TypeAlias = npt.NDArray[np.int64]

LAYOUT = "3"  # part of the cached folder's name: change it when what is written changes
CHECKPOINT_VERSION = 10
COMMITS_AFTER_CHECKPOINT = 20
ROW_GROUP = 100_000
CREATED_MS = 1_767_225_600_000
TAILS = [f"N{number:05d}" for number in range(10_000, 14_000)]
CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "WN"]
COLUMNS = {
    "flight_id": "long",
    "carrier": "string",
    "tail_number": "string",
    "departed_at": "timestamp",
    "delay": "double",
    "distance": "integer",
    "month": "integer",
    "day": "integer",
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
METADATA = {
    "id": "7c0f44a6-4d0b-4f6e-9d44-5a0a1f6f2d11",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": kind, "nullable": True, "metadata": {}}
                for name, kind in COLUMNS.items()
            ],
        }
    ),
    "partitionColumns": ["month", "day"],
    "configuration": {},
    "createdTime": CREATED_MS,
}

EVEN_BATCH = 7
FILES_OF_A_BATCH = 1_000
"""The partition that is asked for in the log of even partitions, and how many files each has."""
_EVEN_SCHEMA = pa.schema({"id": pa.int64(), "batch": pa.int32()})
_EVEN_METADATA = {
    **METADATA,
    "schemaString": json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "id", "type": "long", "nullable": True, "metadata": {}},
                {"name": "batch", "type": "integer", "nullable": True, "metadata": {}},
            ],
        }
    ),
    "partitionColumns": ["batch"],
    "configuration": {"delta.checkpointInterval": "1000"},
}

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXT_MAP,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "tags": _TEXT_MAP,
                "stats": pa.string(),
            }
        ),
        "remove": pa.struct(
            {
                "path": pa.string(),
                "deletionTimestamp": pa.int64(),
                "dataChange": pa.bool_(),
                "extendedFileMetadata": pa.bool_(),
                "partitionValues": _TEXT_MAP,
                "size": pa.int64(),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXT_MAP}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXT_MAP,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
    }
)


def ensure_big_log(cache: Path, num_files: int) -> Path:
    """Return the table with `num_files` live files in its checkpoint, made on the first call.

    Each of the `COMMITS_AFTER_CHECKPOINT` commits that follow the checkpoint adds two files and
    removes one of the checkpoint's, so that it adds one file on balance.
    """
    return _ensure(cache / f"big-log-{num_files}-v{LAYOUT}", partial(_fill_big, num_files))


def ensure_long_log(cache: Path, num_commits: int) -> Path:
    """Return the table with `num_commits` commits of one file each, made on the first call.

    It has no checkpoint.
    """
    return _ensure(cache / f"long-log-{num_commits}-v{LAYOUT}", partial(_fill_long, num_commits))


def ensure_even_log(cache: Path, num_files: int) -> Path:
    """Return the table with `FILES_OF_A_BATCH` live files in each partition `batch`.

    The partitions are all over the checkpoint, as they are after many small commits.
    """
    return _ensure(cache / f"even-log-{num_files}-v{LAYOUT}", partial(_fill_even, num_files))


def one_even_row() -> pa.Table:
    """Return a row for the table of `ensure_even_log`, for a partition that nobody asks for."""
    return pa.table({"id": [1], "batch": [-1]}, schema=_EVEN_SCHEMA)


def _ensure(table: Path, fill: Callable[[Path], None]) -> Path:
    if not table.exists():
        unfinished = table.with_name(f".{table.name}.partial")
        shutil.rmtree(unfinished, ignore_errors=True)
        log = unfinished / "_delta_log"
        log.mkdir(parents=True)
        fill(log)
        unfinished.rename(table)
    return table


def _fill_big(num_files: int, log: Path) -> None:
    chance = random.Random(num_files)
    removable: list[str] = []
    size_bytes = _write_checkpoint(log, num_files, chance, removable)
    chance.shuffle(removable)
    for index in range(COMMITS_AFTER_CHECKPOINT + 1):
        lines: list[Action] = []
        if index:
            path = removable[index % len(removable)]
            removed = {"path": path, "deletionTimestamp": CREATED_MS, "dataChange": True}
            lines = [{"remove": removed}, *_add_actions(2, chance)]
        _write_commit(log, CHECKPOINT_VERSION + index, lines)
    hint = {"version": CHECKPOINT_VERSION, "size": num_files + 2, "sizeInBytes": size_bytes}
    (log / "_last_checkpoint").write_text(json.dumps({**hint, "numOfAddFiles": num_files}))


def _fill_even(num_files: int, log: Path) -> None:
    path = log / f"{CHECKPOINT_VERSION:020d}.checkpoint.parquet"
    head = [{"protocol": PROTOCOL}, {"metaData": _EVEN_METADATA}]
    with pq.ParquetWriter(path, _SCHEMA, compression="snappy") as writer:
        writer.write_table(pa.Table.from_pylist(head, schema=_SCHEMA))
        for start in range(0, num_files, ROW_GROUP):
            numbers = np.arange(start, min(start + ROW_GROUP, num_files))
            writer.write_table(_even_rows(numbers, num_files // FILES_OF_A_BATCH))
    _write_commit(log, CHECKPOINT_VERSION, [])
    hint = {"version": CHECKPOINT_VERSION, "size": num_files + 2, "numOfAddFiles": num_files}
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _even_rows(numbers: Numbers, num_batches: int) -> pa.Table:
    """Return the files with these numbers, each in the batch of its number modulo `num_batches`."""
    batches = pa.array(numbers % num_batches).cast(pa.string())
    names = pa.array(numbers).cast(pa.string())
    ends = pa.array(numbers + 1).cast(pa.string())
    count = len(numbers)
    values = pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1), pa.int32()), pa.repeat("batch", count), batches
    )
    columns = {
        "path": _joined("batch=", batches, "/part-", names, ".snappy.parquet"),
        "partitionValues": values,
        "size": pa.array(numbers % 1_000 + 100_000_000, pa.int64()),
        "modificationTime": pa.array(numbers + CREATED_MS, pa.int64()),
        "dataChange": pa.repeat(True, count),
        "tags": pa.nulls(count, _TEXT_MAP),
        "stats": _joined(
            '{"numRecords":1,"minValues":{"id":',
            names,
            '},"maxValues":{"id":',
            ends,
            '},"nullCount":{"id":0}}',
        ),
    }
    adds = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    others = {field.name: pa.nulls(count, field.type) for field in _SCHEMA if field.name != "add"}
    return pa.table({**others, "add": adds}).select(_SCHEMA.names).cast(_SCHEMA)


def _joined(*parts: pa.Array | str) -> pa.Array:
    """Return the parts one after the other, row by row."""
    return pc.binary_join_element_wise(*parts, "")


def _fill_long(num_commits: int, log: Path) -> None:
    chance = random.Random(num_commits)
    for version in range(num_commits):
        head: list[Action] = [] if version else [{"protocol": PROTOCOL}, {"metaData": METADATA}]
        _write_commit(log, version, [*head, *_add_actions(1, chance)])


def _add_actions(count: int, chance: random.Random) -> list[Action]:
    return [{"add": add} for add in _adds(count, chance)]


def _write_checkpoint(
    log: Path, num_files: int, chance: random.Random, removable: list[str]
) -> int:
    path = log / f"{CHECKPOINT_VERSION:020d}.checkpoint.parquet"
    with pq.ParquetWriter(path, _SCHEMA, compression="snappy") as writer:
        head = [{"protocol": PROTOCOL}, {"metaData": METADATA}]
        writer.write_table(pa.Table.from_pylist(head, schema=_SCHEMA))
        for start in range(0, num_files, ROW_GROUP):
            adds = list(_adds(min(ROW_GROUP, num_files - start), chance))
            step = max(1, len(adds) // COMMITS_AFTER_CHECKPOINT)
            removable += [str(add["path"]) for add in adds[::step]]
            # Arrow makes a map from pairs.
            rows = [{"add": {**add, "partitionValues": [*add_values(add)]}} for add in adds]
            writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
    return path.stat().st_size


def _write_commit(log: Path, version: int, actions: list[Action]) -> None:
    info = {"timestamp": CREATED_MS + version, "operation": "WRITE", "isBlindAppend": True}
    lines: list[Action] = [{"commitInfo": info}, *actions]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (log / f"{version:020d}.json").write_text(text)


def add_values(add: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Return the partition values of an add action, as pairs."""
    values = add["partitionValues"]
    assert isinstance(values, dict)
    yield from values.items()


def _adds(count: int, chance: random.Random) -> Iterator[dict[str, object]]:
    for _ in range(count):
        month, day = chance.randint(1, 12), chance.randint(1, 28)
        name = uuid.UUID(int=chance.getrandbits(128), version=4)
        yield {
            "path": f"month={month}/day={day}/part-00000-{name}.c000.snappy.parquet",
            "partitionValues": {"month": str(month), "day": str(day)},
            "size": chance.randint(1_000_000, 200_000_000),
            "modificationTime": CREATED_MS + chance.randint(0, 10_000_000_000),
            "dataChange": True,
            "stats": _stats(month, day, chance),
        }


def _stats(month: int, day: int, chance: random.Random) -> str:
    first_id = chance.randint(0, 10_000_000_000)
    records = chance.randint(10_000, 2_000_000)
    tails = sorted(chance.choices(TAILS, k=2))
    carriers = sorted(chance.choices(CARRIERS, k=2))
    least = (first_id, carriers[0], tails[0], "00:00:12.000Z", -43.0, 17)
    most = (first_id + records, carriers[1], tails[1], "23:59:48.000Z", 1301.0, 4983)
    names = [name for name in COLUMNS if name not in ("month", "day")]
    date = f"2026-{month:02d}-{day:02d}T"
    values = {
        "numRecords": records,
        "minValues": {**dict(zip(names, least, strict=True)), "departed_at": date + least[3]},
        "maxValues": {**dict(zip(names, most, strict=True)), "departed_at": date + most[3]},
        "nullCount": dict.fromkeys(names, 0) | {"delay": records // 40},
    }
    return json.dumps(values, separators=(",", ":"))
