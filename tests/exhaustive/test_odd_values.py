"""Odd values without Spark: what is read, skipped and counted is what a look at each row says."""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_tables import OddTable, chunks_of, disagreements, is_read_by_deltalake, spelled
from odd_values import COLUMNS, table_of
from optimist.core import DeltaLog
from optimist.core.predicates import Predicate
from row_model import both, conditions, either, negated

DEFAULTS = "spark.databricks.delta.properties.defaults."
STRUCTS_ONLY = {
    DEFAULTS + "checkpoint.writeStatsAsJson": "false",
    DEFAULTS + "checkpoint.writeStatsAsStruct": "true",
}
MIXED = ("long", "dec38_10", "double", "text", "date", "bool")
"""The columns of a table in which odd values stand beside each other."""
PEERS_BUGS: dict[str, str] = {}
"""Columns that `deltalake` does not read as they are, and why."""


@pytest.fixture(scope="module", params=COLUMNS)
def table(request, tmp_path_factory):
    name = request.param
    path = str(tmp_path_factory.mktemp(name) / "table")
    chunks = [table_of(name, values) for values in chunks_of(COLUMNS[name].values)]
    return name, OddTable.write(path, chunks, STRUCTS_ONLY)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Files of one to five rows, in which each column runs through its values at its own pace."""
    columns = {name: (None, *COLUMNS[name].values) for name in MIXED}
    chunks, start = [], 0
    for size in (1, 2, 3, 5) * 6:
        rows = range(start, start + size)
        arrays = {
            name: pa.array([values[i % len(values)] for i in rows], COLUMNS[name].arrow_type)
            for name, values in columns.items()
        }
        chunks.append(pa.table({"id": pa.array(rows, pa.int64()), **arrays}))
        start += size
    return OddTable.write(str(tmp_path_factory.mktemp("mixed") / "table"), chunks)


@pytest.fixture(scope="module", params=["commits", "checkpoint"])
def read_from(request):
    return request.param


def handle(table, read_from):
    if read_from == "checkpoint":
        table.log.checkpoint()
        log = table.anew()
        assert log.snapshot().segment.checkpoint is not None
        return log
    return table.log


def test_every_value_is_read_as_it_was_written(table, read_from):
    _, odd = table
    assert spelled(handle(odd, read_from).to_arrow().to_pylist()) == spelled(odd.rows)


def test_no_condition_skips_or_miscounts_a_row(table, read_from):
    name, odd = table
    found = disagreements(odd, handle(odd, read_from), conditions(name, COLUMNS[name]))
    assert found == []


TREES = st.recursive(
    st.sampled_from([found for name in MIXED for found in conditions(name, COLUMNS[name])]),
    lambda parts: st.builds(both, parts, parts) | st.builds(either, parts, parts),
    max_leaves=6,
)


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(tree=TREES, is_negated=st.booleans())
def test_no_combination_of_conditions_skips_or_miscounts_a_row(mixed, tree, is_negated):
    assert disagreements(mixed, mixed.log, [negated(tree) if is_negated else tree]) == []


def test_whether_conditions_come_back_from_their_own_text(table):
    name, _ = table
    for condition in conditions(name, COLUMNS[name]):
        predicate = Predicate.parse(condition.sql)
        assert Predicate.parse(str(predicate)) == predicate, condition


def test_deltalake_reads_the_same(table):
    name, odd = table
    assert is_read_by_deltalake(odd) == (name not in PEERS_BUGS), PEERS_BUGS.get(name)


@pytest.mark.parametrize("name", COLUMNS)
def test_no_condition_skips_or_miscounts_a_row_that_deltalake_wrote(tmp_path, name):
    # Its bounds of decimals are doubles, or 64 bits at whose ends they stop.
    values, path = COLUMNS[name].values, tmp_path / "table"
    chunks = [(value,) for value in values[:12]] + [(None, *values)]
    start = 0
    for chunk in chunks:
        ids = pa.array(range(start, start + len(chunk)), pa.int64())
        deltalake.write_deltalake(
            path, table_of(name, chunk).set_column(0, "id", ids), mode="append"
        )
        start += len(chunk)
    log = DeltaLog.for_path(str(path))
    everything = [v for chunk in chunks for v in table_of(name, chunk)[name].to_pylist()]
    by_file = {
        file: tuple(
            {"id": number, name: everything[number]}
            for number in pq.read_table(path / file, columns=["id"])["id"].to_pylist()
        )
        for file in log.files()["path"].to_pylist()
    }
    odd = OddTable(log, by_file)
    assert spelled(log.to_arrow().to_pylist()) == spelled(odd.rows)
    assert disagreements(odd, log, list(conditions(name, COLUMNS[name]))[::2]) == []
