"""Sound tables of every kind, as the bytes of their files: what cases are made from.

They are made by the engine with a manual clock, and by hand where the engine writes no such thing.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from optimist.core import DeltaLog
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore

__all__ = ["SeedTable", "real_tables", "seed_tables"]

NOW_MS = 1_800_000_000_000
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


@dataclass(frozen=True, slots=True)
class SeedTable:
    """A table at rest.

    Attributes:
        name: What it is.
        files: Its files by their paths, relative to its folder.
        append: One row that fits it; None where none is known.
    """

    name: str
    files: Mapping[str, bytes]
    append: pa.Table | None = None


def _field(name: str, kind: Any, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": dict(metadata or {})}


_FIELDS = (
    _field("id", "long"),
    _field("p", "string"),
    _field("s", "string"),
    _field("d", "decimal(10,2)"),
    _field("t", "timestamp"),
    _field("y", "date"),
    _field("f", "double"),
    _field("b", "binary"),
    _field("st", {"type": "struct", "fields": [_field("a", "integer")]}),
    _field("l", {"type": "array", "elementType": "short", "containsNull": True}),
    _field(
        "m",
        {"type": "map", "keyType": "string", "valueType": "float", "valueContainsNull": True},
    ),
)
_ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("s", pa.string()),
        ("d", pa.decimal128(10, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("y", pa.date32()),
        ("f", pa.float64()),
        ("b", pa.binary()),
        ("st", pa.struct([("a", pa.int32())])),
        ("l", pa.list_(pa.int16())),
        ("m", pa.map_(pa.string(), pa.float32())),
    ]
)


class _Writer:
    """One table, written by hand; each file has four rows."""

    def __init__(
        self,
        folder: Path,
        *,
        features: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
        partition: str | None = None,
        is_mapped: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.partition = partition
        self.is_mapped = is_mapped
        self._ids = 0
        self._clock = ManualClock(now_ms=NOW_MS)
        given = EngineOptions.from_options(options or {})
        (folder / "_delta_log").mkdir(parents=True)
        store = LocalLogStore(clock=self._clock)
        self.log = DeltaLog(str(folder), store, given, clock=self._clock)
        self._version = -1
        readers = [name for name in features if name in _READER_FEATURES]
        legacy = Protocol(1, 4)
        protocol = Protocol(3, 7, tuple(readers), tuple(features)) if features else legacy
        if features and not readers:
            protocol = Protocol(1, 7, None, tuple(features))
        schema = {"type": "struct", "fields": [self._mapped(item) for item in _FIELDS]}
        metadata = Metadata(
            "00000000-0000-4000-8000-00000000feed",
            json.dumps(schema),
            name="seed",
            partition_columns=(partition,) if partition else (),
            configuration={"delta.enableChangeDataFeed": "true", **(configuration or {})},
            created_time=NOW_MS,
        )
        self.commit(protocol, metadata)

    def physical(self, name: str) -> str:
        return f"col-{name}" if self.is_mapped else name

    def _mapped(self, item: dict[str, Any]) -> dict[str, Any]:
        if not self.is_mapped:
            return item
        number = _ARROW.names.index(item["name"]) + 1 if item["name"] in _ARROW.names else 99
        item = dict(item)
        if isinstance(item["type"], dict) and item["type"]["type"] == "struct":
            fields = [self._mapped(each) for each in item["type"]["fields"]]
            item["type"] = {"type": "struct", "fields": fields}
        item["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": self.physical(item["name"]),
        }
        return item

    def commit(self, *actions: Any) -> None:
        self._version += 1
        info = CommitInfo(
            timestamp=NOW_MS + self._version,
            in_commit_timestamp=NOW_MS + self._version,
            operation="WRITE",
            operation_parameters={"mode": "Append"},
            operation_metrics={"numFiles": "1"},
            txn_id=f"seed-{self._version}",
            engine_info="seed",
        )
        path = self.folder / "_delta_log" / f"{self._version:020}.json"
        path.write_bytes(actions_to_bytes((info, *actions)))

    def rows(self, count: int = 4) -> pa.Table:
        """The next rows, one of them full of nulls."""
        start, self._ids = self._ids, self._ids + count
        rows = [_row(number) for number in range(start, start + count)]
        return pa.Table.from_pylist(rows, schema=_ARROW)

    def file(self, p: str | None = "a", *, size: int | None = None) -> AddFile:
        rows = self.rows()
        name = f"part-{self._ids // 4 - 1}.parquet"
        low, high = rows["id"][0].as_py(), rows["id"][-1].as_py()
        stored = rows.drop_columns([self.partition]) if self.partition else rows
        stored = self._under_physical_names(stored)
        pq.write_table(stored, self.folder / name, compression="snappy", row_group_size=2)
        ident, text = self.physical("id"), self.physical("s")
        stats = {
            "numRecords": rows.num_rows,
            "minValues": {ident: low, text: f"s{low}", self.physical("f"): low / 2},
            "maxValues": {ident: high, text: f"s{high}", self.physical("f"): high / 2},
            "nullCount": {ident: 0, text: 0},
        }
        return AddFile(
            name,
            {self.physical(self.partition): p} if self.partition else {},
            (self.folder / name).stat().st_size,
            NOW_MS,
            True,
            stats=json.dumps(stats),
            tags={"optimizedBy": "seed"},
        )

    def _under_physical_names(self, rows: pa.Table) -> pa.Table:
        if not self.is_mapped:
            return rows
        columns = []
        for item in rows.schema:
            column = rows[item.name].combine_chunks()
            if item.name == "st":
                column = pa.StructArray.from_arrays([column.field(0)], names=["col-a"])
            columns.append(column)
        fields = [
            pa.field(f"col-{item.name}", column.type, metadata={"PARQUET:field_id": str(place + 1)})
            for place, (item, column) in enumerate(zip(rows.schema, columns, strict=True))
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def inline_vector(self, *rows: int) -> DeletionVectorDescriptor:
        data = bitmap(rows)
        padded = data + bytes(-len(data) % 4)
        return DeletionVectorDescriptor("i", z85(padded), len(data), len(rows))

    def stored_vector(self, *rows: int) -> DeletionVectorDescriptor:
        data = bitmap(rows)
        ident = uuid.UUID(int=len(list(self.folder.glob("*.bin"))) + 1)
        frame = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        (self.folder / f"deletion_vector_{ident}.bin").write_bytes(b"\x01" + frame)
        return DeletionVectorDescriptor("u", z85(ident.bytes), len(data), len(rows), offset=1)

    def changes(self, p: str | None = "a") -> AddCDCFile:
        folder = self.folder / "_change_data"
        folder.mkdir(exist_ok=True)
        name = f"cdc-{len(list(folder.iterdir()))}.parquet"
        rows = pa.Table.from_pylist([_row(1), _row(2)], schema=_ARROW)
        stored = rows.drop_columns([self.partition]) if self.partition else rows
        kinds = pa.array(["delete", "update_postimage"])
        pq.write_table(stored.append_column("_change_type", kinds), folder / name)
        values = {self.partition: p} if self.partition else {}
        return AddCDCFile(f"_change_data/{name}", values, (folder / name).stat().st_size)

    def checkpoint(self) -> None:
        """By the engine, of the newest version."""
        self._fresh().checkpoint()

    def append(self) -> None:
        """By the engine, which writes a checksum beside the commit."""
        self._version += 1
        self._fresh().append(self.appended())

    def appended(self) -> pa.Table:
        rows = self.rows(1)
        return rows.set_column(1, "p", pa.array(["a"]))

    def _fresh(self) -> DeltaLog:
        return DeltaLog(str(self.folder), self.log.store, self.log.options, clock=self._clock)

    def taken(self, name: str) -> SeedTable:
        return SeedTable(name, _files_of(self.folder), self.appended())


_READER_FEATURES = ("columnMapping", "deletionVectors", "v2Checkpoint", "timestampNtz")


def _row(number: int) -> dict[str, Any]:
    if number % 4 == 3:
        return {"id": number}
    return {
        "id": number,
        "p": "a",
        "s": f"s{number}",
        "d": Decimal(number) / 4,
        "t": datetime(2026, 1, 1, number % 24, tzinfo=timezone.utc),
        "y": date(2026, 1, 1 + number % 28),
        "f": number / 2,
        "b": bytes([number % 256]),
        "st": {"a": number},
        "l": [number, None],
        "m": {"k": number / 4},
    }


def bitmap(rows: Sequence[int]) -> bytes:
    return struct.pack("<i", 1681511377) + BitMap64(rows).serialize()


def z85(data: bytes) -> str:
    return base64.b85encode(data).translate(bytes.maketrans(_B85, _Z85)).decode()


def _in_parts(log: Path, version: int) -> None:
    """A classic checkpoint as one of two parts, which this engine reads and never writes."""
    whole = log / f"{version:020}.checkpoint.parquet"
    rows = pq.read_table(whole)
    middle = rows.num_rows // 2
    for number, part in enumerate((rows.slice(0, middle), rows.slice(middle)), start=1):
        name = f"{version:020}.checkpoint.{number:010}.{2:010}.parquet"
        pq.write_table(part, log / name)
    whole.unlink()
    hint = log / "_last_checkpoint"
    hint.write_text(json.dumps({"version": version, "size": rows.num_rows, "parts": 2}))


def _files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _plain(folder: Path) -> SeedTable:
    table = _Writer(folder)
    one, two = table.file(), table.file()
    table.commit(one, two)
    table.commit(SetTransaction("app", 3, NOW_MS), DomainMetadata("seed.domain", '{"a":1}'))
    table.checkpoint()
    table.commit(one.remove(NOW_MS), table.file())
    table.append()
    return table.taken("plain")


def _partitioned(folder: Path) -> SeedTable:
    table = _Writer(folder, partition="p")
    table.commit(table.file("a"), table.file("b c"), table.file(None))
    gone = table.file("x=y/%z")
    table.commit(gone)
    table.checkpoint()
    _in_parts(folder / "_delta_log", 2)
    table.commit(gone.remove(NOW_MS), table.changes("x=y/%z"))
    table.append()
    return table.taken("partitioned")


def _vectors(folder: Path) -> SeedTable:
    features = ("changeDataFeed", "deletionVectors", "v2Checkpoint", "domainMetadata")
    table = _Writer(folder, features=features, configuration={"delta.checkpointPolicy": "v2"})
    one, two = table.file(), table.file()
    table.commit(one, two)
    table.commit(
        one.remove(NOW_MS), replace(one, deletion_vector=table.inline_vector(0, 3)), table.file()
    )
    table.checkpoint()
    table.commit(two.remove(NOW_MS), replace(two, deletion_vector=table.stored_vector(1)))
    table.append()
    return table.taken("vectors")


def _mapped(folder: Path) -> SeedTable:
    features = (
        "changeDataFeed",
        "columnMapping",
        "domainMetadata",
        "inCommitTimestamp",
        "rowTracking",
        "v2Checkpoint",
    )
    configuration = {
        "delta.checkpointPolicy": "v2",
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "99",
        "delta.enableInCommitTimestamps": "true",
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
    }
    options = {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"}
    table = _Writer(
        folder,
        features=features,
        configuration=configuration,
        is_mapped=True,
        options=options,
    )
    mark = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":3}')
    one = replace(table.file(), base_row_id=0, default_row_commit_version=1)
    table.commit(one, mark)
    table.checkpoint()
    table.commit(replace(table.file(), base_row_id=4, default_row_commit_version=2))
    return table.taken("mapped")


def _compacted(folder: Path) -> SeedTable:
    options = {"optimist.log.compactionInterval": "3"}
    table = _Writer(folder, options=options)
    for _ in range(7):
        table.append()
    return table.taken("compacted")


@lru_cache(maxsize=1)
def seed_tables() -> tuple[SeedTable, ...]:
    """All of ours, always in the same order."""
    made = []
    with TemporaryDirectory() as parent:
        for build in (_plain, _partitioned, _vectors, _mapped, _compacted):
            made.append(build(Path(parent) / build.__name__))
    return tuple(made)


@lru_cache(maxsize=1)
def real_tables() -> tuple[SeedTable, ...]:
    """Those that other engines wrote, where `OPTIMIST_DAT` says that they are."""
    root = os.environ.get("OPTIMIST_DAT")
    folders = sorted(Path(root).glob("*/delta")) if root else []
    found = (SeedTable(folder.parent.name, _files_of(folder)) for folder in folders)
    return tuple(table for table in found if sum(map(len, table.files.values())) < _LARGE)


_LARGE = 2_000_000
