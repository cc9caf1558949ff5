"""Scripts for Delta's jar, run as they are: each prints what it prints under delta-spark 4.4.0.

The texts beside the scripts were printed by that jar.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from optimist.spark import compat

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "drop_in"
NAMES = ["quick_start", *sorted({path.stem for path in FOLDER.glob("*.py")} - {"quick_start"})]


@pytest.fixture
def as_delta(spark):
    """Scripts set what they like on the session that all tests share."""
    before = spark.conf.getAll
    compat.install()
    yield
    compat.remove()
    for key, value in spark.conf.getAll.items():
        if key not in before:
            spark.conf.unset(key)
        elif before[key] != value:
            spark.conf.set(key, before[key])


@pytest.mark.sample(len(NAMES))
@pytest.mark.parametrize("name", NAMES)
def test_a_script_prints_what_it_prints_under_deltas_jar(enabled, as_delta, capsys, name):
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_no_script_knows_us():
    for name in NAMES:
        assert "optimist" not in (FOLDER / f"{name}.py").read_text(encoding="utf-8").lower()
