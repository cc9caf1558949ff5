"""Nested columns that are absent, null or empty, on both planes and in the driver."""

from __future__ import annotations

import shutil

import pytest

from exhaustive_cases import in_proportion
from lacking_fields import KINDS, Lacking, nested_types, spelled
from lacking_on_spark import ON_SPARK, problem_on_spark, steps_on_spark, use_plane

SHALLOW = list(nested_types(1))
DEEP = [kind for kind in nested_types(2) if kind not in SHALLOW]
SOME_DEEP = DEEP[:: len(DEEP) // in_proportion(len(DEEP))]


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("name", ON_SPARK)
@pytest.mark.parametrize("kind", [*SHALLOW, *SOME_DEEP], ids=spelled)
def test_each_command_keeps_what_lacks(spark, conf, tmp_path, kind, name, how):
    use_plane(name, conf)
    found = []
    for command in list(steps_on_spark(Lacking.write(tmp_path / "names", kind, how), spark)):
        table = Lacking.write(tmp_path / "table", kind, how)
        found.append(problem_on_spark(table, spark, command))
        shutil.rmtree(tmp_path / "table")
    assert [item for item in found if item] == []
