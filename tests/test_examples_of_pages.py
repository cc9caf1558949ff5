"""The examples of each page run in order without Spark, on the table that the page makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from page_examples import GIVEN, LEFT_OUT, blocks_of, examples, needs_spark, pages, run_example

PLAIN = [page for page in pages() if any(not needs_spark(code) for _, code in examples(page))]


@pytest.mark.sample(1)
@pytest.mark.parametrize("page", PLAIN)
def test_the_examples_of_a_page_run_in_order(page: str, tmp_path: Path) -> None:
    names: dict[str, object] = dict(GIVEN.get(page, {}))
    for number, code in examples(page):
        if not needs_spark(code):
            run_example(page, number, code, tmp_path, names)


def test_each_page_without_spark_has_its_examples_run() -> None:
    assert {"local", "alter", "change-feed", "optimize", "restore", "sql", "vacuum"} <= set(PLAIN)


def test_what_is_left_out_is_there_and_has_a_reason() -> None:
    for page, left_out in LEFT_OUT.items():
        assert set(left_out) <= set(range(len(blocks_of(page)))), page
        assert all(left_out.values())
