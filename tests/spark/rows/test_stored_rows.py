"""Rows stored on a Spark Connect server: whose frame they are, and what becomes of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from optimist.spark.rows.stored_rows import stored_rows

Client = type("Client", (), {"__module__": "pyspark.sql.connect.session"})


class _Frame:
    def __init__(self, plan, spark):
        self._plan, self.sparkSession = plan, spark

    def localCheckpoint(self, *, eager):
        """As PySpark has it: the frame of the active session, whichever that is."""
        return _Frame(SimpleNamespace(_spark_session="active"), "active")


class _GoneError(PySparkException):
    def code(self):
        return SimpleNamespace(name="UNAVAILABLE")


def test_stored_rows_are_those_of_their_own_session():
    spark = Client()
    with stored_rows(_Frame(None, spark)) as stored:
        assert stored.sparkSession is spark
    assert stored._plan._spark_session is spark  # which is asked to remove the rows


@pytest.mark.parametrize(("error", "is_asked"), [(_GoneError("gone"), False), (ValueError(), True)])
def test_a_server_that_is_gone_is_not_asked_to_remove_them(error, is_asked):
    spark = Client()
    with pytest.raises(type(error)), stored_rows(_Frame(None, spark)) as stored:
        raise error
    assert stored._plan._spark_session is (spark if is_asked else None)
