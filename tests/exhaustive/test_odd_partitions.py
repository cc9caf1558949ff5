"""Tables partitioned by odd values: each value comes back as it was, and conditions find it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from odd_partitions import NOT_TEXT, PARTITIONS, chosen, parted_twice
from odd_tables import OddTable, disagreements, is_read_by_deltalake, spelled
from odd_values import table_of
from optimist.core import DeltaLog
from optimist.core.data.hive_names import escape_hive, unescape_hive
from optimist.core.data.partition_values import parse_partition_value
from optimist.core.errors import SchemaError
from optimist.core.schema.types import PrimitiveType
from optimist.core.transaction.conflicts.operations import Operation
from row_model import conditions

_SIGNS = "deltalake 1.6 spells negative decimals with a second sign, as -1.-99, and fails on that"
PEERS_BUGS = dict.fromkeys(("dec9", "dec38_10", "dec38_38"), _SIGNS)
"""Columns that `deltalake` does not read as they are, and why."""


@pytest.fixture(scope="module", params=PARTITIONS)
def table(request, tmp_path_factory):
    name = request.param
    chunks = [
        table_of(name, (value,) * size)
        for size in (1, 2)
        for value in (*PARTITIONS[name].values, None)
    ]
    path = str(tmp_path_factory.mktemp(name) / "table")
    written = OddTable.write(path, chunks, partition_by=[name])
    # In a partition, empty is null.
    files = {
        path: tuple({**row, name: None if row[name] in ("", b"") else row[name]} for row in rows)
        for path, rows in written.files.items()
    }
    return name, OddTable(written.log, files)


@pytest.fixture(scope="module", params=["commits", "checkpoint", "parsed checkpoint"])
def read_from(request):
    return request.param


def handle(odd, read_from):
    if read_from == "commits":
        return odd.log
    if read_from == "parsed checkpoint":
        set_property(odd.log, "delta.checkpoint.writeStatsAsStruct", "true")
    odd.log.checkpoint()
    return odd.anew()


def set_property(log, key, value):
    txn = log.start_transaction()
    configuration = {**txn.metadata.configuration, key: value}
    txn.update_metadata(replace(txn.metadata, configuration=configuration))
    txn.commit((), Operation("SET TBLPROPERTIES"))


def test_every_partition_is_read_as_it_was_written(table, read_from):
    _, odd = table
    assert spelled(handle(odd, read_from).to_arrow().to_pylist()) == spelled(odd.rows)


def test_no_condition_skips_or_miscounts_a_partition(table, read_from):
    name, odd = table
    found = disagreements(odd, handle(odd, read_from), conditions(name, PARTITIONS[name]))
    assert found == []


@pytest.mark.parametrize("name", PARTITIONS)
def test_optimize_takes_the_partitions_that_a_condition_names(tmp_path, name):
    log, wrong = parted_twice(str(tmp_path / "table"), name), []
    for condition in conditions(name, PARTITIONS[name]):
        found, wanted = chosen(log, name, condition)
        if found != wanted:
            wrong.append((condition.sql, found, wanted))
    assert wrong == []


def test_deltalake_reads_the_same_partitions(table):
    name, odd = table
    assert is_read_by_deltalake(odd) == (name not in PEERS_BUGS), PEERS_BUGS.get(name)


def test_one_append_puts_each_value_into_its_own_partition(tmp_path):
    for name, column in PARTITIONS.items():
        log = DeltaLog.for_path(str(tmp_path / name))
        values = (*column.values, None) * 2
        log.append(table_of(name, values), partition_by=[name])
        rows = table_of(name, tuple(None if v in ("", b"") else v for v in values))
        assert spelled(log.to_arrow().to_pylist()) == spelled(rows.to_pylist()), name


@pytest.mark.parametrize("value", NOT_TEXT)
def test_binary_that_is_no_text_is_refused_in_a_partition(tmp_path, value):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    with pytest.raises(SchemaError) as caught:
        log.append(table_of("bytes", (b"a", value)), partition_by=["bytes"])
    assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"
    assert not log.table_exists()
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("text", [v for v in PARTITIONS["text"].values if v and v[0] != "_"])
def test_the_name_of_a_directory_tells_its_value(text):
    name = escape_hive(text)
    assert unescape_hive(name) == text
    assert not set(name) & set("\x00/\n")


@pytest.mark.parametrize("text", ["1.1", "3.4028235E38", "1.4E-45", "-1.17549435E-38", "16777217"])
def test_the_text_of_a_float_is_the_float_nearest_to_it(text):
    # A JVM prints the fewest digits that tell a float from its neighbours.
    found = parse_partition_value(text, PrimitiveType("float"))
    assert found == pa.scalar(float(text), pa.float32()).as_py()
