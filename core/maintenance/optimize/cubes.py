"""The files of a clustered table that OPTIMIZE writes again (spec 10.14, 6.3).

An OPTIMIZE arranges the files of a bin together. Its new files form a cube, and each is tagged with
the cube's id and the clustering columns, as delta-spark tags them. Later runs merge the cube with
newer files until it is large enough, and then leave it alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.schema.schema_edits import path_text
from optimist.core.schema.stats_property import ColumnPath
from optimist.core.schema.types import StructType
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.values.foreign_json import parse_json
from optimist.core.values.map_texts import values_of_key

__all__ = ["PROVIDER", "Cubes", "cube_tags"]

PROVIDER = "liquid"
"""The `clusteringProvider` of clustered files, as delta-spark writes it."""
_ID, _COLUMNS = "ZCUBE_ID", "ZCUBE_ZORDER_BY"


def cube_tags(cube: str, columns: Sequence[ColumnPath]) -> Mapping[str, str]:
    """Return the tags for a file of a cube.

    Args:
        cube: The id of the cube.
        columns: The logical paths of the clustering columns.
    """
    return {_ID: cube, _COLUMNS: _columns_text(columns)}


@dataclass(frozen=True, slots=True)
class Cubes:
    """The files of a table with their cubes.

    Attributes:
        files: Rows of `Snapshot.files`.
        ids: The cube id of each file; null if it is in no cube.
        is_ours: Whether each file may be clustered with others: it is in no cube, or in a cube by
            the same columns. All others need `OPTIMIZE FULL`.
    """

    files: pa.Table
    ids: pa.Array
    is_ours: pa.Array

    @classmethod
    def of(cls, files: pa.Table, columns: Sequence[ColumnPath]) -> Cubes:
        """Find the cubes of files in a table with these clustering columns."""
        tags = files["tags"].combine_chunks()
        ids, by = (values_of_key(tags, name) for name in (_ID, _COLUMNS))
        in_cube = pc.and_(pc.is_valid(ids), pc.is_valid(by))
        texts = by.dictionary_encode()
        wanted = json.loads(_columns_text(columns))
        is_same = pa.array(
            [_parse_columns(text) == wanted for text in texts.dictionary.to_pylist()]
        )
        same = pc.fill_null(is_same.cast(pa.bool_()).take(texts.indices), False)
        provider = files["clusteringProvider"].combine_chunks()
        known = pc.fill_null(pc.equal(provider, PROVIDER), True)
        is_ours = pc.and_(known, pc.or_(pc.invert(in_cube), same))
        return cls(files, pc.if_else(in_cube, ids, None), is_ours)

    def worth_clustering(self, *, stable_bytes: int, is_full: bool) -> pa.Table:
        """Return the files to write again.

        Args:
            stable_bytes: A cube with at least this many bytes of live rows is left alone.
            is_full: Whether to write files again that are clustered by other columns.
        """
        found = pa.table({"id": self.ids, "size": _live_bytes(self.files)}).filter(self.is_ours)
        cubes = found.group_by("id").aggregate([("size", "sum")])
        small = cubes.filter(pc.less(cubes["size_sum"], stable_bytes))["id"].drop_null()
        is_loose = pc.is_null(self.ids)
        merged = pc.and_(self.is_ours, pc.or_(is_loose, pc.is_in(self.ids, value_set=small)))
        others = pc.invert(self.is_ours)
        if is_full and others.true_count:
            return self.files.filter(pc.or_(merged, others))
        is_done = len(small) <= 1 and not pc.and_(self.is_ours, is_loose).true_count
        return self.files.slice(0, 0) if is_done else self.files.filter(merged)


def _live_bytes(files: pa.Table) -> pa.ChunkedArray:
    """Return the live bytes of each file, as doubles, which can't overflow."""
    num_rows = FileStatistics(files, StructType()).num_records
    among = pc.max_element_wise(num_rows, 1, skip_nulls=False).cast(pa.float64())
    share = pc.divide(live_rows(files, num_rows).cast(pa.float64()), among)
    return pc.multiply(files["size"].cast(pa.float64()), pc.fill_null(share, 1.0))


def _columns_text(columns: Sequence[ColumnPath]) -> str:
    return json.dumps([path_text(path) for path in columns], separators=(",", ":"))


def _parse_columns(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return None
