"""The files with rows that match a condition, and the positions of these rows (spec 10.15).

A row is identified by the path of its file and its position there. Spark's own bitmap aggregates
collect the positions on the executors: 4 KiB for each run of 32,768 rows with a match. So the
driver gets at most one bit per row, and memory on the executors is bounded.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.touched_files import TouchedFiles
from optimist.spark.rows.places import Places
from optimist.spark.rows.row_shape import quoted

__all__ = ["Matches", "aliased", "distinct_positions", "matches_of"]

_BUCKET_BYTES = 4096
_BUCKET_ROWS = 8 * _BUCKET_BYTES


@dataclass(frozen=True, slots=True)
class Matches:
    """The matching rows of some files.

    Attributes:
        paths: The files, by their paths in the query.
        num_matching: The number of matching rows in all files.
        rows: The positions of the matching rows in each file; None if they were not wanted.
        sums: Other counts, by name.
    """

    paths: pa.Array
    num_matching: int
    rows: tuple[BitMap64, ...] | None
    sums: Mapping[str, int] = field(default_factory=dict)

    def files(self, candidates: pa.Table, known: pa.Array) -> TouchedFiles:
        """Return the candidates that are among the files.

        Args:
            candidates: Rows of `Snapshot.files`.
            known: For each candidate its index in `self.paths`; null if it is not there.
        """
        table = candidates.filter(pc.is_valid(known))
        if self.rows is None:
            return TouchedFiles(table, self.num_matching)
        rows = tuple(self.rows[index] for index in known.drop_null().to_pylist())
        return TouchedFiles(table, self.num_matching, rows)


def aliased(frame: DataFrame, alias: str | None) -> DataFrame:
    """Return the frame under the table's alias, so that conditions may use it."""
    return frame if alias is None else frame.alias(alias)


def matches_of(
    frame: DataFrame,
    places: Places,
    *,
    chosen: str = "true",
    sums: Mapping[str, str] | None = None,
) -> Matches:
    """Run a query, and collect the matching rows and their files.

    All values are SQL, one text for each: an expression built in Python costs a dozen round trips
    to the JVM per step.

    Args:
        frame: Rows of the files; the same row may appear more than once.
        places: The columns with the rows' locations.
        chosen: A condition for the rows that match; never null.
        sums: Other counts of the same pass, by name: aggregates that are summed over groups of
            rows. Rows that do not match count, too.
    """
    more = sums or {}
    keys = {"path": quoted(places.path)}
    values = {"rows": f"count_if({chosen})", **{f"sum {name}": sql for name, sql in more.items()}}
    if places.position is not None:
        number = _position_from_one(places.position)
        keys["bucket"] = f"bitmap_bucket_number({number})"
        values["bits"] = f"CASE WHEN count_if({chosen}) > 0 THEN {_bitmap_sql(number, chosen)} END"
    found = frame.groupBy(*_sql_columns(keys)).agg(*_sql_columns(values)).toArrow()
    totals = {name: _sum_of(found[f"sum {name}"]) for name in more}
    found = found.filter(pc.greater(found["rows"], 0))
    num_matching = _sum_of(found["rows"])
    if places.position is None:
        return Matches(_as_strings(found["path"]), num_matching, None, totals)
    ordered = found.sort_by([("path", "ascending"), ("bucket", "ascending")])
    paths, rows = [], []
    for name, buckets in _by_path(ordered):
        paths.append(name)
        rows.append(_positions_of_buckets(buckets))
    return Matches(pa.array(paths, pa.string()), num_matching, tuple(rows), totals)


def distinct_positions(position: str, condition: str) -> str:
    """Return SQL for `matches_of` that counts the positions of rows matching a condition."""
    return f"bitmap_count({_bitmap_sql(_position_from_one(position), condition)})"


def _sql_columns(texts: Mapping[str, str]) -> list[Column]:
    return [sf.expr(f"{sql} AS {quoted(name)}") for name, sql in texts.items()]


def _position_from_one(position: str) -> str:
    return f"({quoted(position)} + 1)"  # Spark's buckets count from 1


def _bitmap_sql(number: str, condition: str) -> str:
    chosen = f"CASE WHEN {condition} THEN {number} END"
    return f"bitmap_construct_agg(bitmap_bit_position({chosen}))"


def _sum_of(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column, min_count=0).as_py())


def _as_strings(column: pa.ChunkedArray) -> pa.Array:
    return column.cast(pa.string()).combine_chunks()


def _by_path(ordered: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield each path with its rows, which follow each other."""
    runs = pc.run_end_encode(_as_strings(ordered["path"]))
    start = 0
    for path, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield path, ordered.slice(start, end - start)
        start = end


def _positions_of_buckets(buckets: pa.Table) -> BitMap64:
    """Return the positions of one file, whose buckets are counted from 1."""
    found = BitMap64()
    firsts = pc.multiply(pc.subtract(buckets["bucket"], 1), _BUCKET_ROWS).to_pylist()
    for first, bits in zip(firsts, buckets["bits"].to_pylist(), strict=True):
        here = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
        numbers = np.flatnonzero(here).astype(np.uint64) + np.uint64(first)
        found.update(array("Q", numbers.tobytes()))
    return found
