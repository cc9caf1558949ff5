"""The files that a stream reads first: their order, their blocks, and what stays in memory."""

from random import Random  # noqa: TID251 - the files are their seed

import pyarrow as pa
import pytest

from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log_upkeep import external_sort
from optimist.core.streams import first_files
from optimist.core.streams.first_files import FirstFiles
from optimist.core.streams.indexed_files import Capacity, IndexedFiles
from optimist.core.streams.offset import BASE_INDEX

ROOM = ((None, None), (1, None), (4, None), (None, 0), (None, 11), (2, 8), (99, 999))


class Version:
    """A version of so many files, which come in batches, in no order."""

    def __init__(self, count, seed):
        chance = Random(seed)
        names = [f"f{number:03d}" for number in range(count)]
        chance.shuffle(names)
        rows = [
            {"path": name, "size": chance.randint(0, 9), "modificationTime": chance.randint(0, 5)}
            for name in names
        ]
        self.files = pa.Table.from_pylist(rows, FILES_SCHEMA)

    def read_columns(self, columns, use):
        assert columns == FILES_SCHEMA.names
        return use(iter(self.files.to_batches(max_chunksize=5)))


@pytest.fixture(params=["in memory", "on disk"])
def tiny(request, monkeypatch):
    """Blocks of three files; many are sorted on disk."""
    monkeypatch.setattr(first_files, "_BLOCK_ROWS", 3)
    if request.param == "on disk":
        monkeypatch.setattr(external_sort, "_RUN_ROWS", 4)
        monkeypatch.setattr(external_sort, "_BLOCK_ROWS", 2)
        monkeypatch.setattr(external_sort, "_POOL_BLOCKS", 2)


def paths(files):
    return list(zip(files.files["path"].to_pylist(), files.indexes.to_pylist(), strict=True))


@pytest.mark.sample(1)
@pytest.mark.parametrize("count", [0, 1, 3, 4, 23])
@pytest.mark.parametrize("pattern", [None, "[05]$", "f"])
def test_files_are_those_of_the_whole_list_sorted(tiny, count, pattern):
    version = Version(count, seed=count)
    order = [("modificationTime", "ascending"), ("path", "ascending")]
    expected = IndexedFiles.of(version.files.sort_by(order), pattern)
    found = FirstFiles.of(version, pattern)
    for after in (BASE_INDEX, *range(-1, count + 1)):
        rest = expected.between(after)
        assert paths(found.between(after)) == paths(rest)
        assert found.sums_after(after) == (len(rest), rest.size_bytes)
        for upto in range(after, count + 1):
            assert paths(found.between(after, upto)) == paths(expected.between(after, upto))
        for limits in ROOM:
            taken = Capacity(*limits).take(rest)
            end = rest.indexes[taken - 1].as_py() if taken else after
            end = None if taken == len(rest) else end
            assert found.last_in(Capacity(*limits), after) == end, (after, limits)


def test_a_batch_reads_its_own_blocks(tiny, monkeypatch):
    found, read = FirstFiles.of(Version(23, seed=1), None), []
    block_of = FirstFiles._read
    monkeypatch.setattr(
        FirstFiles, "_read", lambda self, number: read.append(number) or block_of(self, number)
    )
    assert len(found.between(6, 10)) == 4
    assert read == [2, 3]
    read.clear()
    assert found.last_in(Capacity(files=2), 6) == 8
    assert set(read) <= {2, 3}
