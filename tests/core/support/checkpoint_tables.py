"""Tables with all kinds of columns, for what a checkpoint makes of them."""

import io
import itertools
import json

import pyarrow.parquet as pq

from optimist.core.log.names import commit_path, log_path_of
from optimist.core.log.segment import list_segment
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.snapshot import Snapshot
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
NOW_MS = 1_800_000_000_000
V2 = {"delta.checkpointPolicy": "v2"}
V2_PROTOCOL = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))
FIELDS = {"p": "date", "x": "long", "s": "string", "t": "timestamp", "d": "decimal(10,2)"}
NESTED = {"type": "struct", "fields": [{"name": "y", "type": "double", "nullable": True}]}


def schema_text(fields=FIELDS):
    columns = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in {**fields, "n": NESTED}.items()
    ]
    for column in NESTED["fields"]:
        column.setdefault("metadata", {})
    return json.dumps({"type": "struct", "fields": columns})


class Table:
    def __init__(self, configuration=None, *, store=None, protocol=None, options=None):
        self.table_path = f"memory://v2/t{next(_COUNTER)}"
        self.path = log_path_of(self.table_path)
        self.clock = ManualClock(now_ms=NOW_MS)
        self.store = store or MemoryLogStore(clock=self.clock)
        self.options = EngineOptions.from_options(options or {})
        self.version = -1
        self.metadata = Metadata(
            "id", schema_text(), partition_columns=("p",), configuration=configuration or {}
        )
        is_v2 = self.metadata.configuration.get("delta.checkpointPolicy") == "v2"
        self.commit(protocol or (V2_PROTOCOL if is_v2 else Protocol(1, 2)), self.metadata)

    def commit(self, *actions):
        self.version += 1
        data = actions_to_bytes((CommitInfo(), *actions))
        self.store.put_if_absent(commit_path(self.path, self.version), data)
        return self

    def load(self):
        return Snapshot.load(
            self.store,
            self.table_path,
            list_segment(self.store, self.path),
            options=self.options,
            clock=self.clock,
        )

    def checkpoint(self, **arguments):
        return write_checkpoint(
            self.store, self.load(), options=self.options, clock=self.clock, **arguments
        )

    def names(self, folder=""):
        return [status.name for status in self.store.list_from(f"{self.path}/{folder}")]

    def checkpoints(self):
        return [name for name in self.names() if ".checkpoint." in name]

    def actions_of(self, name):
        """A naive reader: every action of a checkpoint and of its sidecars, as JSON objects."""
        data = self.store.read_bytes(f"{self.path}/{name}")
        if name.endswith(".json"):
            rows = [json.loads(line) for line in data.splitlines()]
        else:
            table = pq.read_table(io.BytesIO(data))
            rows = [without_nulls(row) for row in table.to_pylist(maps_as_pydicts="strict")]
        for row in list(rows):
            if "sidecar" in row:
                rows += self.actions_of(f"_sidecars/{row['sidecar']['path']}")
        return rows

    def bodies(self, kind, name=None):
        rows = self.actions_of(name or self.checkpoints()[-1])
        return [row[kind] for row in rows if kind in row]


def without_nulls(row):
    if isinstance(row, dict):
        return {key: without_nulls(value) for key, value in row.items() if value is not None}
    return row


def stats(low, high):
    def bounds(number):
        return {"x": number, "s": f"s{number}", "t": "2026-01-01T00:00:00.125Z", "d": 1.25}

    return json.dumps(
        {
            "numRecords": 3,
            "minValues": {**bounds(low), "n": {"y": -0.5}},
            "maxValues": {**bounds(high), "n": {"y": 7.5}},
            "nullCount": {"x": 0, "s": 0, "t": 1, "d": 0, "n": {"y": 2}},
        }
    )


def add(name, p="2026-11-20", text=None):
    text = stats(1, 9) if text is None else text
    return AddFile(f"p={p}/{name}", {"p": p}, 10, 1, True, stats=text)


def full_table(configuration=V2, **arguments):
    table = Table(configuration, **arguments)
    table.commit(*(add(f"f{number}") for number in range(25)), SetTransaction("app", 4, 9))
    table.commit(add("f0").remove(NOW_MS), DomainMetadata("d", "{}"))
    return table
