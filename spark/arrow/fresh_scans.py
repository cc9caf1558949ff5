"""Python data sources that push filters, made safe to use more than once.

Spark keeps what a Python source has planned, the effect of pushed filters included, in an object
that all uses of a DataFrame share. A second query over the frame, and the other side of a union or
a self-join, would read only what the filters of the first have left. Here each scan that Spark
plans gets an object of its own: the relation's table is one whose `newScanBuilder` starts afresh.
"""

from __future__ import annotations

import zlib
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.session.callback_errors import callback
from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate

__all__ = ["with_fresh_scans"]


def with_fresh_scans(frame: DataFrame, key: str) -> DataFrame:
    """The frame of a Python data source, changed so that each of its scans is planned afresh.

    Args:
        frame: What `load()` gave, in a classic session.
        key: Equal for frames that read the same rows; Spark then shares caches between them.
    """
    jvm = Jvm.of(frame.sparkSession)
    return jvm.frame(_replaced(jvm, analyzed_plan(frame), key))


def _replaced(jvm: Jvm, plan: Any, key: str) -> Any:
    """The plan with our table in its relation; Spark lays a projection of char columns over it."""
    children = list(iterate(plan.children()))
    if children:
        return plan.withNewChildren(jvm.seq(_replaced(jvm, child, key) for child in children))
    parts = [plan.productElement(place) for place in range(plan.productArity())]
    parts[0] = _FreshTable(jvm, plan.table(), key)
    return plan.copy(*parts)


class _FreshTable:
    """Spark's table of a Python source, with scan builders of our own; the JVM calls it."""

    class Java:
        """The interface that py4j makes a proxy of."""

        implements = ["org.apache.spark.sql.connector.catalog.SupportsRead"]  # noqa: RUF012

    def __init__(self, jvm: Jvm, table: Any, key: str) -> None:
        self._jvm = jvm
        self._table = table
        self._name = str(table.name())
        self._schema = table.schema()
        self._key = key

    def __getattr__(self, name: str) -> Any:
        # Proxies do not inherit Java's default methods, which differ from version to version.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._table, name)

    def name(self) -> str:
        """The source's name, which Spark asks for all the time."""
        return self._name

    def newScanBuilder(self, options: Any) -> Any:
        """A builder that shares its planning with no other scan."""
        with callback():
            python = self._jvm.sources.v2.python
            source = python.PythonDataSourceV2()
            source.setShortName(self._name)
            return python.PythonScanBuilder(source, self._name, self._schema, options)

    def toString(self) -> str:
        """The key; `equals` compares it."""
        return self._key

    def hashCode(self) -> int:
        """Equal keys, equal hashes."""
        return zlib.crc32(self._key.encode()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Whether both read the same rows; `other` arrives as a Java object, never as ours."""
        return other is not None and str(other.toString()) == self._key
