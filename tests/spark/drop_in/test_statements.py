"""The statements of Delta's own grammar in a classic session, by path and by name."""

from __future__ import annotations

import pyspark
import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

from optimist.core.errors import OptimistError, UsageError
from optimist.core.statements.result_columns import DETAIL, HISTORY
from optimist.spark import DeltaTable, write
from optimist.spark.rows.local_rows import spark_columns


@pytest.fixture
def table(delta, table_path):
    write(delta.range(4).selectExpr("id", "id % 2 AS p"), table_path, partitionBy="p")
    write(delta.range(1).selectExpr("id", "0L AS p"), table_path, mode="append")
    return f"delta.`{table_path}`"


@pytest.mark.again
def test_history_and_detail_have_delta_s_columns(delta, table, table_path):
    history = delta.sql(f"DESCRIBE HISTORY {table}")
    assert history.schema == spark_columns(HISTORY)
    assert [row.version for row in history.collect()] == [1, 0]
    assert [row.version for row in delta.sql(f"DESC HISTORY '{table_path}' LIMIT 1").collect()] == [
        1
    ]
    detail = delta.sql(f"describe detail {table};")
    assert detail.schema == spark_columns(DETAIL)
    assert detail.collect() == DeltaTable.forPath(delta, table_path).detail().collect()


@pytest.mark.again
@pytest.mark.parametrize(
    "before",
    [
        "/* a /* b */ c */",
        "/**/ /***/",
        "-- one\r\n-- two\r",
        "-- goes on \\\n still */ /*\n",
        "\n\t/* x */--y\n",
    ],
)
def test_comments_may_stand_before_a_statement(delta, table, before):
    assert delta.sql(f"{before}DESCRIBE HISTORY {table} LIMIT 1").columns == HISTORY.names


@pytest.mark.again
@pytest.mark.parametrize("before", ["/* a /* b */", "-- only", "/*+ a hint */", "/* /*+ */ */"])
def test_a_statement_within_a_comment_is_none_of_ours(delta, table, before):
    with pytest.raises(ParseException):
        delta.sql(f"{before} DESCRIBE HISTORY {table}")


@pytest.mark.again
def test_statements_stand_in_scripts(delta, table, conf):
    conf("spark.sql.scripting.enabled", "true")  # PySpark 4.0 has it off
    script = f"BEGIN DELETE FROM {table} WHERE id = 3; SELECT count(*) AS n FROM {table}; END"
    assert delta.sql(script).collect() == [(4,)]


def test_an_error_of_a_script_keeps_its_name(delta, conf):
    conf("spark.sql.scripting.enabled", "true")
    with pytest.raises(PySparkException) as caught:
        delta.sql("BEGIN SELECT 1; DECLARE a INT; END")
    assert caught.value.getCondition() == "INVALID_VARIABLE_DECLARATION.ONLY_AT_BEGINNING"


@pytest.mark.skipif(
    pyspark.__version__.startswith("4.0."), reason="its parser is told of no parameters"
)
def test_parameters_are_bound(delta, table, table_path):
    limit = delta.sql(f"DESC HISTORY {table} LIMIT :n", {"n": 1})
    assert [row.version for row in limit.collect()] == [1]
    by_place = delta.sql("DESCRIBE DETAIL IDENTIFIER(?)", args=[table])
    assert by_place.collect()[0].location == table_path


