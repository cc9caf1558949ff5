"""Many random MERGEs without Spark, held against a model that goes row by row."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from exhaustive_cases import in_proportion
from local_merges import CASES, ensure_as_the_model


@settings(
    max_examples=in_proportion(2_000),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
    suppress_health_check=list(HealthCheck),
)
@given(CASES)
def test_a_merge_without_spark_gives_the_rows_of_the_model(tmp_path_factory, case):
    ensure_as_the_model(tmp_path_factory.mktemp("model") / "t", case)
