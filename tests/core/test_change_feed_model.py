"""Random histories of files, vectors and recorded changes beside a row-by-row model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from optimist.core.changes.vectors import all_but
from optimist.core.data.deletion_vectors import read_deletion_vector
from optimist.core.protocol.actions import AddFile

ROWS_PER_FILE = 4


@dataclass
class Model:
    """The table as lists of rows, and the changes that each version made."""

    files: dict[str, tuple[AddFile, list[int], frozenset[int]]] = field(default_factory=dict)
    expected: list[Counter] = field(default_factory=lambda: [Counter()])
    next_id: int = 0


def insert(table, model, changed, choice):
    ids = list(range(model.next_id, model.next_id + ROWS_PER_FILE))
    model.next_id += ROWS_PER_FILE
    file = table.file(ids)
    model.files[file.path] = (file, ids, frozenset())
    changed.update(("insert", number) for number in ids)
    return [file]


def remove(table, model, changed, choice):
    file, ids, gone = model.files.pop(sorted(model.files)[choice % len(model.files)])
    changed.update(("delete", number) for at, number in enumerate(ids) if at not in gone)
    return [table.removal(file)]


def replace_vector(table, model, changed, choice):
    path = sorted(model.files)[choice % len(model.files)]
    file, ids, gone = model.files[path]
    now = frozenset(at for at in range(ROWS_PER_FILE) if choice >> at & 1)
    bare = replace(file, deletion_vector=None)
    after = table.deleting(bare, *sorted(now)) if now else bare
    model.files[path] = (after, ids, now)
    changed.update(("delete", ids[at]) for at in now - gone)
    changed.update(("insert", ids[at]) for at in gone - now)
    return [after, table.removal(file)] if choice % 2 else [table.removal(file), after]


def move(table, model, changed, choice):
    path = sorted(model.files)[choice % len(model.files)]
    file, ids, gone = model.files.pop(path)
    kept = [number for at, number in enumerate(ids) if at not in gone]
    kept += [-1] * (ROWS_PER_FILE - len(kept))
    moved = table.file(kept)
    dead = frozenset(at for at, number in enumerate(kept) if number == -1)
    moved = table.deleting(moved, *sorted(dead)) if dead else moved
    model.files[moved.path] = (moved, kept, dead)
    return [table.removal(file, data_change=False), replace(moved, data_change=False)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([insert, remove, replace_vector, move, "record"]),
        st.integers(min_value=0, max_value=255),
    ),
    max_size=3,
)


def run_commit(table, model, steps):
    """One commit of several steps, each on files of its own; returns nothing."""
    changed, actions, record = Counter(), [], False
    held = {}
    for step, choice in steps:
        if step == "record":
            record = True
            continue
        if step is not insert and not model.files:
            continue
        before = dict(model.files)
        actions += step(table, model, changed, choice)
        touched = [path for path, entry in model.files.items() if before.get(path) != entry]
        held.update({path: model.files.pop(path) for path in touched})
    model.files.update(held)
    if record and changed:
        actions.append(table.changes([(number, kind) for kind, number in changed.elements()]))
    table.commit(*actions) if actions else table.commit(table.metadata)
    model.expected.append(changed)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(commits=st.lists(STEPS, min_size=1, max_size=6), data=st.data())
def test_the_feed_is_what_the_model_says_for_every_range(feed_table, commits, data):
    table, model = feed_table(vectors=True), Model()
    for steps in [[(insert, 0), (insert, 0)], *commits]:
        run_commit(table, model, steps)
    last = len(model.expected) - 1
    first = data.draw(st.integers(0, last))
    end = data.draw(st.integers(first, last))
    names = ["_commit_version", "_change_type", "id"]
    found = table.log.changes(columns=names, starting_version=first, ending_version=end)
    expected = Counter(
        {
            (version, *change): count
            for version in range(first, end + 1)
            for change, count in model.expected[version].items()
        }
    )
    assert Counter(tuple(row.values()) for row in found.to_pylist()) == expected
    live = [
        n for _, ids, gone in model.files.values() for at, n in enumerate(ids) if at not in gone
    ]
    assert sorted(table.log.to_arrow()["id"].to_pylist()) == sorted(live)


@given(kept=st.sets(st.integers(0, 199_999), min_size=1, max_size=50), more=st.integers(1, 100_000))
def test_the_vector_of_all_rows_but_some_deletes_exactly_the_others(kept, more):
    num_rows = max(kept) + 1 + more
    vector = all_but(BitMap64(kept), num_rows)
    deleted = read_deletion_vector(vector, "/nowhere")
    assert len(deleted) == vector.cardinality == num_rows - len(kept)
    assert deleted.isdisjoint(BitMap64(kept))
    assert deleted.max() < num_rows


def test_there_is_no_vector_that_deletes_nothing():
    assert all_but(BitMap64([0, 1, 2]), 3) is None
