"""Row ids and row commit versions: from the log, and from the files that rows were moved to."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from optimist.core import DeltaLog
from optimist.core.data.parquet import parquet_reader
from optimist.core.errors import SchemaError
from optimist.core.protocol.actions import AddFile, Metadata, Protocol, actions_to_bytes

ID, VERSION = "_metadata.row_id", "_metadata.row_commit_version"
PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}


def table(root, configuration, **mapping):
    """Ten rows as they were written, and five that an update or a compaction moved."""
    item = {"name": "x", "type": "long", "nullable": True, "metadata": mapping}
    schema = json.dumps({"type": "struct", "fields": [item]})
    number = {b"PARQUET:field_id": b"1"}
    field = pa.field("x", pa.int64(), metadata=number)
    written = pa.table([pa.array(range(10), pa.int64())], schema=pa.schema([field]))
    moved = pa.table(
        [pa.array(range(10, 15), pa.int64()), [7, None, 9, None, 11], [None, None, 2, 3, 4]],
        schema=pa.schema(
            [
                field,
                pa.field("_row-id-col-1", pa.int64()),
                pa.field("_row-commit-version-col-1", pa.int64()),
            ]
        ),
    )
    adds = []
    for name, rows, base, version in (("a", written, 100, 5), ("b", moved, 200, 6)):
        root.mkdir(exist_ok=True)
        pq.write_table(rows, root / name, row_group_size=3)
        size = (root / name).stat().st_size
        stats = json.dumps({"numRecords": rows.num_rows})
        add = AddFile(
            name, {}, size, 1, True, stats, base_row_id=base, default_row_commit_version=version
        )
        adds.append(add)
    features = ("domainMetadata", "rowTracking")
    protocol = Protocol(2, 7, None, ("columnMapping", *features))
    (root / "_delta_log").mkdir()
    commit = actions_to_bytes((protocol, Metadata("m", schema, configuration=configuration), *adds))
    (root / "_delta_log" / f"{0:020}.json").write_bytes(commit)
    return DeltaLog.for_path(str(root), {})


def tracked(log, predicate=None):
    rows = log.to_arrow(predicate, ["x", ID, VERSION])
    return sorted(zip(*(rows[name].to_pylist() for name in ("x", ID, VERSION)), strict=True))


MOVED = [(10, 7, 6), (11, 201, 6), (12, 9, 2), (13, 203, 3), (14, 11, 4)]


def test_ids_come_from_the_log_unless_a_row_carries_its_own(tmp_path):
    log = table(tmp_path / "t", PROPERTIES)
    assert tracked(log) == [(x, 100 + x, 5) for x in range(10)] + MOVED
    assert tracked(log, "x = 11 OR x = 4") == [(4, 104, 5), (11, 201, 6)]
    assert log.to_arrow().column_names == ["x"]


def test_deleted_rows_do_not_shift_the_ids_of_others(tmp_path, monkeypatch):
    log = table(tmp_path / "t", PROPERTIES)
    monkeypatch.setattr(parquet_reader, "_read_vector", lambda part, layout: BitMap64([0, 2, 3, 4]))
    assert tracked(log) == [(x, 100 + x, 5) for x in (1, 5, 6, 7, 8, 9)] + MOVED[1:2]


def test_columns_mapped_by_id_leave_the_ids_to_be_found_by_name(tmp_path):
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "other"}
    mode = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "1"}
    log = table(tmp_path / "t", {**PROPERTIES, **mode}, **mapping)
    assert tracked(log)[-5:] == MOVED


def test_a_table_that_tracks_no_rows_has_no_such_columns(tmp_path):
    log = table(tmp_path / "t", {})
    with pytest.raises(SchemaError) as caught:
        log.to_arrow(columns=[ID])
    assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"
