"""CLONE, with the columns that Delta answers (spec 10.13); the driver does it without a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from optimist.core.data.storage.copied_file import CopyRule, FileCopy
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.maintenance.copies.clone import ClonedTable, CloneRequest, clone
from optimist.core.maintenance.copies.clone_source import CloneSource, FilesSource, VersionSource
from optimist.core.maintenance.copies.copied_files import copy_here
from optimist.core.paths import scheme_of
from optimist.core.requests.table_definition import CreateMode
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.sql import path_in_name
from optimist.core.sql.statements import TimeTravel
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.catalog.catalog_entries import place_of_name, register_new
from optimist.spark.commands.catalog.named_tables import ensure_names_known
from optimist.spark.commands.maintenance.convert import SparkFooters
from optimist.spark.commands.maintenance.executors import on_executors
from optimist.spark.commands.reading.read import epoch_millis, open_target
from optimist.spark.rows.local_rows import answer_frame, local_frame, numbers_frame
from optimist.spark.session.task_errors import portable_errors

__all__ = [
    "CLONE_SCHEMA",
    "CloneOptions",
    "clone_path",
    "clone_to_name",
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
_COPY_SCHEMA = (
    StructType().add("path", StringType()).add("target", StringType()).add("size_bytes", LongType())
)
_FILES_PER_TASK = 8


@dataclass(frozen=True, slots=True)
class CloneOptions:
    """How a table is cloned.

    Attributes:
        mode: What is done if there is a table already.
        is_shallow: Whether the files stay where they are.
        travel: Which version; None for the newest.
        properties: Properties that the clone has instead of the source's, or besides them.
        files: What the files at the source's path are, where that is no Delta table.
    """

    mode: CreateMode = CreateMode.CREATE
    is_shallow: bool = False
    travel: TimeTravel | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    files: ConvertRequest | None = None


def clone_to_path(
    spark: SparkSession, source: DeltaLog, path: str, request: CloneOptions
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
    wanted = CloneRequest(
        _source(spark, source, request),
        is_shallow=request.is_shallow,
        mode=request.mode,
        properties=request.properties,
        copy=_Copies(spark, source.options.driver_shortcut_max_bytes),
    )
    return clone(open_target(spark, path).start_transaction(), wanted)


def _source(spark: SparkSession, log: DeltaLog, request: CloneOptions) -> CloneSource:
    travel = request.travel
    if request.files is not None:
        footers = SparkFooters(spark)
        return FilesSource.of(log.table, request.files, footers, is_newest=travel is None)
    newest = log.snapshot()
    if travel is None:
        return VersionSource(log.table, newest)
    time_ms = None if travel.timestamp is None else epoch_millis(spark, travel.timestamp)
    version = log.snapshot(travel.version, time_ms)
    return VersionSource(log.table, version, is_newest=version is newest)


def clone_to_name(
    spark: SparkSession,
    source: DeltaLog,
    name: str,
    request: CloneOptions,
    location: str | None = None,
) -> ClonedTable | None:
    """Clone a table to a name of the session's catalog, which gets the clone when it is there.

    Args:
        spark: The session.
        source: The table that is cloned.
        name: The name, as SQL writes it.
        request: How it is cloned.
        location: The place of the clone; None leaves that to the catalog.

    Raises:
        UsageError: The session knows no Delta tables by name (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`); and as `DeltaLog.clone`.
    """
    ensure_names_known(spark, name)
    place = place_of_name(spark, name, location)
    if place.is_new_name and request.mode is CreateMode.CREATE_IF_NOT_EXISTS:
        request = replace(request, mode=CreateMode.CREATE)  # a table there has another name
    log = open_target(spark, place.path)
    is_new = not log.table_exists()
    done = clone_to_path(spark, source, place.path, request)
    if place.is_new_name:
        register_new(spark, place, log, is_new=is_new)
    return done


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
        return answer_frame(spark, none, CLONE_SCHEMA)
    numbers = asdict(done)
    return numbers_frame(spark, {name: numbers[name] for name in _COLUMNS})


@dataclass(frozen=True, slots=True)
class _Copies:
    """Makes the copies of a deep clone: few bytes in the driver, many on the executors."""

    spark: SparkSession
    max_bytes: int

    def __call__(self, copies: Sequence[FileCopy], rule: CopyRule, clock: Clock) -> None:
        def here() -> None:
            copy_here(copies, rule, clock)

        if sum(each.size_bytes for each in copies) <= self.max_bytes:
            here()
        else:
            on_executors(lambda: self._by_job(copies, rule), here)

    def _by_job(self, copies: Sequence[FileCopy], rule: CopyRule) -> None:
        columns = ([getattr(each, name) for each in copies] for name in _COPY_SCHEMA.names)
        table = pa.table(dict(zip(_COPY_SCHEMA.names, columns, strict=True)))
        num_tasks = -(-len(copies) // _FILES_PER_TASK)
        rows = local_frame(self.spark, table, _COPY_SCHEMA).repartition(num_tasks)
        rows.mapInArrow(_CopyTask(rule), _COPY_SCHEMA).toArrow()


@dataclass(frozen=True, slots=True)
class _CopyTask:
    """What each task runs: its input says which files are to be copied."""

    rule: CopyRule

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                copies = [FileCopy(**row) for row in batch.to_pylist()]
                copy_here(copies, self.rule, SystemClock())
                yield batch.slice(0, 0)
