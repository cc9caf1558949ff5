"""The writer of a V2 checkpoint's sidecars (spec 5.8).

Sidecars are created under names that nobody knows yet. If the checkpoint fails, they are deleted
again; those that it names again belong to the checkpoint before, and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

from optimist.core.errors import StorageError
from optimist.core.log.sidecars import Sidecar, sidecar_directory
from optimist.core.log_upkeep.checkpoint_layout import LAYOUT_KEY
from optimist.core.log_upkeep.checkpoint_rows import CheckpointRows, with_struct
from optimist.core.log_upkeep.external_sort import sorted_rows
from optimist.core.log_upkeep.sidecar_plan import SidecarPlan, SidecarTags
from optimist.core.log_upkeep.spooled_parquet import SpooledParquet
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore
from optimist.core.runtime.clock import Clock
from optimist.core.snapshot import Snapshot

__all__ = ["SidecarWriter"]


class SidecarWriter:
    """The sidecars of one checkpoint.

    Args:
        store: The store of the log.
        snapshot: The version.
        clock: The source of time.
        rows: The rows of the checkpoint.
        most_rows: The most rows of a sidecar.

    Attributes:
        sidecars: Those that the checkpoint names, so far.
        num_actions: The actions in them.
        counted: The adds counted in the files themselves.
    """

    def __init__(
        self,
        store: LogStore,
        snapshot: Snapshot,
        clock: Clock,
        rows: CheckpointRows,
        most_rows: int,
    ) -> None:
        self.sidecars: list[Sidecar] = []
        self.num_actions = self.counted = 0
        self._store = store
        self._snapshot = snapshot
        self._clock = clock
        self._rows = rows
        self._most_rows = most_rows
        self._created: list[Sidecar] = []
        self._directory = sidecar_directory(snapshot.log_path)

    def write_few(self) -> Iterator[int]:
        """Write the few files and the tombstones in runs of rows, and yield after each batch."""
        schema = self._rows.layout.file_schema
        batches = self._rows.file_batches(schema)
        for take_run in _split_batches(batches, self._most_rows):
            with SpooledParquet(schema, self._snapshot.properties) as file:
                for batch in take_run:
                    file.write(batch)
                    yield batch.num_rows
                self._publish(file, {})

    def write_many(self, plan: SidecarPlan | None) -> Iterator[int]:
        """Write adds and tombstones apart, each row group as a sidecar, and yield after each.

        Args:
            plan: What is taken over from the checkpoint before. None: nothing.
        """
        for sidecar, tags in plan.kept if plan else ():
            self.sidecars.append(sidecar)
            self.num_actions += tags.rows
            if tags.kind == "add":
                self.counted += tags.rows
                self._rows.count(tags.rows, tags.size_bytes)
        layout, most = self._rows.layout, self._most_rows
        sort = self._clock.new_uuid() if plan is None or plan.is_sorted else ""
        if plan is None:
            adds, tombstones = self._rows.add_batches(), self._rows.tombstones()
        else:
            adds, tombstones = sorted_rows(plan.adds(), layout.keys, most), plan.tombstones(most)
        yield from self._write_each("add", adds, sort)
        yield from self._write_each("remove", tombstones, sort)

    def take_back(self) -> None:
        """Delete the sidecars that were created: nobody will ever name them."""
        for item in self._created:
            with suppress(StorageError):  # cleanup finds it later; the first error is raised
                self._store.delete(join(self._directory, item.name))

    def _write_each(self, kind: str, batches: Iterable[pa.RecordBatch], sort: str) -> Iterator[int]:
        layout = self._rows.layout
        schema = layout.file_schema
        for batch in batches:
            tags = SidecarTags.of_rows(kind, batch, sort)
            if kind == "add":
                self._rows.count(tags.rows, tags.size_bytes)
            with SpooledParquet(schema, self._snapshot.properties) as file:
                file.add_metadata({LAYOUT_KEY: layout.digest})
                file.write(with_struct(schema, kind, batch))
                self._publish(file, tags.to_dict(layout))
            yield batch.num_rows

    def _publish(self, file: SpooledParquet, tags: dict[str, str]) -> None:
        if not self._created:
            self._store.ensure_directory(self._directory)
        self.counted += file.finish()
        unique = self._clock.new_uuid()
        number = len(self._created) + 1
        name = f"{self._snapshot.version:020d}.checkpoint.{number:010d}.{unique}.parquet"
        sidecar = Sidecar(name, file.size_bytes, self._clock.now_ms(), tags)
        # Noted first: if the store fails, the file may be there all the same.
        self._created.append(sidecar)
        file.publish(self._store, join(self._directory, name))
        self.sidecars.append(sidecar)
        self.num_actions += file.num_rows


def _split_batches(
    batches: Iterator[pa.RecordBatch], limit: int
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Split batches into runs of `limit` rows.

    Consume the runs in order.
    """
    waiting: list[pa.RecordBatch] = []

    def take_run() -> Iterator[pa.RecordBatch]:
        left = limit
        while left and (batch := waiting.pop() if waiting else next(batches, None)) is not None:
            taken = batch.slice(0, left)
            if taken.num_rows < batch.num_rows:
                waiting.append(batch.slice(left))
            left -= taken.num_rows
            yield taken

    while True:
        if not waiting:
            first = next(batches, None)
            if first is None:
                return
            waiting.append(first)
        yield take_run()
