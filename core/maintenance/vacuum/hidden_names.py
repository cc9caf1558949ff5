"""The names below a table that VACUUM ignores (spec 10.12).

Names that begin with `_` or `.` are hidden: the log, and files of other tools. A directory with a
log of its own is hidden, since it is another table. The target of a symbolic link is hidden, since
the log may name files through the link. Partition directories, change files, indexes, and files
that Spark's tasks left in the directory of one write are not hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from optimist.core.data.hive_names import escape_hive
from optimist.core.data.intents.intents import INTENTS
from optimist.core.paths import LOG_DIRECTORY
from optimist.core.snapshot import Snapshot

__all__ = ["HiddenNames"]

_SEEN = ("_delta_index", "_change_data")
_ICEBERG = "metadata"
_OF_ONE_WRITE = re.compile(r"(^|/)data-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_OF_TASKS = "_temporary"


class HiddenNames:
    """The hidden names of one table.

    Args:
        partition_columns: The logical and physical names of its partition columns.
        is_iceberg_too: Whether engines keep the table in the format of Iceberg, too.
    """

    def __init__(self, partition_columns: Iterable[str], *, is_iceberg_too: bool = False) -> None:
        given = tuple(partition_columns)
        spelled = (*given, *map(escape_hive, given))
        self._seen = (*_SEEN, *(f"{name}=" for name in spelled))
        self._not_seen = (_ICEBERG,) if is_iceberg_too else ()
        self.apart: set[str] = set()

    @classmethod
    def of(cls, snapshot: Snapshot) -> HiddenNames:
        """Make the rule for a version of a table."""
        logical = snapshot.partition_columns
        names = (*logical, *(snapshot.physical_name(name) for name in logical))
        formats = snapshot.properties.universal_format_enabled_formats or ()
        return cls(names, is_iceberg_too="iceberg" in formats)

    def enters(self, parent: str, name: str) -> bool:
        """Tell whether VACUUM enters a name in a directory, given by its relative path.

        A log below the table is noted, so that `lies_apart` knows its directory.
        """
        if name == LOG_DIRECTORY:
            if parent:
                self.apart.add(parent)
            return False
        if not parent and name in self._not_seen:
            return False
        if not name.startswith(("_", ".")) or name.startswith(self._seen):
            return True
        return name == _OF_TASKS and _OF_ONE_WRITE.search(parent) is not None

    def shows(self, path: str, *, is_named: bool = False) -> bool:
        """Tell whether a relative path may be deleted.

        Args:
            path: The path.
            is_named: Whether the table's log records the file as removed, so that it belongs to the
                table. Then only the log and the intents are protected, since old partition
                directories may begin with `_` or `.`. Otherwise each name of the path must be one
                that `enters` accepts.
        """
        names = path.split("/")
        if not path or any(name in ("", ".", "..") or "\0" in name for name in names):
            return False
        if is_named:
            return LOG_DIRECTORY not in names and names[0] != INTENTS
        return all(self.enters("/".join(names[:at]), name) for at, name in enumerate(names))

    def may_be_table(self, path: str) -> bool:
        """Tell whether a directory, given by its relative path, may be another table by its name.

        The directory of a partition is not, nor is one of a single write.
        """
        name = path.rpartition("/")[2]
        return not name.startswith(self._seen) and _OF_ONE_WRITE.search(path) is None

    def lies_apart(self, path: str) -> bool:
        """Tell whether a relative path lies in another table or in the target of a link."""
        names = path.split("/")
        above = ("/".join(names[:end]) for end in range(1, len(names) + 1))
        return any(directory in self.apart for directory in above)
