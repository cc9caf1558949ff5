"""Random histories of files, vectors and recorded changes beside a row-by-row model."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from change_histories import History, insert, replace_vector, steps
from optimist.core.changes.vectors import all_but
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import read_deletion_vector


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    commits=st.lists(steps(replace_vector), min_size=1, max_size=6),
    is_partitioned=st.booleans(),
    data=st.data(),
)
def test_the_feed_is_what_the_model_says_for_every_range(feed_table, commits, is_partitioned, data):
    history = History(feed_table(vectors=True, partitioned=is_partitioned))
    for commit in [[(insert, 0), (insert, 1)], *commits]:
        history.commit(commit)
    log, last = history.table.log, len(history.expected) - 1
    first = data.draw(st.integers(0, last))
    end = data.draw(st.integers(first, last))
    names = ["_commit_version", "_change_type", "id"]
    found = log.changes(columns=names, starting_version=first, ending_version=end)
    assert Counter(tuple(row.values()) for row in found.to_pylist()) == history.changes(first, end)
    stream = log.scan_changes(columns=names, starting_version=first, ending_version=end)
    told = Counter(tuple(row.values()) for batch in stream for row in batch.to_pylist())
    assert told == history.changes(first, end)
    assert stream.count() == told.total()
    assert sorted(log.to_arrow()["id"].to_pylist()) == history.live_ids()


@given(kept=st.sets(st.integers(0, 199_999), min_size=1, max_size=50), more=st.integers(1, 100_000))
def test_the_vector_of_all_rows_but_some_deletes_exactly_the_others(kept, more):
    num_rows = max(kept) + 1 + more
    vector = all_but(BitMap64(kept), num_rows)
    deleted = read_deletion_vector(vector, DataPaths.of("/nowhere"))
    assert len(deleted) == vector.cardinality == num_rows - len(kept)
    assert deleted.isdisjoint(BitMap64(kept))
    assert deleted.max() < num_rows


def test_there_is_no_vector_that_deletes_nothing():
    assert all_but(BitMap64([0, 1, 2]), 3) is None
