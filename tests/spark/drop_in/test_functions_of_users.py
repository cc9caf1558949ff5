"""DELETE and UPDATE with functions that users have registered: of Python, of pandas, of SQL."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from optimist.spark import DeltaTable, read, write

FUNCTIONS = {
    "python": (
        lambda: sf.udf(lambda value: value % 3 == 0, "boolean"),
        lambda: sf.udf(lambda value: -value, "bigint"),
    ),
    "pandas": (
        lambda: sf.pandas_udf(lambda values: values % 3 == 0, "boolean", sf.PandasUDFType.SCALAR),
        lambda: sf.pandas_udf(lambda values: -values, "bigint", sf.PandasUDFType.SCALAR),
    ),
}


@pytest.fixture
def path(enabled, table_path):
    """A table of twelve rows in three files."""
    write(enabled.range(12).repartition(3), table_path)
    return table_path


def ids(spark, path):
    return sorted(row.id for row in read(spark, path).collect())


@pytest.mark.filterwarnings("ignore::UserWarning")  # PySpark's, of pandas without type hints
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_they_choose_and_set_rows_in_every_file(enabled, path, plane, kind):
    is_third, minus = (make() for make in FUNCTIONS[kind])
    enabled.udf.register("is_third", is_third)
    enabled.udf.register("minus", minus)
    try:
        enabled.sql(f"DELETE FROM delta.`{path}` WHERE is_third(id) AND id > 3")
        assert ids(enabled, path) == [0, 1, 2, 3, 4, 5, 7, 8, 10, 11]
        enabled.sql(f"UPDATE delta.`{path}` SET id = minus(id) WHERE is_third(id + 1)")
        assert ids(enabled, path) == [-11, -8, -5, -2, 0, 1, 3, 4, 7, 10]
        table = DeltaTable.forPath(enabled, path)
        table.update(~is_third("id"), {"id": minus("id") * 2})
        assert ids(enabled, path) == [-20, -14, -8, -2, 0, 3, 4, 10, 16, 22]
        table.delete(is_third(sf.col("id") + 2))
        assert ids(enabled, path) == [0, 3]
    finally:
        for name in ("is_third", "minus"):
            enabled.sql(f"DROP TEMPORARY FUNCTION {name}")


@pytest.mark.again
def test_those_of_sql_are_refused_in_statements_and_change_nothing(enabled, path):
    """As under Delta's jar: Spark puts their bodies into queries, and not into such statements."""
    enabled.sql("CREATE TEMPORARY FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2")
    try:
        for statement in ("DELETE FROM {t} WHERE twice(id) = 4", "UPDATE {t} SET id = twice(id)"):
            with pytest.raises(AnalysisException):
                enabled.sql(statement.format(t=f"delta.`{path}`"))
        assert ids(enabled, path) == list(range(12))
    finally:
        enabled.sql("DROP TEMPORARY FUNCTION twice")
