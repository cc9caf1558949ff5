"""MERGE without Spark, against a model that goes through the rows one by one."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_rows import (
    ASSIGNMENTS,
    Assigned,
    Condition,
    Row,
    as_table,
    assignments,
    conditions,
    counted,
    is_true,
    leaves,
    rank,
    rows_strategy,
    updated,
    value_of,
)
from local_tables import (
    PROPERTIES,
    Fate,
    changes_since,
    counted_changes,
    live_rows,
    make,
    metrics_of,
    opened,
    sixty_rows,
)
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    SchemaError,
    UsageError,
)

SEVERAL = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
KEYS: list[tuple[Any, list[tuple[str, str, bool]]]] = [
    (["id"], [("id", "id", False)]),
    ("t.s = src.s AND src.p <=> t.P", [("s", "s", False), ("p", "p", True)]),
    ("t.`x.y` <=> src.`x.y`", [("x.y", "x.y", True)]),
    ("t.d = src.d", [("d", "d", False)]),
    ("t.n.a = src.p", [("n.a", "p", False)]),
    ("t.n.`b.c` <=> src.s", [("n.`b.c`", "s", True)]),
]
BOTH = [
    Assigned("id", "src.id", lambda row: row["src"]["id"]),
    Assigned("`x.y`", "t.p", lambda row: as_float(row["t"]["p"])),
    Assigned("s", "concat(t.s, src.s)", lambda row: joined(row["t"]["s"], row["src"]["s"])),
    Assigned("n.a", "src.id", lambda row: row["src"]["id"]),
    Assigned("d", "CASE WHEN t.d > src.d THEN t.d ELSE src.d END", lambda row: greater(row)),
]


def as_float(value):
    return None if value is None else float(value)


def joined(one, other):
    return None if one is None or other is None else one + other


def greater(row):
    own, other = row["t"]["d"], row["src"]["d"]
    return own if None not in (own, other) and own > other else other


@dataclass(frozen=True)
class Clause:
    kind: str
    action: str
    condition: Condition | None
    items: tuple[Assigned, ...] | None


def clauses(kind, action, condition, items=None):
    given = st.none() if items is None else items
    return st.builds(Clause, st.just(kind), st.just(action), st.none() | condition, given)


def side(name):
    return leaves(f"{name}.", lambda row: row[name])


def some(items):
    return st.lists(st.sampled_from(items), min_size=1, max_size=3).map(
        lambda found: tuple({item.column.lower(): item for item in found}.values())
    )


WHOLE = [item for item in ASSIGNMENTS if not item.column.startswith("n.")]
ON_BOTH = conditions(side("t") | side("src"))
CLAUSES = st.one_of(
    clauses("MATCHED", "update", ON_BOTH, st.none() | some(BOTH)),
    clauses("MATCHED", "delete", ON_BOTH),
    clauses("NOT MATCHED", "insert", conditions(leaves("src.")), st.none() | some(WHOLE)),
    clauses("NOT MATCHED BY SOURCE", "update", conditions(leaves("t.")), assignments().map(tuple)),
    clauses("NOT MATCHED BY SOURCE", "delete", conditions(leaves("t."))),
)


def in_order(found):
    """Only the last clause of a kind may have no condition."""
    kept = []
    for at, clause in enumerate(found):
        later = any(other.kind == clause.kind for other in found[at + 1 :])
        if clause.condition is not None or not later:
            kept.append(clause)
    return kept


def is_equal(own: Any, other: Any, is_null_safe: bool) -> bool:
    if own is None or other is None:
        return is_null_safe and own is None and other is None
    return rank(own) == rank(other)


class SeveralMatchesError(Exception):
    pass


Change = tuple[str, Row]


def merged(
    model: list[Row], source: list[Row], keys: Any, found: list[Clause]
) -> tuple[list[Row], list[Change]]:
    """The rows afterwards, and what changed."""

    def matches(own: Row, other: Row) -> bool:
        return all(is_equal(value_of(own, a), value_of(other, b), safe) for a, b, safe in keys)

    def first(kind: str, row: Row) -> Clause | None:
        return next((c for c in found if c.kind == kind and is_true(c.condition, row)), None)

    matched = [c for c in found if c.kind == "MATCHED"]
    takes_several = [(c.action, c.condition) for c in matched] == [("delete", None)]
    only_inserts = all(c.kind == "NOT MATCHED" for c in found)
    result, changes = [], []
    for own in model:
        others = [other for other in source if matches(own, other)]
        if len(others) > 1 and not takes_several and not only_inserts:
            raise SeveralMatchesError
        seen = {"t": own, "src": others[0]} if others else own
        clause = first("MATCHED" if others else "NOT MATCHED BY SOURCE", seen)
        if clause is None:
            result.append(own)
        elif clause.action == "update":
            new = others[0] if clause.items is None else changed(own, seen, clause.items)
            result.append(new)
            changes += [("update_preimage", own), ("update_postimage", new)]
        else:
            changes.append(("delete", own))
    for other in source:
        clause = first("NOT MATCHED", other)
        if clause is not None and not any(matches(own, other) for own in model):
            nothing = dict.fromkeys(other)
            new = other if clause.items is None else changed(nothing, other, clause.items)
            result.append(new)
            changes.append(("insert", new))
    return result, changes


def changed(own: Row, seen: Row, items: tuple[Assigned, ...]) -> Row:
    fixed = [Assigned(i.column, i.given, lambda _, i=i: i.value(seen)) for i in items]
    return updated(own, fixed)


def with_clause(merge, clause):
    condition = None if clause.condition is None else clause.condition.sql
    values = {i.column: i.given for i in clause.items or ()}
    name = f"when_{clause.kind.lower().replace(' ', '_')}_{clause.action}"
    if clause.action == "delete":
        return getattr(merge, name)(condition)
    if clause.items is None:
        return getattr(merge, f"{name}_all")(condition)
    return getattr(merge, name)(values, condition)


@given(
    st.lists(rows_strategy(6), min_size=1, max_size=3),
    rows_strategy(5),
    st.sampled_from(KEYS),
    st.lists(CLAUSES, min_size=1, max_size=4).map(in_order),
    PROPERTIES,
)
@pytest.mark.parametrize("fate", list(Fate))
def test_merge_gives_the_rows_of_the_model(
    tmp_path_factory, fate, files, source, keys, found, properties
):
    log = make(tmp_path_factory.mktemp("model") / "t", fate, files, **properties)
    model, before, changes = live_rows(log), log.update().version, []
    merge = log.merge(as_table(source), keys[0], source_alias="src")
    for clause in found:
        merge = with_clause(merge, clause)
    try:
        expected, changes = merged(model, source, keys[1], found)
    except SeveralMatchesError:
        with pytest.raises(UsageError) as caught:
            merge.execute()
        assert caught.value.kind == SEVERAL
        expected = model
    except OverflowError:
        with pytest.raises((SchemaError, UsageError)) as caught:
            merge.execute()
        assert caught.value.kind in ("OPTIMIST_VALUE_DOES_NOT_FIT", SEVERAL)
        expected = model
    else:
        merge.execute()
    if "s" in fate.partition_by:
        expected = [{**row, "s": row["s"] or None} for row in expected]
        changes = [(kind, {**row, "s": row["s"] or None}) for kind, row in changes]
    assert counted(live_rows(log)) == counted(expected)
    if properties:
        assert changes_since(log, before) == counted_changes(changes)


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


def test_a_merge_that_only_inserts_removes_nothing(tmp_path):
    log = sixty_rows(tmp_path / "t", has_vectors=False)
    source = pa.table({"id": [1, 1, 80, 80], "s": ["a", "b", "c", "d"]})
    values = {"id": "id", "s": "concat(s.s, '!')"}
    merge = log.merge(source, "t.id = s.id").when_not_matched_insert(values, "s.s <> 'd'")
    assert merge.execute().num_inserted == 1
    assert metrics_of(log, "numTargetFilesRemoved", "numTargetRowsInserted") == (0, 1)
    assert log.to_arrow("id = 80").to_pylist() == [{"id": 80, "p": None, "s": "c!"}]


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


REFUSED = [
    "t.id > s.id",
    "t.id = s.id AND t.p = 1",
    "t.id = s.id OR t.s = s.s",
    "upper(t.s) = s.s",
    "t.id = s.s",
]


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
        (merge.when_matched_update({"p": "nowhere"}), "OPTIMIST_NEEDS_SPARK"),
        (
            other.when_matched_delete(),
            "OPTIMIST_INVALID_PREDICATE",
        ),
    ]
    for impossible, kind in cases:
        with pytest.raises((UsageError, SchemaError)) as caught:
            impossible.execute()
        assert caught.value.kind == kind
    assert log.update().version == 2


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
    assert log.update().version == 2
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
