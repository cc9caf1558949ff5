"""What a Spark Connect client knows of the scans in the plans that it sends.

A scan is found by what its message says: the number of its plan, and the version of which log. It
is known as long as its plan is, which is as long as there is a frame over it.

A scan that *follows* its table reads the newest version at each action. Its plan stays as it was
made; the message that is sent is changed (`drop_in/connect/plans.py`), or a copy of the plan is
fixed to one version, for commands that read more than once.
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
        log: The table; None if nobody asks for another version.
    """

    snapshot: Snapshot
    is_whole: bool
    log: DeltaLog | None = None


_KNOWN: weakref.WeakValueDictionary[tuple[object, ...], SentScan] = weakref.WeakValueDictionary()
"""By the number of the plan, the version, and what tells its table and log from others that were at
the path: a plan may be sent for a version of each.
"""


def remember_scan(plan: Any, scan: SentScan) -> None:
    """Remember what a plan reads, a `DataSource` of the client's."""
    setattr(plan, _MARK, scan)
    of = scan.snapshot
    _KNOWN[plan._plan_id, of.version, of.metadata.id, of.log_identity] = scan


def known_scan(relation: Any) -> SentScan | None:
    """The scan behind a message `Relation`; None if it is no scan of ours, or is not known."""
    if not is_scan(relation):
        return None
    of = ScanOptions.from_options(dict(relation.read.data_source.options))
    return _KNOWN.get((relation.common.plan_id, of.version, of.table_id, of.log_identity))


def is_scan(relation: Any) -> bool:
    """Whether a message `Relation` is a scan of ours."""
    if relation.WhichOneof("rel_type") != "read":
        return False
    return bool(relation.read.data_source.format.startswith(SOURCE_PREFIX))


def know_table(frame: DataFrame, log: DeltaLog) -> DataFrame:
    """Remember by which handle the table of a frame was opened, and return the frame."""
    for plan in _scans(frame):
        remember_scan(plan, replace(getattr(plan, _MARK), log=log))
    return frame


def follow(frame: DataFrame) -> DataFrame:
    """Have a frame read the newest version of its table at each action; return the frame.

    A frame of a version that the user chose, and one of changes, stays as it is.
    """
    for plan in _scans(frame):
        scan = ScanOptions.from_options(plan._options)
        if not scan.is_time_travel and getattr(plan, _MARK).log is not None:
            plan._options = replace(scan, follows=True).to_options()
    return frame


@dataclass(frozen=True, slots=True)
class NewestVersions:
    """The versions that one action reads: one of each table, however often it stands there."""

    _found: dict[str, Snapshot] = field(default_factory=dict)

    def read_by(self, scan: SentScan, options: Any) -> Snapshot:
        """The version that a scan is to read.

        Args:
            scan: The scan.
            options: Those of its message or its plan; they are changed to name that version.

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
    """The frame with its scans that follow their tables fixed to the newest versions.

    The plans keep their numbers, by which columns are bound to them.
    """
    inner: Any = frame
    plan = _fixed(inner._plan, NewestVersions())
    if plan is inner._plan:
        return frame
    fixed: DataFrame = type(inner)(plan, inner._session)
    return fixed


def _fixed(plan: Any, versions: NewestVersions) -> Any:
    if _MARK in vars(plan):
        return _fixed_scan(plan, versions)
    changed = {name: _fixed_value(value, versions) for name, value in vars(plan).items()}
    if all(changed[name] is value for name, value in vars(plan).items()):
        return plan
    made = copy.copy(plan)
    vars(made).update(changed)
    child = changed.get("_child")
    if child is not None and _MARK in vars(child) and is_scan_alias(str(changed.get("_alias"))):
        made._alias = scan_alias(ScanOptions.from_options(child._options).scanned_table)
    return made


def _fixed_scan(plan: Any, versions: NewestVersions) -> Any:
    scan, options = getattr(plan, _MARK), dict(plan._options)
    snapshot = versions.read_by(scan, options)
    if options == plan._options:
        return plan
    made = copy.copy(plan)
    made._options = options
    if snapshot is not scan.snapshot:
        remember_scan(made, replace(scan, snapshot=snapshot))
    return made


def _fixed_value(value: Any, versions: NewestVersions) -> Any:
    if isinstance(value, (list, tuple)):
        items = [_fixed_value(item, versions) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    return _fixed(value, versions) if _is_plan(value) else value


def _scans(frame: Any) -> Iterator[Any]:
    plan = frame._plan
    while plan is not None:
        if _MARK in vars(plan):
            yield plan
        plan = plan._child


def _is_plan(value: Any) -> bool:
    return hasattr(type(value), "to_proto") and hasattr(value, "_plan_id")
