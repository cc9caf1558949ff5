"""Checkpoints and data files with forged footers: no answer of theirs ends the process."""

import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkpoint_tables import V2, Table, add, stats
from forged_footers import with_a_key, with_short_bounds
from optimist.core import DeltaLog
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import RowLayout, read_batches
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from refusals import kind_of

READ_IN_PART = {"optimist.log.cacheBytes": "2", "optimist.checkpoint.rowGroupRows": "2"}


@pytest.mark.parametrize("configuration", [{}, V2], ids=["classic", "sidecar"])
def test_files_are_found_in_a_checkpoint_with_forged_bounds(configuration):
    structs = {"delta.checkpoint.writeStatsAsStruct": "true"}
    table = Table({**configuration, **structs}, options=READ_IN_PART)
    table.commit(*(add(f"f{number}", text=stats(7777, 7777)) for number in range(4)))
    table.checkpoint()
    folder = "_sidecars/" if configuration else ""
    for name in table.names(folder):
        if name.endswith(".parquet"):
            path = f"{table.path}/{folder}{name}"
            forged = with_short_bounds(table.store.read_bytes(path), struct.pack("<q", 7777))
            table.store.put_overwrite(path, forged)
    assert table.load().scan("x = 7777").files.num_rows == 4
    assert table.load().scan("x = 1").files.num_rows == 0


def test_a_file_with_forged_bounds_becomes_part_of_a_table_without_them(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [7777, 8888], "b": [1, 2]}), path)
    path.write_bytes(with_short_bounds(path.read_bytes(), struct.pack("<q", 7777)))
    log = DeltaLog.for_path(str(tmp_path))
    log.convert()
    (text,) = log.snapshot().files["stats"].to_pylist()
    assert '"minValues":{"b":1}' in text
    assert kind_of(log.to_arrow) == "OPTIMIST_UNREADABLE_DATA_FILE"


def test_a_range_of_a_file_with_an_encrypted_column_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), path)
    path.write_bytes(with_a_key(path.read_bytes()))
    layout = RowLayout(StructType((StructField("b", PrimitiveType("string")),)))
    part = FilePart(str(path), end=1000)
    assert kind_of(lambda: list(read_batches(part, layout))) == "OPTIMIST_UNREADABLE_DATA_FILE"
