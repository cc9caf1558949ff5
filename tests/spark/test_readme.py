"""The README's examples, and those of pages, run one after the other as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from optimist.core import DeltaLog
from optimist.spark import disable, read, write

ROOT = Path(__file__).resolve().parents[2]


def examples(page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_all_blocks_of_the_readme_run_in_order_on_one_table(
    spark: SparkSession, table_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {}
    try:
        for code in examples():
            exec(code.replace("/data/flights", table_path), names)
    finally:
        disable(spark)
        spark.catalog.dropTempView("news")
    assert names["spark"] is spark
    told = capsys.readouterr().out
    assert told.splitlines()[0] == "0 1"
    assert told.count("update_postimage|") == told.count("update_preimage|") == 1
    counts = re.findall(
        r"^\| +(\d+)\| +(\d+)\|$", told.rpartition("|month|count|")[2], re.MULTILINE
    )
    assert sorted(counts) == [("1", "1"), ("3", "1"), ("4", "1")]
    log = DeltaLog.for_path(table_path)
    assert sorted(log.to_arrow()["delay"].to_pylist()) == [0, 15, 80]
    # The comments of the blocks name the versions that the table then has.
    assert [record.info.operation for record in reversed(log.history())] == [
        "WRITE",
        "WRITE",
        "DELETE",
        "TRANSACTION",
        "SET TBLPROPERTIES",
        "UPDATE",
        "MERGE",
    ]


def test_a_table_is_made_and_looked_at_as_the_pages_show_it(
    spark: SparkSession, table_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = examples("docs/create.md")[1]
    names: dict[str, object] = {"spark": spark}
    exec(made.replace("/data/people", table_path), names)
    assert names["people"].toDF().columns == ["id", "born", "year"]
    write(spark.sql("SELECT id, id % 5 AS month FROM range(20)"), f"{table_path}-months")
    names |= {"path": f"{table_path}-months", "read": read}
    for code in examples("docs/skipping.md")[-2:]:
        exec(code, names)
    assert "of 2 files" in capsys.readouterr().out


@pytest.mark.again
def test_a_session_is_served_as_the_page_shows_it(spark: SparkSession, table_path: str) -> None:
    enabled, built = examples("docs/drop-in.md")[:2]
    for version in range(4):
        write(spark.range(version, version + 1), table_path, mode="append")
    try:
        names: dict[str, object] = {"spark": spark}
        exec(enabled.replace("/data/flights", table_path), names)
        disable(spark)
        exec(built, names)
        assert names["spark"].read.format("delta").load(table_path).count() == 4
    finally:
        disable(spark)
