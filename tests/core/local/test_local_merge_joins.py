"""MERGE on conditions that are more than equalities: what is read, and what is a conflict."""

from __future__ import annotations

import pyarrow as pa
import pytest

from local_tables import live_rows, metrics_of, opened, sixty_rows
from optimist.core import DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException

ROWS = pa.table({"id": [3, 45], "s": ["new", "new"]})
SEARCHED = [
    ("t.id = s.id AND t.id < 20", 1),
    ("t.id = s.id AND t.p = 1", 2),
    ("t.id = s.id AND s.id > 10", 1),
    ("t.id = s.id AND s.s = 'none'", 0),
    ("t.id = s.id OR t.s = s.s", 2),
    ("t.id >= s.id AND t.id > 30", 2),
    ("t.id <=> s.id", 2),
    ("s.id < t.id AND t.id < 20", 1),
    ("t.id <= s.id AND s.id < 10", 1),
    ("t.id <> s.id", 3),
    ("FALSE", 0),
    ("TRUE", 3),
    ("s.id IS NULL", 0),
]


@pytest.mark.parametrize(("on", "num_files"), SEARCHED)
def test_only_files_with_rows_that_can_match_are_searched(tmp_path, on, num_files):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    steps = []
    merge = log.merge(ROWS, on).when_not_matched_insert({"id": "s.id"}, "s.id < 0")
    merge.execute(progress=steps.append)
    assert [step.num_files for step in steps] == [num_files] * num_files


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_term_over_the_table_alone_is_what_a_merge_has_read(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)
    source = pa.table({"id": [3, 70], "s": ["a", "c"]})
    merge = log.merge(source, "t.id = s.id AND t.p < 5").when_matched_update({"s": "s.s"})
    merge = merge.when_not_matched_insert({"id": "s.id"})

    def intrude(p):
        rows = pa.table({"id": [70], "p": pa.array([p], pa.int32()), "s": ["new"]})
        return lambda done: log.append(rows) if done.step == "search" else None

    with pytest.raises(DeltaConcurrentModificationException):
        merge.execute(progress=intrude(1))
    log.delete("id = 70")
    done = merge.execute(progress=intrude(9))
    assert (done.num_updated, done.num_inserted) == (1, 1)
    assert sorted(row["p"] or 0 for row in live_rows(log) if row["id"] == 70) == [0, 9]


