"""docs/outcomes.md is what the tables in the code say; `python docs/outcomes.py` makes it anew."""

import runpy
from pathlib import Path

import pytest

from optimist.logstores.azure.errors import AZURE_ANSWERS
from optimist.logstores.gcs.errors import GCS_ANSWERS
from optimist.logstores.shared.http_answers import ResponseCode, find_row

SCRIPT = Path(__file__).parents[2] / "docs" / "outcomes.py"


@pytest.fixture(scope="module")
def page():
    return runpy.run_path(str(SCRIPT))["page"]()


def test_page_is_what_the_tables_say(page):
    written = SCRIPT.with_suffix(".md").read_text(encoding="utf-8")
    assert page == written, "run `python docs/outcomes.py`"


def test_page_tells_of_every_store(page):
    for store in ("S3LogStore", "AzureLogStore", "GCSLogStore", "HDFSLogStore", "LocalLogStore"):
        assert f"`{store}`" in page


@pytest.mark.parametrize("table", [AZURE_ANSWERS, GCS_ANSWERS], ids=["azure", "gcs"])
def test_every_row_is_the_first_for_some_answer(table):
    reached = {
        id(find_row(table, ResponseCode(status, code)))
        for status in range(600)
        for code in {row.code for row in table} | {"other"}
    }
    assert reached == {id(row) for row in table}
