"""Builders of sessions: told what scripts tell them for Delta's jar."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from optimist.core.errors import ArgumentTypeError
from optimist.spark import configure_spark_with_delta_pip, with_delta


def test_a_session_of_a_builder_is_enabled(enabled, table):
    builder = with_delta(SparkSession.builder.appName("optimist-tests"))
    assert with_delta(builder) is builder
    session = builder.config("spark.sql.ansi.enabled", "true").getOrCreate()
    assert session.table(f"delta.`{table}`").count() == 20


def test_what_scripts_say_for_deltas_jar_is_left_out(enabled):
    builder = SparkSession.builder.config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    ).config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension, my.Extension")
    configured = configure_spark_with_delta_pip(
        builder, extra_packages=["io.delta:delta-spark_2.13:4.0.0", "my:package:1"]
    )
    assert configured.getOrCreate().range(1).count() == 1
    assert builder._options == {
        "spark.sql.extensions": "my.Extension",
        "spark.jars.packages": "my:package:1",
    }


@pytest.mark.parametrize("value", [None, SparkSession, "local[2]"])
def test_only_builders_are_taken(value):
    with pytest.raises(ArgumentTypeError, match=r"SparkSession\.Builder"):
        with_delta(value)
