"""The corpus of queries, over tables and over the plain rows; and what must be refused."""

from __future__ import annotations

import pytest

import corpus
from optimist.core.errors import OptimistError

ERRORS = [
    line.split("\t")
    for line in (corpus.FOLDER / "errors.txt").read_text(encoding="utf-8").splitlines()
]
CARE = (corpus.FOLDER / "care.txt").read_text(encoding="utf-8").splitlines()
QUERIES = list(zip(corpus.queries(), corpus.expected(), strict=True))


@pytest.fixture(scope="module")
def names(delta, tmp_path_factory):
    return corpus.make_tables(delta, str(tmp_path_factory.mktemp("corpus")))


@pytest.fixture(scope="module")
def views(spark):
    views = corpus.make_views(spark)
    yield views
    for view in set(views.values()):
        spark.catalog.dropTempView(view)


@pytest.mark.sample(12)
@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_a_query_over_tables(delta, names, query, rows):
    found = corpus.told(delta.sql(corpus.with_names(query, names)))
    assert corpus.ordered(query, found) == corpus.ordered(query, rows)


@pytest.mark.again
@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_a_query_over_the_plain_rows(spark, views, query, rows):
    found = corpus.told(spark.sql(corpus.with_names(query, views)))
    assert corpus.ordered(query, found) == corpus.ordered(query, rows)


@pytest.mark.parametrize(("kind", "text"), ERRORS)
def test_a_statement_is_refused_as(delta, names, kind, text):
    with pytest.raises(OptimistError) as caught:
        delta.sql(corpus.with_names(text.replace("\\n", "\n"), names))
    assert caught.value.kind == kind


@pytest.fixture(scope="module")
def cared_for(delta, tmp_path_factory):
    return corpus.make_tables(delta, str(tmp_path_factory.mktemp("cared_for")))


@pytest.mark.again
@pytest.mark.parametrize("text", CARE)
def test_a_statement_that_cares_for_a_table_runs_and_changes_no_row(delta, cared_for, text):
    def count():
        return delta.sql(corpus.with_names("SELECT count(*) FROM {f}", cared_for)).collect()

    before = count()
    delta.sql(corpus.with_names(text.replace("\\n", "\n"), cared_for)).collect()
    assert "RESTORE" in text or count() == before


def test_the_corpus_is_large_and_says_nothing_twice():
    texts = [*corpus.queries(), *CARE, *(text for _, text in ERRORS)]
    assert len(texts) == len(set(texts))
    assert len(texts) >= 300
