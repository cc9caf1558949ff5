"""Texts that are copied as numbers into a dictionary, against the same texts read as such."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.data.column_shape import is_text_dictionary
from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet import parquet_reader, text_dictionaries
from optimist.core.data.parquet.parquet_reader import RowLayout, read_batches
from optimist.core.data.parquet.text_dictionaries import (
    StoredDictionaries,
    in_plain_pieces,
    joined_rows,
    rows_at_once,
    with_plain_texts,
)
from optimist.core.local import row_writer, target, update
from optimist.core.schema.types import PrimitiveType, StructField, StructType

ODD = ["", " ", None, "a", "A", "é", "e\u0301", "\U0001f600", "a\x00b", "z" * 300]
REPEATED = pa.array(ODD * 500, pa.string())
UNIQUE = pa.array([f"no two are the same, not even {number}" for number in range(len(REPEATED))])
NUMBERS = pa.array(range(len(REPEATED)))
TABLE = pa.table({"n": NUMBERS, "repeated": REPEATED, "unique": UNIQUE})
TEXTS = ("repeated", "unique")
OF_TWO_ENCODINGS = base64.b64decode(
    """
    UEFSMRUEFQoVMhXv8p7zCzwVAhUAAAAfiwgAAAAAAAAAY2RgYCgDAKQKJEIFAAAAFQYVBhUuFdSQy9ELTBXIARUAFcgBFR
    AVABUAEQAAH4sIAAAAAAAAAGM4wQgAwrRliwMAAAAVBhUGFS4V1JDL0QtMFcgBFQAVyAEVEBUAFQARAAAfiwgAAAAAAAAA
    YzjBCADCtGWLAwAAABUGFaADFfQBFcbKgdMMTBXIARUAFcgBFQ4VABUAEQAAH4sIAAAAAAAAAGtgZElhYGRmYmL0maTSOE
    nFc4GKp5BGqGhYaCISwc7AwNAAVMnByszMzHRjW+7ibbm3V+TeNsu6va33FjauPQMElBsZGBgaGZuYmplbWBoimEYIpjGC
    aYJgmiKYZgimOYJpgWBaIpgAC0Lan9AAAAAVBhWgAxX0ARWXt4bBDUwVyAEVABXIARUOFQAVABEAAB+LCAAAAAAAAABrYG
    RJYWBkZmJi9Jmk0jhJxXOBiqeQRqhoWGgiEsHOwMDQAFTJwcrMzMx0Y1vu4m25t1fk3jbLur2t9xY2rj0DBJQbGxgYGhmb
    mJqZW1gaIphGCKYxgmmCYJoimGYIpjmCaYFgWiKYAKWSZAnQAAAAGUECAgICGUgBdgF2BHcyMDAEdzMwMBlIAXYBdgR3Mj
    k5BHczOTkVAhlGAAAAAAAZTBZgFWoWAAAWygEVahbIAQAWtAIVtAIWkAMAFugEFbQCFtgEABlGyAHIAaAGoAYAFQIZLEgM
    c3Bhcmtfc2NoZW1hFQIAFQwlABgBdCUATBwAAAAWoAYZHBkcJgAcFQwZNQAQDhkYAXQVBBagBhb0CBaUByZgJggcNgAoBH
    czOTkYAXYAGTwVBBUAFQIAFQYVEBUEABUGFQ4VBAA8FtAPAAAW+gcVYhacBxVeABb0CBagBiYIFpQHFAAAGSwYGG9yZy5h
    cGFjaGUuc3BhcmsudmVyc2lvbhgFNC4zLjAAGClvcmcuYXBhY2hlLnNwYXJrLnNxbC5wYXJxdWV0LnJvdy5tZXRhZGF0YR
    hYeyJ0eXBlIjoic3RydWN0IiwiZmllbGRzIjpbeyJuYW1lIjoidCIsInR5cGUiOiJzdHJpbmciLCJudWxsYWJsZSI6ZmFs
    c2UsIm1ldGFkYXRhIjp7fX1dfQAYSnBhcnF1ZXQtbXIgdmVyc2lvbiAxLjE3LjAgKGJ1aWxkIGZhYzBjNzQ2NTMyZTEzM2
    JlYjkyOGE3ZjZhN2U1N2I1MTBiNDc3YTEpGRwcAAAAhgEAAFBBUjE=
    """
)
"""A file of Spark with `parquet.writer.version` v2.

