"""A Spark Connect client whose server is gone before a write is told that nothing was written."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from optimist.core.errors import StorageError
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.core.sql import parse_path_statement
from optimist.spark.drop_in.connect import sql, writers
from optimist.spark.drop_in.connect.statement_names import StatementNames
from optimist.spark.drop_in.connect.value_tables import value_tables
from optimist.spark.drop_in.connect.variables import with_variables
from optimist.spark.session.jvm import known_to_spark
from optimist.spark.sql import connect_sql

NAME = "delta.`/t`"
ASKED = SimpleNamespace(mode="append", provider=None, source="delta", options={})
WRITER = SimpleNamespace(_write=ASKED, _table_name=NAME, text="", _spark=None)
NAMES = StatementNames(None)  # a path needs no server


class _GoneError(PySparkException):
    """What gRPC raises where nobody answers."""

    def code(self):
        return SimpleNamespace(name="UNAVAILABLE")


def gone(*_, **__):
    raise _GoneError("nobody answers")


def statement(text):
    return lambda: sql._run(None, parse_path_statement(text, None), None, NAMES)


def saved(name, *args):
    kind = writers.WRITER if name in writers.WRITER else writers.WRITER_TO
    return lambda: kind[name](None, WRITER, *args)


CASES = {
    "INSERT": (sql, "insert_rows", statement(f"INSERT INTO {NAME} SELECT 1")),
    "CREATE": (sql, "create", statement(f"CREATE TABLE {NAME} (id INT)")),
    "ALTER": (sql, "run_command", statement(f"ALTER TABLE {NAME} ADD COLUMN s STRING")),
    "a variable": (sql, "with_variables", lambda: sql._with_variables(None, WRITER)),
    "save": (writers, "_request", saved("save")),
    "saveAsTable": (writers, "_request", saved("saveAsTable", NAME)),
    "insertInto": (writers, "_insert", saved("insertInto", NAME)),
    "append": (writers, "_change", saved("append")),
    "replace": (writers, "_create", saved("replace")),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_nothing_was_written_before_the_write(monkeypatch, name):
    room, step, call = CASES[name]
    monkeypatch.setattr(room, step, gone)
    with pytest.raises(StorageError) as caught:
        call()
    assert caught.value.kind == "OPTIMIST_SPARK_SERVER_LOST"


@pytest.mark.sample(1)
@pytest.mark.parametrize("lost", ["a variable", "a function", "an expression", "a schema"])
def test_what_a_server_does_not_answer_is_no_answer(monkeypatch, lost):
    monkeypatch.setattr(connect_sql, "is_on", lambda *_: False)
    monkeypatch.setattr(connect_sql.sf, "expr", str)
    catalog = SimpleNamespace(getFunction=gone)
    spark = SimpleNamespace(catalog=catalog, createDataFrame=gone)
    columns = StructType((StructField("id", PrimitiveType("long")),))
    text = "hash(id) > 0" if lost == "a function" else "id > 0"
    with pytest.raises(_GoneError):
        if lost == "a variable":
            with_variables(gone, "OPTIMIZE ${x}")
        elif lost == "a schema":
            with known_to_spark():
                gone()
        else:
            connect_sql.judged_sent_sql(spark, text, columns)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("ends", "dropped"), [(gone, []), (lambda: int("x"), ["v"])])
def test_a_server_that_is_gone_is_not_asked_to_drop_views(ends, dropped):
    asked: list[str] = []
    spark = SimpleNamespace(catalog=SimpleNamespace(dropTempView=asked.append))
    with pytest.raises((PySparkException, ValueError)), value_tables(spark, NAMES) as tables:
        tables._views["a relation"] = "v"
        ends()
    assert asked == dropped
