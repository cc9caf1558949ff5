"""Rows that took the names of a table's columns by position go into no table with other columns."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from optimist.core import DeltaLog
from optimist.core.commands.create.create import create_table
from optimist.core.errors import TableError, TableNotFoundError
from optimist.core.requests.table_definition import CreateMode, TableDefinition, columns_of
from optimist.core.schema.types import StructField, StructType
from optimist.spark.commands.writing import inserted_write
from optimist.spark.commands.writing.inserted_rows import InsertedRows
from optimist.spark.commands.writing.write_options import WriteRequest

REQUEST = replace(WriteRequest.of("append", None, {}), needs_table=True)
MADE = {"a": "integer", "b": "integer"}


def make(path, columns):
    schema = StructType(tuple(StructField(*item) for item in columns.items()))
    definition = TableDefinition(columns=columns_of(schema), mode=CreateMode.CREATE_OR_REPLACE)
    create_table(DeltaLog.for_path(path).start_transaction, definition)


@pytest.fixture
def inserted(tmp_path, monkeypatch):
    """What shaped the rows, and the versions at which they are written."""
    path, taken = str(tmp_path / "t"), []
    make(path, MADE)
    shaped = InsertedRows(None, DeltaLog.for_path(path).snapshot(), "t", merges_schema=False)

    def write(*_, begun):
        taken.append(begun.txn.read_version)

    monkeypatch.setattr(inserted_write, "open_target", lambda _, path, __: DeltaLog.for_path(path))
    monkeypatch.setattr(inserted_write, "write_rows", write)
    return shaped, path, taken


@pytest.mark.parametrize("columns", [MADE, {**MADE, "c": "string"}])
def test_rows_are_written_where_the_columns_are_the_same_or_more(inserted, columns):
    shaped, path, taken = inserted
    make(path, columns)
    inserted_write.write_inserted(shaped, None, path, REQUEST)
    assert taken == [1]


@pytest.mark.parametrize(
    "columns",
    [{"b": "integer", "a": "integer"}, {"a": "integer", "b": "long"}, {"a": "integer"}],
)
@pytest.mark.parametrize("is_dropped", [False, True])
def test_rows_are_not_written_where_the_columns_are_others(inserted, columns, is_dropped):
    shaped, path, taken = inserted
    if is_dropped:
        shutil.rmtree(path)
    make(path, columns)
    with pytest.raises(TableError, match="Nothing was written") as caught:
        inserted_write.write_inserted(shaped, None, path, REQUEST)
    assert (caught.value.kind, taken) == ("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", [])


def test_rows_are_not_written_where_the_table_is_gone(inserted):
    shaped, path, taken = inserted
    shutil.rmtree(path)
    with pytest.raises(TableNotFoundError):
        inserted_write.write_inserted(shaped, None, path, REQUEST)
    assert taken == []
