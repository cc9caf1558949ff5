"""CLONE between paths: the source, the request and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.maintenance.copies.clone import ClonedTable, CloneRequest, clone
from optimist.core.maintenance.copies.clone_source import CloneSource, FilesSource, VersionSource
from optimist.core.requests.table_definition import CreateMode
from optimist.core.sql.statements import Clone, TableName, TimeTravel
from optimist.core.statements.context import OpenTable, StatementContext
from optimist.core.statements.conversions import path_of_files
from optimist.core.statements.missing_tables import told_as_missing
from optimist.core.statements.result_rows import cloned_rows

__all__ = ["CloneOptions", "clone_files", "clone_path", "clone_to", "ensure_one_target"]


@dataclass(frozen=True, slots=True)
class CloneOptions:
    """How a table is cloned.

    Attributes:
        mode: What is done if there is a table already.
        is_shallow: Whether the files stay where they are.
        travel: Which version; None for the newest.
        properties: Properties that the clone has instead of the source's, or besides them.
        files: What the files at the source's path are, if that is no Delta table.
    """

    mode: CreateMode = CreateMode.CREATE
    is_shallow: bool = False
    travel: TimeTravel | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    files: ConvertRequest | None = None

    @classmethod
    def of(cls, statement: Clone, files: ConvertRequest | None) -> CloneOptions:
        """Return the options that a statement gives."""
        properties = dict(statement.properties)
        return cls(statement.mode, statement.is_shallow, statement.travel, properties, files)


def clone_path(context: StatementContext, statement: Clone) -> pa.Table:
    """Run CLONE into a path.

    Raises:
        UsageError: The statement gives two paths (kind `DELTA_CLONE_AMBIGUOUS_TARGET`), or a
            name that nobody here knows; and as `DeltaLog.clone`.
        OptimistError: See `DeltaLog.clone`.
    """
    ensure_one_target(statement)
    path = statement.table.path
    target = context.open_name(statement.table) if path is None else context.open_path(path)
    source, files = clone_files(context, statement.source)
    return cloned_rows(clone_to(context, source, target, CloneOptions.of(statement, files)))


def ensure_one_target(statement: Clone) -> None:
    """Refuse a statement that gives both a path and a location.

    Raises:
        UsageError: It does (kind `DELTA_CLONE_AMBIGUOUS_TARGET`).
    """
    path = statement.table.path
    if path is not None and statement.location is not None:
        raise UsageError(
            f"Two paths were provided as the CLONE target: the name {shown(path)}, and the "
            f"location {shown(statement.location)}. Nothing was written. Leave the location out.",
            kind="DELTA_CLONE_AMBIGUOUS_TARGET",
            path=path,
            location=statement.location,
        )


def clone_files(
    context: StatementContext, table: TableName
) -> tuple[OpenTable, ConvertRequest | None]:
    """Return the source of a clone, and what its files are if it is no Delta table."""
    found = path_of_files(table)
    if found is not None:
        return context.open_path(found.path), found.request(ConvertRequest(zone=context.zone))
    log = context.open(table)
    with told_as_missing(None, table):
        log.snapshot()
    return log, None


def clone_to(
    context: StatementContext,
    source: OpenTable,
    target: OpenTable,
    options: CloneOptions,
    *,
    before_commit: Callable[[], None] | None = None,
) -> ClonedTable | None:
    """Clone a table, or return None if an existing table is kept.

    Args:
        context: Who copies the files.
        source: The table that is cloned.
        target: The place of the clone.
        options: How it is cloned.
        before_commit: Is called once the files are there. If it raises, nothing is committed.

    Raises:
        UsageError: The time is none (kind `DELTA_TIMESTAMP_INVALID`); and as `DeltaLog.clone`.
        OptimistError: See `DeltaLog.clone`.
    """
    request = CloneRequest(
        _source(context, source, options),
        is_shallow=options.is_shallow,
        mode=options.mode,
        properties=options.properties,
        copy=context.copies(source),
        before_commit=before_commit,
    )
    return clone(target.start_transaction(), request)


def _source(context: StatementContext, log: OpenTable, options: CloneOptions) -> CloneSource:
    travel = options.travel
    if options.files is not None:
        is_newest = travel is None
        return FilesSource.of(log.table, options.files, context.footers(), is_newest=is_newest)
    newest = log.snapshot()
    if travel is None:
        return VersionSource(log.table, newest)
    text = travel.timestamp
    time_ms = None if text is None else context.epoch_ms(text)
    version = log.snapshot(travel.version, time_ms)
    return VersionSource(log.table, version, is_newest=version is newest)
