"""A check that a command's expressions mean the same in each of its passes, on Spark Connect.

A classic session analyses each expression once. A Connect server analyses each message again, by
the conf at that time. So a client can only check whether another thread has changed the conf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import listed
from optimist.spark.session.jvm import conf_entries
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["unchanged_conf"]

_CHANGING_MEANING = (
    "spark.sql.ansi.",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.",
    "spark.sql.legacy.",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.parser.",
    "spark.sql.session.timeZone",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.timestampType",
)


@contextmanager
def unchanged_conf(spark: SparkSession) -> Iterator[None]:
    """Refuse the work of a block if the conf that expressions depend on has changed.

    Raises:
        ConfigError: The conf has changed (kind `OPTIMIST_SESSION_CHANGED`).
    """
    before = _entries_with_meaning(spark)
    yield
    after = _entries_with_meaning(spark)
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    if changed:
        raise ConfigError(
            f"The session's conf was changed while the command ran: {listed(changed)}. So "
            "expressions may have had one meaning when rows were searched, and another when rows "
            "were written. Nothing was written. Run the command again.",
            kind="OPTIMIST_SESSION_CHANGED",
            keys=tuple(changed),
        )


def _entries_with_meaning(spark: SparkSession) -> Mapping[str, str]:
    if not is_connect(spark):
        return {}
    entries = conf_entries(spark)
    return {key: value for key, value in entries.items() if key.startswith(_CHANGING_MEANING)}
