"""What a write or a conversion gives a new table is what deltalake gives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import deltalake as real
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import optimist.deltalake as ours
from optimist.core import DeltaLog
from optimist.deltalake.exceptions import (
    DeltaError,
    DeltaUsageError,
    NotSupportedError,
    SchemaMismatchError,
)

ROWS = pa.table({"k": [1, 2]})
TEXTS: dict[str, Any] = {
    "name": "prices",
    "description": "what things cost",
    "configuration": {"delta.appendOnly": "false", "delta.logRetentionDuration": None},
}
OTHERS: dict[str, Any] = {
    "name": "x",
    "description": "y",
    "configuration": {"delta.appendOnly": "true"},
}
MODULES = pytest.mark.parametrize("module", [real, ours], ids=["real", "ours"])


def told(path: Path) -> tuple[Any, ...]:
    """The metadata as the real deltalake reads it."""
    found = real.DeltaTable(path).metadata()
    return found.name, found.description, found.configuration


EXPECTED = ("prices", "what things cost", {"delta.appendOnly": "false"})


@MODULES
def test_a_write_names_the_table_that_it_makes_and_no_other(
    tmp_path: Path, module: ModuleType
) -> None:
    module.write_deltalake(tmp_path, ROWS, **TEXTS)
    assert told(tmp_path) == EXPECTED
    for options in ({"mode": "append"}, {"mode": "overwrite", "schema_mode": "overwrite"}):
        module.write_deltalake(tmp_path, ROWS, **options, **OTHERS)
        assert told(tmp_path) == EXPECTED


@MODULES
def test_a_conversion_names_the_table(tmp_path: Path, module: ModuleType) -> None:
    pq.write_table(ROWS, tmp_path / "one.parquet")
    module.convert_to_deltalake(tmp_path, **TEXTS)
    assert told(tmp_path) == EXPECTED
    module.convert_to_deltalake(tmp_path, mode="ignore", **OTHERS)
    assert told(tmp_path) == EXPECTED
    assert real.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("configuration", [{"delta.noSuch": "1"}, {"delta.appendOnly": "maybe"}])
def test_a_property_that_is_wrong_makes_no_table(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    pq.write_table(ROWS, tmp_path / "one.parquet")
    for call in (
        lambda: ours.write_deltalake(tmp_path / "new", ROWS, configuration=configuration),
        lambda: ours.convert_to_deltalake(tmp_path, configuration=configuration),
    ):
        with pytest.raises(DeltaError):
            call()
    assert not ours.DeltaTable.is_deltatable(str(tmp_path))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("argument", ["name", "description", "configuration"])
def test_an_argument_of_another_type_is_refused(tmp_path: Path, argument: str) -> None:
    wrong: dict[str, Any] = {argument: 7}
    with pytest.raises((DeltaUsageError, TypeError), match=argument):
        ours.write_deltalake(tmp_path / "new", ROWS, **wrong)
    assert not (tmp_path / "new").exists()


def test_a_write_keeps_not_null_of_the_rows_columns(tmp_path: Path) -> None:
    columns = [pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())]
    rows = pa.Table.from_pylist([{"k": 1, "v": "a"}], schema=pa.schema(columns))
    nulls = pa.table({"k": pa.array([None], pa.int64()), "v": ["b"]})
    for module in (real, ours):
        path = tmp_path / module.__name__
        module.write_deltalake(path, rows)
        table = module.DeltaTable(path)
        assert [item.nullable for item in table.schema().fields] == [False, True]
        with pytest.raises(module.exceptions.DeltaError):
            module.write_deltalake(path, nulls, mode="append")
        assert module.DeltaTable(path).version() == 0
        module.write_deltalake(path, nulls, mode="overwrite", schema_mode="overwrite")
        assert [item.nullable for item in module.DeltaTable(path).schema().fields] == [True, True]


def test_what_is_nested_and_new_columns_can_be_null(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    rows = pa.Table.from_pylist([{"s": {"x": 1}}], schema=pa.schema([pa.field("s", inner)]))
    ours.write_deltalake(tmp_path, rows)
    wider = pa.schema([pa.field("s", inner), pa.field("n", pa.int64(), nullable=False)])
    added = pa.Table.from_pylist([{"s": {"x": 2}, "n": 1}], schema=wider)
    ours.write_deltalake(tmp_path, added, mode="append", schema_mode="merge")
    assert DeltaLog.for_path(tmp_path).snapshot().schema.as_nullable() == (
        DeltaLog.for_path(tmp_path).snapshot().schema
    )
    assert real.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2


def test_a_null_in_a_column_that_must_not_have_one_makes_no_table(tmp_path: Path) -> None:
    column = pa.field("k", pa.int64(), nullable=False)
    rows = pa.Table.from_arrays([pa.array([1, None])], schema=pa.schema([column]))
    with pytest.raises(SchemaMismatchError):
        ours.write_deltalake(tmp_path, rows)
    assert not ours.DeltaTable.is_deltatable(str(tmp_path))
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_plain_write_makes_columns_that_can_be_null(tmp_path: Path) -> None:
    column = pa.field("k", pa.int64(), nullable=False)
    DeltaLog.for_path(tmp_path).append(pa.table({"k": [1]}, schema=pa.schema([column])))
    assert DeltaLog.for_path(tmp_path).snapshot().schema.fields[0].nullable


def test_a_table_gets_another_name_and_keeps_the_rest(tmp_path: Path) -> None:
    for module in (real, ours):
        path = tmp_path / module.__name__
        module.write_deltalake(path, ROWS, **TEXTS)
        table = module.DeltaTable(path)
        table.alter.set_table_name("cost")
        assert (table.metadata().name, table.version(), table.metadata().id) == (
            "cost",
            1,
            module.DeltaTable(path, version=0).metadata().id,
        )
        assert told(path) == ("cost", *EXPECTED[1:])
        assert table.history(1)[0]["operation"] == "UPDATE TABLE METADATA"
        for wrong in ("", "x" * 256):
            with pytest.raises((ValueError, module.exceptions.DeltaError)):
                table.alter.set_table_name(wrong)
        assert module.DeltaTable(path).version() == 1


class Made(Sequence[Any]):
    """Batches that are made when they are asked for, and whose number nobody knows."""

    def __init__(self, *columns: dict[str, Any]) -> None:
        self._columns = columns

    def __iter__(self) -> Iterator[Any]:
        return (pa.record_batch(each) for each in self._columns)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


def test_batches_are_made_as_they_are_written(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, Made({"k": [1, 2]}, {"k": [3]}))
    assert sorted(real.DeltaTable(tmp_path).to_pyarrow_table()["k"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize(
    "batches",
    [[], b"k", [1], [{"k": [1]}], Made({"k": [1]}, {"k": ["a"]}), Made({"k": [1]}, {"K": [1]})],
    ids=["none", "bytes", "numbers", "dicts", "another type", "another name"],
)
def test_what_is_no_batches_makes_no_table(tmp_path: Path, batches: Any) -> None:
    with pytest.raises((DeltaError, TypeError), match=r"data|batches"):
        ours.write_deltalake(tmp_path, batches)
    assert not ours.DeltaTable.is_deltatable(str(tmp_path))
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_rule_of_a_generated_column_is_not_lost_in_a_write(tmp_path: Path) -> None:
    rule = {"delta.generationExpression": "5"}
    schema = pa.schema([pa.field("k", pa.int64()), pa.field("g", pa.int64(), metadata=rule)])
    rows = pa.table([[1], [5]], schema=schema)
    with pytest.raises(NotSupportedError, match="generated columns"):
        ours.write_deltalake(tmp_path, rows)
    table = ours.DeltaTable.create(tmp_path, ours.Schema.from_arrow(schema))
    ours.write_deltalake(table, rows, mode="append")
    with pytest.raises(NotSupportedError, match="generated columns"):
        ours.write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")
    assert table.to_pyarrow_table().to_pylist() == [{"k": 1, "g": 5}]
    ours.write_deltalake(tmp_path / "plain", pa.table({"k": [1]}))
    plain = ours.DeltaTable(tmp_path / "plain")
    with pytest.raises(NotSupportedError, match="generated columns"):
        plain.merge(rows, "source.k = target.k", merge_schema=True)
