"""A table in a world where time passes when it is told to."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.options.engine import EngineOptions
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore

__all__ = ["COLUMNS", "UNCHECKED", "Aged", "rows"]

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.int64())])
UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


def rows(first: int, end: int) -> pa.Table:
    return pa.table({"id": range(first, end), "p": [i % 3 for i in range(first, end)]}, COLUMNS)


class Aged:
    """A table in a world where time passes when it is told to: times of files, too."""

    def __init__(self, path: Path, options: dict[str, str] | None = None, **given: object) -> None:
        self.path = path / "table"
        self.clock = ManualClock(now_ms=1_700_000_000_000)
        self.options = EngineOptions.from_options({**UNCHECKED, **(options or {})})
        self.log = DeltaLog(str(self.path), LocalLogStore({}), self.options, clock=self.clock)
        self._known: set[str] = set()
        self.log.create(COLUMNS, **given)
        self.pass_hours(0)

    def pass_hours(self, hours: float) -> None:
        """What was made since the last call gets the time at which it was made."""
        at = self.clock.now_ms() / 1000
        found = {str(path) for path in self.path.rglob("*")}
        for path in found - self._known:
            os.utime(path, (at, at), follow_symlinks=False)
        self._known = found
        self.clock.advance(hours * 3600 + 1)

    def files(self) -> set[str]:
        """The files below the table that are not of its log."""
        below = (path.relative_to(self.path) for path in self.path.rglob("*") if path.is_file())
        return {str(path) for path in below if path.parts[0] != "_delta_log"}

    def ids(self, version: int | None = None) -> list[int]:
        snapshot = self.log.snapshot(version)
        return sorted(to_arrow(snapshot).column("id").to_pylist())
