"""What the data files of a mapped table must look like, judged from their footers and the log."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core import DeltaLog
from optimist.core.schema.types import (
    COLUMN_ID,
    PHYSICAL_NAME,
    ArrayType,
    MapType,
    StructType,
    walk_fields,
)

_FIELD_ID = b"PARQUET:field_id"
_VARIANT = {"metadata", "value"}  # the parts of a variant are no columns


def assert_files_are_mapped(path):
    """Columns of files have physical names and ids; so have statistics and partitions the names."""
    snapshot = DeltaLog.for_path(str(path), {}).snapshot()
    wanted = dict(_names_and_ids(snapshot.schema, ()))
    ids = [item.metadata[COLUMN_ID] for _, item in walk_fields(snapshot.schema)]
    assert len(set(ids)) == len(ids)
    assert snapshot.properties.max_column_id >= max(ids)
    physical = {item.name: item.metadata[PHYSICAL_NAME] for item in snapshot.schema}
    partitions = {physical[name] for name in snapshot.partition_columns}
    data = {name for name in wanted if name[0] not in partitions}
    assert snapshot.files.num_rows
    for add in snapshot.files.select(["path", "stats"]).to_pylist():
        found = dict(_of_file(pq.read_schema(f"{path}/{add['path'].replace('%20', ' ')}"), ()))
        assert found == {name: wanted[name] for name in found}
        assert set(found) <= data  # a file may be older than a column
        stats = json.loads(add["stats"])
        top = {name[0] for name in data}
        for kind in ("minValues", "maxValues", "nullCount"):
            assert set(stats[kind]) <= top
        assert set(stats["minValues"]) or not stats["numRecords"]
    maps = snapshot.files["partitionValues"].to_pylist(maps_as_pydicts="strict")
    assert {frozenset(values) for values in maps} == {frozenset(partitions)}


def rows_of_deltalake(path):
    """The rows as deltalake's query engine finds them, by the names of the table."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    return pa.table(query.execute("SELECT * FROM t").read_all())


def _names_and_ids(data_type, parents):
    if isinstance(data_type, StructType):
        for item in data_type:
            path = (*parents, item.metadata[PHYSICAL_NAME])
            yield path, item.metadata[COLUMN_ID]
            yield from _names_and_ids(item.data_type, path)
    elif isinstance(data_type, ArrayType):
        yield from _names_and_ids(data_type.element_type, parents)
    elif isinstance(data_type, MapType):
        yield from _names_and_ids(data_type.key_type, parents)
        yield from _names_and_ids(data_type.value_type, parents)


def _of_file(fields, parents):
    for item in fields:
        path = (*parents, item.name)
        yield path, int(item.metadata[_FIELD_ID])
        yield from _inside(item.type, path)


def _inside(data_type, path):
    if pa.types.is_struct(data_type) and set(data_type.names) != _VARIANT:
        yield from _of_file(data_type, path)
    elif pa.types.is_list(data_type):
        yield from _inside(data_type.value_type, path)
    elif pa.types.is_map(data_type):
        yield from _inside(data_type.key_type, path)
        yield from _inside(data_type.item_type, path)
