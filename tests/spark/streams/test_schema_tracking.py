"""Streams with a log of schemas: what they write is what delta-spark writes (spec 11.5)."""

import json
from pathlib import Path

import pytest

from schema_log_story import told_by

RECORD = json.loads(Path(__file__).parents[1].joinpath("delta_spark_schema_log.json").read_text())


@pytest.fixture(params=["native", pytest.param("arrow", marks=pytest.mark.again)])
def plane(request, conf):
    conf("spark.optimist.spark.plane", request.param)


def test_runs_logs_and_offsets_are_those_of_delta_spark(enabled, plane, tmp_path):
    told = told_by(enabled, tmp_path)
    assert told == RECORD["told"]
