"""SQL in a table's log is its writer's word, not the user's: it is judged before Spark runs it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from hostile_expressions import (
    CALL,
    CANARY,
    DANGEROUS,
    FORBIDDEN,
    PLACES,
    SECRET,
    USUAL,
    USUAL_COLUMNS,
    add_constraint,
    field,
    make_table,
    table_with,
)
from optimist.core.errors import SchemaError
from optimist.spark import DeltaTable, read, write
from optimist.spark.sql.allowed_expressions import is_allowed

NOT_EVEN_SQL = ("no SQL", "column that does not exist", "two names", "hidden column")
REFUSALS = ("OPTIMIST_UNSAFE_EXPRESSION", "OPTIMIST_INVALID_EXPRESSION")


@pytest.fixture
def canary(spark, tmp_path):
    """A file and a property that nobody may read, and a property that nobody may set."""
    java = spark._jvm.java.lang.System
    java.clearProperty(CANARY)
    java.setProperty("optimist.secret", SECRET)
    spark.udf.register("of_the_user", lambda value: value)
    spark.sql("DECLARE OR REPLACE VARIABLE of_the_session STRING DEFAULT 'a'")
    file = tmp_path / "secret.txt"
    file.write_text(SECRET)
    yield file
    assert java.getProperty(CANARY) is None
    java.clearProperty("optimist.secret")
    spark.sql("DROP TEMPORARY VARIABLE of_the_session")
    spark.sql("DROP TEMPORARY FUNCTION of_the_user")


def refused(path, change):
    """Nothing is in the table after it; the error is returned."""
    before = sorted(Path(path).rglob("*"))
    with pytest.raises(SchemaError) as caught:
        change()
    assert sorted(Path(path).rglob("*")) == before
    assert caught.value.kind in REFUSALS
    assert "Nothing was written" in str(caught.value)
    return caught.value


def rows_lacking_the_made(spark):
    return spark.sql("SELECT 1L AS id, 'a' AS x, named_struct('a', 1L) AS s")


def rows_for(spark, place):
    rows = rows_lacking_the_made(spark)
    return rows if place == "nested default" else rows.drop("s")


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_check_constraint_of_this_kind_stops_the_write(spark, table_path, canary, name):
    table_with(table_path, "check", FORBIDDEN[name].replace("{file}", str(canary)))
    rows = rows_for(spark, "check")
    error = refused(table_path, lambda: write(rows, table_path, mode="append"))
    assert error.kind == REFUSALS[name in NOT_EVEN_SQL]
    assert (error.fields["name"], error.fields["path"]) == ("odd", table_path)
    assert "CHECK constraint odd" in str(error)
    assert read(spark, table_path).count() == 0


@pytest.mark.parametrize("place", PLACES)
def test_wherever_it_stands_it_is_not_run(spark, table_path, canary, plane, place):
    name = "reflection" if plane == "native" else "subquery"
    table_with(table_path, place, FORBIDDEN[name].replace("{file}", str(canary)))
    rows = rows_for(spark, place)
    refused(table_path, lambda: write(rows, table_path, mode="append"))
    assert read(spark, table_path).collect() == []


@pytest.mark.usefixtures("plane")
def test_a_table_with_a_hostile_constraint_is_read_and_its_rows_are_deleted(
    spark, table_path, canary
):
    table_with(table_path, "check", "id > 0")
    write(spark.sql("SELECT id, 'a' AS x FROM range(1, 4)"), table_path, mode="append")
    add_constraint(table_path, 2, f"({CALL}) IS NOT NULL")
    table = DeltaTable.forPath(spark, table_path)
    refused(table_path, lambda: table.update("id = 1", {"x": "'b'"}))
    table.delete("id = 3")
    assert sorted(row.id for row in read(spark, table_path).collect()) == [1, 2]


@pytest.mark.parametrize("name", ["reflection", "column that does not exist", "random"])
def test_a_default_that_an_update_asks_for_is_judged(spark, table_path, canary, name):
    made = field("made", "string", CURRENT_DEFAULT=FORBIDDEN[name])
    make_table(table_path, [field("id", "long"), made])
    write(spark.sql("SELECT 1L AS id, 'a' AS made"), table_path, mode="append")
    table = DeltaTable.forPath(spark, table_path)
    error = refused(table_path, lambda: table.update(set={"made": "DEFAULT"}))
    assert "default value of the column made" in str(error)
    table.update(set={"made": "'b'"})
    assert table.toDF().first().made == "b"


SPARK_REFUSES = ["reflection", "subquery", "user's function", "session variable", "random"]


@pytest.mark.usefixtures("plane")
def test_spark_itself_runs_no_default_that_a_frame_shows(spark, table_path, canary):
    insert = "INSERT INTO hostile (id, x) VALUES (1L, 'a')"
    for name in SPARK_REFUSES:
        path = f"{table_path}/{name}"
        table_with(path, "default", FORBIDDEN[name].replace("{file}", str(canary)))
        read(spark, path).createOrReplaceTempView("hostile")
        with pytest.raises(AnalysisException) as caught:
            spark.sql(insert)
        # Spark 4.0 looks for no defaults where the rows come from Python.
        refusals = ("INVALID_DEFAULT_VALUE", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA")
        assert caught.value.getCondition().startswith(refusals), name
    table_with(f"{table_path}/property", "default", FORBIDDEN["system property"])
    read(spark, f"{table_path}/property").createOrReplaceTempView("hostile")
    assert SECRET not in spark.sql(f"EXPLAIN EXTENDED {insert}").first()[0]


def test_a_default_must_be_a_constant(spark, table_path):
    make_table(table_path, [field("id", "long"), field("x", "string", CURRENT_DEFAULT="id")])
    refused(table_path, lambda: write(spark.range(1), table_path, mode="append"))


@pytest.mark.usefixtures("plane")
def test_defaults_are_constants_of_the_write(spark, table_path):
    texts = {
        "n": ("integer", "40 + 2"),
        "made": ("string", "concat('d', upper('x'))"),
        "at": ("timestamp", "current_timestamp()"),
        "today": ("date", "current_date"),
        "price": ("decimal(10,2)", "1.5"),
        "list": ({"type": "array", "elementType": "long", "containsNull": True}, "array(1, 2)"),
        "none": ("string", "NULL"),
    }
    fields = [field(name, kind, CURRENT_DEFAULT=sql) for name, (kind, sql) in texts.items()]
    make_table(table_path, [field("id", "long"), *fields])
    write(spark.range(3), table_path, mode="append")
    rows = read(spark, table_path).collect()
    assert {(r.n, r.made, str(r.price), *r.list, r.none) for r in rows} == {
        (42, "dX", "1.50", 1, 2, None)
    }
    assert len({row.at for row in rows}) == len({row.today for row in rows}) == 1


def test_what_tables_usually_have_is_computed_as_spark_does(spark, table_path):
    names = {f"made{at}": sql for at, sql in enumerate(USUAL)}
    rows = usual_rows(spark)
    kinds = {
        name: json.loads(rows.selectExpr(f"{sql} AS {name}").schema.json())["fields"][0]["type"]
        for name, sql in names.items()
    }
    made = [
        field(name, kinds[name], **{"delta.generationExpression": sql})
        for name, sql in names.items()
    ]
    checks = {f"delta.constraints.c{at}": f"({sql}) IS NOT NULL OR 1 = 1" for at, sql in names_of()}
    make_table(table_path, [*USUAL_COLUMNS, *made], checks)
    write(rows, table_path, mode="append")
    found = read(spark, table_path).select(*names).toArrow().to_pylist()
    expected = rows.selectExpr(*(f"{sql} AS {name}" for name, sql in names.items()))
    assert found == expected.toArrow().to_pylist()


def names_of():
    return list(enumerate(USUAL))


def usual_rows(spark):
    return spark.sql(
        "SELECT 3L AS id, '12' AS x, 1.5D AS d, TIMESTAMP '2021-02-03 04:05:06' AS ts, "
        "named_struct('name', 'n') AS s, array(1L, 2L) AS a, map('k', 1L) AS m, 4L AS `x y`"
    )


def test_a_function_that_hides_a_builtin_is_not_called(spark, table_path, tmp_path):
    called = tmp_path / "called"
    # Not the shared session: Spark 4.0 replaces the builtin for good, and can't drop its successor.
    spark = spark.newSession()
    spark.udf.register("soundex", lambda value: called.write_text("by the constraint"))
    table_with(table_path, "check", "soundex(x)")
    with suppress(SchemaError):  # where Spark would take the user's, and not its own
        write(spark.sql("SELECT 1L AS id, 'a' AS x"), table_path, mode="append")
    assert not called.exists()


def test_errors_show_little_of_the_text(spark, table_path):
    table_with(table_path, "check", f"uuid() || '{'y' * 5000}' || '\x1b[2J\n'")
    error = refused(
        table_path,
        lambda: write(spark.sql("SELECT 1L AS id, 'a' AS x"), table_path, mode="append"),
    )
    assert len(str(error)) < 1000
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("sql", ["(" * 200_000 + "id" + ")" * 200_000, "NOT " * 200_000 + "true"])
def test_texts_that_are_too_deep_or_long_are_refused_by_name(spark, table_path, sql):
    table_with(table_path, "check", sql)
    refused(
        table_path,
        lambda: write(spark.sql("SELECT 1L AS id, 'a' AS x"), table_path, mode="append"),
    )


def test_each_builtin_function_is_on_the_list_or_not_and_dangerous_ones_are_not(spark):
    registry = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    found = {}
    functions = registry.listFunction().iterator()
    while functions.hasNext():
        function = functions.next()
        info = registry.lookupFunction(function).get()
        found[str(function.funcName())] = (str(info.getClassName()), str(info.getGroup()))
    allowed = {name for name, (kind, _) in found.items() if is_allowed(kind)}
    assert not allowed & DANGEROUS
    groups = {group for name, (_, group) in found.items() if name in allowed}
    never = {"agg_funcs", "window_funcs", "generator_funcs", "avro_funcs", "protobuf_funcs"}
    assert not groups & {*never, "xml_funcs", "sketch_funcs", "table_funcs", "udf_funcs"}
    usual = "upper concat year date_trunc get_json_object hash coalesce regexp_replace transform"
    assert set(usual.split()) <= allowed
    odd = {kind for kind, _ in found.values() if not kind.startswith("org.apache.spark.sql.")}
    assert not any(map(is_allowed, odd))


@pytest.mark.parametrize(
    "kind",
    ["Upper", "com.evil.Upper", "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"],
)
def test_a_class_of_another_package_is_not_on_the_list(kind):
    assert not is_allowed(kind)


ODD_NAME = "${spark.app.name}"


def test_names_are_no_variables_of_the_session(spark, table_path, conf):
    conf("spark.optimist.spark.plane", "native")
    rows = spark.sql("SELECT 1L AS id, TIMESTAMP '2021-02-03 04:05:06' AS at").toDF("id", ODD_NAME)
    fields = [field("id", "long"), field(ODD_NAME, "timestamp")]
    make_table(table_path, fields, partition_columns=[ODD_NAME])
    write(rows, table_path, mode="append")
    assert read(spark, table_path).collect() == rows.collect()


DECLARED = "__CHAR_VARCHAR_TYPE_STRING"


@pytest.mark.usefixtures("plane")
def test_declared_types_that_are_not_the_columns_declare_nothing(spark, table_path):
    odd = ("garbage(", 7, "array<char(3)>", f"char({'9' * 400})", "array<" * 3000, "char(2)\n", "")
    fine = ("char(3)", "varchar(4)")
    texts = [*odd, *fine]
    fields = [field(f"x{at}", "string", **{DECLARED: text}) for at, text in enumerate(texts)]
    parts = {"type": "struct", "fields": [field("a b", "string"), field("n", "long")]}
    nested = {"type": "map", "keyType": "string", "valueType": parts, "valueContainsNull": True}
    text = "map<varchar(2),struct<`a b`:char(3),n:bigint>>"
    fields.append(field("m", nested, **{DECLARED: text}))
    make_table(table_path, [field("id", "long"), *fields])
    frame = read(spark, table_path)
    assert frame.collect() == []
    shown = [item.metadata.get(DECLARED) for item in frame.schema.fields[1:]]
    assert shown == [*(None for _ in odd), *fine, text]
    row = spark.range(1).selectExpr("id", "'a' AS x0")
    with pytest.raises(SchemaError) as caught:
        write(row, table_path, mode="append")
    assert caught.value.kind == "OPTIMIST_NESTED_CHAR_VARCHAR"
