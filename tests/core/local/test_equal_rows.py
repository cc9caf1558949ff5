"""Rows that are deleted while an OPTIMIZE writes, found in its files by their values alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.local import equal_rows
from optimist.core.local.compaction import LocalBins
from optimist.core.local.equal_rows import EqualRows
from optimist.core.local.target import LocalTarget
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.maintenance.optimize.optimize import optimize
from optimist.core.runtime.progress import ProgressReport

VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
FAR = 253_402_300_800_000_000
"""Microseconds from 1970 to the year 10000, which Python does not have."""
NAN = float("nan")
STRUCT = pa.struct(
    [
        ("t", pa.timestamp("us", "UTC")),
        ("m", pa.map_(pa.string(), pa.list_(pa.date32()))),
        ("b", pa.binary()),
    ]
)
COLUMNS = {
    "k": pa.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1], pa.int8()),
    "f": pa.array([0.0, -0.0, NAN, None, 1.5, NAN, 0.0, -0.0, 0.0, -0.0], pa.float32()),
    "d": pa.array([0, 0, 0, 0, 4_000_000, 4_000_000, None, 1, 0, 0], pa.int32()).view(pa.date32()),
    "t": pa.array([FAR, FAR, 0, 0, 0, 0, None, 1, FAR, FAR], pa.int64()).view(pa.timestamp("us")),
    "s": pa.array(["", None, "a\x00", "a", "'", '"', "é", "e\u0301", "", None]),
    "n": pa.array(
        [
            {"t": None, "m": None, "b": b""},
            {"t": None, "m": [], "b": b"\xff"},
            None,
            {"t": None, "m": [("x", None)], "b": None},
            {"t": None, "m": [("x", [])], "b": None},
            {"t": None, "m": [("x", [None])], "b": None},
            None,
            None,
            {"t": None, "m": None, "b": b""},
            {"t": None, "m": [], "b": b"\xff"},
        ],
        STRUCT,
    ),
}
ROWS = pa.table(COLUMNS)


def texts(log):
    """The rows; far times as numbers."""
    found = log.to_arrow()
    for name in ("d", "t"):
        kind = pa.int32() if name == "d" else pa.int64()
        column = found[name].combine_chunks().view(kind)
        found = found.set_column(found.schema.get_field_index(name), name, column)
    return Counter(map(str, found.to_pylist()))


@pytest.fixture
def log(tmp_path):
    """Two files with the rows, which are alike but for a number; some rows are there twice."""
    log = DeltaLog.for_path(str(tmp_path / "t"), VECTORS)
    for number in (0, 0):
        log.append(ROWS.append_column("i", pa.array([number] * len(ROWS), pa.int64())))
    return log


def optimized(log, between):
    """OPTIMIZE by a writer that does not keep the rows in their order."""

    def write(txn, bins, pending, order):
        local = LocalTarget(txn, ProgressReport(txn.table.clock, None, "OPTIMIZE"))
        for files, made in zip(bins, LocalBins()(txn, bins, pending, order), strict=True):
            files_there = ((add, Path(log.table_path, add.path)) for add in made.written)
            new = tuple(replace(add, size=mixed(path)) for add, path in files_there)
            yield replace(made, written=new, after=new, trace=EqualRows(local, files, new))
        between()

    return optimize(
        lambda: log.start_transaction(log.snapshot()),
        lambda *given: list(write(*given)),
        Rearrangement(),
    )


def mixed(path):
    """Write a file again with its rows in another order; how large it is."""
    rows = pq.read_table(path, partitioning=None)
    pq.write_table(rows.take([7 * row % len(rows) for row in range(len(rows))][::-1]), path)
    return path.stat().st_size


@pytest.mark.parametrize(
    "condition",
    ["k = 2", "k = 0 AND s = ''", "k > 3", "f = 0", "s IS NULL", "k IN (1, 4, 5, 6)", "k >= 0"],
)
def test_a_row_with_the_same_values_goes(log, condition):
    before, other = texts(log), DeltaLog.for_path(log.table_path, {"a": "b"})
    done = optimized(log, lambda: other.delete(condition))
    left = texts(log)
    assert done.added.num_files == (0 if condition == "k >= 0" else 1)
    assert left < before
    log.restore(version=1)
    log.delete(condition)
    assert texts(log) == left


def test_one_of_several_equal_rows_goes(log):
    before, other = texts(log), DeltaLog.for_path(log.table_path)
    one = ROWS.slice(2, 1).append_column("i", pa.array([0]))

    def put_one_of_them_back():
        other.delete("k = 2")
        other.append(one)

    done = optimized(log, put_one_of_them_back)
    assert (done.added.num_files, log.snapshot().num_files) == (1, 2)
    assert sum((before - texts(log)).values()) == 1


@pytest.mark.parametrize("cause", ["many", "elsewhere"])
def test_a_bin_is_dropped_whose_rows_can_t_be_found(log, monkeypatch, cause):
    before, other = texts(log), DeltaLog.for_path(log.table_path)
    if cause == "many":
        monkeypatch.setattr(equal_rows, "_MOST_ROWS", 3)
    else:
        monkeypatch.setattr(equal_rows, "_take", lambda wanted, row: False)
    done = optimized(log, lambda: other.delete("k IN (2, 3)"))
    assert done.added.num_files == 0
    assert (before - texts(log)).total() == 4
