"""Columns that are added, renamed and dropped without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable

from altered_tables import MAPPED, configuration, nested, said, table
from optimist.core.requests.columns import NewColumn
from refusals import fails


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
    schema = log.snapshot().schema
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
        (NewColumn("x", "integr"), "DELTA_UNSUPPORTED_DATA_TYPES"),
        (NewColumn(("a b",), "int"), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (NewColumn("x", "timestamp_ntz"), "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"),
        (NewColumn((), "int"), "OPTIMIST_INVALID_ARGUMENT"),
        (NewColumn("p.b.element.", "int"), "OPTIMIST_INVALID_PREDICATE"),
    ],
)
def test_columns_that_can_not_be_added_are_refused(tmp_path, column, kind):
    log = nested(tmp_path, properties=None)
    fails(kind, log.alter.add_columns, [column])
    assert log.snapshot().version == 0


def test_what_names_nothing_is_refused(tmp_path):
    log = table(tmp_path, properties=MAPPED)
    for call in (log.alter.add_columns, log.alter.drop_columns, log.alter.change_columns):
        fails("OPTIMIST_NO_COLUMNS", call, [])
    fails("OPTIMIST_INVALID_ARGUMENT", log.alter.rename_column, "id", "")
    fails("OPTIMIST_INVALID_PREDICATE", log.alter.rename_column, "a b", "c")
    for value in (None, 5.0, b"true"):
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
    version = log.snapshot().version
    fails(kind, change, log.alter)
    assert log.snapshot().version == version
    assert log.alter.drop_columns(["gone", "s"], if_exists=True).version == version + 1
