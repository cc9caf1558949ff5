"""What UPDATE assigns: to which column or field, and as which value."""

from __future__ import annotations

import itertools
import json

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core import Column, DeltaLog
from optimist.core.errors import SchemaError, UsageError
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read, write
from optimist.spark.rows.store_assignment import can_up_cast
from optimist.spark.session.jvm import Jvm
from optimist.spark.spark_schema import from_spark_schema

pytestmark = pytest.mark.usefixtures("every_plane")
POLICY = "spark.sql.storeAssignmentPolicy"


@pytest.fixture
def places(spark, table_path):
    """A column and a struct's field of one name, and structs within structs, arrays and maps."""
    frame = spark.sql(
        "SELECT id, 'top' AS city, "
        "IF(id = 3, NULL, named_struct('city', concat('c', id), 'pos', "
        "named_struct('lat', CAST(id AS DOUBLE), 'lon', 1.5D))) AS address, "
        "array(named_struct('a', CAST(id AS INT), 'b', 's')) AS list, "
        "map('k', named_struct('a', 1, 'b', 's')) AS dict, CAST(1 AS TINYINT) AS tiny, "
        "CAST(5 AS INT) AS n, CAST(1.5 AS DECIMAL(4, 2)) AS price, DATE '2024-01-01' AS day "
        "FROM range(4)"
    )
    write(frame.coalesce(1), table_path)
    return DeltaTable.forPath(spark, table_path)


def row_of(table, at=1):
    return table.toDF().where(f"id = {at}").collect()[0]


def refused(table, assignments, kind, error=UsageError):
    with pytest.raises(error) as caught:
        table.update("id = 1", assignments)
    assert caught.value.kind == kind
    assert table.history(1).collect()[0].version == 0
    return caught.value


def test_a_mistyped_struct_never_means_a_column(places):
    error = refused(places, {"adress.city": "'x'"}, "DELTA_COLUMN_NOT_FOUND")
    assert error.fields["column"] == "adress.city"
    refused(places.alias("t"), {"x.city": "'x'"}, "DELTA_COLUMN_NOT_FOUND")
    refused(places, {"address.cty": "'x'"}, "DELTA_COLUMN_NOT_FOUND")


@pytest.mark.again
def test_the_first_name_is_the_alias_before_it_is_a_column(places):
    places.alias("address").update("id = 1", {"address.city": "'aliased'"})
    assert (row_of(places).city, row_of(places).address.city) == ("aliased", "c1")
    places.alias("t").update("t.id = 1", {"t.address.city": "'nested'", "t.n": "t.n + 1"})
    row = row_of(places)
    assert (row.city, row.address.city, row.n) == ("aliased", "nested", 6)


def test_an_alias_with_the_name_of_a_struct_means_nothing_to_the_rules_in_the_log(
    spark, table_path
):
    columns = [Column("city", "string"), Column("address", "struct<city:string>")]
    columns += [Column("place", "string", generated_as="upper(address.city)"), Column("n", "int")]
    log = DeltaLog.for_path(table_path, {})
    log.create(columns, properties={"delta.constraints.known": "address.city <> 'nowhere'"})
    rows = spark.sql("SELECT 'top' AS city, named_struct('city', 'inner') AS address, 1 AS n")
    write(rows, table_path, mode="append")
    table = DeltaTable.forPath(spark, table_path).alias("address")
    with pytest.raises(SchemaError) as caught:
        table.update("n + 0 = 1", {"address.address.city": "'nowhere'"})
    assert caught.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    table.update("n + 0 = 1", {"address.address.city": "'new'"})
    (row,) = read(spark, table_path).collect()
    assert (row.city, row.address.city, row.place) == ("top", "new", "NEW")


@pytest.mark.again
def test_fields_of_structs_are_updated_and_their_neighbours_kept(places):
    places.update(
        "id IN (1, 3)", {"ADDRESS.pos.Lat": "address.pos.lat + 10", "address.city": sf.lit("new")}
    )
    row = row_of(places)
    assert row.address.asDict(recursive=True) == {"city": "new", "pos": {"lat": 11.0, "lon": 1.5}}
    assert row.city == "top"
    # As in Delta: the struct is there from now on.
    assert row_of(places, 3).address.asDict(recursive=True) == {
        "city": "new",
        "pos": {"lat": None, "lon": None},
    }
    assert row_of(places, 2).address.city == "c2"
    assert [field.name for field in places.toDF().schema["address"].dataType] == ["city", "pos"]


