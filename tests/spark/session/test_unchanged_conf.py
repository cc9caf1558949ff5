"""A client of Spark Connect refuses a command during which its session has changed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from optimist.core.errors import ConfigError
from optimist.spark.session.unchanged_conf import unchanged_conf

CONNECT = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})


@pytest.fixture
def session():
    """A client's session whose conf is a dictionary."""
    made = CONNECT()
    made.conf = SimpleNamespace(getAll={})
    return made


@pytest.mark.parametrize(
    "key",
    ["session.timeZone", "ansi.enabled", "caseSensitive", "decimalOperations.allowPrecisionLoss"],
)
def test_a_key_that_changes_what_expressions_mean_ends_the_command(session, key):
    with pytest.raises(ConfigError) as caught, unchanged_conf(session):
        session.conf.getAll = {f"spark.sql.{key}": "x"}
    assert caught.value.kind == "OPTIMIST_SESSION_CHANGED"
    assert caught.value.fields["keys"] == (f"spark.sql.{key}",)


def test_other_keys_may_change(session):
    with unchanged_conf(session):
        session.conf.getAll = {"spark.sql.shuffle.partitions": "3"}
