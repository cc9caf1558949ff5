"""ALTER TABLE without Spark: what each command leaves in the log, and what it refuses."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable

from optimist.core import DeltaLog
from optimist.core.commands.alter.requests import ColumnChange, NewColumn
from optimist.core.errors import ConfigError, OptimistError, SchemaError, TableNotFoundError
from optimist.core.protocol.gates import supports

MAPPED = {"delta.columnMapping.mode": "name"}


def table(path, rows=None, *, properties=None, **options):
    log = DeltaLog.for_path(str(path))
    rows = rows if rows is not None else {"id": pa.array([1, 2, 3]), "s": ["a", "b", None]}
    log.append(pa.table(rows), **options)
    if properties:
        log.alter.set_properties(properties)
    return log


def nested(path, *, properties=MAPPED):
    kind = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
    values = [{"a": 1, "b": [{"c": "x"}]}, None]
    return table(path, {"id": pa.array([1, 2]), "p": pa.array(values, kind)}, properties=properties)


def said(log):
    """The last commit's operation and parameters, with the JSON inside of these read."""
    info = log.history(1)[0].info
    assert info is not None
    parameters = {
        key: json.loads(value) if isinstance(value, str) and value.startswith(("[", "{")) else value
        for key, value in (info.operation_parameters or {}).items()
    }
    return info.operation, parameters


def fails(kind, call, *args, **options):
    with pytest.raises(OptimistError) as caught:
        call(*args, **options)
    assert caught.value.kind == kind, caught.value
    return caught.value


def configuration(log):
    return log.metadata.configuration


# Properties


def test_properties_are_set_in_their_canonical_spelling_and_unset_in_any(tmp_path):
    log = table(tmp_path)
    log.alter.set_properties({"delta.APPENDONLY": "true", "Own": "1", "comment": "of tests"})
    assert said(log) == (
        "SET TBLPROPERTIES",
        {"properties": {"delta.appendOnly": "true", "Own": "1", "comment": "of tests"}},
    )
    assert configuration(log) == {"delta.appendOnly": "true", "Own": "1"}
    assert log.metadata.description == "of tests"

    log.alter.unset_properties(["delta.appendonly", "comment"])
    assert said(log) == (
        "UNSET TBLPROPERTIES",
        {"properties": ["delta.appendOnly", "comment"], "ifExists": False},
    )
    assert configuration(log) == {"Own": "1"}
    assert log.metadata.description is None


