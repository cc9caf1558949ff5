"""The PySpark versions that this package supports, and their differences.

Classes of Spark that moved or changed between 4.0 and 4.3 are named here and nowhere else.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from optimist.core.errors import ConfigError, UsageError

__all__ = [
    "CLASSIC_DATASET",
    "COLUMN_CONVERTER",
    "FILE_SOURCES",
    "FIRST_SUPPORTED",
    "TAKES_FILTERS",
    "ensure_classic",
    "ensure_supported",
    "is_connect",
    "is_session",
    "knows_session_views",
    "named_column",
    "partitioned_by_number",
    "session_id",
    "spark_arrow_schema",
    "stream_reader_traits",
]

FIRST_SUPPORTED = (4, 0)
_FIRST_WITH_SESSION_VIEWS = (4, 2)
CLASSIC_DATASET = "org.apache.spark.sql.classic.Dataset"
COLUMN_CONVERTER = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter"
FILE_SOURCES = "org.apache.spark.sql.execution.datasources"
TAKES_FILTERS = (
    "org.apache.spark.sql.connector.read.SupportsPushDownV2Filters"
    if pyspark.__version__.startswith("4.0.")
    else "org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters"
)
"""The interface that takes filters. In 4.0, only Spark's own scans get Catalyst's expressions."""


_STREAM_LIMITS = "pyspark.sql.streaming.datasource"
_CLASSIC_COL = inspect.unwrap(sf.col)
"""Leaves out PySpark's record of the call site, which takes ten round trips to the JVM."""


@dataclass(frozen=True, slots=True)
class _StreamReaderTraits:
    """The features that Python data sources for streams can have.

    Attributes:
        bases: Further classes of a reader.
        tells_start: True if Spark says where the last batch ended, and how much a batch may take.
    """

    bases: tuple[type, ...]
    tells_start: bool

    def some_limit(self) -> Any:
        """Return any limit."""
        return import_module(_STREAM_LIMITS).ReadMaxFiles(1)

    def is_unlimited(self, limit: Any) -> bool:
        """Check whether a batch takes everything."""
        return type(limit).__name__ == "ReadAllAvailable"


def stream_reader_traits() -> _StreamReaderTraits:
    """Return the features of this PySpark.

    Limits and `Trigger.AvailableNow` came with 4.2.
    """
    try:
        found = import_module(_STREAM_LIMITS)
    except ImportError:
        return _StreamReaderTraits((), tells_start=False)
    return _StreamReaderTraits((found.SupportsTriggerAvailableNow,), tells_start=True)


def is_connect(spark: object) -> bool:
    """Check whether the session is a Spark Connect client, which has no JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def named_column(name: str) -> Column:
    """Return `sf.col` of a name in SQL form, without the record of the call site."""
    make = sf.col if is_remote() else _CLASSIC_COL
    return make(name)


def is_session(value: object) -> bool:
    """Check whether this is a session, of either kind."""
    return isinstance(value, SparkSession) or is_connect(value)


def knows_session_views(spark: SparkSession) -> bool:
    """Ask a server's version: whether `session.v` is the temporary view `v`, if there is one.

    An older Spark knows it as a table of the database `session` alone.
    """
    return _numbers(spark.version) >= _FIRST_WITH_SESSION_VIEWS


_NUMBERS = count()
_CLIENTS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""The number of each client. Its place in memory may be given to the next one."""


def session_id(spark: SparkSession) -> str:
    """Return the id of a Spark session, although `foreachBatch` gives each batch another object."""
    inner: Any = spark
    if is_connect(spark):
        # A user may use the id again, for another connection.
        return f"{inner.session_id}@{_CLIENTS.setdefault(inner.client, next(_NUMBERS))}"
    return str(inner._jsparkSession.sessionUUID())


def partitioned_by_number(rows: DataFrame, num_partitions: int, column: str) -> DataFrame:
    """Put each row into the partition whose number (an integer from 0) a column holds."""
    if hasattr(rows, "repartitionById"):  # since 4.1
        return rows.repartitionById(num_partitions, column)
    return rows.repartitionByRange(num_partitions, column)


def ensure_supported(spark: SparkSession) -> None:
    """Refuse a session that neither plane can serve.

    Raises:
        UsageError: PySpark is older than 4.0 (kind `OPTIMIST_UNSUPPORTED_PYSPARK`), or the value is
            not a PySpark session (kind `OPTIMIST_INVALID_ARGUMENT`).
    """
    if not is_session(spark):
        raise UsageError(
            "The argument sparkSession must be a SparkSession, classic or of Spark Connect, not "
            f"{type(spark).__name__}.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="sparkSession",
        )
    if _version() < FIRST_SUPPORTED:
        raise UsageError(
            f"The installed PySpark {pyspark.__version__} is too old. Install PySpark 4.0 or "
            "newer.",
            kind="OPTIMIST_UNSUPPORTED_PYSPARK",
            version=pyspark.__version__,
        )


def ensure_classic(spark: SparkSession) -> None:
    """Refuse a session without a JVM, before work that only the native plane can do.

    Raises:
        ConfigError: The session is a Spark Connect client (kind `OPTIMIST_CLASSIC_SPARK_NEEDED`).
        UsageError: `ensure_supported` refuses the session.
    """
    ensure_supported(spark)
    if is_connect(spark):
        raise ConfigError(
            "The session is a Spark Connect client, but this operation needs the JVM of a classic "
            "PySpark session. Leave optimist.spark.plane out, or set it to arrow: the arrow plane "
            "reads and writes tables on Spark Connect.",
            kind="OPTIMIST_CLASSIC_SPARK_NEEDED",
        )


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """Return Spark's own Arrow types for a schema, with timestamps in UTC."""
    # Before 4.2, a flag asks for UTC and is on by default; since then, an argument names the zone.
    takes_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if takes_zone else to_arrow_schema(schema)


def _version() -> tuple[int, ...]:
    return _numbers(pyspark.__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
