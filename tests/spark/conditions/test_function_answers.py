"""A sample of the recorded answers of Spark, asked again of this Spark."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_answers import CONFS, spark_answers
from zoned_answers import ZONED_RECORD, zoned_answers
from zoned_times import EXPRESSIONS, ZONES

_FILE = Path(__file__).parents[2] / "core" / "predicates" / "spark_answers.json.gz"
_ONE_IN = 23


@pytest.mark.again
def test_a_sample_of_the_record_is_still_what_spark_answers(
    spark: SparkSession, conf: Callable[[str, str], None]
) -> None:
    record = json.loads(gzip.decompress(_FILE.read_bytes()))
    chosen = dict(list(record.items())[::_ONE_IN])
    for key, value in CONFS.items():
        conf(key, value)
    found = spark_answers(spark, list(chosen))
    assert {sql: list(answer) for sql, answer in found.items()} == chosen


@pytest.mark.again
@pytest.mark.sample(4)
@pytest.mark.parametrize("zone", ZONES)
def test_the_record_of_a_zone_is_still_what_spark_answers(
    spark: SparkSession, conf: Callable[[str, str], None], zone: str
) -> None:
    record = json.loads(gzip.decompress(ZONED_RECORD.read_bytes()))[zone]
    conf("spark.sql.ansi.enabled", "true")
    found = zoned_answers(spark, EXPRESSIONS, zone, conf)
    assert {sql: list(answer) for sql, answer in found.items()} == record
