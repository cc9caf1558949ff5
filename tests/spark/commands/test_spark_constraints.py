"""Rules for rows, enforced by Spark while it writes (spec 10.3, 10.4, 10.5)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.checks import violations_raised


def field(name, kind, *, nullable=True, **metadata):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def make_table(path, fields, *, configuration=None, partition_columns=()):
    """An empty table with this schema."""
    txn = DeltaLog.for_path(path, {}).start_transaction()
    txn.update_metadata(
        Metadata(
            id="00000000-0000-0000-0000-000000000001",
            schema_string=json.dumps({"type": "struct", "fields": fields}),
            partition_columns=tuple(partition_columns),
            configuration=configuration or {},
        )
    )
    txn.commit([], Operation("CREATE TABLE"))


def invariant(sql):
    return {"delta.invariants": json.dumps({"expression": {"expression": sql}})}


def refused(frame, path, **options):
    files = sorted(Path(path).rglob("*.parquet"))
    with pytest.raises(SchemaError) as caught:
        write(frame, path, mode="append", **options)
    assert sorted(Path(path).rglob("*.parquet")) == files
    return caught.value


@pytest.mark.usefixtures("plane")
def test_null_in_a_not_null_column_is_refused_by_name(spark, table_path):
    make_table(table_path, [field("id", "long", nullable=False), field("x", "string")])
    error = refused(spark.sql("SELECT CAST(null AS BIGINT) AS id, 'a' AS x"), table_path)
    assert error.kind == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert error.fields["constraint"] == "id"


def test_a_missing_not_null_column_is_refused(spark, table_path):
    make_table(table_path, [field("id", "long", nullable=False), field("x", "string")])
    error = refused(spark.sql("SELECT 'a' AS x"), table_path)
    assert error.kind == "DELTA_NOT_NULL_COLUMN_NOT_FOUND_IN_STRUCT"


@pytest.mark.again
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("value", ["null", "named_struct('a', CAST(null AS BIGINT))"])
def test_null_in_a_not_null_field_or_its_parent_is_refused(spark, table_path, value):
    inner = {"type": "struct", "fields": [field("a", "long", nullable=False)]}
    make_table(table_path, [field("id", "long"), field("s", inner)])
    frame = spark.sql(f"SELECT 1L AS id, CAST({value} AS STRUCT<a: BIGINT>) AS s")
    error = refused(frame, table_path)
    assert (error.kind, error.fields["constraint"]) == ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "s.a")


def test_an_empty_string_violates_not_null_in_a_partition_column(spark, table_path):
    fields = [field("id", "long"), field("p", "string", nullable=False)]
    make_table(table_path, fields, partition_columns=["p"])
    error = refused(spark.sql("SELECT 1L AS id, '' AS p"), table_path)
    assert error.kind == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


@pytest.mark.again
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("value", ["-1L", "CAST(null AS BIGINT)"])
def test_a_check_constraint_refuses_false_and_null_and_shows_the_row(spark, table_path, value):
    make_table(
        table_path,
        [field("id", "long"), field("x", "string")],
        configuration={"delta.constraints.positive": "id > 0"},
    )
    error = refused(spark.sql(f"SELECT {value} AS id, 'a' AS x"), table_path)
    assert error.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert error.fields["constraint"] == "positive"
    assert error.fields["expression"] == "id > 0"
    assert json.loads(error.fields["values"]).get("id") in (-1, None)


@pytest.mark.usefixtures("plane")
def test_rows_that_satisfy_every_rule_are_written(spark, table_path):
    make_table(
        table_path,
        [field("id", "long", nullable=False), field("x", "string", **invariant("length(x) < 5"))],
        configuration={"delta.constraints.positive": "id > 0"},
    )
    write(spark.sql("SELECT 1L AS id, 'a' AS x"), table_path, mode="append")
    assert read(spark, table_path).count() == 1


def test_an_invariant_is_enforced(spark, table_path):
    make_table(
        table_path, [field("id", "long"), field("x", "string", **invariant("length(x) < 5"))]
    )
    error = refused(spark.sql("SELECT 1L AS id, 'abcdef' AS x"), table_path)
    assert (error.kind, error.fields["constraint"]) == ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "x")


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_invariant_of_a_field_in_a_struct_is_enforced(spark, table_path):
    inner = {"type": "struct", "fields": [field("a", "long", **invariant("s.a > 3"))]}
    make_table(table_path, [field("id", "long"), field("s", inner)])
    write(spark.sql("SELECT 1L AS id, named_struct('a', 4L) AS s"), table_path, mode="append")
    error = refused(spark.sql("SELECT 1L AS id, named_struct('a', 3L) AS s"), table_path)
    assert error.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert error.fields["constraint"] == "s.a"


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_update_to_an_empty_string_violates_not_null_in_a_partition_column(spark, table_path):
    fields = [field("id", "long"), field("p", "string", nullable=False)]
    make_table(table_path, fields, partition_columns=["p"])
    write(spark.sql("SELECT 1L AS id, 'a' AS p"), table_path, mode="append")
    with pytest.raises(SchemaError) as caught:
        DeltaTable.forPath(spark, table_path).update(set={"p": "''"})
    assert caught.value.kind == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert [row.p for row in read(spark, table_path).collect()] == ["a"]


GENERATED = {"delta.generationExpression": "id * 2"}


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_a_generated_column_is_computed_where_the_data_lacks_it(spark, table_path):
    make_table(table_path, [field("id", "long"), field("double", "long", **GENERATED)])
    write(spark.range(3), table_path, mode="append")
    rows = read(spark, table_path).orderBy("id").collect()
    assert [(row.id, row["double"]) for row in rows] == [(0, 0), (1, 2), (2, 4)]


@pytest.mark.again
def test_a_generated_partition_column_may_compute_the_empty_text(spark, table_path):
    """In a partition column it is null, by whichever way it comes there."""
    made = {"delta.generationExpression": "trim(name)"}
    fields = [field("id", "long"), field("name", "string"), field("p", "string", **made)]
    make_table(table_path, fields, partition_columns=["p"])
    write(spark.sql("SELECT 1L AS id, ' ' AS name"), table_path, mode="append")
    write(spark.sql("SELECT 2L AS id, ' ' AS name, '' AS p"), table_path, mode="append")
    write(spark.sql("SELECT 3L AS id, 'a' AS name"), table_path, mode="append")
    DeltaTable.forPath(spark, table_path).update("id = 3", {"name": "'  '"})
    rows = read(spark, table_path).collect()
    assert sorted((row.id, row.name, row.p) for row in rows) == [
        (1, " ", None),
        (2, " ", None),
        (3, "  ", None),
    ]
    error = refused(spark.sql("SELECT 4L AS id, 'b' AS name, '' AS p"), table_path)
    assert error.fields["constraint"] == "p"


@pytest.mark.again
def test_a_generated_column_given_with_another_value_is_refused(spark, table_path):
    make_table(table_path, [field("id", "long"), field("double", "long", **GENERATED)])
    write(spark.sql("SELECT 4L AS id, 8L AS double"), table_path, mode="append")
    error = refused(spark.sql("SELECT 4L AS id, 9L AS double"), table_path)
    assert error.fields["constraint"] == "double"


def test_an_update_computes_generated_columns_again(spark, table_path):
    make_table(table_path, [field("id", "long"), field("double", "long", **GENERATED)])
    write(spark.range(3), table_path, mode="append")
    DeltaTable.forPath(spark, table_path).update("id = 1", {"id": "id + 10"})
    rows = read(spark, table_path).collect()
    assert sorted((row.id, row["double"]) for row in rows) == [(0, 0), (2, 4), (11, 22)]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_update_that_violates_a_constraint_changes_nothing(spark, table_path):
    make_table(
        table_path, [field("id", "long")], configuration={"delta.constraints.small": "id < 100"}
    )
    write(spark.range(3), table_path, mode="append")
    with pytest.raises(SchemaError) as caught:
        DeltaTable.forPath(spark, table_path).update(set={"id": "id + 99"})
    assert caught.value.fields["constraint"] == "small"
    assert sorted(row.id for row in read(spark, table_path).collect()) == [0, 1, 2]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_texts_that_are_too_long_for_varchar_are_refused_and_blanks_are_cut(spark, table_path):
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    make_table(table_path, [field("id", "long"), field("v", "string", **declared)])
    write(spark.sql("SELECT 1L AS id, 'abc  ' AS v"), table_path, mode="append")
    assert read(spark, table_path).selectExpr("length(v) AS n").first().n == 3
    error = refused(spark.sql("SELECT 1L AS id, 'abcd' AS v"), table_path)
    assert (error.kind, error.fields["column"]) == ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "v")


@pytest.mark.usefixtures("plane")
def test_char_is_padded(spark, table_path):
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}
    make_table(table_path, [field("id", "long"), field("c", "string", **declared)])
    write(spark.sql("SELECT 1L AS id, 'ab' AS c"), table_path, mode="append")
    assert read(spark, table_path).first().c == "ab  "


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_rules_compare_char_with_padded_texts_as_queries_do(spark, table_path):
    kinds = {"c": "char(4)", "p": "char(2)"}
    texts = [field(name, "string", __CHAR_VARCHAR_TYPE_STRING=kind) for name, kind in kinds.items()]
    make_table(
        table_path,
        [field("id", "long"), *texts],
        configuration={"delta.constraints.known": "c IN ('ab', 'cd')"},
        partition_columns=["p"],
    )
    rows = spark.sql("SELECT 1L AS id, 'ab' AS c, 'x' AS p")
    write(rows, table_path, mode="append")
    write(rows, table_path, mode="overwrite", replaceWhere="c = 'ab' AND p = 'x'")
    DeltaTable.forPath(spark, table_path).update(set={"c": "'cd'"})
    assert read(spark, table_path).collect() == [(1, "cd  ", "x ")]
    error = refused(spark.sql("SELECT 1L AS id, 'e' AS c, 'x' AS p"), table_path)
    assert error.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


@pytest.mark.usefixtures("plane")
def test_texts_inside_nested_types_have_their_declared_lengths(spark, table_path):
    inner = {"type": "struct", "fields": [field("a b", "string"), field("n", "long")]}
    lists = {"type": "array", "elementType": inner, "containsNull": True}
    kind = {"type": "map", "keyType": "string", "valueType": lists, "valueContainsNull": True}
    declared = "map<char(2),array<struct<`a b`:varchar(3),n:bigint>>>"
    make_table(
        table_path,
        [field("id", "long"), field("m", kind, __CHAR_VARCHAR_TYPE_STRING=declared)],
        configuration={"delta.columnMapping.mode": "name"},
    )

    def row(text):
        value = f"map('k', array(named_struct('a b', {text}, 'n', 7L), null), 'l', null)"
        return spark.sql(f"SELECT 1L AS id, {value} AS m")

    write(row("'abc  '"), table_path, mode="append")
    found = read(spark, table_path).selectExpr("to_json(m) AS m").first().m
    assert json.loads(found) == {"k ": [{"a b": "abc", "n": 7}, None], "l ": None}
    error = refused(row("'abcd'"), table_path)
    assert error.kind == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert error.fields == {"column": "m.value.element.a b", "type": "varchar(3)"}


@pytest.mark.usefixtures("plane")
def test_void_columns_are_in_no_file_and_read_as_null(spark, table_path):
    make_table(table_path, [field("id", "long"), field("nothing", "void"), field("x", "string")])
    write(spark.sql("SELECT 1L AS id, null AS nothing, 'a' AS x"), table_path, mode="append")
    assert read(spark, table_path).collect() == [(1, None, "a")]


def fields_of(table_path):
    files = [file for file in Path(table_path).rglob("*.parquet") if "_delta_log" not in file.parts]
    return {leaf for file in files for leaf in _leaves(pq.read_schema(file))}


def _leaves(schema, path=""):
    for item in schema:
        if item.type.num_fields:
            inner = [item.type.field(place) for place in range(item.type.num_fields)]
            yield from _leaves(inner, f"{path}{item.name}.")
        else:
            yield f"{path}{item.name}"


STRUCT = {"type": "struct", "fields": [field("a", "long"), field("v", "void")]}
DEEP = {"type": "struct", "fields": [field("v", "void"), field("s", STRUCT)]}
LIST = {"type": "array", "elementType": STRUCT, "containsNull": True}


@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_void_fields_are_in_no_file_whichever_command_writes_it(spark, table_path, mode):
    fields = [field("id", "long"), field("s", DEEP), field("n", "void")]
    make_table(table_path, fields, configuration={"delta.columnMapping.mode": mode})
    some = "named_struct('v', null, 's', named_struct('a', {}, 'v', null)) AS s"
    rows = spark.range(1, 4, 1, 1).selectExpr("id", some.format("id * 10"), "null AS n")
    write(rows, table_path, mode="append")
    write(spark.sql("SELECT 4L AS id"), table_path, mode="append")
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id = 1")
    table.update("id = 2", {"s.s.a": "20"})
    source = spark.sql(
        f"SELECT 3L AS id, {some.format('30L')}, null AS n UNION ALL "
        f"SELECT 5L AS id, {some.format('50L')}, null AS n"
    )
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    found = read(spark, table_path).selectExpr("id", "s.s.a", "s.v", "s.s.v", "n").collect()
    assert sorted(map(tuple, found)) == [
        (number, None if number == 4 else number * 10, None, None, None) for number in (2, 3, 4, 5)
    ]
    written = fields_of(table_path)
    assert len(written) == 2
    assert mode != "none" or written == {"id", "s.s.a"}


@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_void_has_no_place_in_an_array_and_is_read_there(spark, table_path, mode):
    plain = json.loads(json.dumps(LIST).replace('"void"', '"string"'))
    plain["elementType"]["fields"].pop()
    configuration = {"delta.columnMapping.mode": mode}
    make_table(table_path, [field("id", "long"), field("l", plain)], configuration=configuration)
    write(
        spark.sql("SELECT 1L AS id, array(named_struct('a', 7L)) AS l"), table_path, mode="append"
    )
    before = fields_of(table_path)
    txn = DeltaLog.for_path(table_path, {}).start_transaction()
    schema = json.loads(txn.metadata.schema_string)
    schema["fields"][1]["type"]["elementType"]["fields"].append(field("v", "void"))
    empty = {"type": "struct", "fields": [field("v", "void")]}
    schema["fields"] += [field("e", {**LIST, "elementType": "void"}), field("o", empty)]
    txn.update_metadata(replace(txn.metadata, schema_string=json.dumps(schema)))
    txn.commit([], Operation("ADD COLUMNS"))
    assert read(spark, table_path).selectExpr("id", "l.a", "l.v").collect() == [(1, [7], [None])]
    assert read(spark, table_path).collect() == [(1, [(7, None)], None, None)]
    error = refused(spark.sql("SELECT 1L AS id"), table_path)
    assert error.kind == "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"
    assert fields_of(table_path) == before


def test_a_violation_that_spark_tells_twice_is_told_once():
    """With the trace of the job, and once more with that of the task."""
    body = {"kind": "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "name": "c", "sql": "a > 0"}
    told = f"OPTIMIST_ROW_CHECK:{json.dumps(body | {'values': '{}'})}:OPTIMIST_ROW_CHECK"
    with pytest.raises(SchemaError) as caught, violations_raised():
        raise RuntimeError(f"Job aborted: {told}\n\tat f\nCaused by: {told}\n\tat g")
    assert caught.value.kind == body["kind"]
    assert caught.value.fields["constraint"] == "c"


ONLY_IN_SOME = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals")


@pytest.mark.parametrize("key", ONLY_IN_SOME)
@pytest.mark.parametrize(
    ("sql", "good", "bad"),
    [
        ('kind <> "code"', "x", "code"),
        (r"kind <> 'a\tb'", r"a\tb", "a\tb"),
        (r"kind <> 'a\\b'", "a\\\\b", "a\\b"),
        (r"kind <> 'it\'s'", "its", "it's"),
    ],
)
def test_texts_in_rules_mean_the_same_in_every_session(
    spark, table_path, conf, key, sql, good, bad
):
    fields = [field("kind", "string"), field("code", "string")]
    make_table(table_path, fields, configuration={"delta.constraints.c": sql})
    conf(key, "true")
    rows = spark.createDataFrame([(good, good)], "kind string, code string")
    write(rows, table_path, mode="append")
    error = refused(spark.createDataFrame([(bad, "x")], rows.schema), table_path)
    assert error.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


def test_a_new_rule_whose_texts_other_sessions_read_otherwise_is_refused(spark, table_path, conf):
    make_table(table_path, [field("kind", "string"), field("code", "string")])
    alter = DeltaTable.forPath(spark, table_path).alter
    for key, sql in zip(ONLY_IN_SOME, ('kind <> "code"', r"kind <> 'a\tb'"), strict=True):
        conf(key, "true")
        with pytest.raises(SchemaError) as caught:
            alter.add_constraint("c", sql)
        assert caught.value.kind == "OPTIMIST_UNSAFE_EXPRESSION"
        columns = DeltaTable.create(spark).location(f"{table_path} 2").addColumn("kind", "STRING")
        columns = columns.addColumn("is_code", "BOOLEAN", generatedAlwaysAs=sql)
        with pytest.raises(SchemaError) as caught:
            columns.execute()
        assert caught.value.kind == "OPTIMIST_UNSAFE_EXPRESSION"
        columns = DeltaTable.create(spark).location(f"{table_path} 2").addColumn("kind", "STRING")
        columns = columns.addColumn("code", "STRING").property("delta.constraints.c", sql)
        with pytest.raises(SchemaError) as caught:
            columns.execute()
        assert caught.value.kind == "OPTIMIST_UNSAFE_EXPRESSION"
        assert not DeltaTable.isDeltaTable(spark, f"{table_path} 2")
        conf(key, "false")
        alter.add_constraint("c", sql)
        alter.drop_constraint("c")
