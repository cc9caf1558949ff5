"""Rows of the table and changes go to files of their own, and come back as what they were."""

from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.data.change_files import RowFiles
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.runtime.clock import SystemClock
from optimist.core.transaction.conflicts.operations import Operation

FEED = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
KINDS = ("insert", "delete", "update_preimage", "update_postimage")
SCHEMA = pa.schema([("p/q", pa.string()), ("`i.d`", pa.int64()), (".d", pa.decimal128(38, 2))])
ROWS = st.tuples(
    st.sampled_from([None, "a", "b=c", "ü %2F", "__HIVE_DEFAULT_PARTITION__"]),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.decimals(-(10**36) + 1, 10**36 - 1, places=2),
    st.sampled_from([None, *KINDS]),
)


def files_of(path, rows, partition_by, *, batch=1000):
    """Writes the rows to the files of one task; the log, and the actions."""
    log = DeltaLog.for_path(str(path), FEED)
    log.append(SCHEMA.empty_table(), partition_by=partition_by)
    spec = FileSpec.of(log.table_path, log.metadata, log.options)
    files = RowFiles(spec, SystemClock(), task=3)
    for start in range(0, len(rows), batch):
        *columns, kinds = zip(*rows[start : start + batch], strict=True)
        arrays = [pa.array(*pair) for pair in zip(columns, SCHEMA.types, strict=True)]
        part = pa.Table.from_arrays(arrays, schema=SCHEMA)
        files.write(part, pa.chunked_array([kinds], pa.string()))
    return log, files


@given(st.lists(ROWS, max_size=12), st.sampled_from([(), ("p/q",)]), st.integers(1, 5))
def test_the_table_has_the_rows_and_the_feed_the_changes(
    tmp_path_factory, rows, partition_by, batch
):
    log, files = files_of(tmp_path_factory.mktemp("t") / "t", rows, partition_by, batch=batch)
    adds, changes = files.close()
    txn = log.start_transaction()
    txn.commit((*adds, *changes), Operation.update([]))

    def counted(table):
        return Counter(tuple(row.values()) for row in table.to_pylist())

    own = Counter(row[:-1] for row in rows if row[-1] is None)
    assert counted(log.to_arrow()) == own
    assert files.num_rows == own.total()
    recorded = Counter(row for row in rows if row[-1] is not None)
    columns = [*SCHEMA.names, "_change_type"]
    found = counted(log.changes(columns=columns, starting_version=1))
    derived = Counter({(*row, "insert"): count for row, count in own.items()})
    assert found == (recorded or derived)


def test_change_files_stand_below_their_directory_and_hold_their_kind(tmp_path):
    rows = [("a", 1, None, None), ("a", 1, None, "insert"), ("b", 2, None, "delete")]
    log, files = files_of(tmp_path / "t", rows, ("p/q",))
    adds, changes = files.close()
    assert [add.partition_values for add in adds] == [{"p/q": "a"}]
    assert [(item.partition_values, item.data_change) for item in changes] == [
        ({"p/q": "a"}, False),
        ({"p/q": "b"}, False),
    ]
    for item in changes:
        place = Path(log.table_path, unquote(item.path))
        assert place.parent.parent == Path(log.table_path, "_change_data")
        assert place.name.startswith("cdc-00003-")
        assert item.size == place.stat().st_size
        assert pq.read_schema(place).names == ["`i.d`", ".d", "_change_type"]


def test_a_write_that_is_given_up_leaves_no_file(tmp_path):
    log, files = files_of(tmp_path / "t", [("a", 1, None, None), ("a", 1, None, "insert")], ())
    files.abort()
    assert not list(Path(log.table_path).rglob("*.parquet"))


@pytest.mark.parametrize("kind", [None, "delete"])
def test_without_rows_of_a_sort_there_is_no_file_of_it(tmp_path, kind):
    _, files = files_of(tmp_path / "t", [("a", 1, None, kind)], ())
    assert [len(found) for found in files.close()] == ([1, 0] if kind is None else [0, 1])
