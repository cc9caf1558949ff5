"""Deletion vectors as they are written: into the log or into files, and read back as they were."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from optimist.core import DeltaLog
from optimist.core.data.vectors import vector_writer
from optimist.core.data.vectors.deletion_vectors import (
    deletion_vector_path,
    inline_vector,
    parse_bitmap,
    read_deletion_vectors,
    serialize_bitmap,
)
from optimist.core.data.vectors.vector_writer import write_deletion_vectors
from optimist.core.errors import StorageError

BY_DELTA = (
    "0100000028d1d339640100000000000000000000003a30000001000000000003001000000000000200030004008179"
)
"""A file of one vector as delta-spark wrote it, less the last two bytes of the checksum."""
SCATTERED = BitMap64(range(0, 60_000, 7))
INLINE_LIMIT, COMMIT_LIMIT = 256, 8 << 10

sets_of_rows = st.one_of(
    st.sets(st.integers(0, 2**40), min_size=1, max_size=40),
    st.builds(lambda low, size: set(range(low, low + size)), st.integers(0, 70_000), st.just(9000)),
    st.sets(st.integers(0, 200_000), max_size=300).map(lambda some: some | set(range(0, 9000, 2))),
)


@pytest.fixture
def table(tmp_path):
    return DeltaLog.for_path(str(tmp_path)).table


def paths_of(table, found):
    return {deletion_vector_path(item, table.data_paths) for item in found}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(sets_of_rows, max_size=5))
def test_vectors_are_read_back_in_order_as_they_were_given(table, sets):
    registered = []
    vectors = [BitMap64(rows) for rows in sets]
    found = write_deletion_vectors(vectors, table, registered.append)
    assert read_deletion_vectors(found, table.data_paths) == vectors
    assert paths_of(table, found) - {None} == set(registered)
    assert [item.cardinality for item in found] == [len(rows) for rows in sets]
    assert all(item.max_row_index is None for item in found)


@settings(max_examples=40, deadline=None)
@given(sets_of_rows)
def test_a_bitmap_survives_its_bytes(rows):
    assert parse_bitmap(serialize_bitmap(BitMap64(rows))) == BitMap64(rows)


def test_the_bytes_are_those_of_other_engines(table, monkeypatch):
    known = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    assert inline_vector(BitMap64([3, 4, 7, 11, 18, 29])).path_or_inline_dv == known
    monkeypatch.setattr(vector_writer, "_INLINE_BYTES", 0)
    (found,) = write_deletion_vectors([BitMap64([0, 2, 3, 4])], table, lambda _: None)
    (path,) = paths_of(table, [found])
    assert Path(path).read_bytes().hex() == f"{BY_DELTA}4007"
    assert (found.storage_type, found.offset, found.size_in_bytes) == ("u", 1, 40)
    assert uuid.UUID(Path(path).stem.removeprefix("deletion_vector_")).version == 4


def test_runs_are_written_as_runs():
    assert len(serialize_bitmap(BitMap64(range(1_000_000)))) < 300


def test_small_vectors_stand_in_the_log_and_large_ones_share_a_file(table):
    vectors = [BitMap64([5]), SCATTERED, BitMap64([70_000]), SCATTERED]
    found = write_deletion_vectors(vectors, table, lambda _: None)
    assert [item.storage_type for item in found] == ["i", "u", "i", "u"]
    assert len(paths_of(table, found)) == 2  # None, and one file
    assert found[3].offset == 1 + found[1].size_in_bytes + 8


def test_small_vectors_that_are_many_go_into_a_file(table):
    size = len(serialize_bitmap(BitMap64([5])))
    most = COMMIT_LIMIT // size
    found = write_deletion_vectors([BitMap64([5])] * most, table, lambda _: None)
    assert {item.storage_type for item in found} == {"i"}
    found = write_deletion_vectors([BitMap64([5])] * (most + 1), table, lambda _: None)
    assert {item.storage_type for item in found} == {"u"}


def test_a_vector_is_small_up_to_a_size(table):
    assert inline_vector(BitMap64(range(0, 226, 2))).size_in_bytes == INLINE_LIMIT + 2
    found = write_deletion_vectors(
        [BitMap64(range(0, 224, 2)), BitMap64(range(0, 226, 2))], table, lambda _: None
    )
    assert [(item.storage_type, item.size_in_bytes) for item in found] == [("i", 256), ("u", 258)]


def test_a_file_ends_once_it_is_full(table, monkeypatch):
    monkeypatch.setattr(vector_writer, "_FILE_BYTES", 2 * len(serialize_bitmap(SCATTERED)))
    registered = []
    found = write_deletion_vectors([SCATTERED] * 5, table, registered.append)
    assert [item.offset == 1 for item in found] == [True, False, True, False, True]
    assert paths_of(table, found) == set(registered)
    assert read_deletion_vectors(found, table.data_paths) == [SCATTERED] * 5


def test_a_file_that_can_not_be_written_is_told_and_was_registered(table, tmp_path, monkeypatch):
    registered = []

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vector_writer, "encode_z85", full)
    with pytest.raises(StorageError) as caught:
        write_deletion_vectors([SCATTERED], table, registered.append)
    assert caught.value.kind == "OPTIMIST_NO_SPACE"
    assert [Path(path).parent for path in registered] == [tmp_path]
