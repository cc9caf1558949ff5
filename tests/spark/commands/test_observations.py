"""What a user observes of rows is told once a command has read them."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.spark import DeltaTable, write
from table_contents import rows


def write_new(spark, observed, path):
    write(observed, path + "-new")


def overwrite(spark, observed, path):
    write(observed.withColumn("s", sf.lit("new")), path, mode="overwrite")


def replace_where(spark, observed, path):
    new = observed.withColumn("s", sf.lit("new"))
    write(new, path, mode="overwrite", replaceWhere="id >= 3")


def merge(spark, observed, path):
    builder = DeltaTable.forPath(spark, path).alias("t").merge(observed.alias("o"), "t.id = o.id")
    builder.whenMatchedDelete().whenNotMatchedInsert(values={"id": "o.id"}).execute()


@pytest.mark.parametrize("command", [write_new, overwrite, replace_where, merge])
@pytest.mark.usefixtures("plane")
def test_the_rows_of_a_command_are_observed(spark, table_path, command):
    DeltaLog.for_path(table_path, {}).append(rows(0, 5))
    observation = Observation()
    observed = spark.range(3, 8).observe(observation, sf.count(sf.lit(1)).alias("n"))
    command(spark, observed, table_path)
    found = []
    # In a thread, for what is never told is waited for without an end.
    waiting = threading.Thread(target=lambda: found.append(observation.get), daemon=True)
    waiting.start()
    waiting.join(60)
    assert found == [{"n": 5}]
