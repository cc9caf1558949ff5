"""The README's examples, run one after the other as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from optimist.core import DeltaLog

README = Path(__file__).resolve().parents[2] / "README.md"


def examples() -> list[str]:
    text = README.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.usefixtures("plane")
def test_the_readme_s_examples_run_on_the_table_that_they_build(
    spark: SparkSession, table_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {"spark": spark}
    local = [code for code in examples() if "/data/flights" in code and "s3a:" not in code]
    assert len(local) == 3, "without Spark, with Spark, changes"
    for code in local:
        exec(code.replace("/data/flights", table_path), names)
    told = capsys.readouterr().out
    assert told.count("insert|") == 2
    assert told.count("delete|") == 1
    assert DeltaLog.for_path(table_path).update().version == 2
