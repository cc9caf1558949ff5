"""The life of one handle: many commits of its own and of others, checkpoints, cleanups, clocks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251 - a life is its seed

from optimist.core import DeltaLog, Operation
from optimist.core.log.checkpoint_kinds import complete_checkpoints
from optimist.core.log.names import listing_start
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile, Metadata, RemoveFile, SetTransaction
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

__all__ = ["HandleLife"]

_HOUR_S = 3600.0
_PROPERTIES = {
    "delta.checkpointInterval": "10",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
_WRITE = Operation("WRITE", {"mode": "Append"})
_MOST_FILES = 60


class HandleLife:
    """One handle on a table in memory, and what the table should hold.

    Args:
        seed: Decides what happens.
        properties: More properties of the table.
        others: Whether another handle commits, too.

    Attributes:
        log: The handle.
        files: The live files by name.
        progress: The last version of each application.
    """

    def __init__(self, seed: int, *, others: bool = True, **properties: str) -> None:
        self.random = Random(seed)
        self.clock = ManualClock(seed=seed)
        self.space = f"life-{seed}"
        MemoryLogStore.clear(self.space)
        self.log, self.other = self.handle(), self.handle()
        self.files: set[str] = set()
        self.progress: dict[str, int] = {}
        self._others = others
        self._made = 0
        schema = StructType((StructField("id", PrimitiveType("long")),))
        given = {**_PROPERTIES, **properties}
        metadata = Metadata(id="", schema_string=schema_to_json(schema), configuration=given)
        self.log.start_transaction().commit([metadata], Operation("CREATE TABLE"))

    def handle(self) -> DeltaLog:
        """Another handle."""
        store = MemoryLogStore({}, clock=self.clock, namespace=self.space)
        return DeltaLog("memory:///t", store, EngineOptions(), clock=self.clock)

    def live(self, num_steps: int) -> None:
        """Let so many things happen."""
        steps: list[Callable[[], None]] = [self._append] * 8 + [self._replace] * 4
        steps += [self._replace_unread, self._write_progress, self._pass_time, self._jump]
        steps += [lambda: self._by().checkpoint() and None, self._look]
        for _ in range(num_steps):
            self.random.choice(steps)()

    def ensure_alike(self) -> None:
        """Hold what the handle says against a fresh one, and both against what was done."""
        mine, fresh = self.log.snapshot(), self.handle().snapshot()
        assert mine.version == fresh.version
        for found in (mine, fresh):
            assert set(found.files["path"].to_pylist()) == self.files
            told = {name: txn.version for name, txn in found.set_transactions.items()}
            assert told == self.progress
            assert (found.metadata, found.protocol) == (fresh.metadata, fresh.protocol)
            # Which tombstones are left depends on whose clock went ahead at a checkpoint.
            assert not self.files & set(found.tombstones["path"].to_pylist())

    def append(self, num_files: int) -> None:
        """Append files by the handle."""
        self._append_by(self.log, num_files)

    def checkpoints(self) -> list[int]:
        """The versions of the checkpoints in the log, newest first."""
        found = self.log.store.list_from(listing_start(self.log.log_path, 0))
        return sorted((each.version for each in complete_checkpoints(found)), reverse=True)

    @property
    def num_commits_held(self) -> int:
        """How many commits the handle's newest version is made of beside its checkpoint."""
        segment = self.log.snapshot().segment
        return len(segment.commits) if segment else 0

    def _by(self) -> DeltaLog:
        return self.other if self._others and self.random.random() < 0.5 else self.log

    def _append(self) -> None:
        self._append_by(self._by(), self.random.randint(1, 3))
        if len(self.files) > _MOST_FILES:
            self._replace_unread()

    def _append_by(self, log: DeltaLog, num_files: int) -> None:
        adds = [self._add() for _ in range(num_files)]
        log.start_transaction().commit(adds, _WRITE)
        self.files |= {add.path for add in adds}

    def _replace(self) -> None:
        """Remove files that were read, and add one."""
        txn = self._by().start_transaction()
        found = txn.filter_files()["path"].to_pylist()
        assert set(found) == self.files
        self._remove(txn, found)

    def _replace_unread(self) -> None:
        self._remove(self._by().start_transaction(), sorted(self.files))

    def _remove(self, txn, found: list[str]) -> None:
        gone = self.random.sample(found, len(found) // 2)
        now_ms, add = self.clock.now_ms(), self._add()
        removes = [RemoveFile(path, deletion_timestamp=now_ms, data_change=True) for path in gone]
        txn.commit([*removes, add], Operation("DELETE"))
        self.files = (self.files - set(gone)) | {add.path}

    def _write_progress(self) -> None:
        name, version = self.random.choice("abc"), len(self.progress) + self._made
        action = SetTransaction(name, version, self.clock.now_ms())
        self._by().start_transaction().commit([action], _WRITE)
        self.progress[name] = version

    def _pass_time(self) -> None:
        self.clock.advance(self.random.uniform(1, 30) * _HOUR_S)

    def _jump(self) -> None:
        hours = self.random.choice([-40, -2, 2, 24 * 40])
        self.clock.set_now_ms(self.clock.now_ms() + round(hours * _HOUR_S * 1000))

    def _look(self) -> None:
        assert set(self.log.snapshot().files["path"].to_pylist()) == self.files

    def _add(self) -> AddFile:
        self._made += 1
        return AddFile(
            path=f"f{self._made}.parquet",
            partition_values={},
            size=self._made,
            modification_time=self.clock.now_ms(),
            data_change=True,
            stats='{"numRecords":1}',
        )
