"""Places, types, rules, defaults and comments of columns, changed without Spark."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable

from altered_tables import MAPPED, nested, said, table
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.core.protocol.gates import supports
from optimist.core.protocol.schema_merge import merge_schemas
from optimist.core.protocol.widening import allowed_widening
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.core.requests.table_definition import Column
from optimist.core.schema.type_widening import TYPE_CHANGES
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from refusals import fails


def test_a_column_gets_another_place_comment_and_default_in_one_commit(tmp_path):
    log = table(tmp_path, properties={"delta.feature.allowColumnDefaults": "supported"})
    change = ColumnChange("S", comment="text", default="'none'", first=True)
    log.alter.change_columns([change])
    assert said(log) == (
        "CHANGE COLUMN",
        {
            "column": {
                "name": "s",
                "type": "string",
                "nullable": True,
                "metadata": {"comment": "text", "CURRENT_DEFAULT": "'none'"},
            },
            "position": "FIRST",
        },
    )
    assert log.snapshot().schema.names == ("s", "id")
    assert log.to_arrow().to_pylist()[2] == {"s": None, "id": 3}
    log.alter.change_columns([ColumnChange("s", drop_default=True), ColumnChange("s", after="id")])
    assert said(log)[0] == "CHANGE COLUMNS"
    found = log.snapshot().schema.fields[1]
    assert (found.name, dict(found.metadata)) == ("s", {"comment": "text"})


def test_types_become_wider_where_the_table_allows_it_and_old_files_are_read(tmp_path):
    rows = {
        "i": pa.array([1, -(2**31)], pa.int32()),
        "b": pa.array([1, -128], pa.int8()),
        "f": pa.array([1.5, float("nan")], pa.float32()),
        "d": pa.array([Decimal("1.25"), None], pa.decimal128(20, 2)),
        "l": pa.array([[1], None], pa.list_(pa.int32())),
        "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int16())])),
    }
    log = table(tmp_path, rows)
    wanted = {
        "i": "bigint",
        "b": "decimal(10,0)",
        "f": "double",
        "d": "decimal(38,10)",
        "l.element": "bigint",
        "s.x": "int",
    }
    kind = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    for name, data_type in list(wanted.items())[:-1]:
        fails(kind, log.alter.change_columns, [ColumnChange(name, data_type)])
    log.alter.change_columns([ColumnChange("s.x", "int")])  # files hold both in one form
    log.alter.set_properties({"delta.enableTypeWidening": "true"})
    log.alter.change_columns([ColumnChange(name, item) for name, item in wanted.items()])
    schema = log.snapshot().schema
    assert [str(item.data_type) for item in schema] == [
        "long",
        "decimal(10,0)",
        "double",
        "decimal(38,10)",
        "array<long>",
        "struct<x:integer>",
    ]
    change = {"toType": "long", "fromType": "integer"}
    assert schema.find("i").metadata["delta.typeChanges"] == [change]
    assert schema.find("l").metadata["delta.typeChanges"] == [{**change, "fieldPath": "element"}]
    found = log.to_arrow()
    assert found["i"].to_pylist() == [1, -(2**31)]
    assert [str(item) for item in found["b"].to_pylist()] == ["1", "-128"]
    assert found["l"].to_pylist() == [[1], None]
    assert log.count("i = -2147483648") == 1


@pytest.mark.parametrize(
    ("column", "data_type", "kind"),
    [
        ("i", "string", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("i", "int", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("i", "decimal(19,0)", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("b", "decimal(9,0)", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("v", "varchar(2)", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("v", "char(9)", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("t", "varchar(9)", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("l", "array<bigint>", "DELTA_CANNOT_UPDATE_ARRAY_FIELD"),
        ("m", "map<string,bigint>", "DELTA_CANNOT_UPDATE_MAP_FIELD"),
        ("s", "struct<x:bigint>", "DELTA_CANNOT_UPDATE_STRUCT_FIELD"),
        ("c", "bigint", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
    ],
)
def test_types_that_could_not_hold_the_values_are_refused(tmp_path, column, data_type, kind):
    rows = {
        "i": pa.array([1]),
        "b": pa.array([1], pa.int8()),
        "l": pa.array([[1]], pa.list_(pa.int32())),
        "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        "s": pa.array([{"x": 1}], pa.struct([("x", pa.int32())])),
        "c": pa.array([1], pa.int32()),
        "t": ["text"],
    }
    log = table(tmp_path, rows, properties={"delta.enableTypeWidening": "true"})
    log.alter.add_columns([NewColumn("v", "varchar(3)")])
    log.alter.add_constraint("small", "c < 9")
    fails(kind, log.alter.change_columns, [ColumnChange(column, data_type)])


def test_a_declared_length_grows_or_goes(tmp_path):
    log = table(tmp_path)
    log.alter.add_columns([NewColumn("v", "varchar(2)")])
    fails("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", log.append, pa.table({"id": [4], "v": ["xyz"]}))
    log.alter.change_columns([ColumnChange("v", "varchar(3)")])
    log.append(pa.table({"id": [4], "v": ["xyz"]}))
    log.alter.change_columns([ColumnChange("v", "string")])
    log.append(pa.table({"id": [5], "v": ["long enough"]}))
    assert dict(log.snapshot().schema.find("v").metadata) == {}


def test_declared_lengths_within_a_column_follow_its_fields(tmp_path):
    log = table(tmp_path, properties=MAPPED)
    log.alter.add_columns([NewColumn("p", "struct<a: varchar(2), b: array<char(1)>>")])

    def append(**fields):
        kind = log.snapshot().schema.find("p")
        text, texts = pa.string(), pa.list_(pa.string())
        types = [texts if str(item.data_type)[:5] == "array" else text for item in kind.data_type]
        struct = pa.struct(list(zip(kind.data_type.names, types, strict=True)))
        log.append(pa.table({"id": [9], "p": pa.array([fields], struct)}))

    too_long = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    log.alter.add_columns([NewColumn("p.c", "varchar(1)", first=True), NewColumn("p.d", "string")])
    fails(too_long, append, c="xy", a="x")
    fails(too_long, append, c="x", a="xyz")
    append(c="x", a="xy", b=["z"], d="any")
    log.alter.rename_column("p.c", "e")
    log.alter.change_columns([ColumnChange("p.e", first=False, after="d")])
    log.alter.change_columns([ColumnChange("p.b.element", "varchar(3)")])
    log.alter.drop_columns(["p.d"])
    fails(too_long, append, e="xy")
    fails(too_long, append, b=["abcd"])
    append(a="xy", b=["abc", "z"], e="x")
    declared = log.snapshot().schema.find("p").metadata["__CHAR_VARCHAR_TYPE_STRING"]
    assert declared == "struct<a:varchar(2),b:array<varchar(3)>,e:varchar(1)>"
    log.alter.drop_columns(["p.a", "p.e"])
    log.alter.change_columns([ColumnChange("p.b.element", "string")])
    assert "__CHAR" not in log.metadata.schema_string


def test_not_null_is_set_only_where_every_row_has_a_value(tmp_path):
    log = nested(tmp_path, properties=None)
    kind = "DELTA_NEW_NOT_NULL_VIOLATION"
    error = fails(kind, log.alter.change_columns, [ColumnChange("p.a", nullable=False)])
    assert error.fields["column"] == "p.a"
    log.alter.change_columns([ColumnChange("id", nullable=False)])
    assert supports(log.protocol, "invariants")
    kind = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    fails(kind, log.append, pa.table({"id": pa.array([None], pa.int64())}))
    log.alter.change_columns([ColumnChange("id", nullable=True)])
    log.append(pa.table({"id": pa.array([None], pa.int64())}))
    log.delete("p IS NULL")
    log.alter.change_columns([ColumnChange("p.a", nullable=False)])
    assert said(log)[1]["column"]["nullable"] is False


@pytest.mark.parametrize(
    "change",
    [
        ColumnChange("p.b.element", comment="of elements"),
        ColumnChange("p.b.element", nullable=False),
        ColumnChange("p.b.element", default="1"),
        ColumnChange("p.b.element", first=True),
    ],
)
def test_parts_of_arrays_have_nothing_but_a_type(tmp_path, change):
    log = nested(tmp_path, properties=None)
    log.delete()
    with pytest.raises(SchemaError):
        log.alter.change_columns([change])


@pytest.mark.parametrize(
    "path", ["a.element.f", "a.element", "m.key.f", "m.value.f", "m.value", "s.a.element.f"]
)
def test_not_null_within_arrays_and_maps_is_refused(tmp_path, path):
    log = DeltaLog.for_path(str(tmp_path))
    inner = "array<struct<f: int>>"
    map_type = "map<struct<f: int>, struct<f: int>>"
    log.create([Column("a", inner), Column("m", map_type), Column("s", f"struct<a: {inner}>")])
    change = ColumnChange(path, nullable=False)
    fails("DELTA_NESTED_NOT_NULL_CONSTRAINT", log.alter.change_columns, [change])


@pytest.mark.parametrize(
    ("column", "sql", "kind"),
    [
        ("id", "s", "INVALID_DEFAULT_VALUE"),
        ("id", "(SELECT 1)", "INVALID_DEFAULT_VALUE"),
        ("id", "1 +", "INVALID_DEFAULT_VALUE"),
        ("id", "max(1)", "INVALID_DEFAULT_VALUE"),
        ("id", "1; DROP TABLE t", "INVALID_DEFAULT_VALUE"),
        ("id", "SELECT 1", "INVALID_DEFAULT_VALUE"),
        ("id", "7", "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"),
    ],
)
def test_a_default_is_a_constant_and_needs_its_feature(tmp_path, column, sql, kind):
    log = table(tmp_path)
    fails(kind, log.alter.change_columns, [ColumnChange(column, default=sql)])


def test_the_list_of_columns_is_replaced(tmp_path):
    log = nested(tmp_path, properties=None)
    inner = str(log.snapshot().schema.find("p").data_type).replace("integer", "int")
    columns = [
        NewColumn("new", "varchar(2)"),
        NewColumn("P", inner, comment="c"),
        NewColumn("id", "bigint"),
    ]
    log.alter.replace_columns(columns)
    operation, parameters = said(log)
    assert operation == "REPLACE COLUMNS"
    assert [item["name"] for item in parameters["columns"]] == ["new", "p", "id"]
    assert log.to_arrow().to_pylist()[0] == {"new": None, "p": {"a": 1, "b": [{"c": "x"}]}, "id": 1}
    kind = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
    fails(kind, log.alter.replace_columns, columns[1:])
    log.alter.set_properties(MAPPED)
    fails(kind, log.alter.replace_columns, [*columns[1:], NewColumn("other", "int")])
    log.alter.replace_columns(columns[1:])
    assert log.snapshot().schema.names == ("p", "id")
    kind = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    fails(kind, log.alter.replace_columns, [columns[1], NewColumn("id", "int")])
    log.alter.replace_columns([columns[1], NewColumn("id", "bigint", nullable=False)])
    assert not log.snapshot().schema.find("id").nullable


@pytest.mark.parametrize("properties", [None, MAPPED], ids=["plain", "mapped"])
def test_a_list_of_columns_puts_the_fields_of_structs_into_another_order(tmp_path, properties):
    log = nested(tmp_path, properties=properties)
    log.alter.replace_columns(
        [
            NewColumn("p", "struct<B: array<struct<d: date, c: string>>, n: varchar(2), a: int>"),
            NewColumn("id", "bigint"),
        ]
    )
    place = log.snapshot().schema.find("p").data_type
    assert str(place) == ("struct<b:array<struct<d:date,c:string>>,n:string,a:integer>")
    first = {"id": 1, "p": {"b": [{"d": None, "c": "x"}], "n": None, "a": 1}}
    assert log.to_arrow().to_pylist() == [first, {"id": 2, "p": None}]
    if properties is None:  # the oldest deltalake does not read mapped tables
        assert OtherTable(str(tmp_path)).to_pyarrow_table().num_rows == 2
    more = {"p": {"b": None, "n": "ab", "a": 7}, "id": 3}
    log.append(pa.Table.from_pylist([more], schema=log.to_arrow().schema))
    kept = [row for row in log.to_arrow().to_pylist() if row["id"] != 2]
    assert sorted(kept, key=lambda row: row["id"]) == [first, more]
    too_long = {**more, "p": {**more["p"], "n": "abc"}}
    rows = pa.Table.from_pylist([too_long], schema=log.to_arrow().schema)
    fails("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", log.append, rows)


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ("b: array<struct<c: string>>", "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"),
        ("b: array<struct<d: int>>, a: int", "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"),
        ("b: array<struct<c: string>>, a: string", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("b: array<struct<c: string>>, a: bigint", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("b: int, a: int", "DELTA_CANNOT_UPDATE_ARRAY_FIELD"),
        (
            "b: array<struct<c: string>>, a: int not null",
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        ),
        ("b: array<struct<c: string>>, a: int, n: int not null", "DELTA_OPERATION_NOT_ALLOWED"),
    ],
)
def test_fields_of_structs_are_not_lost_or_made_another_by_a_list_of_columns(tmp_path, inner, kind):
    log = nested(tmp_path)
    columns = [NewColumn("id", "bigint"), NewColumn("p", f"struct<{inner}>")]
    before = log.snapshot()
    error = fails(kind, log.alter.replace_columns, columns)
    assert isinstance(error, SchemaError)
    assert log.snapshot().version == before.version


def test_types_within_structs_widen_with_a_list_of_columns_where_the_table_lets_them(tmp_path):
    log = nested(tmp_path, properties={"delta.enableTypeWidening": "true"})
    inner = "struct<b: array<struct<c: string>>, a: bigint comment 'wide'>"
    log.alter.replace_columns([NewColumn("p", inner), NewColumn("id", "bigint")])
    found = log.snapshot().schema.find("p").data_type.find("a")
    assert str(found.data_type) == "long"
    assert found.metadata["comment"] == "wide"
    assert found.metadata[TYPE_CHANGES][0]["toType"] == "long"
    assert log.to_arrow().to_pylist()[0]["p"] == {"b": [{"c": "x"}], "a": 1}


DESCRIBED = "struct<A: int COMMENT 'new', b: array<struct<c: string COMMENT 'deep'>>>"


@pytest.mark.parametrize("by_list", [False, True])
@pytest.mark.parametrize("properties", [None, MAPPED], ids=["plain", "mapped"])
def test_comments_within_a_struct_change_where_its_type_stays(tmp_path, properties, by_list):
    log = nested(tmp_path, properties=properties)
    before = log.snapshot().schema.find("p").data_type
    if by_list:
        log.alter.replace_columns([NewColumn("id", "bigint"), NewColumn("p", DESCRIBED)])
    else:
        log.alter.change_columns([ColumnChange("p", DESCRIBED)])
    after = log.snapshot().schema.find("p").data_type
    assert str(after) == str(before)
    assert after.find("a").metadata == {**before.find("a").metadata, "comment": "new"}
    (inner,) = after.find("b").data_type.element_type
    assert inner.metadata["comment"] == "deep"
    assert log.to_arrow().to_pylist()[0]["p"] == {"a": 1, "b": [{"c": "x"}]}


@pytest.mark.parametrize(
    "inner",
    [
        "a: int NOT NULL, b: array<struct<c: string>>",
        "a: int, b: array<struct<c: string NOT NULL>>",
    ],
)
def test_not_null_within_a_struct_is_set_by_name_alone(tmp_path, inner):
    log = nested(tmp_path)
    kind = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    fails(kind, log.alter.change_columns, [ColumnChange("p", f"struct<{inner}>")])
    kind = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
    columns = [NewColumn("id", "bigint"), NewColumn("p", f"struct<{inner}>")]
    fails(kind, log.alter.replace_columns, columns)


@pytest.mark.parametrize("by_list", [False, True])
def test_a_type_without_not_null_takes_it_off_the_fields_of_a_struct(tmp_path, by_list):
    log = DeltaLog.for_path(str(tmp_path))
    log.create([Column("s", "struct<x: int NOT NULL, y: int>")])
    if by_list:
        log.alter.replace_columns([NewColumn("s", "struct<x: int, y: int>")])
    else:
        log.alter.change_columns([ColumnChange("s", "struct<x: int, y: int>")])
    assert log.snapshot().schema.find("s").data_type.find("x").nullable


@pytest.mark.parametrize(
    "column",
    [
        NewColumn("n", "int", first=True),
        NewColumn("n", "int", after="id"),
        NewColumn("q.z", "int"),
        NewColumn(("p", "z"), "int"),
    ],
)
def test_a_list_of_columns_has_whole_columns_in_their_order(tmp_path, column):
    log = nested(tmp_path)
    place = "struct<a: int, b: array<struct<c: string>>>"
    columns = [NewColumn("id", "bigint"), NewColumn("p", place), column]
    fails("OPTIMIST_INVALID_ARGUMENT", log.alter.replace_columns, columns)


@pytest.mark.parametrize("preview", ["", "-preview"])
def test_small_integers_stay_as_they_are_where_widening_is_listed_and_not_enabled(
    tmp_path, preview
):
    log = table(tmp_path, {"b": pa.array([1], pa.int8()), "s": pa.array([1], pa.int16())})
    feature = f"typeWidening{preview}"

    def change(name, data_type):
        log.alter.change_columns([ColumnChange(name, data_type=data_type)])

    change("s", "int")  # nothing watches over types yet
    log.alter.set_properties({f"delta.feature.{feature}": "supported"})
    for name, wider in (("b", "short"), ("b", "int"), ("s", "long")):
        fails("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", change, name, wider)
    merged = (log.snapshot().schema, log.metadata, log.protocol)
    rule = allowed_widening(*merged[1:])
    wide = StructType((StructField("b", PrimitiveType("integer")),))
    fails("DELTA_FAILED_TO_MERGE_FIELDS", merge_schemas, merged[0], wide, may_widen=rule)
    log.append(pa.table({"b": pa.array([2], pa.int8()), "s": pa.array([3], pa.int8())}))
    if preview:
        return
    log.alter.set_properties({"delta.enableTypeWidening": "true"})
    change("b", "int")
    assert log.snapshot().schema.find("b").metadata[TYPE_CHANGES]
