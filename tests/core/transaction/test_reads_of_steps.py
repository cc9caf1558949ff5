"""What a transaction has read, put together from the reads of its steps."""

from __future__ import annotations

import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.predicates import SplitPredicate
from optimist.core.transaction.conflicts.reads import Reads, ReadTracker


def reads(needed_rows, paths=("a", "b"), predicates=()):
    names = pa.chunked_array([list(paths)], pa.string())
    none = pa.chunked_array([], pa.string())
    return Reads(predicates, names, False, frozenset({"job"}), none, needed_rows)


def test_rows_that_two_steps_need_of_one_file_are_all_needed():
    tracker = ReadTracker()
    tracker.record(reads({"a": BitMap64([1])}))
    tracker.record(reads({"a": BitMap64([2]), "b": BitMap64([3])}))
    found = tracker.freeze()
    assert found.needed_rows == {"a": BitMap64([1, 2]), "b": BitMap64([3])}
    assert found.app_ids == {"job"}


def test_files_of_steps_are_no_reads_of_the_version():
    given = reads({"a": BitMap64([1]), "b": BitMap64([3])}, predicates=(SplitPredicate(),))
    found = given.of_version({"b"}, by_predicate=True)
    assert found.paths.to_pylist() == ["a"]
    assert found.needed_rows == {"a": BitMap64([1])}
