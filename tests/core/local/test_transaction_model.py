"""Random blocks of operations, against models that go through the rows one by one."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import example, given, settings
from hypothesis import strategies as st

from command_rows import (
    VALUES,
    as_table,
    assignments,
    conditions,
    counted,
    is_true,
    rows_strategy,
    updated,
)
from keyed_rows import ID, VERSION, known, rows_from
from local_tables import Fate, live_rows, make, opened
from merge_rows import CLAUSES, EQUALITIES, SEVERAL, SeveralMatchesError, merged, with_clause
from optimist.core.errors import ConcurrentAppendException, SchemaError, UsageError
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import AddFile, RemoveFile

PROPERTIES = st.sampled_from(
    [
        {},
        {"enableRowTracking": "true"},
        {"columnMapping.mode": "id", "enableInCommitTimestamps": "true"},
        {"checkpointInterval": "1"},
    ]
)
STEP = st.one_of(
    st.tuples(st.just("append"), rows_strategy(4)),
    st.tuples(st.just("delete"), st.none() | conditions()),
    st.tuples(st.just("update"), st.none() | conditions(), assignments()),
    st.tuples(st.just("merge"), rows_strategy(4), st.sampled_from(EQUALITIES), CLAUSES),
    st.tuples(st.just("alter"), st.sampled_from(["one", "two"])),
    st.tuples(st.just("other"), rows_strategy(3)),
)
REFUSED = ("OPTIMIST_VALUE_DOES_NOT_FIT", SEVERAL)


def as_stored(rows, fate):
    """Empty text is null in a partition."""
    empty = [name for name in fate.partition_by if name == "s"]
    return [{**row, **{name: row[name] or None for name in empty}} for row in rows]


def after(model, step, fate):
    """The rows after a step; None if it is refused."""
    kind, *given_ = step
    try:
        if kind == "append":
            return [*model, *as_stored(given_[0], fate)]
        if kind == "delete":
            return [row for row in model if not is_true(given_[0], row)]
        if kind == "update":
            condition, items = given_
            changed = [updated(row, items) if is_true(condition, row) else row for row in model]
            return as_stored(changed, fate)
        if kind == "merge":
            source, join, found = given_
            return merged(model, source, join, found).stored(fate.partition_by).rows
    except (OverflowError, SeveralMatchesError):
        return None
    return model


def run(handle, step):
    """Do a step on a table, or within a transaction."""
    kind, *given_ = step
    if kind == "append":
        handle.append(as_table(given_[0]))
    elif kind == "delete":
        handle.delete(given_[0] and given_[0].sql)
    elif kind == "update":
        condition, items = given_
        values = {item.column: item.given for item in items}
        handle.update(set=values, predicate=condition and condition.sql)
    elif kind == "merge":
        source, join, found = given_
        merge = handle.merge(as_table(source), join.given, source_alias="src")
        for clause in found:
            merge = with_clause(merge, clause)
        merge.execute()
    elif kind == "alter":
        handle.alter.set_properties({"of": given_[0]})


def can_pass_others(steps):
    """Tell whether the block can pass appends of others: only if it writes nothing itself.

    Each step is followed by a read of the whole table, and the isolation level is Serializable.
    """
    return all(step[0] == "other" or step == ("append", []) for step in steps)


A_ROW = {name: values[-1] for name, values in VALUES.items()}


@given(
    files=st.lists(rows_strategy(5), min_size=1, max_size=3),
    steps=st.lists(STEP, min_size=1, max_size=5),
    properties=PROPERTIES,
)
@example(files=[[]], steps=[("alter", "one"), ("other", [A_ROW])], properties={})
@example(files=[[]], steps=[("append", [A_ROW]), ("other", [A_ROW])], properties={})
@example(files=[[]], steps=[("append", []), ("other", [A_ROW])], properties={})
@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@pytest.mark.parametrize("fate", list(Fate))
def test_a_block_leaves_the_rows_of_the_model_in_one_commit(
    tmp_path_factory, fate, files, steps, properties
):
    path = tmp_path_factory.mktemp("model") / "t"
    log = make(path, fate, files, **properties)
    model, before = live_rows(log), log.snapshot().version
    first, others = model, []
    only_appends = all(step[0] in ("append", "alter", "other") for step in steps)
    has_others = only_appends and any(step[0] == "other" and step[1] for step in steps)
    is_lost = has_others and not can_pass_others(steps)
    refused = pytest.raises(ConcurrentAppendException) if is_lost else nullcontext()
    with refused, log.transaction() as txn:
        for step in steps:
            if step[0] == "other":  # another writer
                if only_appends and step[1]:
                    others += as_stored(step[1], fate)
                    log.append(as_table(step[1]))
                continue
            expected = after(model, step, fate)
            if expected is None:
                with pytest.raises((SchemaError, UsageError)) as caught:
                    run(txn, step)
                assert caught.value.kind in REFUSED
                continue
            run(txn, step)
            model = expected
            assert counted(live_rows(txn)) == counted(model), step
        staged = txn.snapshot()
    model = first if is_lost else model
    assert counted(live_rows(log)) == counted([*model, *others])
    if txn.result is None:
        assert log.snapshot().version == before or others
        return
    assert log.history(1)[0].version == txn.result.version == log.snapshot().version
    ensure_sound(log, before if not others else None)
    if not others:
        assert sorted(staged.files["path"].to_pylist()) == sorted(log.files()["path"].to_pylist())
    if "columnMapping.mode" not in properties:
        engine = QueryBuilder().register("t", DeltaTable(str(path)))
        (count,) = pa.table(engine.execute("SELECT count(*) AS n FROM t"))["n"].to_pylist()
        assert count == len(model) + len(others)


def ensure_sound(log, before):
    """The newest commit names each file once, and removes only what was live before it."""
    commit = commit_path(log.log_path, log.snapshot().version)
    actions = read_commit(log.store, commit)
    adds = [each.path for each in actions if isinstance(each, AddFile)]
    removes = [each for each in actions if isinstance(each, RemoveFile)]
    gone = [each.path for each in removes]
    assert len(adds) == len(set(adds))
    assert len(gone) == len(set(gone))
    if before is not None:
        old = log.snapshot(version=before).files
        keys = [
            (path, json.dumps(vector))
            for path, vector in zip(
                old["path"].to_pylist(), map(_id, old["deletionVector"].to_pylist()), strict=True
            )
        ]
        for each in removes:
            vector = each.deletion_vector
            found = None if vector is None else vector.path_or_inline_dv
            assert (each.path, json.dumps(found)) in keys
        assert not (set(adds) - set(gone)) & {path for path, _ in keys}


def _id(vector):
    return None if vector is None else vector["pathOrInlineDv"]


STEPS_OF_IDS = st.tuples(
    st.sampled_from(["append", "delete", "update"]), st.integers(0, 11), st.integers(0, 11)
)


@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@given(
    blocks=st.lists(st.lists(STEPS_OF_IDS, min_size=1, max_size=4), min_size=1, max_size=3),
    fate=st.sampled_from(Fate),
    has_winner=st.booleans(),
)
def test_ids_stay_through_blocks_and_new_rows_get_new_ones(
    tmp_path_factory, blocks, fate, has_winner
):
    path = tmp_path_factory.mktemp("t") / "t"
    log = opened(path, has_vectors=fate.has_vectors, enableRowTracking="true")
    log.append(rows_from(0, 12))
    expected, given_out, number = known(log), set(range(12)), 0
    for block in blocks:
        start, new = dict(expected), {}
        with log.transaction() as txn:
            for step, low, high in block:
                number += 1
                where = " OR ".join(
                    f"k BETWEEN {low + 12 * n} AND {high + 12 * n}" for n in range(20)
                )
                hit = {k for k in (*expected, *new) if k >= 0 and low <= k % 12 <= high}
                if step == "append":
                    txn.append(rows_from(12 * number, 5))
                    new |= dict.fromkeys(range(12 * number, 12 * number + 5), "x")
                elif step == "delete":
                    txn.delete(where)
                    expected = {k: row for k, row in expected.items() if k not in hit}
                    new = {k: s for k, s in new.items() if k not in hit}
                else:
                    txn.update(set={"s": f"'u{number}'"}, predicate=where)
                    for k in hit & expected.keys():
                        expected[k] = (f"u{number}", expected[k][1], None)
                    new |= dict.fromkeys(hit & new.keys(), f"u{number}")
            if has_winner:  # takes the ids that come next, and is no reason for a conflict
                log.append(rows_from(-100 - 5 * number, 5))
        if txn.result is None:
            expected = known(log)
            given_out |= {row[1] for row in expected.values()}
            continue
        version, found = txn.result.version, known(log)
        for k, (s, row_id, was) in expected.items():
            assert found[k] == (s, row_id, version if was is None else was), k
        for k, s in new.items():
            assert (found[k][0], found[k][2]) == (s, version)
            assert found[k][1] not in given_out
        others = found.keys() - expected.keys() - new.keys()
        assert all(k < 0 for k in others)
        assert start.keys() >= expected.keys()
        assert not {found[k][1] for k in others} & given_out
        given_out |= {row[1] for row in found.values()}
        expected = found


def test_rows_of_a_block_have_no_id_before_its_commit(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True, enableRowTracking="true")
    log.append(rows_from(0, 2))
    with log.transaction() as txn:
        txn.append(rows_from(5, 1))
        found = txn.to_arrow(columns=["k", ID, VERSION]).to_pylist()
    assert {row["k"]: (row[ID], row[VERSION]) for row in found} == {
        0: (0, 0),
        1: (1, 0),
        5: (None, None),
    }
