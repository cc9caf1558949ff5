"""Run by test_spellings_connect.py: changes of a table by its spellings, on Spark Connect."""

from __future__ import annotations

import random  # noqa: TID251 - the seed is the spelling: the same changes each time
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from connect_process import tell
from optimist.spark import enable
from spelled_tables import PATH_SPELLINGS, changes_by, failures


def main(folder: str, num_changes: str) -> None:
    spark = enable(SparkSession.builder.remote("local[2]").getOrCreate())
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    for spelling in PATH_SPELLINGS:
        changes = changes_by(spelling)
        random.Random(spelling).shuffle(changes)
        place = Path(folder, spelling)
        place.mkdir()
        tell(spelling, failures(spark, place, spelling, changes[: int(num_changes)]))
    spark.stop()


main(*sys.argv[1:])
