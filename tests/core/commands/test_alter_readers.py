"""Columns that rules read: SQL and schemas spell the way into arrays and maps in two ways."""

from __future__ import annotations

import pytest

from altered_tables import MAPPED, commit_metadata
from optimist.core import DeltaLog
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.core.requests.table_definition import Column
from optimist.core.schema.column_paths import path_of_sql
from refusals import fails

COLUMNS = [
    Column("id", "int"),
    Column("a", "array<struct<x: int, Y: int>>"),
    Column("m", "map<string, struct<k: int, l: int>>"),
    Column("s", "struct<a: array<struct<x: int, w: int>>, element: int>"),
    Column("values", "map<string, int>"),
    Column("deep", "map<string, map<string, array<struct<z: int>>>>"),
    Column("flags", "map<string, boolean>"),
]
READ = {
    "size(a.x) > 0": "a.element.x",
    "a.y IS NULL": "a.element.Y",
    "m.q.k > 0": "m.value.k",
    "exists(a, e -> e.x > 0)": "a.element.x",
    "m['q'].k > 0": "m.value.k",
    "array_contains(s.a.x, 1)": "s.a.element.x",
    "s.element > 0": "s.element",
    "values.foo > 1": "values.value",
    "size(deep.one.two.z) > 0": "deep.value.value.element.z",
}
FREE = {
    "size(a.x) > 0": "a.element.Y",
    "m.q.k > 0": "m.value.l",
    "array_contains(s.a.x, 1)": "s.a.element.w",
    "s.element > 0": "s.a.element.x",
}


def made(path, **configuration):
    log = DeltaLog.for_path(str(path))
    of_features = {"delta.enableTypeWidening": "true", "delta.constraints.first": "flags IS NULL"}
    log.create(COLUMNS, properties={**MAPPED, **of_features})
    commit_metadata(log, configuration={**log.metadata.configuration, **configuration})
    return log


@pytest.mark.parametrize(("sql", "path"), READ.items())
def test_parts_of_arrays_and_maps_that_a_rule_reads_stay(tmp_path, sql, path):
    log = made(tmp_path, **{"delta.constraints.c": sql})
    kind = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    fails(kind, log.alter.change_columns, [ColumnChange(path, "bigint")])
    if not path.endswith("value"):
        fails(kind, log.alter.rename_column, path, "other")
        fails(kind, log.alter.drop_columns, [path])
    assert log.snapshot().version == 1


@pytest.mark.parametrize(("sql", "path"), FREE.items())
def test_their_neighbours_change(tmp_path, sql, path):
    log = made(tmp_path, **{"delta.constraints.c": sql})
    log.alter.change_columns([ColumnChange(path, "bigint")])
    log.alter.rename_column(path, "other")


def test_a_generated_column_reads_as_a_constraint_does(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.create([*COLUMNS, Column("g", "int", generated_as="m.q.k")], properties=MAPPED)
    kind = "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
    fails(kind, log.alter.rename_column, "m.value.k", "other")
    fails(kind, log.alter.drop_columns, ["m.value.k"])


def test_a_path_of_sql_ends_where_the_schema_has_no_such_part(tmp_path):
    schema = made(tmp_path).snapshot().schema
    assert path_of_sql(("A", "y"), schema) == ("a", "element", "Y")
    assert path_of_sql(("a", "element", "x"), schema) == ("a", "element")
    assert path_of_sql(("m", "key"), schema) == ("m", "value")
    assert path_of_sql(("nothing",), schema) == ()


def test_a_value_of_a_map_may_be_a_condition(tmp_path):
    log = made(tmp_path)
    fails("OPTIMIST_NEEDS_SPARK", log.alter.add_constraint, "c", "flags.key")
    fails("DELTA_NON_BOOLEAN_CHECK_CONSTRAINT", log.alter.add_constraint, "c", "s.element")


@pytest.mark.parametrize("path", ["values.value", "values.key", "a.element"])
def test_parts_without_a_name_are_not_renamed(tmp_path, path):
    fails("DELTA_UNSUPPORTED_RENAME_COLUMN", made(tmp_path).alter.rename_column, path, "x")


@pytest.mark.parametrize(
    ("data_type", "sql", "wanted"),
    [
        ("int", "id + 1", "bigint"),
        ("int", "id", "bigint"),
        ("int", "length('x')", "bigint"),
        ("smallint", "CAST(id AS smallint)", "int"),
        ("float", "CAST(id AS float)", "double"),
    ],
)
def test_a_generated_column_keeps_the_type_of_its_expression(tmp_path, data_type, sql, wanted):
    log = DeltaLog.for_path(str(tmp_path))
    columns = [Column("id", "int"), Column("g", data_type, generated_as=sql)]
    log.create(columns, properties={"delta.enableTypeWidening": "true"})
    kind = "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"
    fails(kind, log.alter.change_columns, [ColumnChange("g", wanted)])
    listed = [NewColumn("id", "int"), NewColumn("g", wanted)]
    fails(kind, log.alter.replace_columns, listed)
    log.alter.change_columns([ColumnChange("g", data_type, comment="kept")])


def test_no_new_column_takes_the_name_by_which_a_rule_calls_a_function(tmp_path):
    log = made(tmp_path, **{"delta.constraints.c": "current_date > DATE '2020-01-01'"})
    kind = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    fails(kind, log.alter.add_columns, [NewColumn("Current_Date", "date")])
    fails(kind, log.alter.rename_column, "id", "current_date")
    log.alter.add_columns([NewColumn("s.current_date", "date"), NewColumn("current_user", "int")])
