"""CLONE, with the columns that Delta answers (spec 10.13); the driver does it without a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from optimist.core.care.clone import ClonedTable
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import scheme_of
from optimist.core.predicates.text import quote_literal, quote_path
from optimist.core.requests.table_definition import CreateMode
from optimist.core.sql import path_in_name
from optimist.core.sql.statements import TimeTravel
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.names import name_parts
from optimist.spark.commands.reading.read import epoch_millis
from optimist.spark.commands.table_statement import VERBS, ensure_names_known
from optimist.spark.rows.local_rows import local_frame, numbers_frame
from optimist.spark.session.callback_errors import original_errors

__all__ = [
    "CLONE_SCHEMA",
    "CloneRequest",
    "clone_named",
    "clone_path",
    "clone_to_path",
    "cloned_frame",
]

_COLUMNS = (
    "source_table_size",
    "source_num_of_files",
    "num_removed_files",
    "num_copied_files",
    "removed_files_size",
    "copied_files_size",
)
CLONE_SCHEMA = StructType([StructField(name, LongType()) for name in _COLUMNS])


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """How a table is cloned.

    Attributes:
        mode: What is done if there is a table already.
        is_shallow: Whether the files stay where they are.
        travel: Which version; None for the newest.
        properties: Properties that the clone has instead of the source's, or besides them.
    """

    mode: CreateMode = CreateMode.CREATE
    is_shallow: bool = False
    travel: TimeTravel | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def clone_to_path(
    spark: SparkSession, source: DeltaLog, path: str, request: CloneRequest
) -> ClonedTable | None:
    """Clone a table to a path.

    Args:
        spark: The session; a time without a zone is in its.
        source: The table that is cloned.
        path: The place of the clone.
        request: How it is cloned.

    Returns:
        What was done; None if a table that is there is kept.

    Raises:
        UsageError: The time is none (kind `DELTA_TIMESTAMP_INVALID`); and as `DeltaLog.clone`.
        OptimistError: See `DeltaLog.clone`.
    """
    travel = request.travel or TimeTravel()
    at = travel.timestamp
    return source.clone(
        path,
        is_shallow=request.is_shallow,
        version=travel.version,
        timestamp=None if at is None else epoch_millis(spark, at),
        mode=request.mode.value,
        properties=request.properties,
    )


def clone_named(spark: SparkSession, source: DeltaLog, name: str, request: CloneRequest) -> None:
    """Clone a table to a name of the session's catalog, which decides where the clone is.

    Raises:
        UsageError: The session knows no Delta tables by name (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`); and as `DeltaLog.clone`.
    """
    ensure_names_known(spark, name)
    with original_errors():
        spark.sql(_statement(quote_path(tuple(name_parts(spark, name))), source, request))


def clone_path(target: str) -> str | None:
    """The path that the target of a clone is; None for a name.

    Raises:
        UsageError: It is a relative path (kind `DELTA_INVALID_CLONE_PATH`).
    """
    path = path_in_name(target)
    if path is not None:
        return path
    if target.startswith("/") or scheme_of(target):
        return target
    if "/" in target:
        raise UsageError(
            f"The target of a clone needs to be an absolute path or a table's name, and not "
            f"{shown(target)}. Nothing was written. Give the whole path.",
            kind="DELTA_INVALID_CLONE_PATH",
            path=target,
        )
    return None


def cloned_frame(spark: SparkSession, done: ClonedTable | None) -> DataFrame:
    """What was done as one row of numbers; no row if nothing was."""
    if done is None:
        none = pa.schema([(name, pa.int64()) for name in _COLUMNS]).empty_table()
        return local_frame(spark, none, CLONE_SCHEMA)
    numbers = asdict(done)
    return numbers_frame(spark, {name: numbers[name] for name in _COLUMNS})


def _statement(name: str, source: DeltaLog, request: CloneRequest) -> str:
    how, travel = "SHALLOW" if request.is_shallow else "DEEP", request.travel
    parts = [f"{VERBS[request.mode]} {name} {how} CLONE {quote_path(('delta', source.table_path))}"]
    if travel is not None and travel.version is not None:
        parts.append(f"VERSION AS OF {travel.version}")
    elif travel is not None and travel.timestamp is not None:
        parts.append(f"TIMESTAMP AS OF {quote_literal(travel.timestamp, 'string')}")
    if request.properties:
        pairs = (
            f"{quote_literal(key, 'string')} = {quote_literal(value, 'string')}"
            for key, value in request.properties.items()
        )
        parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    return " ".join(parts)
