"""Texts that are copied as numbers into a dictionary, against the same texts read as such."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.data.column_shape import is_text_dictionary
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.parquet_reader import RowLayout, read_batches
from optimist.core.data.parquet.text_dictionaries import (
    joined_rows,
    rows_at_once,
    stored_by_dictionary,
    with_plain_texts,
)
from optimist.core.local import row_writer
from optimist.core.schema.types import PrimitiveType, StructField, StructType

ODD = ["", " ", None, "a", "A", "é", "e\u0301", "\U0001f600", "a\x00b", "z" * 300]
REPEATED = pa.array(ODD * 500, pa.string())
UNIQUE = pa.array([f"no two are the same, not even {number}" for number in range(len(REPEATED))])
NUMBERS = pa.array(range(len(REPEATED)))
TABLE = pa.table({"n": NUMBERS, "repeated": REPEATED, "unique": UNIQUE})
TEXTS = ("repeated", "unique")


def test_only_texts_whose_dictionary_is_small_are_read_as_numbers():
    assert stored_by_dictionary(_file(TABLE)) == ["repeated"]
    assert stored_by_dictionary(_file(TABLE, use_dictionary=False)) == []
    inside = pa.table({"s": pa.StructArray.from_arrays([REPEATED], ["repeated"]), "s.x": REPEATED})
    assert stored_by_dictionary(_file(inside)) == ["s.x"]
    assert stored_by_dictionary(_file(pa.table({"b": REPEATED.cast(pa.binary())}))) == []


@pytest.mark.parametrize("batch_rows", [7, 1000, 1 << 20])
@pytest.mark.parametrize("limit", [64, 1 << 20])  # the smaller makes Arrow give its dictionary up
def test_rows_read_with_dictionaries_are_the_rows(tmp_path, batch_rows, limit):
    path = str(tmp_path / "f.parquet")
    pq.write_table(TABLE, path, row_group_size=1700, dictionary_pagesize_limit=limit)
    columns = tuple(StructField(name, PrimitiveType("string")) for name in ("n", *TEXTS))
    schema = StructType((StructField("n", PrimitiveType("long")), *columns[1:]))
    layout = RowLayout(schema, batch_rows=batch_rows, keeps_dictionaries=True)
    found = [pa.Table.from_batches([batch]) for batch in read_batches(FilePart(path), layout)]
    assert with_plain_texts(joined_rows(found)).combine_chunks() == TABLE
    assert {is_text_dictionary(each.schema.field("repeated").type) for each in found} == {True}


@pytest.mark.parametrize(
    "forms", [("numbers", "texts"), ("texts", "numbers"), ("numbers", "numbers"), ("texts",)]
)
@pytest.mark.parametrize("chosen", [None, pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_parts_in_several_forms_become_one_table_in_one_form(forms, chosen):
    parts = [_in_form(TABLE.slice(1000 * at, 900), form) for at, form in enumerate(forms)]
    schema = None if chosen is None else _with_type(TABLE.schema, chosen)
    found = joined_rows(parts, schema)
    assert with_plain_texts(found) == pa.concat_tables(map(with_plain_texts, parts))
    assert schema is None or found.schema == schema


def test_values_that_do_not_repeat_are_written_as_texts():
    found = joined_rows([_in_form(TABLE, "numbers")])
    assert found.schema.field("unique").type == pa.string()
    assert is_text_dictionary(found.schema.field("repeated").type)


def test_arrow_encodes_few_rows_at_a_time_where_a_row_is_wide():
    narrow = pa.table({"t": pa.array(["a", "b"] * 5000).dictionary_encode()})
    assert rows_at_once(narrow) == 8192
    wide = narrow.append_column("w", pa.array(["x" * 1000] * 10_000))
    assert rows_at_once(wide) is None
    assert rows_at_once(TABLE) is None
    assert rows_at_once(narrow.slice(0, 0)) is None


@pytest.mark.parametrize("group_bytes", [1, 16 << 20])
def test_files_of_several_forms_are_written_again_by_several_writers(
    tmp_path, monkeypatch, group_bytes
):
    monkeypatch.setattr(row_writer, "_LEAST_TOGETHER", 1)
    monkeypatch.setattr(row_writer, "_GROUP_BYTES", group_bytes)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    log = DeltaLog.for_path(str(tmp_path / "t"))
    mixed = TABLE.set_column(1, "repeated", UNIQUE)
    for start, rows in enumerate((TABLE, mixed, TABLE, mixed)):
        log.append(rows.set_column(0, "n", pa.array(range(10_000 * start, 10_000 * start + 5000))))
    before = log.to_arrow().to_pylist()
    log.delete("n % 100 = 7")
    log.update(
        set={"repeated": "concat(unique, '!')"}, predicate="n % 100 = 8 AND repeated IS NOT NULL"
    )
    expected = [
        row | {"repeated": f"{row['unique']}!"}
        if row["n"] % 100 == 8 and row["repeated"] is not None
        else row
        for row in before
        if row["n"] % 100 != 7
    ]
    assert _sorted(log.to_arrow().to_pylist()) == _sorted(expected)
    assert log.count(f"repeated = '{UNIQUE[8]}!'") == 4
    assert log.files().num_rows == 2


def test_texts_with_a_declared_length_are_checked_where_rows_are_written_again(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create([("n", "bigint"), ("t", "char(3)")])
    log.append(pa.table({"n": [1, 2, 3], "t": ["a", "b", "a"]}))
    log.update(set={"n": "n + 1"}, predicate="n > 1")
    assert _sorted(log.to_arrow().to_pylist()) == [
        {"n": 1, "t": "a  "},
        {"n": 3, "t": "b  "},
        {"n": 4, "t": "a  "},
    ]


def _file(rows: pa.Table, **settings: object) -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **settings)
    return pq.ParquetFile(sink)


def _with_type(schema: pa.Schema, chosen: pa.DataType) -> pa.Schema:
    return pa.schema([item.with_type(chosen) if item.name in TEXTS else item for item in schema])


def _in_form(rows: pa.Table, form: str) -> pa.Table:
    if form == "texts":
        return rows
    for name in TEXTS:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, rows[name].dictionary_encode())
    return rows


def _sorted(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: row["n"])