It has 200 times `v` by a dictionary, then w200 to w399 as DELTA_BYTE_ARRAY.
"""


@pytest.fixture(autouse=True)
def files_of_few_rows_are_read_as_large_ones_are(monkeypatch):
    monkeypatch.setattr(parquet_reader, "_FEW_ROWS", 0)


def test_texts_of_a_file_of_few_rows_are_read_as_such(tmp_path, monkeypatch):
    path = str(tmp_path / "f.parquet")
    pq.write_table(TABLE, path)
    schema = StructType((StructField("repeated", PrimitiveType("string")),))
    for few, is_number in ((5000, True), (5001, False)):
        monkeypatch.setattr(parquet_reader, "_FEW_ROWS", few)
        layout = RowLayout(schema, keeps_dictionaries=True)
        [found] = read_batches(FilePart(path), layout)
        assert is_text_dictionary(found.schema.field("repeated").type) is is_number


def test_only_texts_whose_dictionary_is_small_are_read_as_numbers():
    assert _stored_by_dictionary(TABLE) == {"repeated": [len(ODD) - 1]}
    assert _stored_by_dictionary(TABLE, use_dictionary=False) == {}
    inside = pa.table({"s": pa.StructArray.from_arrays([REPEATED], ["repeated"]), "s.x": REPEATED})
    assert list(_stored_by_dictionary(inside)) == ["s.x"]
    assert _stored_by_dictionary(pa.table({"b": REPEATED.cast(pa.binary())})) == {}


def test_texts_in_an_encoding_that_arrow_reads_only_as_such_are_read_as_such(tmp_path):
    path = tmp_path / "f.parquet"
    path.write_bytes(OF_TWO_ENCODINGS)
    assert _counts_in(pa.py_buffer(OF_TWO_ENCODINGS)) == {}
    schema = StructType((StructField("t", PrimitiveType("string")),))
    layout = RowLayout(schema, keeps_dictionaries=True)
    found = pa.Table.from_batches(read_batches(FilePart(str(path)), layout))
    assert found["t"].to_pylist() == ["v"] * 200 + [f"w{number}" for number in range(200, 400)]


@pytest.mark.parametrize("batch_rows", [4, 1000])
def test_a_text_that_a_dictionary_has_twice_is_read_as_such(tmp_path, batch_rows):
    path = tmp_path / "f.parquet"
    settings = {"compression": "none", "write_statistics": False, "store_schema": False}
    rows = ["first", "third"] * 5 + ["first", "other", "last!"] * 9
    pq.write_table(pa.table({"t": rows}), path, row_group_size=10, **settings)
    path.write_bytes(path.read_bytes().replace(b"other", b"first"))  # Arrow keeps one of the two
    layout = RowLayout(StructType((StructField("t", PrimitiveType("string")),)))
    layout = replace(layout, batch_rows=batch_rows, keeps_dictionaries=True)
    found = [pa.Table.from_batches([each]) for each in read_batches(FilePart(str(path)), layout)]
    forms = [is_text_dictionary(each.schema.field("t").type) for each in found]
    assert (forms[0], forms[-1]) == (True, False)
    texts = with_plain_texts(joined_rows(found))["t"].to_pylist()
    assert texts == [text.replace("other", "first") for text in rows]


@pytest.mark.parametrize("number", [1, -1])
def test_a_number_beyond_its_dictionary_is_refused(number):
    beyond = pa.DictionaryArray.from_arrays(pa.array([0, number], pa.int32()), ["a"], safe=False)
    with pytest.raises(pa.ArrowInvalid):
        list(in_plain_pieces(pa.record_batch({"t": beyond})))


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


@pytest.mark.parametrize("batch_rows", [7, 1000, 1 << 20])
def test_texts_beyond_a_full_dictionary_are_read_as_such(tmp_path, batch_rows):
    path = tmp_path / "f.parquet"
    texts = ["repeated"] * 4000 + [f"text {number}" for number in range(4000)]
    settings = {"dictionary_pagesize_limit": 500, "write_batch_size": 10}
    pq.write_table(pa.table({"t": texts}), path, **settings)
    layout = RowLayout(StructType((StructField("t", PrimitiveType("string")),)))
    layout = replace(layout, batch_rows=batch_rows, keeps_dictionaries=True)
    assert list(_counts_in(pa.py_buffer(path.read_bytes()))) == ["t"]
    found = [pa.Table.from_batches([each]) for each in read_batches(FilePart(str(path)), layout)]
    assert not is_text_dictionary(found[-1].schema.field("t").type)
    assert with_plain_texts(joined_rows(found))["t"].to_pylist() == texts


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


@pytest.mark.parametrize("numbers", [[], [None], [None, 1], [3, 1, None], [0, 1, 2, 3], [1, 1]])
def test_joined_rows_have_a_dictionary_of_their_own_texts(numbers):
    texts = pa.array(["a", "b", "c", "d"])
    values = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), texts)
    rows = pa.table({"t": pa.chunked_array([values, values[:1]])})
    found = joined_rows([rows], rows.schema)
    assert found["t"].to_pylist() == rows["t"].to_pylist()
    assert {*found["t"].chunk(0).dictionary.to_pylist()} == {*rows["t"].to_pylist()} - {None}


@pytest.mark.parametrize("operation", ["DELETE", "UPDATE", "REORG"])
def test_a_text_that_no_row_has_any_more_is_in_no_new_file(tmp_path, operation):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    vectors = {"delta.enableDeletionVectors": "true"} if operation == "REORG" else {}
    log.create([("n", "bigint"), ("t", "string")], properties=vectors)
    texts = ["Deleted" if number == 7 else "a" if number % 2 else None for number in range(1000)]
    log.append(pa.table({"n": range(1000), "t": texts}))
    if operation == "DELETE":
        log.delete("n = 7")
    elif operation == "UPDATE":
        log.update(set={"t": "'b'"}, predicate="n = 7")
    else:
        log.delete("n = 7")
        log.purge()
    [file] = log.files().to_pylist()
    stats = json.loads(file["stats"])
    assert (stats["minValues"]["t"], stats["nullCount"]["t"]) == ("a", 500)
    assert b"Deleted" not in Path(log.table_path, file["path"]).read_bytes()


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
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
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


def test_an_update_reads_few_rows_at_a_time_where_long_texts_repeat(tmp_path, monkeypatch):
    monkeypatch.setattr(text_dictionaries, "_MOST_PLAIN_BYTES", 1 << 14)
    monkeypatch.setattr(update, "with_plain_texts", _with_short_arrays)
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(TABLE)
    log.update(set={"n": "n + 1"})
    log.update(set={"n": "n + 1"}, predicate="n > 100")
    expected = TABLE["repeated"].to_pylist()
    assert [row["repeated"] for row in _sorted(log.to_arrow().to_pylist())] == expected


def test_row_groups_stay_small_where_long_texts_repeat_in_a_later_file(tmp_path, monkeypatch):
    monkeypatch.setattr(row_writer, "_GROUP_BYTES", 1 << 17)
    monkeypatch.setattr(target, "_BATCH_ROWS", 1000)
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"n": NUMBERS, "t": UNIQUE}))
    log.append(pa.table({"n": range(10_000), "t": ["x" * 1000, "y" * 1000] * 5000}))
    log.delete("n = 1")
    [file] = log.files().to_pylist()
    footer = pq.read_metadata(Path(log.table_path, file["path"]))
    sizes = [footer.row_group(at).total_byte_size for at in range(footer.num_row_groups)]
    assert max(sizes) < 2 << 20
    assert log.count("t >= 'x'") == 9999


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


def _with_short_arrays(rows: pa.Table) -> pa.Table:
    found = with_plain_texts(rows)
    assert all(chunk.nbytes <= 1 << 15 for chunk in found["repeated"].chunks)
    return found


def _stored_by_dictionary(rows: pa.Table, **settings: object) -> Mapping[str, Sequence[int]]:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **settings)
    return _counts_in(sink.getvalue())


def _counts_in(data: pa.Buffer) -> Mapping[str, Sequence[int]]:
    source = pa.BufferReader(data)
    return StoredDictionaries.of(pq.ParquetFile(source), source).counts


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
