"""MERGE of a stream without Spark: in memory, or in a file, searched block by block."""

from __future__ import annotations

import pyarrow as pa
import pytest

from local_tables import FEED, live_rows, metrics_of, opened, sixty_rows
from optimist.core.errors import SchemaError, UsageError
from optimist.core.local.merge import inserted_rows, source_rows, stored_source


@pytest.fixture(params=["in memory", "on disk"])
def small_limits(request, monkeypatch):
    """Whether a stream is spilled; the blocks are of seven rows in any case."""
    monkeypatch.setattr(source_rows, "_BLOCK_ROWS", 7)
    if request.param == "on disk":
        monkeypatch.setattr(stored_source, "_MEMORY_BYTES", 100)


def stream(table, size=3):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_stream_is_merged_as_a_table_of_its_rows(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors, **FEED)
    ids = [*range(58, 10, -3), *range(60, 75)]
    names = pa.array([f"new{id_}" for id_ in ids], pa.large_string())
    source = pa.table({"s": names, "id": ids, "p": pa.array([5] * len(ids), pa.int8())})
    merge = log.merge(stream(source), "t.id = s.id").when_matched_delete("s.id = 13")
    merge = merge.when_matched_update_all().when_not_matched_insert_all("s.id <> 70")
    merge = merge.when_not_matched_by_source_update({"s": "'gone'"}, "t.id < 12")
    done = merge.execute()
    assert (done.num_updated, done.num_deleted, done.num_inserted) == (15 + 12, 1, 14)
    rows = {row["id"]: row for row in live_rows(log)}
    assert sorted(rows) == [*(i for i in range(70) if i != 13), *range(71, 75)]
    for id_, row in rows.items():
        assert row["s"] == (f"new{id_}" if id_ in ids else "gone" if id_ < 12 else f"n{id_}")
    assert metrics_of(log, "numSourceRows", "numTargetRowsInserted") == (len(ids), 14)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("several", [True, False])
def test_two_rows_of_a_stream_that_are_far_apart_change_one_row(tmp_path, several):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    source = pa.table({"id": [3, *range(100, 130), 3]})
    merge = log.merge(stream(source), ["id"])
    if several:
        assert merge.when_matched_delete().execute().num_deleted == 1
        return
    with pytest.raises(UsageError) as caught:
        merge.when_matched_update({"s": "'x'"}).execute()
    assert caught.value.kind == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    merge = log.merge(stream(pa.table({"id": [3, *range(9), 3]})), "t.id = s.id AND s.id <> 3")
    assert merge.when_matched_update({"s": "'x'"}).execute().num_updated == 8


@pytest.mark.usefixtures("small_limits")
def test_a_stream_is_there_again_after_a_conflict(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    source = pa.table({"id": [3, *range(100, 120)], "s": ["new"] * 21})
    merge = log.merge(stream(source), ["id"]).when_matched_update({"s": "s.s"})
    merge = merge.when_not_matched_insert({"id": "s.id"})
    steps = []

    def intrude(done):
        if not steps:
            log.append(pa.table({"id": [110], "p": pa.array([0], pa.int32()), "s": ["other"]}))
        steps.append(done)

    done = merge.execute(progress=intrude, retry=True)
    assert (done.num_updated, done.num_inserted) == (2, 19)
    assert log.to_arrow("id = 110")["s"].to_pylist() == ["new"]


def test_files_that_can_match_are_searched_once_for_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(source_rows, "_BLOCK_ROWS", 2)
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    source = pa.table({"id": [3, 4, 21, 22, 99, 98]})
    steps = []
    merge = log.merge(stream(source), ["id"]).when_matched_delete()
    assert merge.execute(progress=steps.append).num_deleted == 4
    assert [step.num_files for step in steps if step.step == "search"] == [2, 2]


def test_a_long_stream_with_columns_that_no_table_has_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_source, "_MEMORY_BYTES", 1)
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(pa.table({"id": [1]}))
    source = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "ID"])
    with pytest.raises(SchemaError) as caught:
        log.merge(stream(source), ["id"]).when_matched_delete().execute()
    assert caught.value.kind == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"


def test_an_error_of_the_stream_is_its_callers(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_source, "_MEMORY_BYTES", 1)
    log = sixty_rows(tmp_path / "t", has_vectors=True)

    def batches():
        yield pa.record_batch({"id": [1]})
        yield pa.record_batch({"id": [2]})
        raise RuntimeError("cut")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches())
    with pytest.raises(RuntimeError, match="cut"):
        log.merge(reader, ["id"])
    assert log.snapshot().version == 2


@pytest.mark.usefixtures("small_limits")
def test_numbers_of_an_identity_column_have_no_gap_between_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(inserted_rows, "_BYTES_TOGETHER", 30)
    log = opened(tmp_path / "t", has_vectors=True)
    log.sql("CREATE TABLE this (n BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT) USING delta")
    merge = log.merge(stream(pa.table({"id": range(20)})), ["id"])
    assert merge.when_not_matched_insert_all().execute().num_inserted == 20
    assert sorted(row["n"] for row in live_rows(log)) == list(range(1, 21))
    log.merge(stream(pa.table({"id": [50]})), ["id"]).when_not_matched_insert_all().execute()
    assert log.to_arrow("id = 50")["n"].to_pylist() == [21]
