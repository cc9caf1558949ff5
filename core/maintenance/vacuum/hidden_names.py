"""Which names below a table VACUUM never looks at (spec 10.12).

Names that begin with `_` or `.` are hidden: the log above all, and what other tools keep there. So
is a directory with a log of its own: it is another table; and what a symbolic link leads to, as the
log may name files by way of it. Not hidden are partition directories,
change files, indexes, and what Spark's tasks have left within the directory of one write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from optimist.core.data.intents.intents import INTENTS
from optimist.core.data.partition_values import escape_hive
from optimist.core.log.names import LOG_DIRECTORY
from optimist.core.snapshot import Snapshot

__all__ = ["HiddenNames"]

_SEEN = ("_delta_index", "_change_data")
_OF_ONE_WRITE = re.compile(r"(^|/)data-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_OF_TASKS = "_temporary"


class HiddenNames:
    """The rule for one table.

    Args:
        partition_columns: The names of its partition columns, logical and physical ones.
    """

    def __init__(self, partition_columns: Iterable[str]) -> None:
        given = tuple(partition_columns)
        spelled = (*given, *map(escape_hive, given))
        self._seen = (*_SEEN, *(f"{name}=" for name in spelled))
        self.apart: set[str] = set()

    @classmethod
    def of(cls, snapshot: Snapshot) -> HiddenNames:
        """The rule for a version of a table."""
        logical = snapshot.partition_columns
        return cls((*logical, *(snapshot.physical_name(name) for name in logical)))

    def enters(self, parent: str, name: str) -> bool:
        """Whether a name in a directory, given by its relative path, is looked at.

        A log within the table is noted: what lies beside it `lies_apart`.
        """
        if name == LOG_DIRECTORY:
            if parent:
                self.apart.add(parent)
            return False
        if not name.startswith(("_", ".")) or name.startswith(self._seen):
            return True
        return name == _OF_TASKS and _OF_ONE_WRITE.search(parent) is not None

    def shows(self, path: str, *, is_named: bool = False) -> bool:
        """Whether a relative path may be deleted at all.

        Args:
            path: The path.
            is_named: The table's log says that the file was removed, so it is one of its own: just
                the log itself is not touched, nor the intents. Partition directories of a table
                that is partitioned otherwise by now may begin with `_` or `.`. Else each name is
                one that is looked at.
        """
        names = path.split("/")
        if not path or any(name in ("", ".", "..") or "\0" in name for name in names):
            return False
        if is_named:
            return LOG_DIRECTORY not in names and names[0] != INTENTS
        return all(self.enters("/".join(names[:at]), name) for at, name in enumerate(names))

    def lies_apart(self, path: str) -> bool:
        """Whether a relative path is, or lies in, another table or what a link leads to."""
        names = path.split("/")
        above = ("/".join(names[:end]) for end in range(1, len(names) + 1))
        return any(place in self.apart for place in above)
