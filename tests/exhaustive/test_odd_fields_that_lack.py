"""Nested columns that are absent, null or empty, at every depth, in each command without Spark."""

from __future__ import annotations

import random  # noqa: TID251 - the same sample each time
import shutil

import pytest

from exhaustive_cases import in_proportion
from lacking_fields import KINDS, Lacking, nested_types, problem, spelled, steps

SHALLOW = list(nested_types(2))
DEEP = [kind for kind in nested_types(3) if kind not in SHALLOW]
_DEEP_CASES = 128
"""How many of the types with three levels are tried."""


def some_deep(seed=7):
    return random.Random(seed).sample(DEEP, min(len(DEEP), in_proportion(_DEEP_CASES)))


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("kind", [*SHALLOW, *some_deep()], ids=spelled)
def test_each_command_keeps_what_lacks(tmp_path, kind, how):
    found = []
    for name in list(steps(Lacking.write(tmp_path / "names", kind, how))):
        found.append(problem(Lacking.write(tmp_path / name, kind, how), name))
        shutil.rmtree(tmp_path / name)
    assert [item for item in found if item] == []
