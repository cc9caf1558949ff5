"""ALTER TABLE with Spark: rules that only Spark can judge, its types and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import types as st

from optimist.core import ColumnChange, NewColumn
from optimist.core.errors import ArgumentTypeError, OptimistError
from optimist.core.protocol.gates import supports
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.table_builder import IdentityGenerator
from refusals import fails

HERE = "spark.optimist.spark.driverShortcut.maxBytes"


@pytest.fixture(params=["here", "spark"])
def judge(request, spark):
    """Where rows are read: in the driver where that is exact, or by Spark whatever the rule."""
    if request.param == "spark":
        spark.conf.set(HERE, "0")
    yield request.param
    spark.conf.unset(HERE)


def made(spark, path, query="SELECT id, id % 2 = 0 AS even, concat('n', id) AS s FROM range(4)"):
    write(spark.sql(query), path)
    return DeltaTable.forPath(spark, path)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("id < 3", {"id": 3}),
        ("length(s) + id < 5", {"s": "n3", "id": 3}),
        ("nullif(id, 2) >= 0", {"id": 2}),
        ("even OR id = 1", {"even": False, "id": 3}),
    ],
)
@pytest.mark.usefixtures("plane")
def test_a_row_that_violates_a_new_constraint_is_shown(spark, table_path, judge, sql, values):
    alter = made(spark, table_path).alter
    error = fails("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", alter.add_constraint, "c", sql)
    assert json.loads(error.fields["values"]) == values
    assert error.fields["expression"] == sql


NEW_RULES = {
    "constraint": lambda alter: alter.add_constraint("few", "id < 9"),
    "not null": lambda alter: alter.change_columns([ColumnChange("id", nullable=False)]),
}


@pytest.mark.parametrize("rule", NEW_RULES)
@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(b"PAR1 no more")])
@pytest.mark.usefixtures("judge")
def test_no_rule_is_added_over_files_that_queries_may_pass_over(
    spark, table_path, conf, log_of, rule, harm
):
    # Without statistics, which would prove that there is no null.
    write(spark.range(4), table_path, **{"delta.dataSkippingNumIndexedCols": "0"})
    alter = DeltaTable.forPath(spark, table_path).alter
    for file in Path(table_path).rglob("*.parquet"):
        harm(file)
    conf("spark.sql.files.ignoreCorruptFiles", "true")
    conf("spark.sql.files.ignoreMissingFiles", "true")
    with pytest.raises((OptimistError, PySparkException, Py4JJavaError)):
        NEW_RULES[rule](alter)
    assert log_of(table_path).snapshot().version == 0


@pytest.mark.again
@pytest.mark.usefixtures("judge")
def test_a_constraint_holds_from_then_on(spark, table_path, log_of):
    alter = made(spark, table_path).alter
    alter.add_constraint("Length", "length(s) < 3")
    info = log_of(table_path).history(1)[0].info
    assert (info.operation, info.operation_parameters) == (
        "ADD CONSTRAINT",
        {"name": "Length", "expr": "length(s) < 3"},
    )
    frame = spark.sql("SELECT 4L AS id, true AS even, 'long' AS s")
    fails("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", write, frame, table_path, mode="append")
    alter.drop_constraint("length")
    write(frame, table_path, mode="append")
    assert read(spark, table_path).count() == 5


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("id + 1", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("s", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("unknown > 0", "OPTIMIST_INVALID_EXPRESSION"),
        ("id >", "OPTIMIST_INVALID_EXPRESSION"),
        ("id > (SELECT 1)", "OPTIMIST_UNSAFE_EXPRESSION"),
        ("rand() > id", "OPTIMIST_UNSAFE_EXPRESSION"),
        ("java_method('java.lang.System', 'exit', id) > 0", "OPTIMIST_UNSAFE_EXPRESSION"),
    ],
)
def test_what_is_no_rule_for_rows_is_refused(spark, table_path, sql, kind):
    table = made(spark, table_path)
    error = fails(kind, table.alter.add_constraint, "c", sql)
    assert "Nothing was written" in str(error)
    assert table.history().count() == 1


@pytest.mark.usefixtures("plane")
def test_not_null_is_held_against_the_rows(spark, table_path, judge, log_of):
    query = "SELECT id, named_struct('a', nullif(id, 3), 'b', 1) AS p FROM range(4)"
    table = made(spark, table_path, query)
    p_a = ColumnChange("p.a", nullable=False)
    fails("DELTA_NEW_NOT_NULL_VIOLATION", table.alter.change_columns, [p_a])
    table.alter.change_columns([ColumnChange("id", nullable=False)])
    table.alter.change_columns([ColumnChange(("p", "b"), nullable=False)])
    table.delete("id = 3")
    table.alter.change_columns([p_a])
    schema = log_of(table_path).snapshot().schema
    assert not schema.find("id").nullable
    assert [item.nullable for item in schema.find("p").data_type] == [False, False]


def test_columns_come_go_and_change_with_sparks_types(spark, table_path, rows_of):
    table = made(spark, table_path)
    inner = st.StructType(
        [
            st.StructField("a b", st.VarcharType(3), metadata={"comment": "it's"}),
            st.StructField("m", st.MapType(st.StringType(), st.DecimalType(38, 10))),
        ]
    )
    table.alter.set_properties({"delta.columnMapping.mode": "name"})
    table.alter.add_columns([NewColumn("new", inner, comment="of odd names", after="id")])
    table.alter.add_columns([NewColumn("t", "timestamp"), NewColumn("z", st.IntegerType())])
    table.alter.rename_column(("new", "a b"), "c")
    table.alter.drop_columns(["even", "t"])
    schema = table.toDF().schema
    assert schema.names == ["id", "new", "s", "z"]
    assert schema["new"].dataType.fieldNames() == ["c", "m"]
    assert schema["new"].metadata["comment"] == "of odd names"
    assert schema["new"].dataType["c"].metadata["comment"] == "it's"
    frame = spark.sql("SELECT 9L AS id, named_struct('c', 'x') AS new, 's' AS s, 1 AS z")
    write(frame, table_path, mode="append", mergeSchema=True)
    assert rows_of(table.toDF().where("id > 2").select("id", "new.c", "z")) == [
        (3, None, None),
        (9, "x", 1),
    ]
    names = [row.operation for row in table.history().collect()]
    assert names[1:6] == [
        "DROP COLUMNS",
        "RENAME COLUMN",
        "ADD COLUMNS",
        "ADD COLUMNS",
        "SET TBLPROPERTIES",
    ]


def test_a_default_is_judged_by_spark_and_used_by_writes(spark, table_path, rows_of):
    table = made(spark, table_path)
    table.addFeatureSupport("allowColumnDefaults")
    alter = table.alter
    fails("INVALID_DEFAULT_VALUE", alter.change_columns, [ColumnChange("s", default="nowhere()")])
    fails("INVALID_DEFAULT_VALUE", alter.change_columns, [ColumnChange("s", default="s")])
    alter.change_columns([ColumnChange("s", default="concat('a', 'b')")])
    write(spark.sql("SELECT 9L AS id"), table_path, mode="append")
    assert rows_of(table.toDF().where("id = 9").select("s")) == [("ab",)]
    alter.change_columns([ColumnChange("s", drop_default=True)])
    write(spark.sql("SELECT 8L AS id"), table_path, mode="append")
    assert rows_of(table.toDF().where("id = 8").select("s")) == [(None,)]


def test_clustering_domains_and_the_protocol(spark, table_path, log_of):
    table = made(spark, table_path)
    table.upgradeTableProtocol(2, 5)
    table.alter.cluster_by(["id", "s"])
    table.alter.set_domain("own", "text")
    table.alter.set_comment("of tests")
    assert table.detail().first().clusteringColumns == ["id", "s"]
    log = log_of(table_path)
    assert supports(log.protocol, "columnMapping")
    assert log.snapshot().domain_metadata["own"].configuration == "text"
    assert log.metadata.description == "of tests"
    table.alter.remove_domain("own")
    table.alter.cluster_by([])
    assert table.detail().first().clusteringColumns == []
    fails("DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN", table.alter.sync_identity, "id")


@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize(("step", "first", "following"), [(5, 20, 26), (-5, -20, -29)])
def test_an_identity_column_is_brought_up_to_its_rows(
    spark, table_path, rows_of, step, first, following
):
    identity = IdentityGenerator(1, step)
    new = DeltaTable.create(spark).location(table_path).addColumn("x", "int")
    table = new.addColumn("n", "bigint", generatedByDefaultAs=identity).execute()
    table.alter.sync_identity("n")
    write(spark.sql(f"SELECT 1 AS x, {first}L AS n"), table_path, mode="append")
    table.alter.sync_identity("n")
    write(spark.sql("SELECT 2 AS x"), table_path, mode="append")
    assert rows_of(table.toDF().where("x = 2").select("n")) == [(following,)]


def test_arguments_are_refused_by_name(spark, table_path):
    table = made(spark, table_path)
    with pytest.raises(ArgumentTypeError, match="readerVersion"):
        table.upgradeTableProtocol("2", 5)
    with pytest.raises(ArgumentTypeError, match="featureName"):
        table.addFeatureSupport(1)
    with pytest.raises(ArgumentTypeError, match="values"):
        table.alter.set_properties([("a", "b")])
    fails("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", table.addFeatureSupport, "nonsense")


@pytest.mark.again
@pytest.mark.parametrize("column", ["a..b", "a b", ""])
def test_a_column_that_can_not_be_named_so_is_an_error_of_pyspark_too(spark, table_path, column):
    table = made(spark, table_path)
    for call in (
        lambda: table.alter.drop_columns([column]),
        lambda: table.alter.rename_column(column, "z"),
        lambda: table.alter.cluster_by([column]),
        lambda: table.alter.sync_identity(column),
        lambda: table.alter.add_columns([NewColumn(column, "int")]),
    ):
        with pytest.raises(OptimistError) as caught:
            call()
        is_text = caught.value.kind != "OPTIMIST_INVALID_ARGUMENT"
        assert isinstance(caught.value, AnalysisException) is is_text
    assert table.history().count() == 1
