"""Which of our scans a Spark Connect DataFrame reads."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.arrow.source import SOURCE_PREFIX, ScanOptions
from optimist.spark.conditions.connect_expressions import messages
from optimist.spark.rows.scanned_table import ScannedTable, sources_of_aliases

__all__ = ["connect_scans"]

_INDIRECT = ("SQL", "NamedTable", "WithRelations")
"""Messages behind which views may stand, whose plans only the server knows."""


def connect_scans(frame: DataFrame) -> tuple[ScannedTable, ...]:
    """All scans of our tables in a frame's query, those inside views included.

    If the query names views or is SQL text, the server is asked to explain it: only the server
    knows what stands behind the names.
    """
    inner: Any = frame
    # As it is sent: a part that is cached is sent as it was when it was cached.
    found = tuple(messages(inner._plan.to_proto(inner._session.client)))
    if any(item.DESCRIPTOR.name in _INDIRECT for item in found):
        return sources_of_aliases(inner._explain_string("extended"))
    sources = (item for item in found if item.DESCRIPTOR.name == "DataSource")
    return tuple(
        ScanOptions.from_options(dict(item.options)).scanned_table
        for item in sources
        if item.format.startswith(SOURCE_PREFIX)
    )
