"""OPTIMIZE rewrites the partitions of odd values that its condition names, and no others.

A sample; `tests/exhaustive/test_odd_partitions.py` tries all conditions.
"""

from __future__ import annotations

import pytest

from odd_partitions import PARTITIONS, chosen, parted_twice
from row_model import conditions


@pytest.mark.parametrize("name", ["text", "dec9", "double", "date", "bytes"])
def test_optimize_takes_the_partitions_that_a_condition_names(tmp_path, name):
    log = parted_twice(str(tmp_path / "t"), name)
    asked = list(conditions(name, PARTITIONS[name]))
    for condition in asked[:: max(1, len(asked) // 25)]:
        found, wanted = chosen(log, name, condition)
        assert found == wanted, condition.sql
