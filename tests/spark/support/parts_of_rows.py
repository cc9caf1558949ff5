"""Reads of a part of the columns, held against a read of all."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from odd_names import quoted


def assert_parts_agree(frame, whole):
    """Columns in other orders, leaves of structs and the bare count are those of all rows."""
    names = frame.columns
    assert frame.count() == whole.num_rows
    for chosen in (names[1::2], names[::-2], [names[-1], names[-1]]):
        part = frame.select(*(sf.col(quoted(name)).alias(f"c{i}") for i, name in enumerate(chosen)))
        told = [whole.column(names.index(name)).to_pylist() for name in chosen]
        assert [column.to_pylist() for column in part.toArrow().columns] == told
    leaves = [path for path in _leaves(frame.schema, ()) if len(path) > 1]
    for half in (leaves[::2], leaves[1::2]):
        if half:
            found = frame.select(*(_column(path, i) for i, path in enumerate(half))).toArrow()
            told = [_values(whole, names, path) for path in half]
            assert [column.to_pylist() for column in found.columns] == told


def _leaves(kind, path):
    for item in kind.fields:
        if isinstance(item.dataType, StructType):
            yield from _leaves(item.dataType, (*path, item.name))
        else:
            yield (*path, item.name)


def _column(path, number):
    return sf.col(".".join(map(quoted, path))).alias(f"c{number}")


def _values(whole: pa.Table, names, path):
    values = whole.column(names.index(path[0])).to_pylist()
    for name in path[1:]:
        values = [None if value is None else value[name] for value in values]
    return values
