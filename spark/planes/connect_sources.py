"""The scans of our tables that a Spark Connect DataFrame reads.

Only the server knows the plans of views. It answers with a text, which it may cut
(`spark.sql.maxPlanStringLength`) or redact (`spark.sql.redaction.string.regex`). So the client puts
an alias at the plan's end and looks for it in the text. If the alias is missing, the client asks
for a longer text. If it is missing there, too, the query counts as one that may read anything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.spark.arrow.source import SOURCE_PREFIX, ScanOptions
from optimist.spark.conditions.connect_expressions import messages
from optimist.spark.conditions.connect_text import text_has_subquery
from optimist.spark.rows.scanned_table import (
    ScannedTable,
    end_alias,
    sources_of_aliases,
    sources_of_unknown_query,
)

__all__ = ["connect_scans"]

_LOG = logging.getLogger(__name__)

_INDIRECT = ("SQL", "NamedTable", "WithRelations")
"""Messages that may stand for views, whose plans only the server knows."""
_LENGTH = "spark.sql.maxPlanStringLength"
_LONGEST = 1 << 25
"""The longest text that we ask for, whatever the session says: it is sent in one message."""
_NUM_PLANS = 2
"""The text holds the plan as it was sent, and then as the server has analysed it."""


def connect_scans(frame: DataFrame) -> tuple[ScannedTable, ...]:
    """Return all scans of our tables in a frame's query, those inside views included.

    If the query names views or is SQL text, the server is asked to explain it: only the server can
    resolve the names. If its answer is not whole, all tables that this process has read are
    returned as assumed sources.
    """
    inner: Any = frame
    # The message as it is sent: a cached part is sent as it was when it was cached.
    found = tuple(messages(inner._plan.to_proto(inner._session.client)))
    if any(map(_may_name_views, found)):
        return _explained_scans(frame)
    sources = (item for item in found if item.DESCRIPTOR.name == "DataSource")
    return tuple(
        ScanOptions.from_options(dict(item.options)).scanned_table
        for item in sources
        if item.format.startswith(SOURCE_PREFIX)
    )


def _may_name_views(message: Any) -> bool:
    name = message.DESCRIPTOR.name
    if name == "ExpressionString":
        return text_has_subquery(message.expression)
    return name in _INDIRECT


def _explained_scans(frame: DataFrame) -> tuple[ScannedTable, ...]:
    end = end_alias()
    ended: Any = frame.crossJoin(frame.sparkSession.range(1).alias(end))
    text = ended._explain_string("extended")
    if not _is_whole(text, end):
        with _longer_texts(frame.sparkSession):
            text = ended._explain_string("extended")
    if _is_whole(text, end):
        return sources_of_aliases(text)
    _LOG.warning(
        "Spark's server has cut or redacted the text of a query's plan, so the tables behind the "
        "query's views are unknown. All tables that this process has read count as read, from "
        "the oldest version on, and other writers' commits since then are conflicts. Narrow "
        "spark.sql.redaction.string.regex, or make the query smaller."
    )
    return sources_of_unknown_query()


def _is_whole(text: str, end: str) -> bool:
    return text.count(end) >= _NUM_PLANS


@contextmanager
def _longer_texts(spark: SparkSession) -> Iterator[None]:
    """Let the server answer with longer texts, which makes no other answer wrong."""
    before = str(spark.conf.get(_LENGTH))
    spark.conf.set(_LENGTH, str(_LONGEST))
    try:
        yield
    finally:
        spark.conf.set(_LENGTH, before)
