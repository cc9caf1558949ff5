"""The format `delta` at a Spark Connect server, so that its catalog takes entries of Delta tables.

The source never reads or writes: a client puts its own frames in the places of names. It answers
only where a statement reached the server as it was, such as a view over a name.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from optimist.core.errors import UsageError
from optimist.core.forking import ForkSafeLock
from optimist.spark.session.pyspark_versions import session_id
from optimist.spark.session.task_errors import portable_errors

__all__ = ["ensure_format_known"]

_LOCK = ForkSafeLock()
_KNOWN: set[str] = set()
"""The sessions that have the format."""


def ensure_format_known(spark: SparkSession) -> None:
    """Register the format with a client's session, which the server forgets with the session."""
    session = session_id(spark)
    with _LOCK:
        if session not in _KNOWN:
            spark.dataSource.register(_NamedTables)
            _KNOWN.add(session)


class _NamedTables(DataSource):
    """The format of entries, which hold no columns: these are in the tables' logs."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "delta"

    def schema(self) -> StructType:
        """Return no columns, as Delta has them in its entries."""
        return StructType()

    def reader(self, schema: StructType) -> NoReturn:
        """Refuse to read."""
        del schema
        raise_unserved()

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse to write."""
        del schema, overwrite
        raise_unserved()


def raise_unserved() -> NoReturn:
    """Raise the error for a name that reached the server.

    Raises:
        UsageError: Always (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    with portable_errors():
        raise UsageError(
            "The server was asked for a Delta table by its name, but only clients can read and "
            "write Delta tables. Nothing was read or written. Call optimist.spark.enable(spark) "
            "first, and name the table in the statement itself, not within a view, a script or "
            "EXECUTE IMMEDIATE.",
            kind="OPTIMIST_UNSUPPORTED_STATEMENT",
            statement="A Delta table by its name",
        )
