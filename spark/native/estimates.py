"""Figures of the log for Spark's cost-based optimizer (docs/skipping.md, spec 9.6)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from optimist.core.skipping.summaries import ColumnSummary, summarize
from optimist.spark.native.index import index_of_key
from optimist.spark.session.case_classes import make_case_class
from optimist.spark.session.jvm import Jvm

__all__ = ["estimate_rows"]

_CATALOG = "org.apache.spark.sql.catalyst.catalog"


def estimate_rows(jvm: Jvm, scan: Any, entry: Any) -> Any:
    """Return what `java/EstimateRows.java` puts into the catalog entry of a scan.

    Args:
        jvm: The session's handles.
        scan: A Java list: the key of the files, the filters on their partitions, those on their
            data, and the names that the columns of the query have in the files, with NUL between.
        entry: The Java `CatalogTable`, or None for a table without a name.

    Returns:
        A Java list: the `CatalogTable`, then texts: the bytes, the rows, and for each column its
        name in the files, the number of different values, the least and the greatest value, and
        the number of nulls. None if the log does not tell how many rows the scan reads.
    """
    key, partition_filters, data_filters, names = scan
    index = index_of_key(key)
    if index is None:
        return None
    stored = {field.name: field.physical_name for field in index.schema}
    wanted = set(names.split("\0"))
    columns = [name for name, physical in stored.items() if physical in wanted]
    files, size_bytes = index.files_left(partition_filters, data_filters)
    found = summarize(files, columns)
    if found is None:
        return None
    answer = jvm.root.java.util.ArrayList()
    answer.add(_unnamed(jvm) if entry is None else entry)
    for text in (str(size_bytes), str(found.rows)):
        answer.add(text)
    for name, column in found.columns.items():
        for part in (stored[name], *_texts(column)):
            answer.add(part)
    return answer


def _unnamed(jvm: Jvm) -> Any:
    """Return an entry for a table that has only a path; its name stands in Spark's plans."""
    return make_case_class(
        jvm,
        f"{_CATALOG}.CatalogTable",
        jvm.catalyst.TableIdentifier("delta"),
        jvm.module(f"{_CATALOG}.CatalogTableType$").EXTERNAL(),
        jvm.module(f"{_CATALOG}.CatalogStorageFormat$").empty(),
        jvm.root.org.apache.spark.sql.types.StructType(),
    )


def _texts(found: ColumnSummary) -> tuple[str | None, ...]:
    low, high = _text(found.low), _text(found.high)
    if low is None or high is None:
        low = high = None
    return None if found.distinct is None else str(found.distinct), low, high, str(found.nulls)


def _text(bound: pa.Scalar | None) -> str | None:
    """Write a bound as Spark keeps it in a catalog: times as they are in UTC.

    Returns:
        None for a bound that Spark would not read back: not a number, or of a year past 9999.
    """
    if bound is None:
        return None
    if pa.types.is_floating(bound.type) and not abs(bound.as_py()) < float("inf"):
        return None
    if pa.types.is_timestamp(bound.type):
        bound = bound.cast(pa.timestamp("us"))
    text = str(bound.cast(pa.string()).as_py())
    is_date = pa.types.is_temporal(bound.type)
    return None if is_date and not text[:5].removesuffix("-").isdigit() else text
