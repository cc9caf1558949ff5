"""Run by test_descriptions_on_spark.py in a process of its own: queries of a Connect client."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from connect_process import tell
from description_queries import tell_story
from exhaustive_cases import in_proportion
from optimist.spark import enable

spark = enable(SparkSession.builder.remote("local[2]").getOrCreate())
count = in_proportion(10)
for seed in range(count):
    tell_story(spark, f"{sys.argv[1]}/{seed}", 1000 + seed)
tell("histories", count)
spark.stop()