def test_constraints_come_and_go(delta, table, table_path):
    delta.sql(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (id < 10 AND length('(') = 1)")
    properties = DeltaTable.forPath(delta, table_path).detail().collect()[0].properties
    assert properties["delta.constraints.small"] == "id < 10 AND length('(') = 1"
    with pytest.raises(OptimistError) as caught:
        delta.sql(f"ALTER TABLE {table} ADD CONSTRAINT never CHECK (id > 10)")
    assert caught.value.kind == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    delta.sql(f"ALTER TABLE {table} DROP CONSTRAINT small")
    delta.sql(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS small")
    with pytest.raises(OptimistError) as caught:
        delta.sql(f"ALTER TABLE {table} DROP CONSTRAINT small")
    assert caught.value.kind == "DELTA_CONSTRAINT_DOES_NOT_EXIST"


def test_clustering_and_manifests(delta, tmp_path):
    path = str(tmp_path / "t")
    write(delta.range(3), path)
    delta.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
    assert len((tmp_path / "t/_symlink_format_manifest/manifest").read_text().split()) >= 1
    delta.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY (id)")
    assert DeltaTable.forPath(delta, path).detail().collect()[0].clusteringColumns == ["id"]
    delta.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY NONE")
    assert DeltaTable.forPath(delta, path).detail().collect()[0].clusteringColumns == []
    with pytest.raises(UsageError, match="symlink_format_manifest"):
        delta.sql(f"GENERATE other FOR TABLE delta.`{path}`")
    with pytest.raises(UsageError, match="mode"):
        DeltaTable.forPath(delta, path).generate(None)


NOT_BUILT = [
    "REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
]


@pytest.mark.parametrize("text", NOT_BUILT)
def test_what_is_not_built_is_refused_by_name(delta, table, text):
    with pytest.raises(UsageError, match=" is not built yet") as caught:
        delta.sql(text.format(t=table))
    assert caught.value.kind == "OPTIMIST_NOT_BUILT_YET"


def test_an_error_points_into_the_text(delta, table):
    with pytest.raises(UsageError, match=r"line 2, column 2") as caught:
        delta.sql(f"OPTIMIZE {table}\n ZORDR BY (id)")
    assert caught.value.fields["fragment"] == " ZORDR BY (id)\n ^"
    (place,) = caught.value.getQueryContext()
    start = len(f"OPTIMIZE {table}\n ")
    assert (place.fragment(), place.startIndex(), place.stopIndex()) == ("ZORDR", start, start + 4)
    assert "== SQL (line 2, position 1) ==\n ZORDR BY (id)\n ^" in str(caught.value)
    with pytest.raises(UsageError, match="can't be explained"):
        delta.sql(f"EXPLAIN OPTIMIZE {table}")


def test_what_is_no_delta_table_is_spark_s_or_refused(delta):
    delta.sql("CREATE OR REPLACE TEMP VIEW looked AS SELECT 1 AS a")
    with pytest.raises(UsageError) as caught:
        delta.sql("DESCRIBE HISTORY looked")
    assert caught.value.kind == "DELTA_TABLE_ONLY_OPERATION"
    with pytest.raises((AnalysisException, ParseException)):
        delta.sql("ALTER TABLE nothing_of_this_name ADD CONSTRAINT c CHECK (a > 0)")
    with pytest.raises(AnalysisException):
        delta.sql("DESCRIBE DETAIL nothing_of_this_name")
    delta.sql("DROP VIEW looked")


def test_what_our_grammar_can_not_finish_is_spark_s(delta, table, tmp_path):
    columns, place = "id INT, p INT", f"PARTITIONED BY (p) LOCATION '{tmp_path}/history'"
    delta.sql(f"CREATE TABLE history ({columns}) USING parquet {place}")
    try:
        delta.sql("INSERT INTO history VALUES (1, 2)")
        described = delta.sql("DESC history PARTITION (p = 2)").collect()
        assert ("p", "int", None) in described
        for text in (
            "ALTER TABLE {} ADD CONSTRAINT c CHECK (id > 0) NOT ENFORCED",
            "ALTER TABLE {} DROP CONSTRAINT c CASCADE",
        ):
            for name in ("history", table):
                with pytest.raises(PySparkException) as caught:
                    delta.sql(text.format(name))
                is_ours = getattr(caught.value, "kind", None) == "PARSE_SYNTAX_ERROR"
                assert not is_ours or pyspark.__version__ < "4.1"
    finally:
        delta.sql("DROP TABLE history")
