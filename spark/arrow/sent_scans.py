"""What a Spark Connect client knows of the scans in the plans that it sends.

A scan is found by its message: the number of its plan, the version and the log. It is known as long
as its plan exists, which is as long as a frame uses it.

A scan that *follows* its table reads the newest version at each action. Its plan does not change.
Instead the sent message is changed (`drop_in/connect/plans.py`), or a copy of the plan is fixed to
one version for commands that read more than once.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame

from optimist.core.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.arrow.source import SOURCE_PREFIX, ScanOptions
from optimist.spark.rows.same_columns import ensure_same_columns
from optimist.spark.rows.scanned_table import is_scan_alias, scan_alias

__all__ = [
    "NewestVersions",
    "SentScan",
    "at_newest_versions",
    "follow",
    "is_scan",
    "know_table",
    "known_scan",
    "remember_scan",
]

_MARK = "_optimist_scan"


@dataclass(frozen=True)
class SentScan:
    """A scan of a table.

    Attributes:
        snapshot: The version that its frame was made from.
        is_whole: All columns and rows are read.
        log: The table's handle; None if no other version is ever read.
    """

    snapshot: Snapshot
    is_whole: bool
    log: DeltaLog | None = None


_KNOWN: weakref.WeakValueDictionary[tuple[object, ...], SentScan] = weakref.WeakValueDictionary()
"""Keyed by the number of the plan, the version, the table's id and the log's identity. Another
table or log may have been at the same path, and a plan may be sent for each.
"""


def remember_scan(plan: Any, scan: SentScan) -> None:
    """Remember what a plan reads, a `DataSource` of the client."""
    setattr(plan, _MARK, scan)
    read = scan.snapshot
    _KNOWN[plan._plan_id, read.version, read.metadata.id, read.log_identity] = scan


def known_scan(relation: Any) -> SentScan | None:
    """Return the scan behind a message `Relation`, or None if it is unknown or not ours."""
    if not is_scan(relation):
        return None
    sent = ScanOptions.from_options(dict(relation.read.data_source.options))
    return _KNOWN.get(
        (
            relation.common.plan_id,
            sent.version,
            sent.table_id,
            sent.log_identity,
        )
    )


def is_scan(relation: Any) -> bool:
    """Check whether a message `Relation` is one of our scans."""
    if relation.WhichOneof("rel_type") != "read":
        return False
    return bool(relation.read.data_source.format.startswith(SOURCE_PREFIX))


def know_table(frame: DataFrame, log: DeltaLog) -> DataFrame:
    """Remember the handle by which a frame's table was opened, and return the frame."""
    for plan in _scans(frame):
        remember_scan(plan, replace(getattr(plan, _MARK), log=log))
    return frame


def follow(frame: DataFrame) -> DataFrame:
    """Make a frame read the newest version of its table at each action, and return it.

    A frame of changes, or of a version that the user chose, does not change.
    """
    for plan in _scans(frame):
        scan = ScanOptions.from_options(plan._options)
        if not scan.is_time_travel and getattr(plan, _MARK).log is not None:
            plan._options = replace(scan, follows=True).to_options()
    return frame


@dataclass(frozen=True, slots=True)
class NewestVersions:
    """The versions that one action reads: one per table, however often the table is read."""

    _found: dict[str, Snapshot] = field(default_factory=dict)

    def read_by(self, scan: SentScan, options: Any) -> Snapshot:
        """Return the version that a scan is to read.

        Args:
            scan: The scan.
            options: The options of its message or plan; they are changed to name that version.

        Raises:
            TableError: The columns of the frame are gone (kind
                `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
        """
        given = ScanOptions.from_options(dict(options))
        if not given.follows or scan.log is None:
            return scan.snapshot
        if given.path not in self._found:
            self._found[given.path] = scan.log.snapshot()
        newest = self._found[given.path]
        if newest.is_same_version(scan.snapshot):
            newest = scan.snapshot
        ensure_same_columns(given.path, scan.snapshot, newest)
        fixed = replace(
            given,
            version=newest.version,
            table_id=newest.metadata.id,
            log_identity=newest.log_identity,
            follows=False,
        )
        options.update(fixed.to_options())
        return newest


def at_newest_versions(frame: DataFrame) -> DataFrame:
    """Fix a frame's scans that follow their tables to the newest versions.

    The plans keep their numbers, since columns are bound to plans by number.
    """
    inner: Any = frame
    plan = _fix_plan(inner._plan, NewestVersions())
    if plan is inner._plan:
        return frame
    fixed: DataFrame = type(inner)(plan, inner._session)
    return fixed


def _fix_plan(plan: Any, versions: NewestVersions) -> Any:
    if _MARK in vars(plan):
        return _fix_scan(plan, versions)
    changed = {name: _fix_value(value, versions) for name, value in vars(plan).items()}
    if all(changed[name] is value for name, value in vars(plan).items()):
        return plan
    changed_copy = copy.copy(plan)
    vars(changed_copy).update(changed)
    child = changed.get("_child")
    if child is not None and _MARK in vars(child) and is_scan_alias(str(changed.get("_alias"))):
        changed_copy._alias = scan_alias(ScanOptions.from_options(child._options).scanned_table)
    return changed_copy


def _fix_scan(plan: Any, versions: NewestVersions) -> Any:
    scan, options = getattr(plan, _MARK), dict(plan._options)
    snapshot = versions.read_by(scan, options)
    if options == plan._options:
        return plan
    changed_copy = copy.copy(plan)
    changed_copy._options = options
    if snapshot is not scan.snapshot:
        remember_scan(changed_copy, replace(scan, snapshot=snapshot))
    return changed_copy


def _fix_value(value: Any, versions: NewestVersions) -> Any:
    if isinstance(value, (list, tuple)):
        items = [_fix_value(item, versions) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    return _fix_plan(value, versions) if _is_plan(value) else value


def _scans(frame: Any) -> Iterator[Any]:
    plan = frame._plan
    while plan is not None:
        if _MARK in vars(plan):
            yield plan
        plan = plan._child


def _is_plan(value: Any) -> bool:
    return hasattr(type(value), "to_proto") and hasattr(value, "_plan_id")
