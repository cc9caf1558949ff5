"""Directories of Spark's file sink: only what it has committed counts."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import Column, DeltaLog
from optimist.core.errors import OptimistError

P = [Column("p", "string")]
DAMAGED = "OPTIMIST_DAMAGED_SINK_LOG"


class Sink:
    """A directory as a sink leaves it, partitioned by odd values."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "_spark_metadata").mkdir(parents=True)
        (root / "_spark_metadata" / ".0.crc").write_bytes(b"crc")

    def file(self, name: str, *ids: int) -> str:
        """Write a file; its path as the log has it."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": list(ids)}), path)
        encoded = str(path).replace("%", "%25").replace(" ", "%20").replace("é", "%C3%A9")
        return f"file://{encoded}"

    def batch(self, name: str, *paths: str, deleted: tuple[str, ...] = ()) -> None:
        """Write a batch of the log."""
        lines = [{"path": path, "size": 1, "action": "add"} for path in paths]
        lines += [{"path": path, "size": 1, "action": "delete"} for path in deleted]
        text = "\n".join(["v1", *map(json.dumps, lines)])
        (self.root / "_spark_metadata" / name).write_text(text, "utf-8")

    def converted(self) -> list[int]:
        log = DeltaLog.for_path(str(self.root))
        log.convert(P)
        return sorted(log.to_arrow()["id"].to_pylist())

    def refusal(self) -> str:
        with pytest.raises(OptimistError) as caught:
            self.converted()
        assert not DeltaLog.for_path(str(self.root)).table_exists()
        return caught.value.kind


@pytest.fixture
def sink(tmp_path) -> Sink:
    return Sink(tmp_path / "si nk%20é")


def test_files_of_failed_tasks_are_no_rows_of_the_table(sink):
    # One task calls its files alike in all partitions.
    first = sink.file("p=a b/part-0.parquet", 1), sink.file("p=x%25y/part-0.parquet", 2)
    sink.file("p=c/part-0.parquet", 100)
    sink.file("p=a b/part-1.parquet", 101)
    sink.batch("0", *first)
    sink.batch("1")
    sink.batch("2", sink.file("p=a b/part-2.parquet", 3))
    assert sink.converted() == [1, 2, 3]


def test_a_compacted_batch_has_those_before_it(sink):
    first, second, third = (sink.file(f"p=a/part-{n}.parquet", n) for n in range(3))
    sink.batch("0", first)
    sink.batch("1.compact", first, second)
    sink.batch("2", third, deleted=(first,))
    assert sink.converted() == [1, 2]


def test_a_directory_that_was_moved_is_read_as_before(sink, tmp_path):
    sink.batch("0", sink.file("p=a/part-0.parquet", 1))
    sink.file("p=a/part-1.parquet", 100)
    sink.root.rename(tmp_path / "moved")
    sink.root = tmp_path / "moved"
    assert sink.converted() == [1]


def test_a_clone_reads_them_likewise(sink, tmp_path):
    sink.batch("0", sink.file("p=a/part-0.parquet", 1))
    sink.file("p=a/part-1.parquet", 100)
    given = {"source_format": "parquet", "partition_columns": P}
    DeltaLog.for_path(str(sink.root)).clone(str(tmp_path / "clone"), **given)
    assert DeltaLog.for_path(str(tmp_path / "clone")).to_arrow()["id"].to_pylist() == [1]


def test_a_sink_that_has_committed_nothing_has_no_files(sink):
    sink.file("p=a/part-0.parquet", 100)
    assert sink.refusal() == "DELTA_EMPTY_DIRECTORY"


def test_a_log_that_lacks_something_is_refused(sink):
    path = sink.file("p=a/part-0.parquet", 1)
    sink.batch("0", path)
    sink.batch("2", sink.file("p=a/part-2.parquet", 3))
    assert sink.refusal() == DAMAGED
    sink.batch("1", f"{path}.gone")
    assert sink.refusal() == DAMAGED


@pytest.mark.parametrize(
    "content",
    ["", "v2\n", "v1\n{", "v1\n[]", 'v1\n{"path": 1, "action": "add"}', "v1\n" + "[" * 100_000],
)
def test_a_batch_that_can_not_be_read_is_refused(sink, content):
    sink.batch("0", sink.file("p=a/part-0.parquet", 1))
    (sink.root / "_spark_metadata" / "1").write_text(content)
    assert sink.refusal() == DAMAGED
