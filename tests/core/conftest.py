"""Tables for tests: a small one in memory, and one on disk that has a change data feed."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Mapping, Sequence

import pytest

from change_histories import FeedTable
from optimist.core import DeltaLog
from optimist.core.data.parquet import parquet_reader
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.names import commit_path
from optimist.core.log.replay import _CheckpointState
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.actions import (
    AddFile,
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
_ROOMS_READ_IN_PART = (
    "snapshot",
    "skipping",
    "log_upkeep",
    "changes",
    "local",
    "streams",
    "statements",
    "maintenance",
    "table",
    "commands",
)
_READ_IN_PART = 3
_ROOMS_WITH_ROWS = ("commands", "local", "maintenance", "table")


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
        return sorted(self.log.snapshot().files.column("path").to_pylist())


@pytest.fixture
def make_table():
    """A factory of tables; give it what differs from the default."""
    return Table


@pytest.fixture
def feed_table(tmp_path):
    """A factory of tables with a change data feed."""
    numbers = itertools.count()
    return lambda **differences: FeedTable(tmp_path / f"t{next(numbers)}", **differences)


@pytest.fixture(autouse=True)
def _checkpoints_read_in_part(request, monkeypatch):
    """Let one test in three read each checkpoint as if it were too large to be kept."""
    is_chosen = zlib.crc32(request.node.name.encode()) % _READ_IN_PART == 0
    if is_chosen and request.path.parent.name in _ROOMS_READ_IN_PART:
        monkeypatch.setattr(CheckpointReader, "is_small", lambda _: False)


@pytest.fixture(autouse=True)
def _texts_read_as_numbers(request, monkeypatch):
    """Let one test in two copy texts of small files as if the files were large."""
    if zlib.crc32(request.node.name.encode()) % 2 and request.path.parent.name in _ROOMS_WITH_ROWS:
        monkeypatch.setattr(parquet_reader, "_FEW_ROWS", 0)


@pytest.fixture
def read_in_part(monkeypatch):
    """Let each checkpoint be too large to be kept, and fail what reads all of it at once."""

    def load(_state, _change):
        raise AssertionError("the whole list of files is read into memory")

    monkeypatch.setattr(CheckpointReader, "is_small", lambda _: False)
    monkeypatch.setattr(_CheckpointState, "_load_files", load)
