"""Deletion vectors: where they are, how they are checked, and what a damaged one does."""

from __future__ import annotations

import base64
import struct
import tracemalloc
import uuid
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from optimist.core.data.parquet import parquet_reader
from optimist.core.data.storage import unreadable_files
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors import deletion_vectors
from optimist.core.data.vectors.deletion_vectors import (
    deletion_vector_path,
    parse_bitmap,
    read_deletion_vector,
    read_deletion_vectors,
)
from optimist.core.protocol.actions import DeletionVectorDescriptor
from refusals import kind_of

MAGIC = struct.pack("<i", 1681511377)
NATIVE_MAGIC = struct.pack("<i", 1681511376)
INLINE = DeletionVectorDescriptor(
    "i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6
)
"""As other engines have it in their tests."""
NOWHERE = DataPaths.of("/nowhere")
RELATIVE = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 3, 1)
KINDS = {
    "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
    "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
    "DELTA_DELETION_VECTOR_SIZE_MISMATCH",
    "OPTIMIST_MALFORMED_DELETION_VECTOR",
}
sets_of_rows = st.one_of(
    st.sets(st.integers(0, 2**40), max_size=40),
    st.builds(lambda low, size: set(range(low, low + size)), st.integers(0, 70_000), st.just(9000)),
    st.sets(st.integers(0, 200_000), max_size=300).map(lambda some: some | set(range(0, 9000, 2))),
)


def bitmap(rows, *, with_runs=True):
    made = BitMap64(rows)
    if with_runs:
        made.run_optimize()
    return MAGIC + made.serialize()


def framed(data):
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def stored(root, *all_data):
    """The descriptors of vectors in one file, as far as the file tells."""
    name = uuid.UUID(int=7)
    content, found = b"\x01", []
    text = deletion_vectors._Z85.decode()
    encoded = base64.b85encode(name.bytes).translate(
        bytes.maketrans(deletion_vectors._B85, text.encode())
    )
    for data in all_data:
        count = len(parse_bitmap(data))
        found.append(
            DeletionVectorDescriptor("u", encoded.decode(), len(data), count, len(content))
        )
        content += framed(data)
    (root / f"deletion_vector_{name}.bin").write_bytes(content)
    return found


def z85_with_marks(data):
    """Z85 as the Rust crate of that name writes it: a short last group begins with marks."""
    whole = len(data) - len(data) % 4
    groups, tail = deletion_vectors.encode_z85(data[:whole]), data[whole:]
    if not tail:
        return groups
    lacking = 4 - len(tail)
    return groups + "#" * lacking + deletion_vectors.encode_z85(bytes(lacking) + tail)[lacking:]


def only_file(root):
    (place,) = root.glob("deletion_vector_*.bin")
    return place


# Reading


def test_an_inline_vector_of_another_engine_is_read():
    assert set(read_deletion_vector(INLINE, NOWHERE)) == {3, 4, 7, 11, 18, 29}


@settings(max_examples=60, deadline=None)
@given(rows=sets_of_rows, cut=st.integers(0, 3))
def test_an_inline_vector_is_read_however_its_last_group_is_padded(rows, cut):
    # A run more or less changes how many bytes the last group lacks.
    rows = rows | set(range(2**33, 2**33 + 2 * cut, 2))
    data = bitmap(rows, with_runs=False)
    for text in (deletion_vectors.encode_z85(data), z85_with_marks(data)):
        vector = DeletionVectorDescriptor("i", text, len(data), len(rows))
        assert set(read_deletion_vector(vector, NOWHERE)) == rows


@pytest.mark.parametrize("num_bytes", range(1, 9))
def test_every_padding_of_z85_gives_back_the_bytes_of_the_last_group(num_bytes):
    for byte in (0, 1, 127, 255):
        data = bytes([byte]) * num_bytes
        assert deletion_vectors._z85_decode(z85_with_marks(data)) == data


@pytest.mark.parametrize(
    "group",
    [
        "#####",
        "####0",
        "###45",
        "##9d2",
        "#rr91",
        "$0000",
        "%nSc1",
        "0#" + "#" * 8,
        "#0001" + "00000",
    ],
)
def test_a_group_of_z85_that_no_padding_explains_is_an_error(group):
    rows = {0, 1, 2}
    data = bitmap(rows, with_runs=False)
    assert len(data) % 4 == 2
    plain = deletion_vectors.encode_z85(data)
    text = plain[: -len(group)] + group
    damaged = DeletionVectorDescriptor("i", text, len(data), len(rows))
    assert kind_of(read_deletion_vector, damaged, NOWHERE) == "OPTIMIST_MALFORMED_DELETION_VECTOR"


