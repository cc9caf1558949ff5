"""The change files that the change data feed still needs.

VACUUM removes change files whose retention has ended, though the commits that name them stay. It
goes by the time of the file, and a transaction may take hours. So only files of commits that are
younger than half of the retention count. A user may have given VACUUM a shorter retention, so a
missing file counts only if one of an older commit, or of the same, is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import Action, AddCDCFile, CommitInfo

__all__ = ["ChangeFiles"]

_CHANGES = pa.schema([("path", pa.string()), ("size", pa.int64()), ("version", pa.int64())])
_PIECES = 1024


@dataclass(slots=True)
class ChangeFiles:
    """The change files of young commits.

    Attributes:
        since_ms: The time from which on a commit is young, in epoch milliseconds.
    """

    since_ms: int
    _pieces: list[pa.Table] = field(default_factory=list)

    def note(
        self, version: int, status: FileStatus, info: CommitInfo | None, actions: Iterable[Action]
    ) -> None:
        """Note a commit.

        Args:
            version: Its version.
            status: Its file.
            info: Its commitInfo. A file that was copied looks younger than its commit is.
            actions: Its actions.
        """
        told_ms = None if info is None else info.timestamp
        if min(status.modified_ms, told_ms or 0) < self.since_ms:
            return
        found = [each for each in actions if isinstance(each, AddCDCFile)]
        if found:
            columns = [
                pa.array([each.path for each in found], pa.string()),
                pa.array([each.size for each in found], pa.int64()),
                pa.repeat(pa.scalar(version, pa.int64()), len(found)),
            ]
            self._pieces.append(pa.Table.from_arrays(columns, schema=_CHANGES))
            if len(self._pieces) == _PIECES:
                self._pieces = [self.table()]

    def table(self) -> pa.Table:
        """Return them: `path` as in the log, `size` and `version`."""
        return pa.concat_tables([_CHANGES.empty_table(), *self._pieces]).combine_chunks()
