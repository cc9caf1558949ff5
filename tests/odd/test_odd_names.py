"""Odd names of columns without Spark: written, read, filtered, partitioned by, and parsed."""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odd_names import NAMES, NEED_A_MAPPING, PARTITION_NAMES, quoted
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.core.predicates import Predicate
from optimist.core.predicates.builder import col
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.text import quote_identifier

ALL_INDEXED = {
    "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols": "-1",
}
ROWS = 4
COLUMNS = {name: [f"{number}-{row}" for row in range(ROWS)] for number, name in enumerate(NAMES)}
STRUCTS = [{"y": f"y-{row}", "z": row} for row in range(ROWS)]
DATA = pa.table({"id": range(ROWS), "x": STRUCTS, **COLUMNS})


def anew(log):
    return DeltaLog(log.table_path, log.store, log.options)


@pytest.fixture(scope="module", params=["commits", "checkpoint"])
def log(request, tmp_path_factory):
    log = DeltaLog.for_path(str(tmp_path_factory.mktemp("names") / "table"), ALL_INDEXED)
    for row in range(ROWS):
        log.append(DATA.slice(row, 1))
    if request.param == "checkpoint":
        log.checkpoint()
        log = anew(log)
        assert log.snapshot().segment.checkpoint is not None
    return log


def test_all_columns_are_read_as_they_were_written(log):
    assert log.to_arrow().sort_by("id").to_pylist() == DATA.to_pylist()
    peer = deltalake.DeltaTable(log.table_path).to_pyarrow_table()
    assert peer.sort_by("id").to_pylist() == DATA.to_pylist()


@pytest.mark.parametrize("name", NAMES)
def test_each_column_is_read_and_filtered_alone(log, name):
    assert sorted(log.to_arrow(columns=[name])[name].to_pylist()) == sorted(COLUMNS[name])
    value = COLUMNS[name][2].replace("\\", "\\\\")
    for predicate in (f"{quoted(name)} = '{value}'", col(quoted(name)) == COLUMNS[name][2]):
        assert log.to_arrow(predicate, ["id"]).to_pylist() == [{"id": 2}]
        assert log.count(predicate) == 1
        assert log.files(predicate).num_rows == 1


def test_a_field_and_a_column_of_one_spelling_are_two(log):
    assert log.to_arrow("x.y = 'y-1'", ["id"]).to_pylist() == [{"id": 1}]
    assert log.to_arrow("`x.y` = '0-1'", ["id"]).to_pylist() == [{"id": 1}]
    assert log.to_arrow("x.y = '0-1'").num_rows == log.to_arrow("`x.y` = 'y-1'").num_rows == 0
    only = log.to_arrow("id = 3", ["x.y"]).to_pylist(), log.to_arrow("id = 3", ["x"]).to_pylist()
    assert only == ([{"x.y": "0-3"}], [{"x": STRUCTS[3]}])


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_partitioned_by_each_name(tmp_path, name):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    data = DATA.select(list(dict.fromkeys(("id", "x", "x.y", name))))
    log.append(data, partition_by=[name])
    log.checkpoint()
    for handle in (log, anew(log)):
        assert handle.to_arrow().sort_by("id").to_pylist() == data.to_pylist()
        assert handle.files(col(quoted(name)) == COLUMNS[name][2]).num_rows == 1


def test_a_table_is_partitioned_by_many_odd_names_at_once(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    log.append(DATA, partition_by=PARTITION_NAMES)
    assert log.to_arrow().sort_by("id").to_pylist() == DATA.to_pylist()
    peer = deltalake.DeltaTable(log.table_path).to_pyarrow_table()
    assert peer.sort_by("id").to_pylist() == DATA.to_pylist()


@pytest.mark.parametrize("name", NEED_A_MAPPING)
def test_names_that_need_a_mapping_are_refused_by_name(tmp_path, name):
    log = DeltaLog.for_path(str(tmp_path / "table"))
    with pytest.raises(SchemaError) as caught:
        log.append(pa.table({"id": [1], name: [1]}))
    assert caught.value.kind == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    assert caught.value.fields["columns"] == (name,)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=3))
def test_quoted_names_are_parsed_back(names):
    path = tuple(names)
    assert parse_column_path(".".join(map(quoted, names))) == path
    assert parse_column_path(".".join(map(quote_identifier, names))) == path
    predicate = Predicate.parse(f"{'.'.join(map(quoted, names))} > 1")
    assert predicate.columns() == {path}
    assert Predicate.parse(str(predicate)) == predicate