def test_the_paths_of_vectors_are_those_of_the_protocol():
    assert deletion_vector_path(INLINE, NOWHERE) is None
    relative = "/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert deletion_vector_path(RELATIVE, DataPaths.of("/t")) == relative
    absolute = DeletionVectorDescriptor("p", "s3://b/a%20b/x.bin", 1, 1, 1)
    assert deletion_vector_path(absolute, DataPaths.of("s3://b/t")) == "s3://b/a b/x.bin"


@settings(max_examples=40, deadline=None)
@given(rows=sets_of_rows, with_runs=st.booleans())
def test_a_bitmap_comes_back_with_the_rows_it_was_made_of(rows, with_runs):
    assert set(parse_bitmap(bitmap(rows, with_runs=with_runs))) == rows


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sets(st.integers(0, 2**32 - 1), max_size=20), max_size=4))
def test_the_native_form_of_early_writers_is_read(buckets):
    pieces = [BitMap(rows).serialize() for rows in buckets]
    sized = b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces)
    wanted = {(key << 32) + row for key, rows in enumerate(buckets) for row in rows}
    assert set(parse_bitmap(NATIVE_MAGIC + struct.pack("<I", len(buckets)) + sized)) == wanted


def test_a_file_of_vectors_is_read_byte_by_byte_as_the_format_has_it(tmp_path):
    rows_3_and_4 = (
        "d1d33964"  # the magic number 1681511377, little-endian
        "0100000000000000" "00000000"  # one bucket, whose key is 0
        "3a30000001000000" "00000100" "10000000"  # one array container, of two values
        "03000400"
    )  # fmt: skip
    data = bytes.fromhex(rows_3_and_4)
    size, checksum = len(data).to_bytes(4, "big"), zlib.crc32(data).to_bytes(4, "big")
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    (tmp_path / name).write_bytes(b"\x01" + size + data + checksum)
    first = DeletionVectorDescriptor("u", "^-aqEH.-t@S}K{vb[*k^", len(data), 2, offset=1)
    assert list(read_deletion_vector(first, DataPaths.of(str(tmp_path)))) == [3, 4]


def test_many_vectors_of_one_file_are_read_with_one_open(tmp_path, monkeypatch):
    wanted = [{1, 2}, set(range(10_000)), {2**33}]
    descriptors = stored(tmp_path, *map(bitmap, wanted))
    opened = []
    real = unreadable_files.filesystem_for
    monkeypatch.setattr(unreadable_files, "filesystem_for", lambda *a: opened.append(a) or real(*a))
    asked = [descriptors[2], INLINE, descriptors[0], descriptors[1]]
    found = [set(item) for item in read_deletion_vectors(asked, DataPaths.of(str(tmp_path)))]
    assert found == [wanted[2], {3, 4, 7, 11, 18, 29}, wanted[0], wanted[1]]
    assert len(opened) == 1


