"""Questions about a part of the files, or about some of their columns, of a large checkpoint."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from optimist.core import DeltaLog
from optimist.core.log.file_choice import FileChoice, Stage
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.parquet_actions import AddReader
from optimist.core.statements.partitions import partition_rows

SMALL = {"optimist.checkpoint.rowGroupRows": "2"}
TEXTS = ["a", "b b", None, "a/b", "\u00e9"]


@pytest.fixture
def log(tmp_path):
    """A table with a checkpoint of many row groups, and a commit after it."""
    log = DeltaLog.for_path(tmp_path / "t", SMALL)
    for number in range(4):
        rows = pa.table({"n": pa.repeat(number, 5), "p": TEXTS, "v": range(5)})
        log.append(rows, partition_by=["n", "p"])
    log.checkpoint()
    log.append(pa.table({"n": [0, 9], "p": ["a", "new"], "v": [5, 6]}))
    log.delete("n = 1 AND p = 'a'")
    return DeltaLog.for_path(log.table_path)


@pytest.fixture
def read(monkeypatch):
    """Note the row groups and columns that are read."""
    found = []
    batches = AddReader.batches

    def note(self, schema=FILES_SCHEMA, groups=None):
        found.extend((group, tuple(schema.names)) for group in groups or self.groups)
        return batches(self, schema, groups)

    monkeypatch.setattr(AddReader, "batches", note)
    return found


def all_files(snapshot):
    return pa.Table.from_batches(list(snapshot.iter_files(100)), FILES_SCHEMA)


def partition(number, text):
    return {"n": str(number), "p": text}


@pytest.mark.parametrize(
    "wanted",
    [
        [partition(0, "a")],
        [partition(2, None), partition(3, "b b")],
        [partition(0, "a"), partition(1, "a"), partition(9, "new"), partition(7, "a")],
        [partition("00", "a")],  # another text of the same value
        [partition("no number", "a")],
        [{"n": "2"}],
        [{"n": "2", "p": "a"}, {"n": "3"}],
        [{"q": "2"}],
        [{}],
        [],
    ],
)
def test_files_of_partitions_are_those_with_their_texts(log, read_in_part, wanted):
    snapshot = log.snapshot()

    def is_wanted(values):
        return any(all(values.get(name) == text for name, text in each.items()) for each in wanted)

    expected = [
        row["path"]
        for row in all_files(snapshot).to_pylist(maps_as_pydicts="strict")
        if is_wanted(row["partitionValues"])
    ]
    assert sorted(snapshot.in_partitions(wanted)["path"].to_pylist()) == sorted(expected)
    some = snapshot.in_partitions(wanted, ("size",))
    assert (some.column_names, some.num_rows) == (["path", "size", "deletionVector"], len(expected))


def test_only_row_groups_that_may_hold_a_partition_are_read(log, read_in_part, read):
    found = log.snapshot().in_partitions([partition(3, "a")], ("size",))
    assert found.num_rows == 1
    assert len({group for group, _ in read}) <= 2
    assert {columns for _, columns in read} == {
        ("partitionValues",), ("path", "size", "deletionVector")}  # fmt: skip


def test_a_choice_reads_the_other_columns_only_of_the_files_that_it_wants(log, read_in_part, read):
    wanted = all_files(log.snapshot())["path"][7]
    read.clear()
    stage = Stage(("path",), lambda files: pc.equal(files["path"], wanted).combine_chunks())
    found = log.snapshot().files_of(FileChoice((stage,)))
    assert found["path"].to_pylist() == [wanted.as_py()]
    assert found.schema == FILES_SCHEMA
    with_stats = {group for group, columns in read if "stats" in columns}
    assert len(with_stats) < len({group for group, _ in read})


def test_columns_are_read_without_the_others_and_no_further_than_wanted(log, read_in_part, read):
    snapshot = log.snapshot()
    sizes = snapshot.read_columns(
        ("size",), lambda batches: [size for each in batches for size in each["size"].to_pylist()]
    )
    assert sorted(sizes) == sorted(all_files(snapshot)["size"].to_pylist())
    read.clear()
    assert log.snapshot().read_columns(("size",), lambda batches: next(batches).num_rows)
    assert [columns for _, columns in read] == [("path", "size", "deletionVector")]
    chosen = snapshot.read_columns(
        ("path",), lambda batches: pa.Table.from_batches(batches), "n = 3"
    )
    assert chosen.num_rows == 5


def test_columns_are_the_same_of_files_in_memory(log):
    names = ("path", "deletionVector")
    found = log.snapshot().read_columns(
        names, lambda batches: pa.Table.from_batches(batches), "n > 1"
    )
    assert found.num_rows == 11
    assert found.column_names == list(names)


def test_partitions_are_listed_by_one_column(log, read_in_part, read):
    found = partition_rows(log.snapshot(), {}, "UTC")
    live = all_files(log.snapshot()).to_pylist(maps_as_pydicts="strict")
    expected = {(int(row["partitionValues"]["n"]), row["partitionValues"]["p"]) for row in live}
    rows = [(row["n"], row["p"]) for row in found.to_pylist()]
    assert (len(rows), set(rows)) == (len(expected), expected)
    only = partition_rows(log.snapshot(), {"N": "02", "p": "a"}, "UTC")
    assert only.to_pylist() == [{"n": 2, "p": "a"}]
    assert ("path", "partitionValues", "deletionVector") in {columns for _, columns in read}
