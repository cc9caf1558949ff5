"""MERGE without Spark, against a model that goes through the rows one by one."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given

from local_merges import CASES, ensure_as_the_model
from local_tables import Fate, live_rows, metrics_of, opened, sixty_rows
from merge_rows import SEVERAL
from optimist.core import DeltaLog
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    SchemaError,
    UsageError,
)


@given(CASES)
@pytest.mark.parametrize("fate", list(Fate))
def test_merge_gives_the_rows_of_the_model(tmp_path_factory, fate, case):
    ensure_as_the_model(tmp_path_factory.mktemp("model") / "t", replace(case, fate=fate))


@pytest.mark.parametrize("has_vectors", [True, False])
def test_only_files_that_can_match_are_read(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)
    source = pa.table(
        {"id": [3, 5, 70], "p": pa.array([7, 7, 7], pa.int32()), "s": ["a", "b", "c"]}
    )
    steps = []
    merge = log.merge(pa.RecordBatchReader.from_batches(source.schema, source.to_batches()), ["id"])
    merge = merge.when_matched_update_all("s.id = 3").when_matched_delete()
    done = merge.when_not_matched_insert_all().execute(progress=steps.append)
    assert (done.num_updated, done.num_deleted, done.num_inserted) == (1, 1, 1)
    assert done.num_copied == (0 if has_vectors else 18)
    assert [(step.step, step.num_files) for step in steps][:1] == [("search", 1)]
    names = ("numTargetFilesRemoved", "numTargetFilesAdded", "numTargetDeletionVectorsAdded")
    assert metrics_of(log, *names) == ((0, 1, 1) if has_vectors else (1, 1, 0))
    assert sorted(row["id"] for row in live_rows(log)) == [*range(5), *range(6, 60), 70]
    assert log.to_arrow("id = 3").to_pylist() == [{"id": 3, "p": 7, "s": "a"}]


@pytest.mark.parametrize("alias", ["my source", "s-1", "select", "ti`ck", "a.b"])
def test_names_of_columns_are_keys_under_any_aliases(tmp_path, alias):
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    log.append(pa.table({"x-y": [1, 2], "v": ["old", "old"]}))
    source = pa.table({"x-y": [2, 3], "v": ["new", "new"]})
    merge = log.merge(source, ["x-y"], target_alias=f"the {alias}", source_alias=alias)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    rows = log.to_arrow().sort_by("x-y").to_pylist()
    assert rows == [{"x-y": 1, "v": "old"}, {"x-y": 2, "v": "new"}, {"x-y": 3, "v": "new"}]


def test_a_merge_that_only_inserts_removes_nothing(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=False)
    source = pa.table({"id": [1, 1, 80, 80], "s": ["a", "b", "c", "d"]})
    values = {"id": "id", "s": "concat(s.s, '!')"}
    merge = log.merge(source, "t.id = s.id").when_not_matched_insert(values, "s.s <> 'd'")
    assert merge.execute().num_inserted == 1
    assert metrics_of(log, "numTargetFilesRemoved", "numTargetRowsInserted") == (0, 1)
    assert log.to_arrow("id = 80").to_pylist() == [{"id": 80, "p": None, "s": "c!"}]


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_row_may_match_several_of_which_at_most_one_changes_it(tmp_path, has_vectors):
    log = sixty_rows(tmp_path / "t", has_vectors=has_vectors)
    before = log.to_arrow("id <> 3").sort_by("id")
    source = pa.table({"id": [3, 3, 3, 4, 4], "s": ["old", "new", "none", "none", "none"]})
    merge = log.merge(source, "t.id = s.id").when_matched_update({"s": "s.s"}, "s.s = 'new'")
    assert merge.execute().num_updated == 1
    assert log.to_arrow("id = 3")["s"].to_pylist() == ["new"]
    assert log.to_arrow("id <> 3").sort_by("id") == before
    both = merge.when_matched_delete("s.s = 'old'")
    with pytest.raises(UsageError) as caught:
        both.execute()
    assert caught.value.kind == SEVERAL
    assert log.to_arrow("id = 3")["s"].to_pylist() == ["new"]


def test_a_commit_that_adds_a_matching_row_is_a_conflict(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    source = pa.table({"id": [3, 70], "p": pa.array([7, 7], pa.int32()), "s": ["a", "c"]})
    merge = log.merge(source, ["id"]).when_matched_update_all().when_not_matched_insert_all()

    def intrude(id_):
        rows = pa.table({"id": [id_], "p": pa.array([0], pa.int32()), "s": ["new"]})
        return lambda done: log.append(rows) if done.step == "search" else None

    with pytest.raises(DeltaConcurrentModificationException):
        merge.execute(progress=intrude(70))
    merge = log.merge(source.slice(0, 1), ["id"]).when_matched_update_all()
    assert merge.execute(progress=intrude(1000)).num_updated == 1


@pytest.mark.parametrize("retry", [True, False])
def test_a_scan_of_the_table_must_be_of_its_newest_version(tmp_path, retry):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    merge = log.merge(log.scan("id < 5"), ["id"]).when_matched_update({"p": "s.p + 1"})
    assert merge.execute().num_updated == 5
    with pytest.raises(DeltaConcurrentModificationException):
        merge.execute(retry=retry)
    merge = log.merge(log.scan(version=2), ["id"]).when_matched_update({"p": "s.p"})
    assert merge.execute(retry=retry).num_updated == 60
    assert log.snapshot().version == 4

    def intrude(done):
        if done.step == "search":
            log.append(pa.table({"id": [1000]}))

    merge = log.merge(log.scan("id < 5"), ["id"]).when_matched_update({"p": "s.p + 1"})
    with pytest.raises(DeltaConcurrentModificationException):
        merge.execute(progress=intrude)
    other = log.merge(sixty_rows(tmp_path / "o", has_vectors=True).scan(), ["id"])
    assert other.when_matched_delete().execute(progress=intrude).num_deleted == 60


REFUSED = ["t.id = s.id AND my_function(t.s) = s.s", "t.id = s.id OR t.id = (s.s = 'a')"]


@pytest.mark.parametrize("on", REFUSED)
def test_a_join_that_only_spark_evaluates_is_refused(tmp_path, on):
    log = sixty_rows(tmp_path / "t", has_vectors=False)
    source = pa.table({"id": [1], "s": ["a"]})
    with pytest.raises(UsageError, match="Nothing was written") as caught:
        log.merge(source, on).when_matched_delete().execute()
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"


def test_impossible_clauses_are_refused(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=False)
    merge = log.merge(pa.table({"id": [1]}), ["id"])
    other = log.merge(pa.table({"x": [1]}), ["id"])
    cases = [
        (merge, "DELTA_MERGE_MISSING_WHEN"),
        (
            merge.when_matched_delete().when_matched_delete("t.p = 1"),
            "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        ),
        (merge.when_matched_update_all(), "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (merge.when_matched_update({"p": "nowhere"}), "DELTA_COLUMN_NOT_FOUND"),
        (
            other.when_matched_delete(),
            "OPTIMIST_INVALID_PREDICATE",
        ),
    ]
    for impossible, kind in cases:
        with pytest.raises((UsageError, SchemaError)) as caught:
            impossible.execute()
        assert caught.value.kind == kind
    assert log.snapshot().version == 2


@pytest.mark.parametrize("names", [("id", "v", "V"), ("id", "v", "v"), ("ID", "id", "v")])
def test_a_source_with_two_columns_of_one_name_is_refused(tmp_path, names):
    log = opened(tmp_path / "t", has_vectors=False)
    log.append(pa.table({"id": [1], "v": [0]}))
    source = pa.Table.from_arrays([pa.array([number]) for number in (1, 2, 3)], names=names)
    with pytest.raises(SchemaError) as caught:
        log.merge(source, ["id"]).when_matched_update_all().execute()
    assert caught.value.kind == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"
    assert live_rows(log) == [{"id": 1, "v": 0}]


def test_a_name_below_a_wrong_alias_is_refused(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=True)
    merge = log.merge(pa.table({"id": [1], "note": ["x"]}), ["id"])
    wrong = [
        merge.when_matched_update({"s": "x.note"}),
        merge.when_matched_update({"s": "s.note"}, "x.note = 'x'"),
        merge.when_matched_delete("t.x.p = 1"),
        merge.when_not_matched_insert({"id": "t.note"}),
        merge.when_not_matched_insert({"id": "id"}, "t.note = 'x'"),
        merge.when_not_matched_by_source_update({"s": "'gone'"}, "s.p = 1"),
        merge.when_not_matched_by_source_update({"s": "if(s.p = 1, 'gone', t.s)"}),
        log.merge(pa.table({"id": [1], "note": ["x"]}), "t.x.id = s.id").when_matched_delete(),
        log.merge(pa.table({"id": [1], "note": ["x"]}), "x.p = s.id").when_matched_delete(),
    ]
    for impossible in wrong:
        with pytest.raises((UsageError, SchemaError)):
            impossible.execute()
    assert log.snapshot().version == 2
    assert merge.when_matched_update({"s": "note"}, "p = 1 AND t.p = 1").execute().num_updated == 1


def test_fields_of_structs_are_not_inserted(tmp_path):
    log = opened(tmp_path / "t", has_vectors=False)
    log.append(pa.table({"id": [1], "n": [{"a": 1}]}))
    merge = log.merge(pa.table({"id": [2]}), ["id"]).when_not_matched_insert({"n.a": "id"})
    with pytest.raises(UsageError) as caught:
        merge.execute()
    assert caught.value.kind == "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION"


NAN, WIDE = float("nan"), Decimal("12345678901234567890123456789012345.6")


@pytest.mark.parametrize(
    ("own", "other", "pairs", "null_safe_pairs"),
    [
        (pa.array([NAN, -0.0, 0.0, None, 1.0]), pa.array([0.0, NAN, None]), [1, 1, 1], [3]),
        (pa.array([NAN, -0.0, 0.1], pa.float32()), pa.array([-0.0, NAN, 0.1]), [1, 1, 0], []),
        (pa.array([WIDE, None]), pa.array([WIDE, None]), [1, 0], [1]),
        (pa.array([Decimal("1.50")]), pa.array([Decimal("1.5"), Decimal("2.5")]), [1], []),
        (pa.array([2, -3, None]), pa.array([Decimal("2.00"), Decimal("-3.50"), None]), [1, 0], [2]),
        (pa.array([Decimal("7.0"), None]), pa.array([7, None], pa.int8()), [1, 0], [1]),
        (pa.array([2**53, 2**53 + 1, 2, None]), pa.array([2.0**53, 2.5]), [1, 1, 0, 0], []),
        (pa.array([4.0, NAN, None, -0.0]), pa.array([4, 0, None], pa.int16()), [1, 0, 0, 1], [2]),
        (pa.array([1, 2, None], pa.int8()), pa.array([2, None, 300], pa.int64()), [0, 1, 0], [2]),
        (pa.array(["", None, "a"]), pa.array([None, "a"]), [0, 0, 1], [1]),
        (pa.array([b"\x00", b""]), pa.array([b""]), [0, 1], []),
        (pa.array([True, False, None]), pa.array([False]), [0, 1, 0], []),
        (pa.array([dt.date(1, 1, 1), None]), pa.array([None, dt.date(1, 1, 1)]), [1, 0], [1]),
    ],
)
def test_keys_are_equal_as_spark_compares_them(tmp_path, own, other, pairs, null_safe_pairs):
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(pa.table({"k": own, "hit": pa.array([0] * len(own), pa.int64())}))
    places = [at for at, found in enumerate(pairs) if found]
    for op, expected in (("=", places), ("<=>", sorted({*places, *null_safe_pairs}))):
        merge = log.merge(pa.table({"k": other}), f"t.k {op} s.k")
        done = merge.when_matched_update({"hit": "hit + 1"}).execute()
        assert done.num_updated == len(expected), op
    hits = Counter(dict.fromkeys(places, 1))
    hits.update([*places, *null_safe_pairs])
    assert sorted(row["hit"] for row in live_rows(log)) == sorted(
        hits[at] for at in range(len(own))
    )
