"""What the answer of a Spark Connect server says of a view, without a server."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from pyspark.errors import AnalysisException

from optimist.core.errors import UsageError
from optimist.spark.commands.catalog import server_views
from optimist.spark.commands.catalog.server_views import server_view

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
    assert (view.columns, view.query_columns) == ([("id", "bigint")], ["ID"])


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
    told = {**TOLD, "columns": [{"name": "c", "type": kind}]}
    assert server_view(server(told), NAME).columns == [("c", text)]


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
        self.schema = [SimpleNamespace(dataType=SimpleNamespace(simpleString=lambda: kind))]

    def toDF(self, *_):
        return SimpleNamespace(select=lambda *columns: columns)


@pytest.mark.parametrize(
    ("mode", "kind", "ansi", "is_read"),
    [
        ("COMPENSATION", "BIGINT", "false", True),
        ("COMPENSATION", "double", "true", True),
        ("COMPENSATION", "double", "false", False),
        ("BINDING", "double", "true", False),
        ("TYPE EVOLUTION", "double", "false", True),
        ("BINDING", "int", "false", True),
        ("COMPENSATION", "smallint", "false", True),
        ("BINDING", "decimal(9,0)", "true", False),
    ],
)
def test_a_cast_that_could_change_values_is_refused(monkeypatch, mode, kind, ansi, is_read):
    monkeypatch.setattr(server_views.sf, "col", lambda _: MagicMock())
    view = server_view(server({**TOLD, "view_schema_mode": mode}), NAME)
    rows = Rows(kind, ansi)
    if is_read:
        assert len(view.shaped(rows)) == 1
        return
    with pytest.raises(AnalysisException, match=re.escape(f"`ID {kind}`")):
        view.shaped(rows)


def test_no_cast_is_taken_for_an_up_cast_that_is_none_to_spark(spark):
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double")
    kinds = (*numbers, "decimal(9,2)", "decimal(9,4)", "decimal(11,2)", "decimal(11,4)", "date")
    session, expressions = spark._jsparkSession, spark._jvm.org.apache.spark.sql.catalyst
    parsed = {kind: session.sessionState().sqlParser().parseDataType(kind) for kind in kinds}
    told = {
        (found, wanted): expressions.expressions.Cast.canUpCast(parsed[found], parsed[wanted])
        for found in kinds
        for wanted in kinds
    }
    ours = {pair: server_views._is_up_cast(*pair) for pair in told}
    assert [pair for pair in told if ours[pair] and not told[pair]] == []
    of_numbers = [pair for pair in told if {*pair} <= {*numbers}]
    assert [ours[pair] for pair in of_numbers] == [told[pair] for pair in of_numbers]
    decimals = [pair for pair in told if all("decimal" in kind for kind in pair)]
    assert [ours[pair] for pair in decimals] == [told[pair] for pair in decimals]


def test_the_text_of_a_view_stands_within_a_query():
    view = server_view(server({**TOLD, "view_text": "SELECT id FROM t -- all"}), NAME)
    assert view.query == "SELECT * FROM (\nSELECT id FROM t -- all\n)"