def test_a_property_that_is_not_there_is_unset_only_if_that_is_allowed(tmp_path):
    log = table(tmp_path)
    error = fails("DELTA_UNSET_NON_EXISTENT_PROPERTY", log.alter.unset_properties, ["own"])
    assert isinstance(error, ConfigError)
    assert error.fields["property"] == "own"
    fails("DELTA_UNSET_NON_EXISTENT_PROPERTY", log.alter.unset_properties, ["comment"])
    assert log.update().version == 0
    assert log.alter.unset_properties(["own", "comment"], if_exists=True).version == 1


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"delta.constraints.c": "id > 0"}, "DELTA_ADD_CONSTRAINTS"),
        ({"location": "/elsewhere"}, "DELTA_CANNOT_CHANGE_LOCATION"),
        ({"Provider": "parquet"}, "DELTA_CANNOT_CHANGE_PROVIDER"),
        ({"clusteringColumns": "id"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ({"delta.columnMapping.maxColumnId": "9"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        (
            {"delta.feature.clustering": "supported"},
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        ),
        ({"delta.nonsense": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.appendOnly": "perhaps"}, "OPTIMIST_INVALID_TABLE_PROPERTY"),
        ({"delta.feature.nonsense": "supported"}, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        ({"delta.columnMapping.mode": "id"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.enableRowTracking": "true"}, "OPTIMIST_ROW_TRACKING_NEEDS_BACKFILL"),
        ({"delta.enableIcebergCompatV2": "true"}, "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"),
    ],
)
def test_what_is_no_property_of_users_is_refused_by_name(tmp_path, properties, kind):
    log = table(tmp_path)
    fails(kind, log.alter.set_properties, properties)
    assert log.update().version == 0


def test_the_engines_own_properties_are_not_unset(tmp_path):
    log = table(tmp_path, properties=MAPPED)
    key = "delta.columnMapping.maxColumnId"
    fails("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", log.alter.unset_properties, [key])
    kind = "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    fails(kind, log.alter.unset_properties, ["delta.columnMapping.mode"])


@pytest.mark.parametrize(
    ("properties", "feature"),
    [
        ({"delta.enableDeletionVectors": "true"}, "deletionVectors"),
        ({"delta.enableChangeDataFeed": "true"}, "changeDataFeed"),
        ({"delta.checkpointPolicy": "v2"}, "v2Checkpoint"),
        ({"delta.enableInCommitTimestamps": "true"}, "inCommitTimestamp"),
        ({"delta.enableTypeWidening": "true"}, "typeWidening"),
        (MAPPED, "columnMapping"),
        ({"delta.feature.allowColumnDefaults": "supported"}, "allowColumnDefaults"),
        ({"delta.feature.rowTracking": "enabled"}, "domainMetadata"),
    ],
)
def test_properties_bring_the_features_that_they_need(tmp_path, properties, feature):
    log = table(tmp_path)
    assert not supports(log.protocol, feature)
    log.alter.set_properties(properties)
    assert supports(log.protocol, feature)
    assert not any("feature" in key for key in configuration(log))
    log.append(pa.table({"id": [4], "s": ["d"]}))
    assert log.count() == 4


def test_mapping_keeps_the_names_in_files_that_are_there(tmp_path):
    log = table(tmp_path, partition_by=["s"])
    log.alter.set_properties(MAPPED)
    assert [item.physical_name for item in log.update().schema] == ["id", "s"]
    log.append(pa.table({"id": [4], "s": ["d"]}))
    assert sorted(log.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert OtherTable(str(tmp_path)).count() == 4


def test_the_protocol_is_upgraded_and_never_downgraded(tmp_path):
    log = table(tmp_path)
    log.alter.upgrade_protocol(2, 5)
    assert (log.protocol.min_reader_version, log.protocol.min_writer_version) == (2, 5)
    assert said(log)[0] == "SET TBLPROPERTIES"
    log.alter.upgrade_protocol(1, 2)
    assert (log.protocol.min_reader_version, log.protocol.min_writer_version) == (2, 5)
    fails("OPTIMIST_INVALID_TABLE_PROPERTY", log.alter.upgrade_protocol, 4, 7)
    log.alter.add_feature("deletionvectors")
    assert supports(log.protocol, "deletionVectors")
    assert configuration(log) == {}


# Columns


def test_columns_are_added_where_they_are_asked_for(tmp_path):
    log = nested(tmp_path, properties=None)
    log.alter.add_columns(
        [
            NewColumn("last", "decimal(38,10)", comment="of odd values"),
            NewColumn("first", "array<string>", first=True),
            NewColumn("middle", "varchar(3)", after="ID"),
            NewColumn("p.z", "date", after="a"),
            NewColumn(("p", "b", "element", "d"), "int"),
        ]
    )
    schema = log.update().schema
    assert schema.names == ("first", "id", "middle", "p", "last")
    assert str(schema.find("p").data_type) == (
        "struct<a:integer,z:date,b:array<struct<c:string,d:integer>>>"
    )
    operation, parameters = said(log)
    assert operation == "ADD COLUMNS"
    assert [item["column"]["name"] for item in parameters["columns"]] == [
        "last",
        "first",
        "middle",
        "p.z",
        "p.b.element.d",
    ]
    assert parameters["columns"][1] == {
        "column": {"name": "first", "type": "array", "nullable": True, "metadata": {}},
        "position": "FIRST",
    }
    assert parameters["columns"][2]["position"] == "AFTER ID"
    assert parameters["columns"][0]["column"]["metadata"] == {"comment": "of odd values"}
    assert log.to_arrow().to_pylist() == [
        {
            "first": None,
            "id": 1,
            "middle": None,
            "p": {"a": 1, "z": None, "b": [{"c": "x", "d": None}]},
            "last": None,
        },
        {"first": None, "id": 2, "middle": None, "p": None, "last": None},
    ]
    assert OtherTable(str(tmp_path)).schema().fields[0].name == "first"


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (NewColumn("n", "int", nullable=False), "DELTA_OPERATION_NOT_ALLOWED"),
        (NewColumn("n", "struct<a: int not null>"), "DELTA_OPERATION_NOT_ALLOWED"),
        (
            NewColumn("n", "int", default="1"),
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
        ),
        (NewColumn("ID", "int"), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (NewColumn("p.A", "int"), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (NewColumn("id.x", "int"), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        (NewColumn("p.b.x", "int"), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        (NewColumn("q.x", "int"), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (NewColumn("x", "int", after="nowhere"), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (NewColumn("x", "integr"), "OPTIMIST_UNKNOWN_TYPE"),
        (NewColumn(("a b",), "int"), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (NewColumn("x", "timestamp_ntz"), "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"),
        (NewColumn((), "int"), "OPTIMIST_INVALID_ARGUMENT"),
        (NewColumn("p.b.element.", "int"), "OPTIMIST_INVALID_PREDICATE"),
    ],
)
def test_columns_that_can_not_be_added_are_refused(tmp_path, column, kind):
    log = nested(tmp_path, properties=None)
    fails(kind, log.alter.add_columns, [column])
    assert log.update().version == 0


def test_what_names_nothing_is_refused(tmp_path):
    log = table(tmp_path, properties=MAPPED)
    for call in (log.alter.add_columns, log.alter.drop_columns, log.alter.change_columns):
        fails("OPTIMIST_NO_COLUMNS", call, [])
    fails("OPTIMIST_INVALID_ARGUMENT", log.alter.rename_column, "id", "")
    fails("OPTIMIST_INVALID_PREDICATE", log.alter.rename_column, "a b", "c")
    for value in (None, 5, True):
        kind = "OPTIMIST_INVALID_ARGUMENT_TYPE"
        fails(kind, log.alter.set_properties, {"delta.appendOnly": value})
    fails(
        "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
        log.alter.add_columns,
        [NewColumn("x", "array<void>")],
    )


def test_a_position_is_one_place(tmp_path):
    fails("OPTIMIST_INVALID_ARGUMENT", NewColumn, "x", "int", first=True, after="id")
    log = table(tmp_path)
    fails("OPTIMIST_INVALID_ARGUMENT_TYPE", log.alter.drop_columns, "id")


def test_a_renamed_column_keeps_its_values_and_a_dropped_one_is_gone_for_good(tmp_path):
    log = nested(tmp_path)
    log.alter.rename_column("p.b.element.c", "d.e")
    assert said(log) == (
        "RENAME COLUMN",
        {"oldColumnPath": "p.b.element.c", "newColumnPath": "p.b.element.`d.e`"},
    )
    log.alter.rename_column("P", "q r")
    assert log.to_arrow().to_pylist()[0] == {"id": 1, "q r": {"a": 1, "b": [{"d.e": "x"}]}}

    log.alter.drop_columns([("q r", "a")])
    assert said(log) == ("DROP COLUMNS", {"columns": ["`q r`.a"]})
    log.alter.add_columns([NewColumn(("q r", "a"), "int", first=True)])
    assert log.to_arrow().to_pylist()[0] == {"id": 1, "q r": {"a": None, "b": [{"d.e": "x"}]}}
    log.alter.drop_columns(["`q r`"])
    assert log.to_arrow().to_pylist() == [{"id": 1}, {"id": 2}]


def test_a_partition_column_is_renamed_and_its_values_are_found(tmp_path):
    log = table(tmp_path, partition_by=["s"], properties=MAPPED)
    log.alter.rename_column("s", "t")
    assert log.metadata.partition_columns == ("t",)
    log.append(pa.table({"id": [4], "t": ["a"]}))
    assert sorted(log.to_arrow("t = 'a'")["id"].to_pylist()) == [1, 4]


def test_the_property_for_statistics_follows_its_columns(tmp_path):
    key = "delta.dataSkippingStatsColumns"
    log = nested(tmp_path, properties={**MAPPED, key: "id,p.a"})
    log.alter.rename_column("p", "q r")
    assert configuration(log)[key] == "id,`q r`.a"
    log.alter.drop_columns(["id"])
    assert configuration(log)[key] == "`q r`.a"
    log.append(pa.table({"q r": pa.array([{"a": 7}], pa.struct([("a", pa.int32())]))}))
    assert log.count("`q r`.a = 7") == 1


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda it: it.rename_column("s", "t"), "DELTA_UNSUPPORTED_RENAME_COLUMN"),
        (lambda it: it.drop_columns(["s"]), "DELTA_UNSUPPORTED_DROP_COLUMN"),
    ],
)
def test_without_mapping_columns_keep_their_names(tmp_path, change, kind):
    log = table(tmp_path)
    fails(kind, change, log.alter)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda it: it.rename_column("gone", "x"), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (lambda it: it.rename_column("s", "ID"), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (lambda it: it.rename_column("x", "y"), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda it: it.drop_columns(["X"]), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda it: it.drop_columns(["gone"]), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (lambda it: it.drop_columns(["part"]), "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
        (lambda it: it.drop_columns(["p.a"]), "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
        (
            lambda it: it.drop_columns(["l.element"]),
            "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
        ),
        (
            lambda it: it.drop_columns(["id", "s", "x", "p", "l"]),
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        ),
    ],
)
def test_columns_that_others_need_are_neither_renamed_nor_dropped(tmp_path, change, kind):
    rows = {
        "id": pa.array([1, 2]),
        "s": ["a", "b"],
        "x": pa.array([1, 2]),
        "part": [1, 1],
        "p": [{"a": 1}, {"a": 2}],
        "l": [[1], [2]],
    }
    log = table(tmp_path, rows, partition_by=["part"], properties=MAPPED)
    log.alter.add_constraint("positive", "x > 0")
    version = log.update().version
    fails(kind, change, log.alter)
    assert log.update().version == version
    assert log.alter.drop_columns(["gone", "s"], if_exists=True).version == version + 1


# Changes of columns


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
    assert log.update().schema.names == ("s", "id")
    assert log.to_arrow().to_pylist()[2] == {"s": None, "id": 3}
    log.alter.change_columns([ColumnChange("s", drop_default=True), ColumnChange("s", after="id")])
    assert said(log)[0] == "CHANGE COLUMNS"
    found = log.update().schema.fields[1]
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
    schema = log.update().schema
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
    assert dict(log.update().schema.find("v").metadata) == {}


def test_declared_lengths_within_a_column_follow_its_fields(tmp_path):
    log = table(tmp_path, properties=MAPPED)
    log.alter.add_columns([NewColumn("p", "struct<a: varchar(2), b: array<char(1)>>")])

    def append(**fields):
        kind = log.update().schema.find("p")
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
    declared = log.update().schema.find("p").metadata["__CHAR_VARCHAR_TYPE_STRING"]
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
    inner = str(log.update().schema.find("p").data_type).replace("integer", "int")
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
    assert log.update().schema.names == ("p", "id")
    kind = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    fails(kind, log.alter.replace_columns, [columns[1], NewColumn("id", "int")])
    log.alter.replace_columns([columns[1], NewColumn("id", "bigint", nullable=False)])
    assert not log.update().schema.find("id").nullable


# Constraints


def test_a_constraint_is_added_where_all_rows_satisfy_it_and_holds_from_then_on(tmp_path):
    log = table(tmp_path)
    error = fails("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", log.alter.add_constraint, "c", "id < 3")
    assert error.fields["values"] == '{"id":3}'
    error = fails(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", log.alter.add_constraint, "c", "s < 'z' AND id > 0"
    )
    assert json.loads(error.fields["values"]) == {"id": 3, "s": None}
    log.alter.add_constraint("Small", "id < 10")
    assert said(log) == ("ADD CONSTRAINT", {"name": "Small", "expr": "id < 10"})
    assert configuration(log) == {"delta.constraints.small": "id < 10"}
    assert supports(log.protocol, "checkConstraints")
    fails("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", log.append, pa.table({"id": [10]}))
    fails("DELTA_CONSTRAINT_ALREADY_EXISTS", log.alter.add_constraint, "SMALL", "id > 0")
    log.alter.drop_constraint("SMALL")
    assert said(log) == (
        "DROP CONSTRAINT",
        {"name": "SMALL", "expr": "id < 10", "existed": "true"},
    )
    log.append(pa.table({"id": [10]}))
    fails("DELTA_CONSTRAINT_DOES_NOT_EXIST", log.alter.drop_constraint, "small")
    log.alter.drop_constraint("small", if_exists=True)
    assert said(log) == ("DROP CONSTRAINT", {"name": "small", "existed": "false"})


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("id", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("length(s) > 0", "OPTIMIST_NEEDS_SPARK"),
        ("unknown > 0", "OPTIMIST_NEEDS_SPARK"),
        ("id >", "OPTIMIST_NEEDS_SPARK"),
        ("1 = 2", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
    ],
)
def test_a_constraint_that_this_process_can_not_judge_is_refused(tmp_path, sql, kind):
    log = table(tmp_path)
    fails(kind, log.alter.add_constraint, "c", sql)
    assert log.update().version == 0


# Clustering, domains, numbers


def test_a_table_is_clustered_by_columns_and_by_none(tmp_path):
    log = nested(tmp_path)
    assert log.alter.cluster_by([]) is None
    log.alter.cluster_by(["P.A", "id"])
    assert said(log) == (
        "CLUSTER BY",
        {"oldClusteringColumns": "", "newClusteringColumns": "p.a,id"},
    )
    assert log.detail().clustering_columns == ("p.a", "id")
    domain = log.update().domain_metadata["delta.clustering"]
    assert json.loads(domain.configuration) == {
        "clusteringColumns": [["p", "a"], ["id"]],
        "domainName": "delta.clustering",
    }
    fails("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", log.alter.drop_columns, ["p"])
    log.alter.rename_column("p", "q")
    assert log.detail().clustering_columns == ("q.a", "id")
    log.alter.cluster_by([])
    assert said(log)[1] == {"oldClusteringColumns": "q.a,id", "newClusteringColumns": ""}
    assert log.detail().clustering_columns == ()
    log.alter.drop_columns(["q"])


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["a", "b", "c", "d", "e"], "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        (["a", "A"], "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (["z"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["l"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["e"], "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
    ],
)
def test_columns_that_no_table_can_be_clustered_by_are_refused(tmp_path, columns, kind):
    rows = {name: [1] for name in "abcde"} | {"l": [[1]]}
    log = table(tmp_path, rows, properties={"delta.dataSkippingNumIndexedCols": "4"})
    fails(kind, log.alter.cluster_by, columns)


def test_a_partitioned_table_is_not_clustered(tmp_path):
    log = table(tmp_path, partition_by=["s"])
    kind = "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"
    fails(kind, log.alter.cluster_by, ["id"])


def test_users_keep_texts_in_domains_of_their_own(tmp_path):
    log = table(tmp_path)
    fails("DELTA_DOMAIN_METADATA_NOT_SUPPORTED", log.alter.set_domain, "own", "{}")
    log.alter.add_feature("domainMetadata")
    log.alter.set_domain("own", '{"a": 1}')
    assert log.update().domain_metadata["own"].configuration == '{"a": 1}'
    log.alter.remove_domain("own")
    assert "own" not in log.update().domain_metadata
    fails("OPTIMIST_UNKNOWN_METADATA_DOMAIN", log.alter.remove_domain, "own")
    fails("OPTIMIST_RESERVED_METADATA_DOMAIN", log.alter.set_domain, "delta.clustering", "{}")


def test_there_must_be_a_table(tmp_path):
    with pytest.raises(TableNotFoundError):
        DeltaLog.for_path(str(tmp_path)).alter.set_comment("of nothing")
