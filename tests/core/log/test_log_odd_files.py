"""Logs as no writer should leave them: odd names, empty files, gaps, no schema."""

import pytest

from naive_log import PROTOCOL, Table, add, busy_table, created, ensure_equal, metadata
from optimist.core.errors import TableError
from optimist.core.log.names import classic_checkpoint_name, commit_name, v2_checkpoint_name


@pytest.mark.parametrize("absent", [{}, {"schemaString": None}])
def test_a_first_metadata_without_a_schema_is_a_table_without_columns(absent):
    bare = {key: value for key, value in metadata().items() if key != "schemaString"} | absent
    table = Table()
    table.commit({"protocol": PROTOCOL}, {"metaData": bare | {"partitionColumns": []}})
    table.commit({"metaData": metadata("m1")}, add("a"))
    log = table.open()
    assert log.snapshot(version=0).schema.names == ()
    snapshot = log.snapshot()
    assert [str(name) for name in snapshot.schema.names] == ["p", "x"]
    assert snapshot.num_files == 1
    table.checkpoint()
    assert table.open().snapshot().schema == snapshot.schema


def test_versions_without_padding_are_read_from_the_first_on():
    table = created()
    table.commit(add("a"))
    table.commit(add("b"))
    for version in range(3):
        path = f"{table.log}/{commit_name(version)}"
        table.put(f"{version}.json", table.store.read_bytes(path))
        table.store.delete(path)
    ensure_equal(table.open().snapshot(), table.model)
    assert table.open().snapshot(version=1).num_files == 1


def test_foreign_and_empty_files_do_no_harm():
    table, _ = busy_table("v2 json")
    for name in ("2.checkpoint.parquet.crc", ".hidden", "x.json", f"{9:020d}.json.tmp", "é"):
        table.put(name, b"?")
    for name in (classic_checkpoint_name(3), v2_checkpoint_name(3, "u", "json"), f"{3:020d}.crc"):
        table.put(name, b"")
    ensure_equal(table.open().snapshot(), table.model)


def test_a_gap_between_checkpoint_and_commits_names_both_versions():
    table, _ = busy_table("multi-part")
    table.commit(add("z"))
    table.store.delete(f"{table.log}/{commit_name(3)}")
    with pytest.raises(TableError) as caught:
        table.open().snapshot()
    assert caught.value.kind == "DELTA_TRUNCATED_TRANSACTION_LOG"
    assert caught.value.fields["missing_version"] == 3
