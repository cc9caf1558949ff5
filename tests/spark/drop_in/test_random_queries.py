"""Random queries over random tables answer what they answer over the same rows without a table.

Tables are made and changed without Spark; what they hold is kept beside them in Python.
"""

from __future__ import annotations

from random import Random  # noqa: TID251 - a case is its seed

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from odd_tables import plain
from optimist.spark import disable, enable
from random_queries import RandomQueries
from random_tables import RandomTable, utc_rows

_VIEW, _SCANNED = "plain_rows", "scanned_rows"
_EXAMPLES = settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a smaller example takes minutes
)


@pytest.fixture(scope="module")
def delta(spark):
    enable(spark)
    yield spark
    for view in (_VIEW, _SCANNED):
        spark.catalog.dropTempView(view)
    disable(spark)


def _rows(frame, query):
    found = [repr(plain(row)) for row in utc_rows(frame.toArrow())]
    return found if "LIMIT" in query else sorted(found)


def _frames(spark, query, path, version, newest):
    """The query in SQL, and by Spark's reader; now and then on the second plane."""
    travel = "" if version == newest else f" VERSION AS OF {version}"
    yield "native", spark.sql(query.replace("{t}", f"delta.`{path}`{travel}"))
    spark.conf.set("spark.optimist.spark.plane", "arrow")
    frame = spark.read.format("delta").option("versionAsOf", version).load(path)
    # By a view, not `sql(..., rows=frame)`, which takes a column `{x}` for a field to fill in.
    frame.createOrReplaceTempView(_SCANNED)
    yield "arrow", spark.sql(query.replace("{t}", _SCANNED))


def _wrong(spark, path, random, queries):
    """Queries that are answered otherwise: version, query, plane, answer, right answer."""
    table = RandomTable(path, random)
    newest = len(table.versions) - 1
    for version in {newest, random.randrange(newest + 1)}:
        held = table.versions[version]
        spark.createDataFrame(held.arrow, held.ddl).createOrReplaceTempView(_VIEW)
        for query in [RandomQueries(held, random).query() for _ in range(queries)]:
            try:
                wanted = _rows(spark.sql(query.replace("{t}", _VIEW)), query)
            except Exception:  # noqa: BLE001 - Spark refuses the query: no types fit
                continue
            try:
                for plane, frame in _frames(spark, query, path, version, newest):
                    found = _rows(frame, query)
                    if found != wanted:
                        yield version, query, plane, found, wanted
            finally:
                spark.conf.unset("spark.optimist.spark.plane")


@pytest.mark.parametrize("seed", [1])
def test_a_random_table(delta, tmp_path, seed):
    assert list(_wrong(delta, str(tmp_path / "t"), Random(seed), 1)) == []


@pytest.mark.again
@_EXAMPLES
@given(st.randoms(use_true_random=False))
def test_random_tables(delta, tmp_path_factory, random):
    path = str(tmp_path_factory.mktemp("random") / "t")
    assert list(_wrong(delta, path, random, 3)) == []
