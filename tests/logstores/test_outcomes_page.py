"""docs/outcomes.md is what the tables in the code say; `python docs/outcomes.py` makes it anew."""

import runpy
from pathlib import Path

import pytest

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.errors.kinds import CLASS_OF_KIND
from optimist.logstores.azure.errors import AZURE_ANSWERS
from optimist.logstores.gcs.errors import GCS_ANSWERS
from optimist.logstores.hdfs.errors import HDFS_ANSWERS
from optimist.logstores.s3.errors import S3_ANSWERS
from optimist.logstores.shared.answer_table import (
    ANY_OTHER,
    AnswerRow,
    AnswerTable,
    PutMeaning,
    error_of_row,
)
from optimist.logstores.shared.http_answers import ResponseCode

TABLES = {"azure": AZURE_ANSWERS, "gcs": GCS_ANSWERS, "hdfs": HDFS_ANSWERS, "s3": S3_ANSWERS}
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


@pytest.mark.parametrize("store", TABLES)
def test_an_answer_has_one_row_and_every_other_answer_has_one_too(store):
    names = [name for row in TABLES[store] for name in row.answers]
    assert len(set(names)) == len(names)
    assert ANY_OTHER in names


@pytest.mark.parametrize("store", TABLES)
def test_every_row_raises_what_users_of_a_store_catch(store):
    for row in TABLES[store]:
        assert issubclass(CLASS_OF_KIND[row.kind], StorageError)
        error = error_of_row(row, doing="read", path="/t/0.json", service="there", said="404")
        assert type(error) is CLASS_OF_KIND[row.kind]
        assert isinstance(error, LogFileNotFoundError) == (row.kind == "OPTIMIST_FILE_NOT_FOUND")
        assert (error.kind, error.retryable) == (row.kind, row.retryable)
        assert error.fields["path"] == "/t/0.json"
        assert str(error).partition("] ")[2].startswith("Cannot read /t/0.json: ")
        assert str(error).endswith(f"(404). {row.remedy}")
        assert row.remedy.endswith(".")


def test_the_most_exact_name_of_an_answer_finds_its_row():
    def row(*answers):
        return AnswerRow(answers, PutMeaning.UNKNOWN, "OPTIMIST_STORAGE_FAILED", "it failed", "")

    by_rest, by_class, by_status, by_code = rows = (
        row(ANY_OTHER),
        row("3xx", "4xx"),
        row("409"),
        row("409 Gone"),
    )
    for table in (AnswerTable(*rows), AnswerTable(*reversed(rows))):
        assert table.find(ResponseCode(409, "Gone").names) is by_code
        assert table.find(ResponseCode(409, "Other").names) is by_status
        assert table.find(ResponseCode(404, "Gone").names) is by_class
        assert table.find(ResponseCode(500, "Gone").names) is by_rest
        assert table.find(ResponseCode(0, "no-answer").names) is by_rest
        assert table.find([]) is by_rest
