"""Keys of the session's conf answer as under delta-spark, and take the same values.

`python benchmarks/record_delta_spark.py delta_spark_confs.json` makes the record, with Delta's jar.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from known_keys import answers

_RECORD = Path(__file__).parents[1] / "delta_spark_confs.json"
TOLD = json.loads(_RECORD.read_text("utf-8"))["told"]


@pytest.mark.sample(7)
@pytest.mark.parametrize("part", range(7))
def test_each_key_has_deltas_default_and_takes_the_values_that_delta_takes(enabled, part):
    set_by_others = enabled.conf.getAll
    asked = sorted(TOLD)[part::7]
    ours = {key: answers(enabled, key) for key in asked if key not in set_by_others}
    assert len(ours) > len(asked) - 20
    assert {key: told for key, told in ours.items() if told != TOLD[key]} == {}
