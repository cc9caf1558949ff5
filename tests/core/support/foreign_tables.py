"""Tables on disk as another engine may write them: lines of JSON, and Parquet files beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core import DeltaLog
from optimist.core.log.names import commit_path, log_path_of

Line = Mapping[str, Any]


def multi_part_checkpoint_name(version: int, part: int, num_parts: int) -> str:
    """One part, counted from 1, of a checkpoint of a kind that we read and do not write."""
    return f"{version:020d}.checkpoint.{part:010d}.{num_parts:010d}.parquet"


def field(name: str, kind: object = "long", **metadata: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def protocol(
    reader: int = 1, writer: int = 2, *features: str, for_readers: Iterable[str] = ()
) -> Line:
    body: dict[str, object] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader >= 3:
        body["readerFeatures"] = list(for_readers)
    if writer >= 7:
        body["writerFeatures"] = [*features, *for_readers]
    return {"protocol": body}


def metadata(
    *fields: Mapping[str, object],
    properties: Mapping[str, str] | None = None,
    partition_by: Iterable[str] = (),
    **others: object,
) -> Line:
    body = {
        "id": "9f8d3a5c-3c9b-4c39-8f54-3f9d9b9a7d11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": list(fields) or [field("a")]}),
        "partitionColumns": list(partition_by),
        "configuration": dict(properties or {}),
        "createdTime": 1,
    }
    return {"metaData": body | others}


class ForeignTable:
    """A directory that is filled file by file; nothing of the engine takes part."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next_version = 0
        Path(log_path_of(str(path))).mkdir(parents=True)

    def commit(self, *lines: Line) -> int:
        """Write the lines as the next version, in this order; returns the version."""
        version = self._next_version
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        file = Path(commit_path(self._log, version))
        file.write_text(text)
        seconds = int(file.stat().st_mtime) - 600 + version  # no two commits at one time
        os.utime(file, (seconds, seconds))
        self._next_version += 1
        return version

    def add(self, columns: Mapping[str, Any], **others: object) -> Line:
        """Write a data file; returns the action that adds it."""
        name = f"part-{len(list(self.path.glob('*.parquet')))}.parquet"
        rows = pa.table(columns)
        pq.write_table(rows, self.path / name)
        body = {
            "path": name,
            "partitionValues": {},
            "size": (self.path / name).stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows}),
        }
        return {"add": body | others}

    def open(self, **options: str) -> DeltaLog:
        return DeltaLog.for_path(str(self.path), options)

    def lines(self, version: int) -> list[Any]:
        """What a version's commit says, whoever wrote it."""
        text = Path(commit_path(self._log, version)).read_text()
        return [json.loads(line) for line in text.splitlines()]

    def bodies(self, version: int, kind: str) -> list[Any]:
        """The bodies of one kind of action in a version's commit."""
        return [line[kind] for line in self.lines(version) if kind in line]

    @property
    def _log(self) -> str:
        return log_path_of(str(self.path))
