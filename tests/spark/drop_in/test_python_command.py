"""A command runs once, when Spark executes it: not when it is planned, copied or read again."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from optimist.core.errors import UsageError
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.session.jvm import Jvm

_NUMBER = StructType([StructField("n", LongType())])


def test_a_command_runs_once_however_often_its_rows_are_read(enabled):
    runs = []

    def run(session):
        runs.append(session)
        return session.range(3).selectExpr("id AS n")

    plan = python_command(enabled, "COUNT UP", _NUMBER, run)
    copy = plan.clone()
    assert "COUNT UP" in plan.toString()
    assert runs == []
    frame = Jvm.of(enabled).frame(copy)
    assert [row.n for row in frame.collect()] == [row.n for row in frame.collect()] == [0, 1, 2]
    assert runs == [enabled]
    assert frame.schema == _NUMBER


def test_a_command_without_rows(enabled):
    frame = Jvm.of(enabled).frame(python_command(enabled, "NOTHING", StructType(), lambda _: None))
    assert frame.collect() == []


def test_an_error_of_a_command_keeps_its_class(enabled):
    def fail(session):
        raise UsageError("No.", kind="OPTIMIST_INVALID_ARGUMENT", argument="x")

    with pytest.raises(UsageError) as caught:
        Jvm.of(enabled).frame(python_command(enabled, "FAIL", _NUMBER, fail))
    assert caught.value.fields["argument"] == "x"
