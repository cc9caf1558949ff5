"""What the handle of a table does to keep it: go back to an older version, remove dead files."""

from __future__ import annotations

from optimist.core.care.restore import RestoredTable, RestoreTo, restore
from optimist.core.errors import UsageError
from optimist.core.log.timestamps import parse_timestamp
from optimist.core.running.budget import one_operation
from optimist.core.table.table_handle import TableHandle

__all__ = ["CareCommands"]


class CareCommands(TableHandle):
    """The commands that care for a table; `DeltaLog` is the one that has them."""

    @one_operation
    def restore(
        self, version: int | None = None, timestamp: str | int | None = None
    ) -> RestoredTable | None:
        """Make the table what it was at an older version or time, in one commit.

        No version is lost, so a RESTORE can be undone by another one. Rows are neither read nor
        written. Only one of the two arguments is given.

        Args:
            version: A version number.
            timestamp: Epoch milliseconds, or text as for `snapshot`.

        Returns:
            What was done; None if that is the newest version.

        Raises:
            TableNotFoundError: There is no table at the path.
            UsageError: Not one of the two is given.
            TableError: The log does not hold the version; or some of its files are gone (kind
                `DELTA_FILE_NOT_FOUND_DETAILED`), unless `spark.sql.files.ignoreMissingFiles` is
                set.
            ConcurrentWriteException: Another commit came first.
        """
        if (version is None) == (timestamp is None):
            raise UsageError(
                "Give a version or a timestamp to restore the table to, and not both.",
                kind="DELTA_ONEOF_IN_TIMETRAVEL",
            )
        to = RestoreTo(version) if timestamp is None else RestoreTo(None, *_time(timestamp))
        return restore(self.start_transaction(self.snapshot()), to, self.snapshot)


def _time(timestamp: str | int) -> tuple[int, str]:
    timestamp_ms = parse_timestamp(timestamp) if isinstance(timestamp, str) else timestamp
    return timestamp_ms, str(timestamp)
