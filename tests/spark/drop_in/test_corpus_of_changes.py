"""The corpus of statements that change, over paths and over names of the catalog."""

from __future__ import annotations

import itertools
import shutil

import pytest

import corpus_changes
from optimist.spark import disable, enable

_NUMBERS = itertools.count()
CASES = [
    pytest.param(case, by_name, id=f"{'name' if by_name else 'path'}: {case.name}")
    for number, case in enumerate(corpus_changes.cases())
    for by_name in [number % 2 == 1]
]


@pytest.fixture(scope="module")
def place(spark, tmp_path_factory):
    """A session with a database for the tables, and the directory of the first one."""
    folder = tmp_path_factory.mktemp("changes")
    corpus_changes.make_table(str(folder / "first"))
    enable(spark)
    spark.sql(f"CREATE DATABASE corpus LOCATION '{folder}/corpus'")
    yield folder
    spark.sql("DROP DATABASE corpus CASCADE")
    disable(spark)


@pytest.mark.sample(16)
@pytest.mark.parametrize(("case", "by_name"), CASES)
def test_statements_that_change(spark, place, case, by_name):
    folder = place / f"Case_{next(_NUMBERS)}"
    copy = shutil.copytree(place / "first", folder / "t.able")
    names = {"t": f"delta.`{copy}`", "n": f"delta.`{folder}/n e.w`", "folder": str(folder)}
    if by_name:
        names["t"] = f"Corpus.`{folder.name}_Of`"
        spark.sql(f"CREATE TABLE {names['t']} USING delta LOCATION '{copy}'")
    if by_name or any("DROP TABLE" in line.text for line in case.lines):
        names["n"] = f"`corpus`.{folder.name}_New"
    assert list(corpus_changes.differences(spark.sql, case, names)) == []


def test_the_corpus_has_a_hit_and_an_error_of_each_statement():
    lines = [line for case in corpus_changes.cases() for line in case.lines]
    for words in ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "REPLACE", "TRUNCATE", "DROP"):
        of_these = [line for line in lines if line.text.startswith(words)]
        assert any(line.is_error for line in of_these), words
        assert not all(line.is_error for line in of_these), words
    assert len(lines) >= 190
