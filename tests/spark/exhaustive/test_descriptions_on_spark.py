"""Streams of Spark over tables whose descriptions change: what was written comes, or a refusal."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from connect_process import results_of
from description_queries import tell_story
from exhaustive_cases import in_proportion

SCRIPT = Path(__file__).with_name("connect_descriptions_script.py")
SEEDS = range(in_proportion(40))
TELLS_START = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("plane", ["native", "arrow"])
def test_in_classic_sessions(enabled, conf, tmp_path, plane):
    conf("spark.optimist.spark.plane", plane)
    refused = [tell_story(enabled, f"{tmp_path}/{seed}", seed) for seed in SEEDS]
    assert len(refused) < 10 or any(refused)


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not TELLS_START, reason="this PySpark does not tell where a batch begins")
def test_on_spark_connect(tmp_path):
    assert results_of(SCRIPT, tmp_path)["histories"] == in_proportion(10)
