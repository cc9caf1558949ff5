"""The newest version, where files and hints of the log claim another one."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foreign_tables import multi_part_checkpoint_name
from optimist.core.errors import TableError
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    classic_checkpoint_name,
    commit_name,
    v2_checkpoint_name,
)
from optimist.core.testing import FaultyLogStore
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore

WRITE = Operation.write("Append")
ABSURD = (1 << 63) - 1


def _parquet():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def table(make_table):
    """Versions 0 to 12, with a checkpoint of version 10."""
    table = make_table(store=FaultyLogStore(MemoryLogStore({}))).create()
    for version in range(1, 13):
        table.log.start_transaction().commit([table.add(f"f{version}")], WRITE)
        if version == 10:
            table.log.checkpoint()
    return table


def plant(table, *names, data=b"nonsense"):
    for name in names:
        table.store.put_overwrite(f"{table.log.log_path}/{name}", data)


FILES = [f"f{number}" for number in (1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9)]
JUNK = [
    (classic_checkpoint_name(13),),
    (classic_checkpoint_name(ABSURD),),
    ("9" * 20 + ".checkpoint.parquet",),
    ("9" * 250 + ".json",),
    (v2_checkpoint_name(ABSURD, "6b4e", "json"),),
    (v2_checkpoint_name(999, "6b4e", "parquet"),),
    (multi_part_checkpoint_name(999, 1, 2), multi_part_checkpoint_name(999, 2, 2)),
    tuple(classic_checkpoint_name(version) for version in (998, 999, 5_000, ABSURD)),
]


@pytest.mark.parametrize("data", [b"nonsense", b"PAR1PAR1", b"{}", _parquet()])
@pytest.mark.parametrize("names", JUNK)
def test_what_is_no_checkpoint_hides_no_commits(table, names, data, caplog):
    plant(table, *names, data=data)
    log = table.handle()
    snapshot = log.snapshot()
    assert snapshot.version == 12
    assert sorted(snapshot.files["path"].to_pylist()) == FILES
    assert log.start_transaction().commit([table.add("f13")], WRITE).version == 13
    assert table.handle().snapshot().version == 13
    if len(names[0]) < 60 and not names[0].startswith("9" * 20):
        assert "Remove the checkpoint" in caplog.text
        assert names[-1] in caplog.text


def test_what_is_no_checkpoint_costs_little(table):
    table.store.clear()
    table.handle().snapshot()
    usual = table.store.counts
    plant(table, classic_checkpoint_name(ABSURD))
    table.store.clear()
    table.handle().snapshot()
    found = table.store.counts
    assert found["list_from"] <= usual["list_from"] + 4
    assert found["open_read"] + found["read_bytes"] <= 2 + usual["open_read"] + usual["read_bytes"]


@pytest.mark.parametrize("version", [13, 999, ABSURD])
@pytest.mark.parametrize("is_checkpoint_there", [False, True])
def test_a_hint_at_nothing_costs_one_listing(table, version, is_checkpoint_there):
    plant(table, LAST_CHECKPOINT, data=b'{"version":%d,"size":1}' % version)
    if is_checkpoint_there:
        plant(table, classic_checkpoint_name(version))
    assert table.handle().snapshot().version == 12
    table.log.checkpoint()
    hint = table.store.read_bytes(f"{table.log.log_path}/{LAST_CHECKPOINT}")
    assert b'"version":12' in hint


def test_a_checkpoint_whose_commit_is_gone_still_counts(table):
    table.log.checkpoint()
    table.store.delete(f"{table.log.log_path}/{commit_name(12)}")
    assert table.handle().snapshot().version == 12
    for version in range(12):
        table.store.delete(f"{table.log.log_path}/{commit_name(version)}")
    with pytest.raises(TableError) as caught:
        table.handle().snapshot()
    assert caught.value.kind == "DELTA_LOG_FILE_NOT_FOUND"


def test_a_checkpoint_whose_past_was_cleaned_up_still_counts(table):
    for version in range(10):
        table.store.delete(f"{table.log.log_path}/{commit_name(version)}")
    assert table.handle().snapshot().version == 12
    plant(table, classic_checkpoint_name(ABSURD))
    assert table.handle().snapshot().version == 12


def test_where_the_commits_are_not_all_there_the_checkpoint_is_what_is_missing(table):
    for version in range(11):
        table.store.delete(f"{table.log.log_path}/{commit_name(version)}")
    table.store.delete(f"{table.log.log_path}/{classic_checkpoint_name(10)}")
    plant(table, classic_checkpoint_name(13))
    with pytest.raises(TableError) as caught:
        table.handle().snapshot()
    assert caught.value.kind == "OPTIMIST_MALFORMED_CHECKPOINT"
    assert classic_checkpoint_name(13) in str(caught.value)


def test_a_commit_beyond_a_gap_is_an_error_that_names_both_sides(table):
    plant(table, commit_name(ABSURD))
    with pytest.raises(TableError) as caught:
        table.handle().snapshot()
    assert caught.value.kind == "DELTA_VERSIONS_NOT_CONTIGUOUS"
    assert caught.value.fields["version_before"] == 12
    assert caught.value.fields["version_after"] == ABSURD


def test_an_older_version_is_read_beside_what_is_no_checkpoint(table):
    plant(table, classic_checkpoint_name(999), classic_checkpoint_name(ABSURD))
    log = table.handle()
    assert log.snapshot(version=11).version == 11
    for version in (13, 999, ABSURD, 1 << 63, 10**30):
        with pytest.raises(TableError):
            log.snapshot(version=version)
