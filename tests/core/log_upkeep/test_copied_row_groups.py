"""Row groups of a classic checkpoint that the next one takes over as they are stored."""

import io
from dataclasses import replace
from random import Random  # noqa: TID251 - a table is its seed

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkpoint_tables import NOW_MS, Table, add
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.file_table import add_files
from optimist.core.log.names import commit_path
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.log_upkeep.checkpoint_layout import LAYOUT_KEY
from optimist.core.log_upkeep.spooled_parquet import SpooledParquet
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor
from optimist.core.values.thrift_values import read_struct, write_struct

SMALL = {"optimist.checkpoint.rowGroupRows": "8"}


@pytest.fixture
def kept(monkeypatch):
    """How many row groups are copied, and how many are written."""
    counts = {"copy": 0, "write": 0}
    for name in counts:
        real = getattr(SpooledParquet, name)

        def counting(self, *items, name=name, real=real):
            counts[name] += 1
            real(self, *items)

        monkeypatch.setattr(SpooledParquet, name, counting)
    return counts


def table_of(days=10, **arguments):
    """A table of 8 files a day: each day is a row group of its checkpoint."""
    table = Table(options=SMALL, **arguments)
    files = [add(f"f{n}", f"2026-11-{day + 10}") for day in range(days) for n in range(8)]
    return table.commit(*files)


def live(table):
    return sorted((item.path, item.stats) for item in add_files(table.load().files))


def checkpoint_alone(table):
    """Write a checkpoint, drop the commits below it, and see that it holds the same files."""
    expected, before = live(table), table.load()
    gone = sorted(before.tombstones["path"].to_pylist())
    table.checkpoint()
    for version in range(table.version):
        table.store.delete(commit_path(table.path, version))
    assert live(table) == expected
    assert sorted(table.load().tombstones["path"].to_pylist()) == gone
    return expected


def stored(table):
    return table.store.read_bytes(f"{table.path}/{table.checkpoints()[-1]}")


def replace_stored(table, rows, group_rows=8):
    """Put other rows into the newest checkpoint, which claims to be as this engine writes it."""
    path = f"{table.path}/{table.checkpoints()[-1]}"
    key = LAYOUT_KEY.encode()
    mark = pq.ParquetFile(io.BytesIO(stored(table))).metadata.metadata[key]
    with SpooledParquet(rows.schema.remove_metadata(), table.load().properties) as file:
        file.add_metadata({key.decode(): mark.decode()})
        for start in range(0, rows.num_rows, group_rows):
            part = rows.slice(start, group_rows).combine_chunks().to_batches()[0]
            file.write(part)
        file.finish()
        table.store.delete(path)
        file.publish(table.store, path)


def test_only_row_groups_with_a_change_are_written_anew(kept):
    table = table_of()
    table.checkpoint()
    kept.update(copy=0, write=0)
    table.commit(add("f3", "2026-11-14").remove(NOW_MS), add("new", "2026-11-17"))
    checkpoint_alone(table)
    # The state, the day without f3, the new file, and the tombstones.
    assert kept == {"copy": 9, "write": 4}
    kept.update(copy=0, write=0)
    table.commit(add("g"), add("new", "2026-11-17").remove(NOW_MS))
    checkpoint_alone(table)
    assert kept == {"copy": 10, "write": 3}


def days_of(table):
    """The days in each row group of adds."""
    with pq.ParquetFile(io.BytesIO(stored(table))) as file:
        groups = [file.read_row_group(number)["add"] for number in range(file.num_row_groups)]
    rows = [
        [row["partitionValues_parsed"]["p"] for row in group.to_pylist() if row] for group in groups
    ]
    found = [list(map(str, days)) for days in rows]
    return [sorted(set(days)) for days in found if days]


def test_new_files_wait_in_a_last_row_group_until_they_are_half_of_one(kept):
    table = table_of()
    table.checkpoint()
    for number in range(3):
        table.commit(add(f"new{number}", f"2026-11-{11 + 2 * number}"))
        checkpoint_alone(table)
        assert len(days_of(table)) == 11
    assert days_of(table)[-1] == ["2026-11-11", "2026-11-13", "2026-11-15"]
    table.commit(add("new3", "2026-11-17"))
    checkpoint_alone(table)
    days = [day for group in days_of(table) for day in group]
    assert days == sorted(days)


def test_a_file_that_was_removed_or_added_again_is_in_no_copied_row_group(kept):
    table = table_of()
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, offset=4)
    day = {"p": "2026-11-30"}
    spelled = AddFile("p=2026-11-30/a%20b", day, 5, 1, True)
    with_vector = AddFile("p=2026-11-30/v", day, 5, 1, True, deletion_vector=vector)
    others = [AddFile(f"p=2026-11-30/{n}", day, 5, 1, True) for n in range(6)]
    table.commit(spelled, with_vector, *others)
    table.checkpoint()
    kept.update(copy=0, write=0)
    again = AddFile("p=2026-11-12/f1", {"p": "2026-11-12"}, 77, 2, True)
    table.commit(
        AddFile("p=2026-11-30/a b", day, 5, 1, True).remove(NOW_MS), with_vector.remove(NOW_MS)
    )
    table.commit(AddFile("p=2026-11-30/v", day, 6, 1, True), again)
    files = checkpoint_alone(table)
    paths = [path for path, _ in files]
    assert len(paths) == len(set(paths)) == 80 + 6 + 1
    sizes = {item.path: item.size for item in add_files(table.load().files)}
    assert (sizes["p=2026-11-12/f1"], sizes["p=2026-11-30/v"]) == (77, 6)
    assert kept["copy"] == 9


