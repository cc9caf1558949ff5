"""The writer of a stream of rows of any length to Parquet files, in bounded memory (spec 10.2).

1. Rows are split by partition, and wait in memory; those of a table without partitions go to a few
   lanes in turn.
2. A lane that is large enough becomes a row group of its file, in another thread. So does the
   largest lane if too many bytes wait.
3. Only so many files are open at a time. If none may be opened, and too many bytes wait, the rows
   of the other partitions go to this machine's disk (`SpilledRows`).
4. In the end, each remaining lane becomes a file, and the rows on the disk are written partition by
   partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from optimist.core.data.parquet.parquet_writer import ROW_GROUP_ROWS, FileSpec, TaskFiles
from optimist.core.data.parquet.partitioned_rows import copied_parts, rows_by_partition
from optimist.core.data.parquet.spilled_rows import SpilledRows
from optimist.core.data.partition_values import partition_schema
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.errors import UsageError
from optimist.core.protocol.actions import AddFile
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.processors import count_processors

__all__ = ["SplitRows", "StreamFiles", "StreamLimits"]

_PART_BYTES = 1 << 10
"""What a part of a table costs in memory for each column, besides its values."""
_SMALLEST_GROUP = 256 << 10
_GROUP_ROWS = ROW_GROUP_ROWS * 3 // 4
"""The rows of a lane that become a row group: with one more part they still fit into one."""
_MANY_PARTITIONS = 1 << 10
"""The rows of a piece with more partitions than this go to the disk at once."""


_Values: TypeAlias = Mapping[str, str | None]
"""The values of a partition, by physical name."""
_Numbered: TypeAlias = tuple[_Values, pa.Array]
"""A partition, and the numbers of its rows."""


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows by partition, in their order.

    Attributes:
        parts: Partitions with their rows.
        crowds: Rows of very many partitions, which are not taken apart yet.
    """

    parts: list[tuple[_Values, pa.RecordBatch]] = field(default_factory=list)
    crowds: list[tuple[pa.RecordBatch, list[_Numbered]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The bounds of a stream's memory.

    Attributes:
        group_bytes: The size in memory at which the rows of a lane become a row group.
        held_bytes: The size of all rows that may wait.
        open_files: The most files that are open at a time.
        threads: The number of threads that write.
        partitions: The most partitions that one write may have.
    """

    group_bytes: int = 16 << 20
    held_bytes: int = 96 << 20
    open_files: int = 64
    threads: int = 2
    partitions: int = 100_000

    @classmethod
    def of(cls, spec: FileSpec) -> StreamLimits:
        """Return the bounds for files of a table."""
        # A file for a store is spooled in memory up to some size.
        open_files = 64 if is_on_disk(spec.table_path) else 16
        group_bytes = 16 << 20
        if spec.target_bytes is not None:
            group_bytes = max(1 << 20, min(group_bytes, spec.target_bytes))
        threads = max(2, min(4, count_processors()))
        return cls(group_bytes, open_files=open_files, threads=threads)


@dataclass(slots=True)
class _Lane:
    """Rows of one partition that wait for one file, and the file once it is open."""

    values: _Values
    parts: list[pa.RecordBatch] = field(default_factory=list)
    num_rows: int = 0
    num_bytes: int = 0
    files: TaskFiles | None = None
    pending: Future[None] | None = None

    def add(self, part: pa.RecordBatch) -> int:
        """Add rows, and return what they cost in memory."""
        size: int = part.nbytes + _PART_BYTES * part.num_columns
        self.parts.append(part)
        self.num_rows += part.num_rows
        self.num_bytes += size
        return size

    def take(self) -> pa.Table:
        """Return the waiting rows, at least one, and hold none."""
        rows = pa.Table.from_batches(self.parts)
        self.parts, self.num_rows, self.num_bytes = [], 0, 0
        return rows


class StreamFiles:
    """The files of one stream. End them with `close` or `abort`.

    Args:
        spec: The common settings of the files.
        clock: See `TaskFiles`.
        limits: The bounds; None for those of the table's place.

    Attributes:
        num_rows: The number of rows so far.
    """

    def __init__(self, spec: FileSpec, clock: Clock, limits: StreamLimits | None = None) -> None:
        self.num_rows = 0
        self._spec = spec
        self._clock = clock
        self._limits = limits or StreamLimits.of(spec)
        self._fields = partition_schema(spec.schema, spec.partition_columns)
        self._lanes: dict[tuple[str | None, ...], _Lane] = {}
        self._tasks: list[TaskFiles] = []
        self._smallest = min(_SMALLEST_GROUP, self._limits.group_bytes)
        self._held = 0
        self._num_open = 0
        self._lane_bytes = 0
        self._lane_number = 0
        self._pool: ThreadPoolExecutor | None = None
        self._in_work: deque[Future[None]] = deque()
        self._spilled: SpilledRows | None = None

    def write(self, rows: pa.Table) -> None:
        """Write some rows, which have the table's columns.

        Raises:
            UsageError: There are too many partitions (kind `OPTIMIST_TOO_MANY_PARTITIONS`).
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        self.add(self.split(rows))

    def split(self, rows: pa.Table) -> SplitRows:
        """Return rows for `add`, by partition. Any thread may do that."""
        if not len(self._fields):
            return SplitRows([({}, batch) for batch in rows.to_batches()])
        split = SplitRows()
        for batch in rows.combine_chunks().to_batches():
            found = list(rows_by_partition(batch, self._fields))
            numbered = [(values, numbers) for values, numbers in found if numbers is not None]
            if not numbered:
                split.parts.extend((values, batch) for values, _ in found)
            elif len(numbered) > _MANY_PARTITIONS:
                split.crowds.append((batch, numbered))
            else:
                parts = copied_parts(batch, [numbers for _, numbers in numbered])
                names = (values for values, _ in numbered)
                split.parts.extend(zip(names, parts, strict=True))
        return split

    def add(self, split: SplitRows) -> None:
        """Write rows that are split already; else as `write`."""
        for values, part in split.parts:
            self.num_rows += part.num_rows
            if values:
                self._hold(self._lane(values), part)
            else:
                self._hold_in_turn(part)
        for batch, numbered in split.crowds:
            self.num_rows += batch.num_rows
            self._hold_crowd(batch, numbered)
        self._make_room()

    def close(self) -> tuple[AddFile, ...]:
        """Write what waits, and return the `add` actions of all files.

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        if self._spilled is not None:
            self._spill()
        unopened = [lane for lane in self._lanes.values() if not lane.files and lane.parts]
        jobs = [self._ending(lane) for lane in self._lanes.values() if lane.files]
        jobs += [self._writing(lanes) for lanes in _dealt(unopened, self._limits.threads)]
        if len(jobs) == 1 and not self._in_work:
            jobs[0]()  # a small write starts no thread
        else:
            for job in jobs:
                self._start(job)
        self._finish_work()
        if self._spilled is not None:
            for bucket in self._spilled.finish():
                self._start(self._writing_spilled(self._spilled, bucket))
            self._finish_work()
        self._end()
        return tuple(add for task in self._tasks for add in task.close())

    def abort(self) -> None:
        """Remove all written files. VACUUM finds those that can't be removed."""
        self._end()
        for task in self._tasks:
            task.abort()

    # Rows that wait

    def _hold_crowd(self, rows: pa.RecordBatch, numbered: Sequence[_Numbered]) -> None:
        """Hold the rows of partitions with open files, and move all others to the disk."""
        spilled: dict[int, list[pa.Array]] = {}
        for values, numbers in numbered:
            lane = self._lane(values)
            if lane.files is not None:
                self._hold(lane, rows.take(numbers))
                continue
            bucket = SpilledRows.bucket_of(tuple(values.values()))
            spilled.setdefault(bucket, []).append(numbers)
        found = {
            bucket: [pa.Table.from_batches([rows.take(pa.concat_arrays(each))])]
            for bucket, each in spilled.items()
        }
        if found:
            self._spill_to().add(found)

    def _hold_in_turn(self, part: pa.RecordBatch) -> None:
        """Give rows without a partition to the lanes in turn, as much to each as makes a group."""
        lane = self._lane({"": str(self._lane_number)})
        self._lane_bytes += self._hold(lane, part)
        if not lane.parts or self._lane_bytes >= self._limits.group_bytes:
            self._lane_number = (self._lane_number + 1) % self._limits.threads
            self._lane_bytes = 0

    def _lane(self, values: _Values) -> _Lane:
        key = tuple(values.values())
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(values)
            if len(self._lanes) > self._limits.partitions:
                raise _too_many_partitions(self._limits.partitions)
        return lane

    def _hold(self, lane: _Lane, part: pa.RecordBatch) -> int:
        size = lane.add(part)
        self._held += size
        is_group = lane.num_bytes >= self._limits.group_bytes or lane.num_rows >= _GROUP_ROWS
        if is_group and self._may_open(lane):
            self._flush(lane)
        return size

    def _make_room(self) -> None:
        while self._held > self._limits.held_bytes:
            known = (lane for lane in self._lanes.values() if self._may_open(lane))
            largest = max(known, key=lambda lane: lane.num_bytes, default=None)
            is_worth_it = largest is not None and largest.num_bytes >= self._smallest
            if largest is not None and (is_worth_it or not self._spill()):
                self._flush(largest)
            elif largest is None:
                self._spill()

    def _may_open(self, lane: _Lane) -> bool:
        return lane.files is not None or self._num_open < self._limits.open_files

    # The disk

    def _spill_to(self) -> SpilledRows:
        if self._spilled is None:
            self._spilled = SpilledRows()
        return self._spilled

    def _spill(self) -> bool:
        """Move the waiting rows of files that are not open to the disk, if there are any."""
        found: dict[int, list[pa.Table]] = {}
        for key, lane in self._lanes.items():
            if lane.files is None and lane.parts:
                self._held -= lane.num_bytes
                found.setdefault(SpilledRows.bucket_of(key), []).append(lane.take())
        if found:
            self._spill_to().add(found)
        return bool(found)

    # Threads

    def _flush(self, lane: _Lane) -> None:
        """Begin to write the waiting rows of a lane as a row group."""
        if lane.files is None:
            lane.files = self._new_task()
            self._num_open += 1
        if lane.pending is not None:
            lane.pending.result()  # one thread at a time writes to a file
        self._held -= lane.num_bytes
        files, rows, values = lane.files, lane.take(), lane.values

        def write() -> None:
            files.write(rows, values)
            files.flush()

        lane.pending = self._start(write)

    def _start(self, job: Callable[[], None]) -> Future[None]:
        while len(self._in_work) >= self._limits.threads:
            self._in_work.popleft().result()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self._limits.threads, thread_name_prefix="optimist-write"
            )
        # The operation's budget is passed on; each thread needs a copy of its own.
        future = self._pool.submit(copy_context().run, job)
        self._in_work.append(future)
        return future

    def _finish_work(self) -> None:
        while self._in_work:
            self._in_work.popleft().result()

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None

    def _new_task(self) -> TaskFiles:
        task = TaskFiles(self._spec, self._clock, task=len(self._tasks))
        self._tasks.append(task)
        return task

    # The end

    def _ending(self, lane: _Lane) -> Callable[[], None]:
        files, pending = lane.files, lane.pending

        def write() -> None:
            if pending is not None:
                pending.result()
            if files is not None and lane.parts:
                files.write(lane.take(), lane.values)
            if files is not None:
                files.close()

        return write

    def _writing(self, lanes: Sequence[_Lane]) -> Callable[[], None]:
        files = self._new_task()

        def write() -> None:
            for lane in lanes:
                files.write(lane.take(), lane.values)
            files.close()

        return write

    def _writing_spilled(self, spilled: SpilledRows, bucket: int) -> Callable[[], None]:
        files = self._new_task()

        def write() -> None:
            for rows in spilled.read(bucket, self._limits.group_bytes):
                files.write(rows)
            files.close()

        return write


def _dealt(lanes: Sequence[_Lane], count: int) -> Iterator[Sequence[_Lane]]:
    """Yield the lanes in runs of about equal length, at most so many."""
    length = max(1, -(-len(lanes) // count))
    for start in range(0, len(lanes), length):
        yield lanes[start : start + length]


def _too_many_partitions(most: int) -> UsageError:
    return UsageError(
        f"The rows have more than {most} partitions, and each would become a file of its own. "
        "Nothing was written. Partition by a column with fewer values, such as the month of a "
        "time, or cluster the table by this column.",
        kind="OPTIMIST_TOO_MANY_PARTITIONS",
        limit=most,
    )
