"""The corpus on Spark Connect: what can be had there has the same results, the rest is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of

pytestmark = pytest.mark.again
SCRIPT = Path(__file__).with_name("connect_corpus_script.py")
MAY_BE_REFUSED = {"ALTER", "CREATE", "DESCRIBE", "DROP", "EXECUTE", "SHOW"}
"""The first words of statements for which a client has another way: docs/connect.md."""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return results_of(SCRIPT, tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("part", ["queries", "errors", "changes"])
def test_a_client_has_the_same_results(told, part):
    assert told[part] == []


def test_what_it_has_not_is_refused_by_name(told):
    assert {words.split()[0] for words in told["refused"]} <= MAY_BE_REFUSED
