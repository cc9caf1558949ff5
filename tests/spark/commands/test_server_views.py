"""What the answer of a Spark Connect server says of a view, without a server."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import types as st

from optimist.core.errors import UsageError
from optimist.spark.commands.catalog import server_views
from optimist.spark.commands.catalog.server_views import server_view
from optimist.spark.commands.catalog.view_types import is_up_cast, type_text

NAME = ("spark_catalog", "db", "v")
TOLD = {
    "columns": [{"name": "id", "type": {"name": "bigint"}}],
    "view_text": "SELECT id FROM t",
    "view_catalog_and_namespace": "spark_catalog.`d.b`",
    "view_query_output_columns": ["ID"],
    "view_schema_mode": "COMPENSATION",
    "view_creation_spark_configuration": {"spark.sql.session.timeZone": "UTC"},
}


class Server:
    told = "{}"
    error = None
    confs = {"spark.sql.session.timeZone": "UTC"}  # noqa: RUF012 - read only

    def sql(self, text):
        assert text == "DESCRIBE EXTENDED `spark_catalog`.`db`.`v` AS JSON"
        if self.error:
            raise AnalysisException("as wanted", errorClass=self.error)
        return self

    def collect(self):
        return [(self.told,)]

    @property
    def conf(self):
        return self

    def get(self, key, default=None):
        return self.confs.get(key, default)

    @property
    def getAll(self):
        return self.confs


def server(told=TOLD, **more):
    return type("Served", (Server,), {"told": json.dumps(told), **more})()


def test_a_view_tells_its_query_and_where_its_names_are():
    view = server_view(server(), NAME)
    assert (view.text, view.within) == ("SELECT id FROM t", ("spark_catalog", "d.b"))
    assert (view.columns, view.query_columns) == ([("id", {"name": "bigint"})], ["ID"])


def test_what_is_no_view_any_more_is_none():
    assert server_view(server({"columns": []}), NAME) is None
    assert server_view(server(error="TABLE_OR_VIEW_NOT_FOUND"), NAME) is None
    with pytest.raises(AnalysisException):
        server_view(server(error="INTERNAL_ERROR"), NAME)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ({"name": "decimal", "precision": 9, "scale": 2}, "decimal(9, 2)"),
        ({"name": "varchar", "length": 3}, "string"),
        ({"name": "string", "collation": "UNICODE"}, "string collate UNICODE"),
        ({"name": "string", "collation": "UTF8_BINARY"}, "string"),
        ({"name": "interval", "start_unit": "day", "end_unit": "second"}, "interval day to second"),
        ({"name": "interval", "start_unit": "year", "end_unit": "year"}, "interval year"),
        (
            {
                "name": "struct",
                "fields": [
                    {
                        "name": "a b",
                        "type": {"name": "array", "element_type": {"name": "timestamp_ltz"}},
                    },
                    {
                        "name": "m",
                        "type": {
                            "name": "map",
                            "key_type": {"name": "int"},
                            "value_type": {"name": "date"},
                        },
                    },
                ],
            },
            "struct<`a b`: array<timestamp_ltz>, `m`: map<int, date>>",
        ),
    ],
)
def test_types_are_read_back_as_sql(kind, text):
    assert type_text(kind) == text


@pytest.mark.parametrize(
    ("of_view", "of_session", "is_same"),
    [
        ({}, {}, True),
        ({"spark.sql.ansi.enabled": "true"}, {"spark.sql.ansi.enabled": "TRUE"}, True),
        ({"spark.sql.ansi.enabled": "false"}, {"spark.sql.ansi.enabled": "true"}, False),
        ({}, {"spark.sql.caseSensitive": "true"}, False),
        ({"spark.sql.caseSensitive": "true"}, {}, False),
        ({"spark.sql.shuffle.partitions": "7"}, {"spark.sql.shuffle.partitions": "2"}, True),
        ({"spark.sql.session.timeZone": "Asia/Tokyo"}, {}, False),
    ],
)
def test_settings_that_give_the_query_another_meaning_are_an_error(of_view, of_session, is_same):
    confs = {**TOLD["view_creation_spark_configuration"], **of_view}
    view = server_view(server({**TOLD, "view_creation_spark_configuration": confs}), NAME)
    spark = server(confs={**Server.confs, **of_session})
    spark.__class__.__module__ = "pyspark.sql.connect.session"
    if is_same:
        view.ensure_same_confs(spark)
        return
    with pytest.raises(UsageError, match="may mean something else") as caught:
        view.ensure_same_confs(spark)
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_STATEMENT"


class Rows:
    """Rows of one column, of which no value is asked for."""

    columns = ("id",)

    def __init__(self, kind, ansi):
        conf = SimpleNamespace(get=lambda *_: ansi)
        self.sparkSession = SimpleNamespace(conf=conf)
        self.schema = [SimpleNamespace(dataType=kind)]

    def toDF(self, *_):
        return SimpleNamespace(select=lambda *columns: columns)


DECIMAL = st.DecimalType(9, 0)
TEXTS = {"name": "array", "element_type": {"name": "string"}}


@pytest.mark.parametrize(
    ("mode", "kind", "wanted", "ansi", "is_read"),
    [
        ("COMPENSATION", st.LongType(), "bigint", "false", True),
        ("COMPENSATION", st.DoubleType(), "bigint", "true", True),
        ("COMPENSATION", st.DoubleType(), "bigint", "false", False),
        ("BINDING", st.DoubleType(), "bigint", "true", False),
        ("TYPE EVOLUTION", st.DoubleType(), "bigint", "false", True),
        ("BINDING", st.IntegerType(), "bigint", "false", True),
        ("COMPENSATION", st.ShortType(), "bigint", "false", True),
        ("BINDING", DECIMAL, "bigint", "true", True),
        ("BINDING", DECIMAL, "int", "true", True),
        ("BINDING", st.DecimalType(10, 0), "int", "true", False),
        ("BINDING", st.DateType(), "timestamp_ltz", "false", True),
        ("COMPENSATION", st.DateType(), "string", "false", True),
        ("BINDING", DECIMAL, "string", "false", True),
        ("COMPENSATION", DECIMAL, "string", "true", True),
        ("COMPENSATION", DECIMAL, "string", "false", False),  # Spark writes 0.0000001, not 1E-7
        ("COMPENSATION", st.ArrayType(DECIMAL), TEXTS, "false", False),
        ("COMPENSATION", st.ArrayType(st.DateType()), TEXTS, "false", True),
    ],
)
def test_a_cast_that_could_change_values_is_refused(monkeypatch, mode, kind, wanted, ansi, is_read):
    monkeypatch.setattr(server_views.sf, "col", lambda _: MagicMock())
    column = {"name": "id", "type": wanted if isinstance(wanted, dict) else {"name": wanted}}
    told = {**TOLD, "view_schema_mode": mode, "columns": [column]}
    view = server_view(server(told), NAME)
    rows = Rows(kind, ansi)
    if is_read:
        assert len(view.shaped(rows)) == 1
        return
    with pytest.raises(AnalysisException, match=re.escape(f"`ID {kind.simpleString()}`")):
        view.shaped(rows)


KINDS = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "binary", "void"),
    *("decimal(3,0)", "decimal(4,0)", "decimal(9,2)", "decimal(10,0)", "decimal(11,4)"),
    *("decimal(20,0)", "decimal(38,18)", "date", "timestamp", "timestamp_ntz", "variant"),
    *("string", "string collate UNICODE", "interval", "interval day to second", "interval hour"),
    *("interval year", "interval year to month", "array<int>", "array<bigint>", "array<string>"),
    *("array<decimal(9,2)>", "map<int,date>", "map<bigint,timestamp>", "map<string,int>"),
    *("struct<a:int>", "struct<b:bigint>", "struct<a:int,b:int>", "struct<a:array<date>>"),
    "struct<a:array<timestamp>>",
)


def test_an_up_cast_of_any_two_types_is_one_of_spark(spark):
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS c{at}" for at, kind in enumerate(KINDS))
    spark.sql(f"CREATE OR REPLACE TEMP VIEW all_types AS SELECT {nulls}")
    answer = json.loads(spark.sql("DESCRIBE EXTENDED all_types AS JSON").first()[0])
    told = dict(zip(KINDS, (each["type"] for each in answer["columns"]), strict=True))
    found = dict(
        zip(KINDS, (each.dataType for each in spark.table("all_types").schema), strict=True)
    )
    spark.sql("DROP VIEW all_types")
    session, catalyst = spark._jsparkSession, spark._jvm.org.apache.spark.sql.catalyst
    parsed = {kind: session.sessionState().sqlParser().parseDataType(kind) for kind in KINDS}
    can_up_cast = catalyst.expressions.Cast.canUpCast
    differing = [
        (one, other)
        for one in KINDS
        for other in KINDS
        if is_up_cast(found[one], told[other]) != can_up_cast(parsed[one], parsed[other])
    ]
    assert differing == []


def test_the_text_of_a_view_stands_within_a_query():
    view = server_view(server({**TOLD, "view_text": "SELECT id FROM t -- all"}), NAME)
    assert view.query == "SELECT * FROM (\nSELECT id FROM t -- all\n)"
