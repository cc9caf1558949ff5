"""Structs of which a part is read: the same values as when all is read, and fewer leaves."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core.data.file_parts import FilePart
from optimist.core.data.parquet.leaf_columns import leaf_columns
from optimist.core.data.parquet.parquet_reader import RowLayout, read_batches
from optimist.core.errors import TableError
from optimist.core.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")


def struct(**fields):
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


POINT = struct(x=LONG, y=TEXT)
WHOLE = struct(
    plain=LONG,
    st=struct(a=LONG, b=POINT, c=TEXT),
    many=ArrayType(struct(p=POINT, q=LONG), True),
    by_name=MapType(TEXT, struct(v=LONG, w=TEXT), True),
)
POINTS = [{"x": 1, "y": "one"}, None, {"x": None, "y": "none"}]
ROWS = [
    {
        "plain": 1,
        "st": {"a": 10, "b": POINTS[0], "c": "c"},
        "many": [{"p": POINTS[0], "q": 5}, None, {"p": None, "q": None}],
        "by_name": [("k", {"v": 7, "w": "w"}), ("l", None)],
    },
    {"plain": 2, "st": None, "many": None, "by_name": None},
    {"plain": 3, "st": {"a": None, "b": None, "c": None}, "many": [], "by_name": []},
    {"plain": 4, "st": {"a": 11, "b": POINTS[2], "c": None}, "many": [None], "by_name": []},
]

PARTS = {
    "a leaf": (struct(st=struct(a=LONG)), ["st.a"]),
    "a leaf within": (struct(st=struct(b=struct(y=TEXT))), ["st.b.y"]),
    "two leaves, in another order": (struct(st=struct(c=TEXT, a=LONG)), ["st.a", "st.c"]),
    "all leaves": (struct(st=struct(a=LONG, b=POINT, c=TEXT)), ["st"]),
    "in arrays": (
        struct(many=ArrayType(struct(p=struct(x=LONG)), True)),
        ["many.list.element.p.x"],
    ),
    "a field that is not there": (struct(st=struct(late=LONG)), ["st.a"]),
    "maps are read whole": (struct(by_name=MapType(TEXT, struct(w=TEXT), True)), ["by_name"]),
    "a plain column": (struct(plain=LONG), ["plain"]),
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS, RowLayout(WHOLE).arrow_schema), path)
    return path


def cut(value, kind):
    """The value as a reader of all would cut it."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {item.name: cut(value.get(item.name), item.data_type) for item in kind}
    if isinstance(kind, ArrayType):
        return [cut(element, kind.element_type) for element in value]
    if isinstance(kind, MapType):
        return [(key, cut(element, kind.value_type)) for key, element in value]
    return value


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_the_values_that_the_whole_has(file, name):
    wanted, leaves = PARTS[name]
    stored = pq.ParquetFile(file)
    (item,) = wanted
    fields = list(stored.schema_arrow)
    index = [field.name for field in fields].index(item.name)
    assert leaf_columns(stored, fields, index, item.data_type) == leaves
    found = [
        row
        for batch in read_batches(FilePart(str(file)), RowLayout(wanted))
        for row in batch.to_pylist()
    ]
    assert found == [cut(row, wanted) for row in ROWS]


def test_a_dotted_column_beside_a_struct_of_the_same_path_is_another(tmp_path):
    path = tmp_path / "f.parquet"
    kind = pa.struct([("b", pa.int64()), ("c", pa.int64())])
    rows = pa.table({"a.b": [1], "a": pa.array([{"b": 2, "c": 3}], kind)})
    pq.write_table(rows, path)
    wanted = StructType((StructField("a", struct(b=LONG)), StructField("a.b", LONG)))
    (batch,) = read_batches(FilePart(str(path)), RowLayout(wanted))
    assert batch.to_pylist() == [{"a": {"b": 2}, "a.b": 1}]
    (batch,) = read_batches(FilePart(str(path)), RowLayout(struct(a=struct(b=LONG))))
    assert batch.to_pylist() == [{"a": {"b": 2}}]


def test_fields_are_found_by_their_ids_within_structs(tmp_path):
    path = tmp_path / "f.parquet"
    kind = pa.struct([numbered("old", pa.int64(), 2), numbered("a", pa.int64(), 3)])
    schema = pa.schema([numbered("s", kind, 1)])
    pq.write_table(pa.Table.from_pylist([{"s": {"old": 1, "a": 2}}], schema), path)
    ids = {"delta.columnMapping.id": 2}
    inner = StructType((StructField("a", LONG, True, ids),))
    layout = RowLayout(StructType((StructField("s", inner),)), by_id=True)
    (batch,) = read_batches(FilePart(str(path)), layout)
    assert batch.to_pylist() == [{"s": {"a": 1}}]


def numbered(name, kind, number):
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(number).encode()})


def mapped(name, data_type, number):
    return StructField(name, data_type, True, {"delta.columnMapping.id": number})


def test_no_name_finds_a_column_of_another_id_at_any_depth(tmp_path):
    path = tmp_path / "f.parquet"
    plain = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    schema = pa.schema([("a", pa.int64()), numbered("s", plain, 2)])
    pq.write_table(pa.Table.from_pylist([{"a": 1, "s": {"a": 2, "b": 3}}], schema), path)
    inner = StructType((mapped("a", LONG, 3), StructField("b", LONG)))
    wanted = StructType((mapped("a", LONG, 1), mapped("s", inner, 2)))
    (batch,) = read_batches(FilePart(str(path)), RowLayout(wanted, by_id=True))
    assert batch.to_pylist() == [{"a": None, "s": {"a": None, "b": 3}}]


def test_file_without_any_ids_is_refused_where_columns_are_found_by_ids(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": [1], "l": [[{"b": 1}]]}), path)
    layout = RowLayout(StructType((mapped("a", LONG, 1),)), by_id=True)
    with pytest.raises(TableError) as caught:
        list(read_batches(FilePart(str(path)), layout))
    assert caught.value.kind == "OPTIMIST_DATA_FILE_WITHOUT_IDS"
    deep = pa.schema([("l", pa.list_(pa.struct([numbered("b", pa.int64(), 4)])))])
    pq.write_table(pa.Table.from_pylist([{"l": [{"b": 1}]}], deep), path)
    (batch,) = read_batches(FilePart(str(path)), layout)
    assert batch.to_pylist() == [{"a": None}]


def test_rows_without_any_column_are_refused_since_a_batch_could_not_count_them(file):
    with pytest.raises(ValueError, match="without any column"):
        list(read_batches(FilePart(str(file)), RowLayout(StructType(()))))
