"""Rows keep their ids and commit versions through DELETE and UPDATE without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from keyed_rows import known, rows_from
from local_tables import Fate, opened
from optimist.core.log.file_table import add_files

STEPS = st.tuples(
    st.sampled_from(["append", "delete", "update", "merge"]), st.integers(0, 11), st.integers(0, 11)
)


def merge_into(log, number, low, high):
    """Deletes the row `low`, updates the next and the row `high`, and inserts another."""
    keys = [low, low + 1, 84 + number]
    source = pa.table({"k": keys, "p": [0, 1, 2], "s": ["gone", "m", "n"]})
    merge = log.merge(source, ["k"]).when_matched_delete("s.s = 'gone'")
    merge = merge.when_matched_update({"s": f"'m{number}'"}).when_not_matched_insert_all("s.k > 80")
    merge.when_not_matched_by_source_update({"s": "'alone'"}, f"t.k = {high}").execute()


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(steps=st.lists(STEPS, min_size=2, max_size=6), fate=st.sampled_from(Fate))
def test_ids_stay_and_versions_move_only_with_changes(tmp_path_factory, steps, fate):
    path = tmp_path_factory.mktemp("t") / "t"
    log = opened(path, has_vectors=fate.has_vectors, enableRowTracking="true")
    partition_by = [name for name in fate.partition_by if name != "s"]
    log.append(rows_from(0, 12), partition_by=partition_by)
    expected, given_out = known(log), set(range(12))
    for number, (step, low, high) in enumerate(steps, start=1):
        hit = {k for k in expected if low <= k % 12 <= high}
        where = " OR ".join(f"k BETWEEN {low + 12 * n} AND {high + 12 * n}" for n in range(8))
        if step == "append":
            log.append(rows_from(12 * number, 5))
        elif step == "merge":
            merge_into(log, number, low, high)
            expected = {k: row for k, row in expected.items() if k != low}
            version = log.snapshot().version
            for k in {low + 1, high} & expected.keys() - {low}:
                text = f"m{number}" if k == low + 1 else "alone"
                expected[k] = (text, expected[k][1], version)
        elif step == "delete":
            log.delete(where)
            expected = {k: row for k, row in expected.items() if k not in hit}
        else:
            log.update(set={"s": f"'u{number}'"}, predicate=where)
            version = log.snapshot().version
            for k in hit:
                expected[k] = (f"u{number}", expected[k][1], version)
        found = known(log)
        new = found.keys() - expected.keys()
        assert {k: row for k, row in found.items() if k not in new} == expected
        ids = {found[k][1] for k in new}
        assert not ids & given_out
        assert all(found[k][2] == log.snapshot().version for k in new)
        given_out |= ids
        expected = found


def test_files_carry_ids_beside_the_columns_of_the_table(tmp_path):
    log = opened(tmp_path / "t", has_vectors=False, enableRowTracking="true")
    log.append(rows_from(0, 4))
    log.delete("k = 1")
    (add,) = add_files(log.snapshot().files)
    stored = pq.read_table(tmp_path / "t" / add.path)
    assert stored.column_names[:3] == ["k", "p", "s"]
    assert [column.to_pylist() for column in stored.columns[3:]] == [[0, 2, 3], [0, 0, 0]]
    assert log.to_arrow().column_names == ["k", "p", "s"]
    assert "row-" not in add.stats
