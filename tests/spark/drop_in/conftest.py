"""Tables in Spark's catalog and at paths, for a session that is enabled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from optimist.spark import disable, enable, write


@pytest.fixture
def database(enabled: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database whose managed tables lie in a directory of the test."""
    enabled.sql(f"CREATE DATABASE shop LOCATION '{tmp_path}/shop'")
    yield "shop"
    enabled.sql("USE default")
    enabled.sql("DROP DATABASE shop CASCADE")


@pytest.fixture
def entry(database: str, enabled: SparkSession) -> Callable[[str, str], str]:
    """Put a table that is there into Spark's catalog, under a name."""

    def make(name: str, path: str) -> str:
        jvm = enabled._jvm
        state = enabled._jsparkSession.sessionState()
        catalyst = jvm.org.apache.spark.sql.catalyst
        option = jvm.scala.Option
        uri = jvm.org.apache.hadoop.fs.Path(path).toUri()
        storage = catalyst.catalog.CatalogStorageFormat.empty()
        fields = [storage.productElement(at) for at in range(storage.productArity())]
        fields[0] = option.apply(uri)
        located = storage.copy(*fields)
        module = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.catalog.CatalogTable$")
        companion = module.getField("MODULE$").get(None)
        kind = catalyst.catalog.CatalogTableType.EXTERNAL()
        identifier = catalyst.TableIdentifier(name, option.apply(database))
        given = [identifier, kind, located, enabled.createDataFrame([], "")._jdf.schema()]
        given.append(option.apply("delta"))
        defaults = [m.getName() for m in module.getMethods()]
        arity = max(int(name.rpartition("$")[2]) for name in defaults if "apply$default$" in name)
        rest = [getattr(companion, f"apply$default${at}")() for at in range(6, arity + 1)]
        made = companion.apply(*given, *rest)
        state.catalog().createTable(made, False, False)
        return f"{database}.{name}"

    return make


@pytest.fixture(scope="module")
def delta(spark: SparkSession) -> Iterator[SparkSession]:
    """What `enable` returns."""
    yield enable(spark)
    disable(spark)


@pytest.fixture
def path(enabled: SparkSession, table_path: str) -> str:
    """The path of a table of three rows in one file."""
    write(enabled.range(3).coalesce(1), table_path)
    return table_path
