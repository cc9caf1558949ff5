"""Streams of any length in bounded memory, with bounds so small that each of them is reached."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.data.parquet import stream_files
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.parquet.stream_files import StreamFiles, StreamLimits
from optimist.core.errors import StorageError, UsageError
from optimist.core.runtime.clock import SystemClock
from optimist.core.schema.types import PrimitiveType, StructField, StructType

SCHEMA = StructType(
    (StructField("id", PrimitiveType("long")), StructField("p", PrimitiveType("string")))
)
LIMITS = st.builds(
    StreamLimits,
    group_bytes=st.sampled_from([1, 9_000, 1 << 20]),
    held_bytes=st.sampled_from([1, 30_000, 1 << 20]),
    open_files=st.integers(1, 3),
    threads=st.integers(1, 3),
)
PARTITIONS = st.sampled_from([None, "", "a", "b c", "é", "d/e", "f=g"])
PIECES = st.lists(st.lists(PARTITIONS, max_size=12), max_size=10)


def spec_of(path: Path, *partition_columns: str, **more) -> FileSpec:
    return FileSpec(str(path), SCHEMA, partition_columns, stats_columns=None, **more)


def rows_of(first: int, parts: list[str | None]) -> pa.Table:
    ids = pa.array(range(first, first + len(parts)), pa.int64())
    return pa.table({"id": ids, "p": pa.array(parts, pa.string())})


def stored(path: Path, files) -> Counter:
    found = Counter()
    for file in files:
        for row in pq.ParquetFile(path / one_name(path, file.path)).read().to_pylist():
            found[row["id"], file.partition_values.get("p", row.get("p"))] += 1
    return found


def one_name(path: Path, uri: str) -> str:
    name = uri.rsplit("/", 1)[-1]
    (found,) = path.rglob(name)
    return str(found.relative_to(path))


@given(PIECES, LIMITS, st.booleans(), st.booleans())
@settings(deadline=None)
def test_every_row_is_in_a_file_of_its_partition_once(
    tmp_path_factory, pieces, limits, is_partitioned, is_many
):
    path = tmp_path_factory.mktemp("t")
    files = StreamFiles(spec_of(path, *["p"] * is_partitioned), SystemClock(), limits)
    before, stream_files._MANY_PARTITIONS = stream_files._MANY_PARTITIONS, 1 if is_many else 1000
    try:
        expected = Counter()
        for number, parts in enumerate(pieces):
            files.write(rows_of(100 * number, parts))
            for at, part in enumerate(parts):
                expected[100 * number + at, (part or None) if is_partitioned else part] += 1
        adds = files.close()
    finally:
        stream_files._MANY_PARTITIONS = before
    assert files.num_rows == expected.total()
    assert stored(path, adds) == expected
    on_disk = {one.name for one in path.rglob("*.parquet")}
    assert on_disk == {add.path.rsplit("/", 1)[-1] for add in adds}


@pytest.mark.parametrize("held_bytes", [1, 1 << 30])
def test_a_partition_is_one_file_however_its_rows_come(tmp_path, held_bytes):
    limits = StreamLimits(held_bytes=held_bytes, open_files=2)
    files = StreamFiles(spec_of(tmp_path, "p"), SystemClock(), limits)
    for number in range(20):
        files.write(rows_of(number * 30, [str(n % 10) for n in range(30)]))
    adds = files.close()
    assert sorted(add.partition_values["p"] for add in adds) == list("0123456789")
    for add in adds:
        ids = pq.ParquetFile(tmp_path / one_name(tmp_path, add.path)).read()["id"].to_pylist()
        assert len(ids) == 60
        assert ids == sorted(ids)  # the order of the rows


def test_a_small_stream_is_one_file_and_starts_no_thread(tmp_path):
    files = StreamFiles(spec_of(tmp_path), SystemClock())
    for number in range(50):
        files.write(rows_of(number, ["x"]))
    assert len(files.close()) == 1
    assert files._pool is None


def test_a_file_ends_where_it_has_reached_its_size(tmp_path):
    limits = StreamLimits(group_bytes=40_000, held_bytes=1 << 20)
    spec = spec_of(tmp_path, target_bytes=30_000)
    files = StreamFiles(spec, SystemClock(), limits)
    for number in range(40):
        files.write(rows_of(number * 1000, [f"text {n * 7919}" for n in range(1000)]))
    adds = files.close()
    assert len(adds) > 3
    large = [add.size for add in adds if add.size >= 30_000]
    assert len(large) >= len(adds) - limits.threads
    assert max(large) < 100_000
    assert stored(tmp_path, adds).total() == 40_000


def test_too_many_partitions_are_refused_and_leave_no_file(tmp_path):
    limits = StreamLimits(partitions=5, held_bytes=1, group_bytes=1)
    files = StreamFiles(spec_of(tmp_path, "p"), SystemClock(), limits)
    with pytest.raises(UsageError) as caught:
        for number in range(10):
            files.write(rows_of(number, [str(number)]))
    assert caught.value.kind == "OPTIMIST_TOO_MANY_PARTITIONS"
    files.abort()
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("step", ["flush", "close", "write"])
def test_an_error_in_a_thread_ends_the_stream_and_leaves_no_file(tmp_path, step, monkeypatch):
    def failing(*_: object) -> None:
        raise OSError("The disk is full.")

    limits = StreamLimits(group_bytes=1, held_bytes=1, open_files=2)
    files = StreamFiles(spec_of(tmp_path, "p"), SystemClock(), limits)
    files.write(rows_of(0, ["a", "b", "c", "d"]))
    monkeypatch.setattr(stream_files.TaskFiles, step, failing)
    with pytest.raises(OSError, match="full"):
        for number in range(8):
            files.write(rows_of(number, ["a", "b", "c", "d"]))
        files.close()
    files.abort()
    assert not list(tmp_path.rglob("*.parquet"))
    assert files._pool is None


def test_a_full_disk_for_waiting_rows_is_an_error_of_storage(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("optimist.core.data.parquet.spilled_rows.pa.OSFile", full)
    limits = StreamLimits(held_bytes=1, open_files=1)
    files = StreamFiles(spec_of(tmp_path, "p"), SystemClock(), limits)
    with pytest.raises(StorageError) as caught:
        files.write(rows_of(0, ["a", "b", "c"]))
    assert caught.value.kind == "OPTIMIST_NO_SPACE"
    files.abort()
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.sample(3)
@pytest.mark.parametrize("num_partitions", [20, 0, 3])
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path, num_partitions):
    limits = StreamLimits(group_bytes=1 << 20, held_bytes=2 << 20, open_files=4)
    peaks = []
    for num_pieces in (60, 180):
        spec = spec_of(tmp_path / str(num_pieces), *["p"] * bool(num_partitions))
        files, peak = StreamFiles(spec, SystemClock(), limits), 0
        before = pa.total_allocated_bytes()
        for number in range(num_pieces):
            parts = [f"p{n % (num_partitions or 7)}" for n in range(20_000)]
            files.write(rows_of(number * 20_000, parts))
            peak = max(peak, pa.total_allocated_bytes() - before)
        peaks.append(peak)
        assert sum(1 for _ in files.close()) >= max(1, num_partitions)
    assert peaks[1] < peaks[0] + (8 << 20)
