"""Row groups that are put into another file as they are stored."""

import io
import json
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from random import Random  # noqa: TID251 - a file is its seed

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core.log.stored_groups import MAGIC, StoredFile, has_sums, write_tail
from optimist.core.values.thrift_values import read_struct, write_struct

KINDS = pa.schema(
    {
        "i8": pa.int8(),
        "i64": pa.int64(),
        "b": pa.bool_(),
        "f": pa.float64(),
        "s": pa.string(),
        "d": pa.decimal128(20, 3),
        "t": pa.timestamp("us", "UTC"),
        "m": pa.map_(pa.string(), pa.string()),
        "n": pa.struct({"x.y": pa.int32(), "l": pa.list_(pa.string())}),
        "nothing": pa.string(),
    }
)


def some_rows(chance, count):
    def row():
        number = chance.randint(-(2**31), 2**31 - 1)
        return {
            "i8": chance.choice([None, number % 127]),
            "i64": number << 30,
            "b": chance.choice([None, True, False]),
            "f": chance.choice([None, float("nan"), -0.0, number / 7]),
            "s": chance.choice([None, "", "é" * chance.randint(0, 3000), str(number)]),
            "d": Decimal(number).scaleb(-3),
            "t": number,
            "m": [(str(key), None) for key in range(chance.randint(0, 3))],
            "n": chance.choice([None, {"x.y": number, "l": [None, str(number)]}]),
            "nothing": None,
        }

    return pa.Table.from_pylist([row() for _ in range(count)], schema=KINDS)


def file_of(tables, **arguments):
    sink = io.BytesIO()
    settings = {"compression": "zstd", "write_page_index": True, "write_page_checksum": True}
    with pq.ParquetWriter(sink, KINDS, data_page_size=2000, **{**settings, **arguments}) as writer:
        for table in tables:
            writer.write_table(table)
    return sink


def joined(groups):
    """A new file of row groups, each given with the file that has it."""
    parts, places = [MAGIC], []
    at = len(MAGIC)
    for file, group in groups:
        places.append((group, at))
        parts.append(file.hold(group).data)
        at += group.size_bytes
    write_tail(parts.append, groups[0][0].footer, places, at)
    return io.BytesIO(b"".join(parts))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_row_groups_of_some_files_are_read_from_another_one_as_they_were(version):
    chance = Random(7)
    tables = [[some_rows(chance, chance.randint(1, 300)) for _ in range(3)] for _ in range(2)]
    files = [StoredFile(file_of(each, data_page_version=version)) for each in tables]
    assert files[0].is_written_like(files[1])
    chosen = [(file, place) for file in range(2) for place in range(3)]
    for _ in range(4):
        chance.shuffle(chosen)
        groups = [list(file.groups()) for file in files]
        new = joined([(files[file], groups[file][place]) for file, place in chosen])
        found = pq.ParquetFile(new)
        for number, (file, place) in enumerate(chosen):
            expected = tables[file][place]
            rows = found.read_row_group(number)
            assert str(rows.to_pylist()) == str(expected.to_pylist())  # NaN differs from itself
            sizes = found.metadata.row_group(number)
            assert sizes.num_rows == expected.num_rows
            check_page_index(new.getvalue(), number, sizes)
        again = list(StoredFile(new).groups())
        old = [groups[file][place] for file, place in chosen]
        assert [each.size_bytes for each in again] == [each.size_bytes for each in old]


def check_page_index(data, number, group):
    """Every page of the index begins where the group's columns have one, and all bytes count."""
    end = int.from_bytes(data[-8:-4], "little")
    footer, _ = read_struct(data[len(data) - 8 - end : -8])
    assert sum(struct[3][1] for struct in footer[4][1][1]) == footer[3][1]
    struct = footer[4][1][1][number]
    assert struct.get(7, (4, number))[1] == number
    for index, chunk in enumerate(struct[1][1][1]):
        meta = group.column(index)
        offsets, _ = read_struct(data[chunk[4][1] : chunk[4][1] + chunk[5][1]])
        pages = [(page[1][1], page[2][1]) for page in offsets[1][1][1]]
        assert pages[0][0] == meta.data_page_offset
        for (start, size), (following, _) in pairwise(pages):
            assert start + size == following
        first = meta.dictionary_page_offset or meta.data_page_offset
        assert sum(pages[-1]) == first + meta.total_compressed_size


def test_a_row_group_that_is_held_is_read_from_its_bytes():
    tables = [some_rows(Random(seed), 50) for seed in range(3)]
    source = file_of(tables)
    stored = StoredFile(source)
    with pq.ParquetFile(stored) as file:
        for number, group in enumerate(stored.groups()):
            held = stored.hold(group)
            source.seek(group.start)
            source.write(b"x" * group.size_bytes)  # as if another writer had replaced the file
            assert str(file.read_row_group(number).to_pylist()) == str(tables[number].to_pylist())
            assert has_sums(held)


def test_a_changed_byte_is_not_as_its_checksum_says():
    file = StoredFile(file_of([some_rows(Random(1), 100)]))
    (group,) = map(file.hold, file.groups())
    data = group.data
    assert has_sums(group)
    for place in range(0, len(data), len(data) // 50):
        other = bytearray(data)
        other[place] ^= 1
        try:
            is_sound = has_sums(replace(group, data=bytes(other)))
        except (ValueError, LookupError):
            continue
        # In the header of a page: what decodes the page sees it, or nobody needs it.
        assert not is_sound or place not in places_of_values(group, data)


def places_of_values(group, data):
    found = set()
    for start, size in group.spans:
        at, end = start - group.start, start - group.start + size
        while at < end:
            header, at = read_struct(data, at)
            found.update(range(at, at + header[3][1]))
            at += header[3][1]
    return found


def test_a_file_without_checksums_has_none():
    file = StoredFile(file_of([some_rows(Random(1), 9)], write_page_checksum=False))
    (group,) = map(file.hold, file.groups())
    assert not has_sums(group)


@pytest.mark.parametrize(
    "arguments",
    [{"compression": "snappy"}, {"use_compliant_nested_type": False}],
    ids=json.dumps,
)
def test_a_file_of_another_kind_is_told(arguments):
    rows = some_rows(Random(1), 3)
    assert not StoredFile(file_of([rows])).is_written_like(StoredFile(file_of([rows], **arguments)))


def test_damaged_bytes_are_an_error_of_the_file():
    data = file_of([some_rows(Random(1), 20)]).getvalue()
    chance = Random(2)
    end = int.from_bytes(data[-8:-4], "little")
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            damaged[-chance.randint(1, end + 8)] = chance.randint(0, 255)
        try:
            file = StoredFile(io.BytesIO(damaged))
            for group in file.groups():
                has_sums(file.hold(group))
        except (ValueError, LookupError, TypeError, OSError, pa.ArrowException):
            pass


def test_a_struct_keeps_fields_that_nobody_knows():
    fields = {
        1: (1, True),
        2: (2, False),
        40: (8, b"text"),
        41: (9, (12, [{1: (5, -3)}, {}])),
        42: (9, (1, [1, 2] * 20)),
        300: (6, -(2**63)),
        301: (3, 200),
    }
    data = write_struct(fields)
    assert read_struct(b"x" + data, 1) == (fields, len(data) + 1)
    deep = b"\x1c" * 100_000
    with pytest.raises(ValueError, match="nested"):
        read_struct(deep)