@pytest.mark.again
def test_checkpoints_of_many_changes_hold_the_files_of_the_commits(kept):
    chance = Random(11)
    table = table_of()
    table.checkpoint()
    for step in range(12):
        files = add_files(table.load().files)
        gone = chance.sample(files, min(len(files), chance.choice([0, 1, 1, 9])))
        new = [
            add(f"n{step}-{number}", f"2026-11-{chance.randint(10, 20)}")
            for number in range(chance.choice([0, 1, 12]))
        ]
        table.commit(*(item.remove(NOW_MS) for item in gone), *new)
        table.commit(*chance.sample(gone, len(gone) // 3))
        checkpoint_alone(table)
        with pq.ParquetFile(io.BytesIO(stored(table))) as file:
            sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        assert max(sizes) <= 8
        assert len(sizes) < 30
    assert kept["copy"] > 40


@pytest.mark.parametrize("name", ["remove", "txn"])
def test_a_row_group_with_other_actions_is_not_copied(kept, name):
    table = table_of()
    table.checkpoint()
    expected = live(table)
    rows = pq.read_table(io.BytesIO(stored(table)))
    column = rows.column(name).combine_chunks()
    body = {"path": "p=2026-11-12/f1"} if name == "remove" else {"appId": "a", "version": 3}
    values = column.to_pylist()
    values[20] = body
    forged = pa.array(values, column.type)
    replace_stored(table, rows.set_column(rows.schema.get_field_index(name), name, forged))
    kept.update(copy=0, write=0)
    new = add("new", "2026-11-17")
    table.commit(new)
    table.checkpoint()
    assert kept["copy"] == 8  # not that one, nor the one with the state, nor the small last one
    assert live(table) == sorted([*expected, (new.path, new.stats)])
    assert len(table.bodies(name)) == (name == "txn")


def test_a_codec_that_was_changed_is_that_of_all_row_groups(kept):
    table = table_of()
    table.checkpoint()
    kept.update(copy=0, write=0)
    configuration = {"delta.parquet.compression.codec": "snappy"}
    table.metadata = replace(table.metadata, configuration=configuration)
    table.commit(table.metadata, add("new"))
    checkpoint_alone(table)
    assert kept["copy"] == 0
    file = pq.ParquetFile(io.BytesIO(stored(table)))
    codecs = {file.metadata.row_group(n).column(0).compression for n in range(file.num_row_groups)}
    assert codecs == {"SNAPPY"}


def test_damage_of_a_column_that_need_not_be_read_is_found_before_a_copy():
    table = table_of()
    table.checkpoint()
    table.commit(add("new", "2026-11-17"))
    snapshot, expected = table.load(), live(table)
    whole = stored(table)
    group = pq.ParquetFile(io.BytesIO(whole)).metadata.row_group(4)
    columns = [group.column(index) for index in range(group.num_columns)]
    (texts,) = [column for column in columns if column.path_in_schema == "add.stats"]
    middle = texts.data_page_offset + texts.total_compressed_size // 2
    path = f"{table.path}/{table.checkpoints()[-1]}"
    damaged = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    table.store.put_overwrite(path, damaged)
    write_checkpoint(table.store, snapshot, options=table.options, clock=table.clock)
    table.store.delete(path)
    assert live(table) == expected


@pytest.mark.parametrize("what", ["bounds", "nulls"])
def test_a_row_group_whose_footer_is_damaged_is_not_copied(kept, monkeypatch, what):
    table = table_of()
    table.checkpoint()
    table.commit(add("new", "2026-11-17"))
    whole = stored(table)
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    footer, _ = read_struct(whole[begin:-8])
    for chunk in footer[4][1][1][4][1][1][1]:
        if chunk[3][1][3][1][1][0] != b"add":
            continue
        statistics = chunk[3][1].get(12, (0, {}))[1]
        for field in (5, 6) if what == "bounds" else (3,):
            kind, value = statistics.get(field, (0, 0))
            if value and what == "bounds":
                statistics[field] = kind, bytes([value[0] ^ 1]) + value[1:]
            elif value:
                statistics[field] = kind, value ^ 1
    data = write_struct(footer)
    damaged = whole[:begin] + data + len(data).to_bytes(4, "little") + whole[-4:]
    table.store.put_overwrite(f"{table.path}/{table.checkpoints()[-1]}", damaged)
    kept.update(copy=0, write=0)
    table.checkpoint()
    assert kept["copy"] == 9
    monkeypatch.setattr(CheckpointReader, "is_small", lambda _: False)
    files = table.load().scan("p = '2026-11-13'").files
    assert sorted(files["path"].to_pylist()) == [f"p=2026-11-13/f{n}" for n in range(8)]
