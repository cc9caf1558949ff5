"""SQL in a table's log is judged on Spark Connect, too, before Spark runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of
from hostile_expressions import FORBIDDEN

SCRIPT = Path(__file__).with_name("connect_expressions_script.py")
REFUSALS = (
    "SchemaError OPTIMIST_UNSAFE_EXPRESSION",
    "SchemaError OPTIMIST_INVALID_EXPRESSION",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What Spark Connect does, in a process of its own."""
    folder = tmp_path_factory.mktemp("connect")
    return results_of(SCRIPT, folder)


def test_spark_connect_refuses_the_same_before_anything_is_run(told):
    names = {f"{place}: {name}" for place in ("check", "default") for name in FORBIDDEN}
    assert names <= set(told)
    passed = {name: told[name] for name in names if told[name] not in REFUSALS}
    assert passed == {}
    assert told["canary"] == ["null"]
    assert told["read"] == 0


def test_spark_connect_computes_what_tables_usually_have(told):
    assert told["usual"] == told["expected"]
    assert told["defaults"] == [[42, "dX"]]
