"""A MERGE of columns that differ does what deltalake's does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake as real
import pyarrow as pa
import pytest

import optimist.deltalake as ours
from optimist.deltalake.exceptions import DeltaError, SchemaMismatchError

TABLE = pa.table({"k": [1, 2], "v": ["a", "b"], "w": [10, 20]})
SOURCES = {
    "more": pa.table({"k": [2, 3], "v": ["B", "C"], "w": [2, 3], "x": [7, 8]}),
    "fewer": pa.table({"k": [2, 3], "v": ["B", "C"]}),
    "other": pa.table({"k": [2, 3], "v": ["B", "C"], "x": [7, 8]}),
    "of another type": pa.table({"k": [2, 3], "v": ["B", "C"], "w": ["7", "zz"]}),
}
EVOLVES, LENIENT = {"merge_schema": True}, {"error_on_type_mismatch": False}


def merged(module: Any, path: Path, source: pa.Table, **options: Any) -> Any:
    module.write_deltalake(path, TABLE)
    table = module.DeltaTable(path)
    return table.merge(source, "t.k = s.k", source_alias="s", target_alias="t", **options)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows as the real deltalake reads them."""
    return real.DeltaTable(path).to_pyarrow_table().sort_by("k").to_pylist()


@pytest.mark.parametrize("options", [{}, EVOLVES, LENIENT, {**EVOLVES, **LENIENT}], ids=str)
@pytest.mark.parametrize("source", SOURCES)
def test_clauses_for_all_columns_take_those_of_the_source(
    tmp_path: Path, source: str, options: dict[str, Any]
) -> None:
    if source == "of another type" and "error_on_type_mismatch" not in options:
        with pytest.raises(DeltaError):
            upsert(ours, tmp_path, source, options)
        return
    for left_out in (None, ["v"]):
        found = [
            upsert(
                module, tmp_path / f"{module.__name__}-{bool(left_out)}", source, options, left_out
            )
            for module in (real, ours)
        ]
        assert found[1] == found[0]


def upsert(
    module: Any, path: Path, source: str, options: dict[str, Any], left_out: Any = None
) -> list[dict[str, Any]]:
    merge = merged(module, path, SOURCES[source], **options)
    merge.when_matched_update_all(except_cols=left_out)
    merge.when_not_matched_insert_all(except_cols=left_out).execute()
    return rows_of(path)


def test_a_clause_adds_the_column_that_it_sets(tmp_path: Path) -> None:
    found = []
    for module in (real, ours):
        path = tmp_path / module.__name__
        merge = merged(module, path, SOURCES["more"], merge_schema=True)
        merge.when_matched_update({"x": "s.x"})
        merge.when_not_matched_insert({"k": "s.k", "x": "s.x"}).execute()
        found.append(rows_of(path))
    assert found[1] == found[0]
    assert [row["x"] for row in found[1]] == [None, 7, 8]


def test_a_new_column_has_the_value_of_the_clause(tmp_path: Path) -> None:
    merge = merged(ours, tmp_path, SOURCES["more"], merge_schema=True)
    merge.when_matched_update({"x": "s.x + 1"}).execute()
    assert [row["x"] for row in rows_of(tmp_path)] == [None, 8], "deltalake ignores the + 1"


def test_a_column_is_left_out_in_any_case(tmp_path: Path) -> None:
    merge = merged(ours, tmp_path, SOURCES["more"])
    merge.when_matched_update_all(except_cols=["V"]).execute()
    assert [row["v"] for row in rows_of(tmp_path)] == ["a", "b"]


def test_a_value_that_does_not_fit_becomes_null_on_request(tmp_path: Path) -> None:
    values = {"n": "'abc'", "s": "70000", "d": "1234.5", "b": "'x'", "t": "'it''s' -- a comment"}
    schema = pa.schema(
        [("n", pa.int64()), ("s", pa.int16()), ("d", pa.decimal128(4, 1)), ("b", pa.bool_())]
    ).append(pa.field("t", pa.string()))
    rows = pa.Table.from_pylist([{"n": 1}], schema=schema)
    found = []
    for module in (real, ours):
        path = tmp_path / module.__name__
        module.write_deltalake(path, rows)
        table = module.DeltaTable(path)
        with pytest.raises(Exception, match=r"[Cc]ast|overflow|OPTIMIST|DELTA"):
            table.update(values)
        table.update(values, error_on_type_mismatch=False)
        found.append(table.to_pyarrow_table().to_pylist())
    assert found[1] == found[0]
    assert found[0] == [{"n": None, "s": None, "d": None, "b": None, "t": "it's"}]
    table.update(new_values={"n": "abc", "t": "\\ '"}, error_on_type_mismatch=False)
    assert table.to_pyarrow_table().select(["n", "t"]).to_pylist() == [{"n": None, "t": "\\ '"}]


def test_a_merge_of_lenient_values_keeps_not_null(tmp_path: Path) -> None:
    columns = [pa.field("k", pa.int64()), pa.field("w", pa.int64(), nullable=False)]
    ours.DeltaTable.create(tmp_path, pa.schema(columns))
    table = ours.DeltaTable(tmp_path)
    source = pa.table({"k": [1], "w": ["zz"]})
    merge = table.merge(source, "target.k = source.k", error_on_type_mismatch=False)
    with pytest.raises(SchemaMismatchError):
        merge.when_not_matched_insert_all().execute()
    assert table.count() == 0
