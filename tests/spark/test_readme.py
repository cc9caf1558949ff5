"""The README's examples, run one after the other as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from optimist.core import DeltaLog
from optimist.spark import disable

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
    assert len(local) == 4, "without Spark, with Spark, changes, Delta's own words"
    try:
        for code in local:
            exec(code.replace("/data/flights", table_path), names)
    finally:
        disable(spark)
        spark.catalog.dropTempView("news")
    told = capsys.readouterr().out
    assert told.count("insert|") == 2
    assert told.count("delete|") == 1
    counts = re.findall(
        r"^\| +(\d+)\| +(\d+)\|$", told.rpartition("|month|count|")[2], re.MULTILINE
    )
    assert sorted(counts) == [("1", "3"), ("3", "1"), ("4", "1")]
    assert DeltaLog.for_path(table_path).update().version == 3
