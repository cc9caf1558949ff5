"""A MERGE without Spark in pieces: hashes of keys, rows on disk, and what is kept of each row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from local_tables import FEED, live_rows, opened
from optimist.core.errors import UsageError
from optimist.core.local.merge import key_hashes as hashes_of_keys
from optimist.core.local.merge import matches, source_rows, stored_source, update_values
from optimist.core.local.merge.key_hashes import key_hashes
from optimist.core.local.merge.update_values import UpdateValues

LONG = "x" * 300
VALUES = [
    pa.array(["", "a", "\0", "ab", "ba", None, "é", LONG, LONG + "y"]),
    pa.array([b"", b"\0", b"\0\0", None, b"\xff"]),
    pa.array([0, 1, -1, None, 2**62], pa.int64()),
    pa.array([True, False]),
    pa.array([Decimal("1.5"), Decimal("-1.5"), None, Decimal(10) ** 30], pa.decimal128(38, 1)),
    pa.array([dt.date(1, 1, 1), dt.date(2026, 1, 1), None]),
    pa.array([dt.datetime(1, 1, 1), dt.datetime(2026, 1, 1), None], pa.timestamp("us")),
]


@pytest.mark.parametrize("values", VALUES, ids=[str(item.type) for item in VALUES])
def test_a_value_has_one_hash_wherever_it_stands(values):
    whole = key_hashes([values], len(values))
    assert len(set(whole.tolist())) >= len(values) - 1  # a null may share its hash
    padded = pa.concat_arrays([values, values, values])
    for first in range(len(values) * 2):
        part = padded.slice(first, len(values))
        expected = np.roll(whole, -first)
        assert key_hashes([part], len(values)).tolist() == expected.tolist()


def test_texts_have_the_same_hashes_in_parts_of_any_size(monkeypatch):
    expected = [key_hashes([values], len(values)).tolist() for values in VALUES[:2]]
    monkeypatch.setattr(hashes_of_keys, "_TEXT_BYTES", 3)
    assert [key_hashes([values], len(values)).tolist() for values in VALUES[:2]] == expected


def test_hashes_of_several_keys_depend_on_their_order_and_spread_evenly():
    low, high = pa.array(np.arange(64_000) % 8), pa.array(np.arange(64_000) // 8)
    found = key_hashes([low, high], 64_000)
    assert len(np.unique(found)) == 64_000
    assert (found != key_hashes([high, low], 64_000)).sum() > 63_000
    sizes = np.bincount((found % np.uint64(64)).astype(np.int64), minlength=64)
    assert sizes.min() > 800 and sizes.max() < 1_200


@pytest.mark.parametrize("held", [1 << 20, 0])
def test_values_are_found_by_file_and_position_in_memory_and_on_disk(monkeypatch, held):
    monkeypatch.setattr(update_values, "_HELD_BYTES", held)
    monkeypatch.setattr(update_values, "_BATCH_ROWS", 3)
    values = UpdateValues()

    def rows(positions, clause):
        columns = [pa.array(positions), pa.array([clause] * len(positions), pa.int32())]
        return pa.table([*columns, [f"v{at}" for at in positions]], names=["p", "c", "p"])

    values.add("a", rows([0, 2, 4, 6, 8, 10, 12], 1))
    values.add("b", rows([1, 2, 3], 1))
    values.add("a", rows([1, 3, 20], 2))
    found = values.at("a", pa.array([1, 2, 3, 12]))
    assert found.to_pydict() == {"p": ["v1", "v2", "v3", "v12"]}
    assert values.at("b", pa.array([2])).to_pydict() == {"p": ["v2"]}
    assert pa.concat_tables(values.parts("a", 2))["p"].to_pylist() == ["v1", "v3", "v20"]
    values.close()


def pieces_of(monkeypatch, rows):
    monkeypatch.setattr(source_rows, "_BLOCK_ROWS", rows)
    monkeypatch.setattr(stored_source, "_MEMORY_BYTES", 100)
    monkeypatch.setattr(matches, "_RUN_BYTES", 64)
    monkeypatch.setattr(update_values, "_HELD_BYTES", 100)


KEYS = [None, *range(40)]


@pytest.mark.parametrize("has_vectors", [True, False])
@pytest.mark.parametrize("on", ["t.a = s.a AND t.b = s.b", "t.a <=> s.a AND t.b = s.b"])
def test_rows_with_nulls_in_keys_are_in_some_piece(tmp_path, monkeypatch, has_vectors, on):
    pieces_of(monkeypatch, 4)
    log = opened(tmp_path / "t", has_vectors=has_vectors, **FEED)
    own = [{"a": a, "b": b, "n": 0} for a in KEYS for b in ("x", None)]
    for first in range(0, len(own), 30):
        log.append(pa.Table.from_pylist(own[first : first + 30]))
    new = [{"a": a, "b": b, "n": 1} for a in KEYS[::2] for b in ("x", None)]
    reader = pa.Table.from_pylist(new).to_reader(max_chunksize=5)
    merge = log.merge(reader, on).when_matched_update({"n": "t.n + s.n"})
    merge = merge.when_not_matched_by_source_delete("t.b IS NULL")
    done = merge.when_not_matched_insert_all("s.b IS NULL").execute()
    matched = [a for a in KEYS[::2] if a is not None or "<=>" in on]
    assert (done.num_updated, done.num_deleted) == (len(matched), len(KEYS))
    assert done.num_inserted == len(KEYS[::2])
    hits = [row["a"] for row in live_rows(log) if row["b"] == "x" and row["n"]]
    assert sorted(hits, key=str) == sorted(matched, key=str)
    kinds = log.changes(starting_version=3)["_change_type"].to_pylist()
    assert kinds.count("delete") == len(KEYS) and kinds.count("insert") == len(KEYS[::2])


def test_a_piece_that_is_larger_than_a_block_is_searched_block_by_block(tmp_path, monkeypatch):
    pieces_of(monkeypatch, 2)
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(pa.table({"id": [1, 2, 3], "n": [0, 0, 0]}))
    same = pa.table({"id": [1] * 9, "n": range(9)})
    merge = log.merge(same.to_reader(max_chunksize=1), ["id"])
    once = merge.when_matched_update({"n": "s.n"}, "s.n = 7")
    once = once.when_not_matched_by_source_update({"n": "-1"})
    assert once.execute().num_updated == 3
    assert sorted(row["n"] for row in live_rows(log)) == [-1, -1, 7]
    with pytest.raises(UsageError):
        merge.when_matched_update({"n": "s.n"}, "s.n IN (1, 7)").execute()
    assert merge.when_matched_delete().execute().num_deleted == 1


def test_an_error_leaves_no_rows_on_disk(tmp_path, monkeypatch):
    pieces_of(monkeypatch, 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log = opened(tmp_path / "t", has_vectors=False)
    log.append(pa.table({"id": range(20), "n": [0] * 20}))
    twice = pa.table({"id": [*range(20), 3], "n": range(21)})
    merge = log.merge(twice.to_reader(max_chunksize=5), ["id"]).when_matched_update({"n": "s.n"})
    for _ in range(2):
        with pytest.raises(UsageError):
            merge.execute()
    assert len(list(tmp_path.glob("optimist-*"))) == 1  # the source, which may be merged again
    del merge
    assert list(tmp_path.glob("optimist-*")) == []


def test_unsigned_numbers_whose_values_fit_are_taken_as_in_a_write(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(pa.table({"id": [1, 2], "n": [0, 0]}))
    new = pa.table({"id": pa.array([2, 3], pa.uint64()), "n": pa.array([5, 6], pa.uint64())})
    merge = log.merge(new, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().num_updated == 1
    assert sorted(row["n"] for row in live_rows(log)) == [0, 5, 6]


@pytest.mark.parametrize("has_vectors", [True, False])
def test_columns_may_have_the_names_of_what_is_stored_beside_them(
    tmp_path, monkeypatch, has_vectors
):
    pieces_of(monkeypatch, 2)
    log = opened(tmp_path / "t", has_vectors=has_vectors)
    own = {"position": range(9), "file": ["old"] * 9, "clause": ["c"] * 9, "number": [0] * 9}
    log.append(pa.table(own))
    new = {**own, "position": range(4, 13), "file": ["new"] * 9, "number": range(9)}
    merge = log.merge(pa.table(new).to_reader(max_chunksize=2), ["position", "clause"])
    merge = merge.when_matched_update({"file": "s.file", "number": "t.number + s.number"})
    assert merge.when_not_matched_insert_all().execute().num_inserted == 4
    rows = log.to_arrow().sort_by("position").to_pylist()
    assert [row["number"] for row in rows] == [0, 0, 0, 0, *range(9)]
    assert [row["file"] for row in rows] == ["old"] * 4 + ["new"] * 9


@pytest.mark.parametrize("files", [[], [[]], [[1], [1, 2]]])
def test_a_large_source_is_merged_into_few_rows_or_none(tmp_path, monkeypatch, files):
    pieces_of(monkeypatch, 2)
    log = opened(tmp_path / "t", has_vectors=True)
    log.create({"id": "bigint", "n": "bigint"})
    for ids in files:
        log.append(pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(ids, pa.int64())}))
    new = pa.table({"id": range(1, 12), "n": [0] * 11})
    merge = log.merge(new.to_reader(max_chunksize=3), ["id"]).when_matched_delete("t.n < s.n")
    merge = merge.when_not_matched_by_source_delete().when_not_matched_insert_all()
    done = merge.execute()
    known = {id_ for ids in files for id_ in ids}
    assert (done.num_deleted, done.num_inserted) == (0, 11 - len(known))
