"""The examples of each page run in order with Spark, on the table that the page itself makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from page_examples import examples, needs_spark, pages, run_example

WITH_SPARK = [page for page in pages() if any(needs_spark(code) for _, code in examples(page))]
QUICK = "restore"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page == QUICK else pytest.mark.again) for page in WITH_SPARK],
)
def test_the_examples_of_a_page_run_in_order(
    enabled: SparkSession, page: str, tmp_path: Path
) -> None:
    names: dict[str, object] = {"spark": enabled}
    changed = "spark.databricks.delta.optimizeWrite.enabled"
    try:
        for number, code in examples(page):
            run_example(page, number, code, tmp_path, names)
    finally:
        enabled.conf.unset(changed)
