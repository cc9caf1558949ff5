"""Answers that were cut: read again, and never told as damage."""

import io

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec import AbstractFileSystem

from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import RowLayout, read_located_batches
from optimist.core.data.parquet.row_counts import rows_by_footer
from optimist.core.errors import StorageError, TableError
from optimist.core.schema.types import PrimitiveType, StructField, StructType

ROWS = 5_000
PATH = "cut://t/x.parquet"
SCHEMA = StructType((StructField("id", PrimitiveType("long")),))


FILES = {}


class CutFileSystem(AbstractFileSystem):
    """Files in memory; the answers of the first `cuts` openings end after so many bytes."""

    protocol = "cut"
    cachable = False
    cuts = 0
    after = 0
    is_silent = False

    def _open(self, path, mode="rb", **_):
        whole = self.cat_file(path)
        if CutFileSystem.cuts <= 0:
            return io.BytesIO(whole)
        CutFileSystem.cuts -= 1
        return CutFile(whole, CutFileSystem.after, is_silent=CutFileSystem.is_silent)

    def cat_file(self, path, **_):
        if self._strip_protocol(path) not in FILES:
            raise FileNotFoundError(path)
        return FILES[self._strip_protocol(path)]

    def info(self, path, **_):
        return {"name": path, "size": len(self.cat_file(path)), "type": "file"}

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.rpartition("://")[2].lstrip("/")


class CutFile(io.BytesIO):
    def __init__(self, whole, after, *, is_silent):
        super().__init__(whole)
        self.left = after
        self.is_silent = is_silent

    def read(self, size=-1):
        found = super().read(size)
        self.left -= len(found)
        if self.left >= 0:
            return found
        if self.is_silent:
            return found[: max(0, self.left + len(found))]
        raise OSError("curlCode: 18, Transferred a partial file")


@pytest.fixture
def wire():
    fsspec.register_implementation("cut", CutFileSystem, clobber=True)
    CutFileSystem.cuts, CutFileSystem.after, CutFileSystem.is_silent = 0, 0, False
    yield CutFileSystem
    CutFileSystem.cuts = 0


@pytest.fixture
def file(wire):
    target = io.BytesIO()
    table = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    pq.write_table(table, target, row_group_size=1_000, compression="none")
    FILES["/t/x.parquet"] = target.getvalue()
    return len(target.getvalue())


def ids():
    layout = RowLayout(schema=SCHEMA, partition_columns=(), batch_rows=700)
    return [
        value
        for batch, positions in read_located_batches(FilePart(PATH), layout)
        for value, place in zip(batch.column(0).to_pylist(), positions().to_pylist(), strict=True)
        if value == place
    ]


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("is_silent", [False, True])
def test_an_answer_that_was_cut_is_read_again_and_each_row_is_given_once(
    wire, file, share, is_silent
):
    wire.cuts, wire.after, wire.is_silent = 1, int(file * share), is_silent
    assert ids() == list(range(ROWS))
    wire.cuts, wire.after = 1, 4
    assert rows_by_footer(PATH, None) == ROWS


@pytest.mark.parametrize("is_silent", [False, True])
def test_answers_that_are_always_cut_are_the_stores_failure(wire, file, is_silent):
    wire.cuts, wire.after, wire.is_silent = 100, file // 2, is_silent
    for read in (ids, lambda: rows_by_footer(PATH, None)):
        wire.after = 4
        with pytest.raises(StorageError) as caught:
            read()
        assert caught.value.kind == "OPTIMIST_STORAGE_FAILED"


def test_damage_is_told_where_the_whole_file_has_arrived(wire, file):
    FILES["/t/x.parquet"] = FILES["/t/x.parquet"][:-100]
    with pytest.raises(TableError) as caught:
        ids()
    assert caught.value.kind == "OPTIMIST_UNREADABLE_DATA_FILE"
    del FILES["/t/x.parquet"]
    with pytest.raises(TableError) as caught:
        ids()
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
