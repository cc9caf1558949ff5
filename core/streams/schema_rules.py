"""Whether a stream may read on past a change of the table's metadata (spec 11.3)."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.changes.schemas import reading_problem
from optimist.core.errors import SchemaError, TableError
from optimist.core.protocol.actions import Metadata

__all__ = ["StreamSchema", "other_table"]


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The metadata that a stream reads all rows by, from its start on.

    Attributes:
        metadata: The table's metadata when the stream was started.
        version: The version that they are from.
    """

    metadata: Metadata
    version: int

    def ensure_reads(self, changed: Metadata, version: int) -> None:
        """Make sure that rows written under other metadata of the table can be read.

        A change that comes after the stream's own version, and under which all earlier rows can be
        read, is taken up by a restart. Others are not, because a restart reads by the newest
        metadata, too.

        Args:
            changed: The metadata of a commit.
            version: The version of the commit.

        Raises:
            TableError: The table was replaced (kind
                `DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE`).
            SchemaError: The rows can't be read (kind `DELTA_SCHEMA_CHANGED_WITH_VERSION`, field
                `retryable`).
        """
        if changed.id != self.metadata.id:
            raise other_table(self.metadata.id, changed.id)
        problem = reading_problem(changed, self.metadata)
        if problem is None:
            return
        is_new = version > self.version
        retryable = is_new and reading_problem(self.metadata, changed) is None
        remedy = (
            "Start the query again: it goes on with the new schema."
            if retryable
            else "Restarts do not help, since rows from before the change don't mean the same "
            "after it. Start the query with a new checkpoint, from the version after the change "
            "(startingVersion), or from the whole table."
        )
        column, what = problem
        raise SchemaError(
            f"Detected schema change in version {version}: read with the schema that the stream "
            f"has, from version {self.version}, {what} in comparison. Nothing of this batch was "
            f"read. {remedy}",
            kind="DELTA_SCHEMA_CHANGED_WITH_VERSION",
            version=version,
            column=column,
            retryable=retryable,
        )


def other_table(expected: str, found: str) -> TableError:
    """The error for a table that is not the one that the stream began with."""
    return TableError(
        f"The streaming query was reading from the Delta table with the id {expected}, but the "
        f"table that is there now has the id {found}: it was replaced, or dropped and made anew, "
        "or the checkpoint is another table's. Nothing was read. Start the query with a new "
        "checkpoint.",
        kind="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        oldTableId=expected,
        newTableId=found,
    )
