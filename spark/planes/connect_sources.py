"""Which of our scans a DataFrame of Spark Connect is made of."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.arrow.source import SOURCE_PREFIX, ScanOptions, registered_scans
from optimist.spark.connect_expressions import messages

__all__ = ["connect_scans"]

_NAME = re.compile(rf"\b{SOURCE_PREFIX}[0-9a-f]+\b")
_INDIRECT = ("SQL", "NamedTable", "WithRelations")
"""Messages behind which views may stand, whose plans only the server knows."""


def connect_scans(frame: DataFrame) -> tuple[ScanOptions, ...]:
    """All scans of Delta tables by us in a frame's query, those of views included.

    A query that names views or is SQL text is explained by the server, which plans it.
    """
    inner: Any = frame
    found = tuple(messages(inner._plan.to_proto(inner._session.client)))
    if any(item.DESCRIPTOR.name in _INDIRECT for item in found):
        known = registered_scans(frame.sparkSession)
        text = inner._explain_string("extended")
        return tuple(known[name] for name in dict.fromkeys(_NAME.findall(text)) if name in known)
    sources = (item for item in found if item.DESCRIPTOR.name == "DataSource")
    return tuple(
        ScanOptions.from_options(dict(item.options))
        for item in sources
        if item.format.startswith(SOURCE_PREFIX)
    )
