"""How much of a checkpoint is in memory: all of it if it is small, and else what is looked at."""

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from checkpoint_tables import Table, add
from optimist.core.log import parquet_batches
from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.limits import DEFAULT_LIMITS
from optimist.core.log.names import classic_checkpoint_name
from optimist.core.plugins.logstore import FileStatus


def test_a_checkpoint_is_large_if_its_pages_are_whatever_they_are_packed_to():
    table = Table()
    text = '{"numRecords":1,"nullCount":{"s":' + " " * 2_000
    table.commit(*(add(f"f{number}", text=f"{text}{number % 2}}}}}") for number in range(200)))
    table.checkpoint()
    path = f"{table.path}/{classic_checkpoint_name(table.version)}"
    data = table.store.read_bytes(path)
    footer = pq.read_metadata(io.BytesIO(data))
    pages_bytes = sum(footer.row_group(n).total_byte_size for n in range(footer.num_row_groups))
    assert 4 * len(data) < pages_bytes
    for cache_bytes, is_small in ((2 * pages_bytes - 1, False), (2 * pages_bytes, True)):
        limits = replace(DEFAULT_LIMITS, cache_bytes=cache_bytes)
        files = [FileStatus(path, len(data), 0)]
        reader = CheckpointReader(table.store, table.version, files, limits)
        assert reader.is_small() == is_small


class Counted(bytes):
    """Bytes that were read and are held."""

    held = 0

    @classmethod
    def of(cls, data):
        cls.held += len(data)
        return cls(data)

    def __del__(self):
        Counted.held -= len(self)


class CountedFile(io.BytesIO):
    def read(self, size=-1):
        return Counted.of(super().read(size))


def test_of_a_file_that_is_streamed_little_is_held(monkeypatch):
    monkeypatch.setattr(parquet_batches, "_RUN_BYTES", 10_000)
    texts = [f"{number * 7919 % 100_003:08d}" for number in range(40_000)]
    sink = io.BytesIO()
    table = pa.table({"add": pa.array([{"path": text} for text in texts])})
    pq.write_table(table, sink, row_group_size=1_000, compression="none", use_dictionary=False)
    most, found = 0, []
    with CheckpointFile(CountedFile(sink.getvalue())) as file:
        groups = range(file.num_row_groups)
        limits = {"max_rows": 1_000, "max_bytes": 1 << 30}
        for batch in parquet_batches.bounded_batches(file, ["add.path"], groups, **limits):
            most = max(most, Counted.held)
            found += batch.column(0).field("path").to_pylist()
    assert found == texts
    assert 0 < most < len(sink.getvalue()) / 4


def test_row_groups_are_read_in_runs_of_few_bytes_and_all_of_them(monkeypatch):
    sink = io.BytesIO()
    table = pa.table({"add": pa.array([{"path": f"{number:08d}"} for number in range(9)])})
    pq.write_table(table, sink, row_group_size=1, compression="none", use_dictionary=False)
    with CheckpointFile(sink) as file:
        of_one = file.chunks.chunk(0, 0).total_compressed_size
        for most, runs in ((1, 9), (2 * of_one, 5), (9 * of_one, 1)):
            monkeypatch.setattr(parquet_batches, "_RUN_BYTES", most)
            found = list(parquet_batches._runs(file, range(9), [0]))
            assert len(found) == runs
            assert [group for run in found for group in run] == list(range(9))