def test_the_bytes_of_a_stored_vector_are_held_once(tmp_path):
    data = bitmap(set(range(0, 2_000_000, 3)), with_runs=False)
    descriptors = stored(tmp_path, data, data)
    tracemalloc.start()
    try:
        first, second = read_deletion_vectors(descriptors, DataPaths.of(str(tmp_path)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first == second
    assert len(data) < peak < 1.5 * len(data)


# Damage


def changed(descriptor, **values):
    names = ("storage_type", "path_or_inline_dv", "size_in_bytes", "cardinality", "offset")
    given_values = {name: getattr(descriptor, name) for name in names}
    return DeletionVectorDescriptor(**{**given_values, **values})


def test_a_vector_whose_file_is_gone_is_told(tmp_path):
    (descriptor,) = stored(tmp_path, bitmap({1}))
    only_file(tmp_path).unlink()
    assert kind_of(read_deletion_vector, descriptor, DataPaths.of(str(tmp_path))) == (
        "DELTA_FILE_NOT_FOUND_DETAILED"
    )


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda data: data[:9] + bytes([data[9] ^ 1]) + data[10:], "CHECKSUM_MISMATCH"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "CHECKSUM_MISMATCH"),
        (lambda data: data[:1] + b"\xff" + data[2:], "SIZE_MISMATCH"),
        (lambda data: data[:-1], "SIZE_MISMATCH"),
        (lambda data: b"", "SIZE_MISMATCH"),
        (lambda data: b"\x02" + data[1:], "MALFORMED"),
    ],
)
def test_a_vector_file_that_was_changed_is_told_by_what_is_wrong(tmp_path, damage, kind):
    (descriptor,) = stored(tmp_path, bitmap({1, 5, 9}))
    place = only_file(tmp_path)
    place.write_bytes(damage(place.read_bytes()))
    assert kind in kind_of(read_deletion_vector, descriptor, DataPaths.of(str(tmp_path)))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"size_in_bytes": 45}, "DELTA_DELETION_VECTOR_SIZE_MISMATCH"),
        ({"size_in_bytes": 30}, "DELTA_DELETION_VECTOR_SIZE_MISMATCH"),
        ({"size_in_bytes": 43}, "OPTIMIST_MALFORMED_DELETION_VECTOR"),
        ({"cardinality": 5}, "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"),
        ({"path_or_inline_dv": "~~~~~"}, "OPTIMIST_MALFORMED_DELETION_VECTOR"),
        ({"path_or_inline_dv": "abc"}, "OPTIMIST_MALFORMED_DELETION_VECTOR"),
        ({"path_or_inline_dv": "#####" * 11}, "OPTIMIST_MALFORMED_DELETION_VECTOR"),
        ({"path_or_inline_dv": "00000" * 11}, "OPTIMIST_MALFORMED_DELETION_VECTOR"),
        ({"storage_type": "x"}, "OPTIMIST_MALFORMED_DELETION_VECTOR"),
        ({"storage_type": "u", "path_or_inline_dv": "short"}, "OPTIMIST_MALFORMED_DELETION_VECTOR"),
    ],
)
def test_a_description_that_does_not_fit_is_told(values, kind):
    assert kind_of(read_deletion_vector, changed(INLINE, **values), NOWHERE) == kind


@pytest.mark.parametrize("values", [{"offset": 0}, {"offset": -5}, {"size_in_bytes": -1}])
def test_a_place_that_no_vector_can_have_is_told(tmp_path, values):
    (descriptor,) = stored(tmp_path, bitmap({1}))
    wrong = changed(descriptor, **values)
    assert kind_of(read_deletion_vector, wrong, DataPaths.of(str(tmp_path))) == (
        "OPTIMIST_MALFORMED_DELETION_VECTOR"
    )


@settings(max_examples=150 * settings.default.max_examples // 100, deadline=None)
@given(rows=sets_of_rows, data=st.data())
def test_mutated_bytes_are_an_error_or_some_sound_set(rows, data):
    """There is no checksum in the log, so that some changes can't be noticed; none may do harm."""
    whole = bytearray(bitmap(rows, with_runs=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, min(len(whole), 60) - 1))
        whole[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(whole), len(whole) - 1, len(whole) // 2]))
    try:
        found = parse_bitmap(bytes(whole[:cut]))
    except ValueError:
        return
    positions = list(found)
    assert positions == sorted(set(positions))
    assert len(found) == len(positions)


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(position=st.integers(0, 48), value=st.integers(0, 255))
def test_a_mutated_file_is_an_error_unless_nothing_was_changed(tmp_path_factory, position, value):
    root = tmp_path_factory.mktemp("vectors")
    (descriptor,) = stored(root, bitmap({1, 5, 9, 70_000}, with_runs=False))
    place = only_file(root)
    content = bytearray(place.read_bytes())
    before, content[position] = content[position], value
    place.write_bytes(content)
    if before == value:
        assert set(read_deletion_vector(descriptor, DataPaths.of(str(root)))) == {1, 5, 9, 70_000}
    else:
        assert kind_of(read_deletion_vector, descriptor, DataPaths.of(str(root))) in KINDS


# What is left of a batch


@settings(max_examples=150 * settings.default.max_examples // 100, deadline=None)
@given(start=st.integers(0, 2**33), data=st.data())
def test_exactly_the_rows_at_other_positions_are_kept(start, data):
    size = data.draw(st.integers(1, 70))
    near = st.integers(max(0, start - 2), start + size + 2)
    deleted = data.draw(st.sets(near) | st.builds(lambda: set(range(start, start + size))))
    mask = parquet_reader._live_mask(BitMap64(deleted), start, size)
    found = parquet_reader._live_positions(start, size, mask).to_pylist()
    assert found == [row for row in range(start, start + size) if row not in deleted]