def test_a_range_join_changes_each_row_by_the_one_range_that_holds_it(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    ranges = pa.table({"low": [10, 25], "high": [12, 26], "name": ["ten", "more"]})
    merge = log.merge(ranges, "t.id BETWEEN s.low AND s.high AND t.p <> 2")
    done = merge.when_matched_update({"s": "name"}).execute()
    assert done.num_updated == 3
    changed = [row for row in live_rows(log) if row["s"] in ("ten", "more")]
    assert sorted((row["id"], row["s"]) for row in changed) == [
        (10, "ten"),
        (12, "ten"),
        (25, "more"),
    ]


def test_rows_that_the_table_excludes_are_not_matched_by_source(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    source = pa.table({"id": [3, 4]})
    merge = log.merge(source, "t.id = s.id AND t.p = 0").when_matched_update({"s": "'hit'"})
    merge = merge.when_not_matched_by_source_update({"s": "'gone'"}, "t.id < 10")
    done = merge.when_not_matched_insert({"id": "s.id + 100"}).execute()
    assert (done.num_updated, done.num_inserted) == (10, 1)
    hits = [row["id"] for row in live_rows(log) if row["s"] == "hit"]
    assert hits == [3]
    assert log.to_arrow("id = 104").num_rows == 1


def test_a_row_that_a_pair_of_an_or_finds_twice_changes_once(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(pa.table({"a": [1, 2, 3], "b": [1, 5, 6], "n": [0, 0, 0]}))
    source = pa.table({"a": [1, 9], "b": [1, 5]})
    merge = log.merge(source, "(t.a = s.a OR t.b = s.b) AND t.n = 0")
    assert merge.when_matched_update({"n": "n + 1"}).execute().num_updated == 2
    assert sorted((row["a"], row["n"]) for row in live_rows(log)) == [(1, 1), (2, 1), (3, 0)]
    assert metrics_of(log, "numTargetRowsMatchedUpdated") == (2,)


def test_a_column_with_the_name_of_an_alias_skips_no_file_of_another_column(tmp_path):
    log = opened(tmp_path / "t", has_vectors=False)
    log.append(pa.table({"id": [1], "t": [{"id": 7}], "n": [0]}))
    log.append(pa.table({"id": [7], "t": [{"id": 1}], "n": [0]}))
    merge = log.merge(pa.table({"k": [1, 7]}), "t.id = s.k AND t.id < 5 AND t.t.id > 5")
    assert merge.when_matched_update({"n": "1"}).execute().num_updated == 1
    assert sorted((row["id"], row["n"]) for row in live_rows(log)) == [(1, 1), (7, 0)]


def test_a_condition_that_names_no_column_of_the_table_finds_its_rows(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    merge = log.merge(pa.table({"k": [1, None]}), "s.k IS NULL").when_not_matched_insert(
        {"id": "k"}
    )
    done = merge.when_matched_delete("t.id >= 2").when_not_matched_by_source_delete().execute()
    assert (done.num_deleted, done.num_inserted) == (58, 1)
    assert sorted(row["id"] for row in live_rows(log)) == [0, 1, 1]


def test_conditions_that_name_no_column_count_for_every_row(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    merge = log.merge(pa.table({"id": [1, 2, 99]}), "t.id = s.id AND TRUE")
    merge = merge.when_matched_update({"s": "'no'"}, "FALSE").when_matched_delete("TRUE")
    merge = merge.when_not_matched_insert({"id": "s.id"}, "TRUE")
    done = merge.when_not_matched_by_source_update({"s": "'x'"}, "NULL").execute()
    assert (done.num_updated, done.num_deleted, done.num_inserted) == (0, 2, 1)


ZERO = pa.table({"id": [1, 2], "x": [0, 5], "s": ["n3", "n4"]})


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_row_that_has_its_clause_is_not_asked_by_later_ones(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)
    merge = log.merge(ZERO, ["id"]).when_matched_delete("s.x = 0")
    merge = merge.when_matched_update({"s": "'big'"}, "10 / s.x > 1")
    merge = merge.when_not_matched_by_source_update({"s": "'0'"}, "t.id < 20 AND t.p = 0")
    done = merge.when_not_matched_by_source_delete("t.id < 20 AND 1 / t.p > 0.8").execute()
    assert (done.num_deleted, done.num_updated) == (1 + 6, 1 + 7)
    new = pa.table({"id": [100, 101], "x": [0, 5]})
    merge = log.merge(new, ["id"]).when_not_matched_insert({"id": "s.id", "s": "'0'"}, "s.x = 0")
    assert merge.when_not_matched_insert({"id": "id"}, "10 / s.x > 1").execute().num_inserted == 2


@pytest.mark.parametrize(
    ("on", "updated"),
    [
        ("t.id = s.id AND s.x <> 0 AND 10 / s.x > 1", 1),
        ("t.id = s.id AND t.p <> 0 AND 10 / t.p > 1 AND s.x >= 0", 2),
        ("t.id > s.id AND t.id < 4 AND s.x <> 0 AND t.id / s.x < 1", 1),
        ("s.x <> 0 AND (t.id = s.id AND 10 / s.x > 1 OR t.s = s.s)", 2),
        ("t.id = s.id OR t.s = s.s AND t.id > 3 AND 10 / s.x > 1", 3),
    ],
)
def test_a_part_of_on_that_fails_is_not_asked_where_another_has_decided(tmp_path, on, updated):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    done = log.merge(ZERO, on).when_matched_update({"s": "'hit'"}).execute()
    assert done.num_updated == updated


DAYS = pa.array([2_932_897, -800_000, None], pa.int32()).cast(pa.date32())


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", tz="UTC"), pa.timestamp("us")])
@pytest.mark.parametrize(("on", "updated"), [("t.d = s.d", 2), ("t.d <= s.d AND s.d > t.d", 1)])
def test_days_that_python_does_not_know_are_keys(tmp_path, kind, on, updated):
    days = DAYS if kind == pa.date32() else DAYS.cast(pa.timestamp("s")).cast(kind)
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(pa.table({"d": days, "hit": [0, 0, 0]}))
    merge = log.merge(pa.table({"d": days}), on).when_matched_update({"hit": "hit + 1"})
    assert merge.execute().num_updated == updated


@pytest.mark.parametrize("most_rows", [1, 5, 1 << 18])
@pytest.mark.parametrize("most_bytes", [1, 1 << 23])
def test_files_that_are_searched_together_keep_their_own_rows(
    tmp_path, monkeypatch, most_rows, most_bytes
):
    monkeypatch.setattr("optimist.core.local.merge.matches._RUN_ROWS", most_rows)
    monkeypatch.setattr("optimist.core.local.target._BYTES_TOGETHER", most_bytes)
    monkeypatch.setattr("optimist.core.local.target._BATCH_ROWS", 4)
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for first in range(0, 90, 9):
        log.append(pa.table({"id": range(first, first + 9), "s": ["old"] * 9}))
    source = pa.table({"id": [0, 8, 9, 44, 89, 200], "s": [f"new{n}" for n in range(6)]})
    merge = (
        log.merge(source, ["id"]).when_matched_update({"s": "s.s"}).when_not_matched_insert_all()
    )
    steps = []
    done = merge.when_not_matched_by_source_delete("t.id >= 80").execute(progress=steps.append)
    assert (done.num_updated, done.num_inserted, done.num_deleted) == (5, 1, 9)
    assert [item.files_done for item in steps if item.step == "search"] == list(range(1, 11))
    wanted = dict.fromkeys(range(80), "old") | dict(zip(*source.to_pydict().values(), strict=True))
    assert {row["id"]: row["s"] for row in log.to_arrow().to_pylist()} == wanted
