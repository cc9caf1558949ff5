"""A conflict in plain words: what was touched, who won, and what to do."""

from __future__ import annotations

from optimist.core.errors import Conflict
from optimist.core.errors.foreign_text import shown

__all__ = ["explain", "get_pretty_partition_message"]

_WHAT = {
    "protocol": "A concurrent commit changed the table's protocol",
    "metadata": "A concurrent commit changed the table's metadata",
    "domain metadata": "A concurrent commit set the same metadata domain",
    "application transaction": "A concurrent commit advanced the same application",
    "row tracking backfill": (
        "A concurrent commit assigned row ids while this transaction removes them"
    ),
    "concurrent append": "Files were added to {place} by a concurrent update",
    "concurrent delete of read files": (
        "This transaction read files that were deleted from {place} by a concurrent update"
    ),
    "concurrent change of the same rows": (
        "This transaction read rows that were deleted or changed in {place} by a concurrent update"
    ),
    "concurrent delete of the same files": (
        "This transaction deletes files of {place} that were deleted by a concurrent update"
    ),
}


def explain(conflict: Conflict, table_path: str, operation: str) -> str:
    """Format the message of a conflict error."""
    place = get_pretty_partition_message(conflict.partition)
    what = _WHAT[conflict.check].format(place=place)
    if conflict.subject:
        what += f": {shown(conflict.subject)}"
    parts = [
        f"{what}.",
        f"The winner is version {conflict.winning_version} of {table_path}, "
        f"{_describe_winner(conflict)}; the loser is this {shown(operation or 'commit')}.",
    ]
    if conflict.num_paths:
        paths = ", ".join(map(shown, conflict.paths[:3]))
        more = f" and {conflict.num_paths - 3} more" if conflict.num_paths > 3 else ""
        parts.append(f"Files: {paths}{more}.")
    if conflict.predicate:
        parts.append(
            f"They may hold rows that match the predicate of this {operation or 'commit'}: "
            f"{shown(conflict.predicate)}."
        )
    parts.append(conflict.remedy)
    return " ".join(parts)


def get_pretty_partition_message(partition: str | None) -> str:
    """Say where a file lies: `partition [a=1, b=2]` or `the root of the table`."""
    return "the root of the table" if partition is None else f"partition {shown(partition)}"


def _describe_winner(conflict: Conflict) -> str:
    operation = conflict.winning_operation or "an operation that left no commitInfo"
    by = f" by {shown(conflict.winning_engine)}" if conflict.winning_engine else ""
    return f"{shown(operation)}{by}"
