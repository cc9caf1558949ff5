"""Variants that are absent or null, in the driver: a sample of `tests/spark/exhaustive`."""

from __future__ import annotations

import pytest

from lacking_fields import VARIANT, Lacking
from lacking_on_spark import problem_on_spark, use_plane

COMMANDS = ("update to null", "delete rows", "optimize", "merge without the column")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_variant_that_lacks_is_null(spark, conf, tmp_path, name):
    use_plane("driver", conf)
    table = Lacking.write(tmp_path / "table", VARIANT, "rewritten")
    assert problem_on_spark(table, spark, name) is None
