"""Paths below a table that name some of its partitions, as `table/p=1/q=2` (spec 5.7).

Delta reads such a path as a filter over the table, whatever directories there are. Files of ours
may lie in a directory of their own, as in `table/data-<uuid>/p=1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from optimist.core.data.hive_names import unescape_hive
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import name_of, normalize, parent_of

__all__ = ["PartitionPath", "partition_paths", "within_table"]

_OWN_DIRECTORY = re.compile(r"data-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class PartitionPath:
    """A path of a partition, in the table above it.

    Attributes:
        table_path: Where the table would be.
        values: The partition columns that the path names, and their values as text; None for null.
    """

    table_path: str
    values: tuple[tuple[str, str | None], ...]


def partition_paths(path: str) -> Iterator[PartitionPath]:
    """List the tables whose partition a path may be, the nearest first."""
    values: list[tuple[str, str | None]] = []
    rest = normalize(path)
    while "=" in name_of(rest):
        name, _, value = name_of(rest).partition("=")
        values.insert(0, (unescape_hive(name) or name, unescape_hive(value)))
        rest = parent_of(rest)
        if rest:
            yield PartitionPath(rest, tuple(values))
        if _OWN_DIRECTORY.fullmatch(name_of(rest)) and parent_of(rest):
            yield PartitionPath(parent_of(rest), tuple(values))


def within_table(path: str, table_path: str) -> UsageError:
    """Return the error for a write that would make a table within a table."""
    return UsageError(
        f"The path {shown(path)} is the path of a partition of the table {shown(table_path)}, "
        "not of a table. Nothing was written. Write to the table; to replace the rows of a "
        "partition, overwrite it with replaceWhere.",
        kind="OPTIMIST_PATH_OF_A_PARTITION",
        path=path,
        table_path=table_path,
    )
