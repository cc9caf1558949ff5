"""All queries of the corpus, over tables; and their rows, once more over the plain rows."""

from __future__ import annotations

import pytest

import corpus
from optimist.spark import disable, enable

QUERIES = list(zip(corpus.queries(), corpus.expected(), strict=True))


@pytest.fixture(scope="module")
def delta(spark):
    yield enable(spark)
    disable(spark)


@pytest.fixture(scope="module")
def tables(delta, tmp_path_factory):
    return corpus.make_tables(delta, str(tmp_path_factory.mktemp("corpus")))


@pytest.fixture(scope="module")
def views(spark):
    names = corpus.make_views(spark)
    yield names
    for view in set(names.values()):
        spark.catalog.dropTempView(view)


@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_a_query_over_tables(delta, tables, query, rows):
    found = corpus.told(delta.sql(corpus.with_names(query, tables)))
    assert corpus.ordered(query, found) == corpus.ordered(query, rows)


@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_a_query_over_the_plain_rows(spark, views, query, rows):
    found = corpus.told(spark.sql(corpus.with_names(query, views)))
    assert corpus.ordered(query, found) == corpus.ordered(query, rows)
