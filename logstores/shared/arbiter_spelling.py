"""A check for arbiter entries of a table under another spelling of its path.

Two writers with two spellings could both win one version, since the arbiter treats them as two
tables. All our writers use the one name of the table's location (`table_place`). Entries under
another name come from an older version, or from another engine, which spells a table as its caller
does.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.errors import ConfigError
from optimist.core.forking import ForkSafeLock
from optimist.core.plugins.arbiter import Arbiter, CommitEntry

__all__ = ["SpellingCheck", "spelled_otherwise"]

_WITHOUT_OPTION = (
    "Stop the writers that use the other name (older versions of Optimist do), and delete the "
    "entries of {other_path}, or wait until they have expired; the commits themselves are files "
    "of the table, and stay."
)


class SpellingCheck:
    """A check that is made once per table, before the first write.

    Args:
        arbiter: The arbiter with the entries.
    """

    def __init__(self, arbiter: Arbiter) -> None:
        self._arbiter = arbiter
        self._lock = ForkSafeLock()
        self._checked: set[str] = set()

    def is_done(self, table_path: str) -> bool:
        """Check whether `find_other` has already found nothing for the table."""
        with self._lock:
            return table_path in self._checked

    def find_other(self, table_path: str, spellings: Sequence[str]) -> CommitEntry | None:
        """Return the newest entry of another spelling, if the table's own spelling has none.

        Args:
            table_path: The table's own spelling.
            spellings: The other spellings; they are read only if the table's own has no entry.
        """
        if spellings and self._arbiter.latest(table_path) is None:
            for spelling in spellings:
                entry = self._arbiter.latest(spelling)
                if entry is not None:
                    return entry
        with self._lock:
            self._checked.add(table_path)
        return None


def spelled_otherwise(table_path: str, other_path: str, *, hint: str) -> ConfigError:
    """Return the error for a table that the arbiter knows by another name.

    Args:
        table_path: Our name.
        other_path: The name that has the entries.
        hint: The option that the user can set; empty without one.
    """
    return ConfigError(
        f"Nothing was written: the arbiter has entries for {other_path}, but none for "
        f"{table_path}. All writers must name a table in the same way, or two of them can win one "
        f"version. {hint or _WITHOUT_OPTION.format(other_path=other_path)}",
        kind="OPTIMIST_ARBITER_PATH_MISMATCH",
        table_path=table_path,
        other_path=other_path,
    )
