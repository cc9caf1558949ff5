"""Tables with a change data feed, written by hand, and random histories beside a model of them."""

from __future__ import annotations

import itertools
import json
import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyroaring import BitMap64

from optimist.core import DeltaLog
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    RemoveFile,
    actions_to_bytes,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json

ROWS_PER_FILE = 4
PARTITIONS = ("a", "b c", None)


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

    def changes(self, rows: Sequence[tuple[int, str]], p: str | None = "a") -> AddCDCFile:
        """A file of changes with (id, `_change_type`)."""
        folder = self.path / "_change_data"
        folder.mkdir(exist_ok=True)
        name = f"cdc-{next(self._numbers):05}.parquet"
        ids, kinds = zip(*rows, strict=True)
        pq.write_table(pa.table({"id": ids, "_change_type": kinds}), folder / name)
        values = {"p": p} if self.partitioned else {}
        return AddCDCFile(f"_change_data/{name}", values, (folder / name).stat().st_size)

    def remove_data_files(self) -> int:
        found = list(self.path.glob("part-*.parquet"))
        for file in found:
            file.unlink()
        return len(found)


Changes: TypeAlias = Counter[tuple[str, int]]
"""What a version changed: kind and id."""


@dataclass
class LiveFile:
    """A file with its rows' ids, and the positions of those that are deleted."""

    file: AddFile
    ids: list[int]
    gone: frozenset[int] = frozenset()

    @property
    def live_ids(self) -> list[int]:
        return [number for at, number in enumerate(self.ids) if at not in self.gone]


@dataclass
class History:
    """A table as lists of rows, and the changes that each of its versions made."""

    table: FeedTable
    files: dict[str, LiveFile] = field(default_factory=dict)
    removed: list[LiveFile] = field(default_factory=list)
    expected: list[Changes] = field(default_factory=lambda: [Counter()])
    partition_of: dict[int, str | None] = field(default_factory=dict)

    def commit(self, steps: Sequence[tuple[Step | str, int]]) -> None:
        """One commit of several steps, each on files of its own."""
        changed: Changes = Counter()
        actions: list[Action] = []
        held: dict[str, LiveFile] = {}
        held_removed: list[LiveFile] = []
        for step, choice in steps:
            if isinstance(step, str):
                continue
            before = dict(self.files)
            actions += step(self, changed, choice)
            # What this commit has touched, its other steps leave alone.
            gone = [item for item in self.removed if item.file.path in before]
            held_removed += gone
            self.removed = [item for item in self.removed if item not in gone]
            touched = [path for path, entry in self.files.items() if before.get(path) != entry]
            held.update({path: self.files.pop(path) for path in touched})
        self.files.update(held)
        self.removed += held_removed
        if any(step == "record" for step, _ in steps) and changed:
            actions += self._recorded(changed)
        self.table.commit(*actions) if actions else self.table.commit(self.table.metadata)
        self.expected.append(changed)

    def changes(self, first: int, last: int) -> Counter[tuple[int, str, int]]:
        """Version, kind and id of each change in a range."""
        return Counter(
            {
                (version, *change): count
                for version in range(first, last + 1)
                for change, count in self.expected[version].items()
            }
        )

    def live_ids(self) -> list[int]:
        return sorted(number for item in self.files.values() for number in item.live_ids)

    def new_file(self, ids: list[int], p: str | None) -> LiveFile:
        self.partition_of.update(dict.fromkeys(ids, p))
        return LiveFile(self.table.file(ids, p), ids)

    def pick(self, choice: int) -> LiveFile | None:
        return self.files[sorted(self.files)[choice % len(self.files)]] if self.files else None

    def _recorded(self, changed: Changes) -> list[Action]:
        by_partition: dict[str | None, list[tuple[int, str]]] = {}
        for kind, number in changed.elements():
            by_partition.setdefault(self.partition_of[number], []).append((number, kind))
        if not self.table.partitioned:
            rows = [row for listed in by_partition.values() for row in listed]
            return [self.table.changes(rows)]
        return [self.table.changes(rows, p) for p, rows in by_partition.items()]


Step: TypeAlias = Callable[[History, "Changes", int], list[Action]]
"""Changes files of a history, notes the changed rows, and gives the actions of the commit."""


def insert(history: History, changed: Changes, choice: int) -> list[Action]:
    """A new file."""
    start = len(history.partition_of)
    ids = list(range(start, start + ROWS_PER_FILE))
    added = history.new_file(ids, PARTITIONS[choice % len(PARTITIONS)])
    history.files[added.file.path] = added
    changed.update(("insert", number) for number in ids)
    return [added.file]


def remove(history: History, changed: Changes, choice: int) -> list[Action]:
    """A file less."""
    gone = history.pick(choice)
    if gone is None:
        return []
    del history.files[gone.file.path]
    history.removed.append(gone)
    changed.update(("delete", number) for number in gone.live_ids)
    return [history.table.removal(gone.file)]


def overwrite(history: History, changed: Changes, choice: int) -> list[Action]:
    """A new file in place of all others."""
    actions: list[Action] = []
    while history.files:
        actions += remove(history, changed, 0)
    return [*actions, *insert(history, changed, choice)]


def bring_back(history: History, changed: Changes, choice: int) -> list[Action]:
    """A file that was removed, as a restore adds it: the same path once more."""
    if not history.removed:
        return []
    back = history.removed.pop(choice % len(history.removed))
    history.files[back.file.path] = back
    changed.update(("insert", number) for number in back.live_ids)
    return [back.file]


def replace_vector(history: History, changed: Changes, choice: int) -> list[Action]:
    """Another deletion vector for a file, or none."""
    before = history.pick(choice)
    if before is None:
        return []
    now = frozenset(at for at in range(len(before.ids)) if choice >> at & 1)
    bare = replace(before.file, deletion_vector=None)
    after = history.table.deleting(bare, *sorted(now)) if now else bare
    if after == before.file:
        # One commit must not add and remove the same file with the same vector.
        return []
    history.files[bare.path] = LiveFile(after, before.ids, now)
    changed.update(("delete", before.ids[at]) for at in now - before.gone)
    changed.update(("insert", before.ids[at]) for at in before.gone - now)
    removal = history.table.removal(before.file)
    return [after, removal] if choice % 2 else [removal, after]


def move(history: History, changed: Changes, choice: int) -> list[Action]:
    """A file's rows into another one; nothing changes."""
    before = history.pick(choice)
    if before is None:
        return []
    del history.files[before.file.path]
    p = history.partition_of[before.ids[0]]
    after = history.new_file(before.live_ids or before.ids, p)
    if not before.live_ids:
        dead = frozenset(range(len(before.ids)))
        after = LiveFile(history.table.deleting(after.file, *sorted(dead)), after.ids, dead)
    history.files[after.file.path] = after
    removal = history.table.removal(before.file, data_change=False)
    return [removal, replace(after.file, data_change=False)]


def steps(*more: Step) -> st.SearchStrategy[list[tuple[Step | str, int]]]:
    """The steps of a commit; `more` beside those that need no deletion vectors.

    With "record" among them, the commit names files of changes (`cdc`).
    """
    kinds: list[Step | str] = [insert, remove, overwrite, bring_back, move, *more, "record"]
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 255)), max_size=3)
