"""Tables for tests: a small one in memory, and one on disk that has a change data feed."""

from __future__ import annotations

import itertools
import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from optimist.core import DeltaLog
from optimist.core.log.names import commit_path
from optimist.core.logstore import LogStore
from optimist.core.options import EngineOptions
from optimist.core.protocol.actions import (
    AddCDCFile,
    AddFile,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    RemoveFile,
    actions_to_bytes,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

SCHEMA = StructType(
    (
        StructField("p", PrimitiveType("integer")),
        StructField("x", PrimitiveType("long")),
    )
)
_COUNTER = itertools.count()


class Table:
    """One table, and the few values that tests of transactions are made of."""

    def __init__(
        self,
        *,
        partitioned: bool = True,
        configuration: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        store: LogStore | None = None,
        protocol: Protocol | None = None,
        path: str | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.partitioned = partitioned
        self.path = path or f"memory://tables/t{next(_COUNTER)}"
        self.store = store or MemoryLogStore({})
        self.clock = clock or ManualClock()
        self.log = self.handle(options)
        self.metadata = Metadata(
            id="table-id",
            schema_string=schema_to_json(SCHEMA),
            partition_columns=("p",) if partitioned else (),
            configuration=dict(configuration or {}),
            created_time=1,
        )
        self.protocol = protocol or Protocol(1, 2)

    def handle(self, options: Mapping[str, str] | None = None, session=None) -> DeltaLog:
        engine_options = EngineOptions.from_options(options or {})
        return DeltaLog(self.path, self.store, engine_options, clock=self.clock, session=session)

    def create(self, *files: AddFile) -> Table:
        """Version 0, written round the engine."""
        self.store.ensure_directory(self.log.log_path)
        self.poke(0, (self.protocol, self.metadata, *files))
        return self

    def poke(self, version: int, actions: Sequence[object]) -> None:
        self.store.put_if_absent(
            commit_path(self.log.log_path, version), actions_to_bytes(tuple(actions))
        )

    def add(
        self,
        name: str,
        p: int | None = 1,
        *,
        low: int = 0,
        high: int = 9,
        data_change: bool = True,
        stats: bool = True,
    ) -> AddFile:
        text = {
            "numRecords": 10,
            "minValues": {"x": low},
            "maxValues": {"x": high},
            "nullCount": {"x": 0},
        }
        return AddFile(
            path=name,
            partition_values={"p": None if p is None else str(p)} if self.partitioned else {},
            size=100,
            modification_time=1,
            data_change=data_change,
            stats=json.dumps(text) if stats else None,
        )

    def remove(self, name: str, p: int | None = 1, *, data_change: bool = True) -> RemoveFile:
        return self.add(name, p).remove(5, data_change=data_change)

    def live(self) -> list[str]:
        return sorted(self.log.update().files.column("path").to_pylist())


@pytest.fixture
def make_table():
    """A factory of tables; give it what differs from the default."""
    return Table


class FeedTable:
    """A table on disk whose commits and files are written by hand; version 0 is empty."""

    def __init__(
        self,
        path: Path,
        *,
        partitioned: bool = False,
        vectors: bool = False,
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.partitioned = partitioned
        self.version = -1
        self._numbers = itertools.count()
        (path / "_delta_log").mkdir(parents=True)
        columns = ("id", "p") if partitioned else ("id",)
        types = {"id": PrimitiveType("long"), "p": PrimitiveType("string")}
        schema = StructType(tuple(StructField(name, types[name]) for name in columns))
        self.metadata = Metadata(
            "table-id",
            schema_to_json(schema),
            partition_columns=columns[1:],
            configuration={"delta.enableChangeDataFeed": "true"}
            if configuration is None
            else configuration,
        )
        names = ("changeDataFeed", "deletionVectors")
        self.commit(Protocol(3, 7, names[1:], names) if vectors else Protocol(1, 4), self.metadata)
        self.log = self.handle()

    def handle(self, options: Mapping[str, str] | None = None) -> DeltaLog:
        """A handle that remembers nothing."""
        store = DeltaLog.for_path(str(self.path)).store
        return DeltaLog(str(self.path), store, EngineOptions.from_options(options or {}))

    def commit(self, *actions: object) -> int:
        self.version += 1
        self.commit_file(self.version).write_bytes(actions_to_bytes(actions))
        return self.version

    def commit_file(self, version: int) -> Path:
        return self.path / "_delta_log" / f"{version:020}.json"

    def set_time(self, version: int, time_ms: int) -> None:
        os.utime(self.commit_file(version), ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def file(self, ids: Sequence[int], p: str | None = "a", **columns: pa.Array) -> AddFile:
        name = f"part-{next(self._numbers):05}.parquet"
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), **columns}), self.path / name)
        return AddFile(
            path=name,
            partition_values={"p": p} if self.partitioned else {},
            size=(self.path / name).stat().st_size,
            modification_time=1,
            data_change=True,
            stats=json.dumps({"numRecords": len(ids)}),
        )

    def removal(self, file: AddFile, *, data_change: bool = True) -> RemoveFile:
        return file.remove(5, data_change=data_change)

    def deleting(self, file: AddFile, *rows: int) -> AddFile:
        """The file with a deletion vector of these rows, in a file of its own."""
        data = struct.pack("<i", 1681511377) + BitMap64(rows).serialize()
        path = self.path / f"vector-{next(self._numbers)}.bin"
        frame = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        path.write_bytes(b"\x01" + frame)
        vector = DeletionVectorDescriptor("p", str(path), len(data), len(rows), offset=1)
        return replace(file, deletion_vector=vector)

    def changes(self, rows: Sequence[tuple[int, str]]) -> AddCDCFile:
        """A file of changes with (id, `_change_type`)."""
        folder = self.path / "_change_data"
        folder.mkdir(exist_ok=True)
        name = f"cdc-{next(self._numbers):05}.parquet"
        ids, kinds = zip(*rows, strict=True)
        pq.write_table(pa.table({"id": ids, "_change_type": kinds}), folder / name)
        return AddCDCFile(f"_change_data/{name}", {}, (folder / name).stat().st_size)

    def remove_data_files(self) -> int:
        found = list(self.path.glob("part-*.parquet"))
        for file in found:
            file.unlink()
        return len(found)


@pytest.fixture
def feed_table(tmp_path):
    """A factory of tables with a change data feed."""
    numbers = itertools.count()
    return lambda **differences: FeedTable(tmp_path / f"t{next(numbers)}", **differences)