def test_targets_that_make_no_sense_are_refused(places):
    for names in (
        ("address", "address.city"),
        ("address.pos.lat", "address.POS"),
        ("address.city", "ADDRESS.city"),
    ):
        refused(places, dict.fromkeys(names, "NULL"), "DELTA_CONFLICT_SET_COLUMN")
    for name in ("city.first", "list.a"):
        refused(places, {name: "NULL"}, "DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT")


@pytest.mark.again
def test_structs_are_assigned_by_the_names_of_their_fields(places):
    places.update(
        "id = 1",
        {
            "address": "named_struct('pos', named_struct('lon', 1, 'lat', '2'), 'city', 7)",
            "list": "array(named_struct('b', 'x', 'a', 4))",
            "dict": "map('m', named_struct('b', 'y', 'a', '5'))",
        },
    )
    row = row_of(places)
    assert row.address.asDict(recursive=True) == {"city": "7", "pos": {"lat": 2.0, "lon": 1.0}}
    assert (row.list[0].asDict(), row.dict["m"].asDict()) == (
        {"a": 4, "b": "x"},
        {"a": 5, "b": "y"},
    )
    places.update("id = 1", {"address": "NULL", "list": "array()"})
    assert (row_of(places).address, row_of(places).list) == (None, [])


def test_structs_with_other_fields_are_refused(places):
    for assignment in (
        {"address": "named_struct('city', 'x')"},
        {"address.pos": "named_struct('lat', 1D, 'lon', 1D, 'height', 1D)"},
        {"list": "array(named_struct('a', 1))"},
        {"dict": "map('k', named_struct('a', 1, 'c', 's'))"},
    ):
        refused(places, assignment, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", SchemaError)


MISFITS = [
    ("n", "99999999999L", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE.*column `n`"),
    ("n", "'abc'", "CAST_INVALID_INPUT"),
    ("tiny", "id + 300", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE.*column `tiny`"),
    ("price", "123.45", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE.*`price`"),
    ("list", "array(named_struct('a', 99999999999L, 'b', 's'))", "DELTA_CAST_OVERFLOW.*element"),
    ("address.pos.lat", "'north'", "CAST_INVALID_INPUT"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_do_not_fit_are_never_stored(places, conf, ansi):
    conf("spark.sql.ansi.enabled", ansi)
    for column, value, error in MISFITS:
        with pytest.raises(Exception, match=error):
            places.update("id = 1", {column: value})
    places.update("id = 1", {"n": "'12'", "tiny": "n + 100L", "price": "'7.256'", "city": "3.5"})
    row = row_of(places)
    assert (row.n, row.tiny, str(row.price), row.city) == (12, 105, "7.26", "3.5")
    # The expressions themselves follow the conf: only what is stored does not.
    if ansi == "false":
        places.update("id = 1", {"n": "CAST('abc' AS INT)", "city": "1 / 0"})
        assert (row_of(places).n, row_of(places).city) == (None, None)


def test_a_type_that_can_not_be_cast_is_refused_before_anything_is_read(places):
    with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        places.update("id = 1", {"day": "TRUE"})
    places.update("id = 1", {"city": "make_interval(1)"})
    assert row_of(places).city == "1 years"


@pytest.mark.again
def test_the_legacy_policy_stores_what_spark_stored_before(places, conf):
    conf(POLICY, "LEGACY")
    places.update("id = 1", {"n": "99999999999L", "tiny": "'abc'"})
    assert (row_of(places).n, row_of(places).tiny) == (1215752191, None)


def test_the_strict_policy_refuses_what_could_be_lost(places, conf):
    conf(POLICY, "STRICT")
    error = refused(places, {"n": "1L"}, "CANNOT_UP_CAST_DATATYPE", SchemaError)
    assert (error.fields["column"], error.fields["source"]) == ("n", "long")
    refused(places, {"address.pos.lat": "'1'"}, "CANNOT_UP_CAST_DATATYPE", SchemaError)
    places.update("id = 1", {"n": "tiny", "city": "day", "address.pos.lat": "n"})
    assert (row_of(places).n, row_of(places).city) == (1, "2024-01-01")


TYPES = [
    *("byte", "short", "integer", "long", "float", "double", "decimal(3,0)", "decimal(5,2)"),
    *("decimal(10,0)", "decimal(20,0)", "decimal(38,18)", "string", "binary", "boolean", "date"),
    *("timestamp", "timestamp_ntz", "void"),
]


@pytest.mark.again
@pytest.mark.parametrize("every_plane", ["native"], indirect=True)
def test_what_may_be_up_cast_is_what_spark_says(spark):
    module = Jvm.of(spark).module("org.apache.spark.sql.catalyst.expressions.Cast$")
    ours, theirs = {}, {}
    for names in itertools.product(TYPES, repeat=2):
        types = [
            st.StructType.fromJson(
                {"fields": [{"name": "c", "type": name, "nullable": True, "metadata": {}}]}
            )
            for name in names
        ]
        source, target = (from_spark_schema(item).fields[0].data_type for item in types)
        ours[names] = can_up_cast(source, target)
        java = [Jvm.of(spark).struct(item).apply(0).dataType() for item in types]
        theirs[names] = module.canUpCast(*java)
    assert ours == theirs


@pytest.fixture
def defaults(spark, table_path):
    """A table with defaults and a void column, as another engine makes it."""
    kinds = {"id": "long", "n": "integer", "tiny": "byte", "made": "string", "nothing": "void"}
    texts = {"n": "40 + 2", "tiny": "'7'", "made": "concat('d', 'x')"}
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"CURRENT_DEFAULT": texts[name]} if name in texts else {},
        }
        for name, kind in kinds.items()
    ]
    txn = DeltaLog.for_path(table_path, {}).start_transaction()
    feature = {"delta.feature.allowColumnDefaults": "supported"}
    schema = json.dumps({"type": "struct", "fields": fields})
    txn.update_metadata(Metadata(id="one", schema_string=schema, configuration=feature))
    txn.commit([], Operation("CREATE TABLE"))
    write(spark.sql("SELECT 1L AS id, 1 AS n, 'm' AS made"), table_path, mode="append")
    return DeltaTable.forPath(spark, table_path)


def test_default_is_a_value_that_an_update_may_assign(spark, defaults, conf):
    assert tuple(row_of(defaults)) == (1, 1, 7, "m", None)
    defaults.update("id = 1", {"n": "DEFAULT", "tiny": "n", "made": " default "})
    assert tuple(row_of(defaults)) == (1, 42, 1, "dx", None)
    conf("spark.sql.ansi.enabled", "false")
    defaults.update("id = 1", {"id": "DEFAULT", "tiny": "DEFAULT"})
    assert tuple(defaults.toDF().collect()[0]) == (None, 42, 7, "dx", None)


@pytest.mark.again
def test_defaults_show_in_the_schema_and_stay_with_their_table(spark, defaults, tmp_path):
    frame = defaults.toDF()
    shown = {field.name: field.metadata for field in frame.schema.fields}
    assert shown["n"] == {"CURRENT_DEFAULT": "40 + 2"}
    assert (shown["id"], shown["made"]["CURRENT_DEFAULT"]) == ({}, "concat('d', 'x')")
    write(frame, str(tmp_path / "copy"))
    assert all(not f.metadata for f in read(spark, str(tmp_path / "copy")).schema.fields)


def test_a_void_column_takes_nothing_but_null(defaults):
    defaults.update("id = 1", {"nothing": "NULL", "n": "2"})
    assert row_of(defaults).n == 2
    with pytest.raises(SchemaError) as caught:
        defaults.update("id = 1", {"nothing": "1"})
    assert caught.value.kind == "OPTIMIST_VOID_COLUMN"
