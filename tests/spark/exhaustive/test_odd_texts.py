"""Texts of SQL mean to the engine what they mean to Spark, or are refused."""

from __future__ import annotations

from exhaustive_cases import in_proportion
from odd_text_trials import tried
from odd_texts import odd_texts

SEED = 20
COUNT = in_proportion(400)


def test_texts_mean_what_they_mean_to_spark(spark):
    trial = tried(spark, odd_texts(COUNT, SEED))
    assert trial.wrong == []
    assert trial.counts["condition"] > COUNT // 100
    assert trial.counts["value"] > COUNT // 100
