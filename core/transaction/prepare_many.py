"""Checks files that are passed as columns as `prepare` does, without a value per file.

RESTORE and CLONE pass all files this way (`ManyFiles`), and take them over as they are: with the
vectors and the statistics that they had before. Other commands pass only files that they remove.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors.foreign_text import shown
from optimist.core.log.file_lines import distinct_partition_columns
from optimist.core.log.file_table import canonical_paths, file_actions_batch, table_keys
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import AddFile

__all__ = [
    "doubled_paths",
    "odd_partitioning",
    "removed_among",
    "replaced_in_part",
    "warn_of_empty_files",
]

_LOG = logging.getLogger(__name__)
_NAMED_FILES = 10


def odd_partitioning(files: ManyFiles, expected: Collection[str]) -> tuple[str, list[str]] | None:
    """Find an added file with other partition columns, and return its path and these columns."""
    for batch in files.added.to_batches():
        table = pa.Table.from_batches([batch])
        for columns in distinct_partition_columns(table):
            if sorted(columns) != sorted(expected):
                row = _row_with(table, columns)
                return str(table["path"][row].as_py()), sorted(columns)
    return None


def _row_with(files: pa.Table, columns: list[str]) -> int:
    return next(
        row
        for row in range(files.num_rows)
        if distinct_partition_columns(files.slice(row, 1)) == [columns]
    )


def doubled_paths(files: ManyFiles, adds: Sequence[AddFile] = ()) -> tuple[str, ...]:
    """Find files that are added twice, removed twice, or both added and removed.

    Args:
        files: The files.
        adds: Others that the commit adds, already compared with each other.
    """
    hits = []
    if adds and files.removed.num_rows:
        others = pa.Table.from_batches([file_actions_batch(adds)])
        hits.append((others, pc.is_in(table_keys(others), value_set=table_keys(files.removed))))
    if files.added.num_rows and files.removed.num_rows:
        both = pc.is_in(table_keys(files.added), value_set=table_keys(files.removed))
        hits.append((files.added, both))
    if not files.has_distinct_paths:
        sides = (files.added, files.removed)
        hits += [(side, _find_repeated(canonical_paths(side["path"]))) for side in sides]
    for side, is_hit in hits:
        found = canonical_paths(side["path"].filter(is_hit)).slice(0, _NAMED_FILES)
        if len(found):
            return tuple(found.to_pylist())
    return ()


def removed_among(paths: Sequence[str], files: ManyFiles) -> list[str]:
    """Return those of some canonical paths whose files are removed."""
    given = pa.array(paths, pa.string())
    is_removed = pc.is_in(given, value_set=canonical_paths(files.removed["path"]))
    return [str(path) for path in given.filter(is_removed).to_pylist()]


def _find_repeated(paths: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    counts = paths.value_counts()
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    return pc.is_in(paths, value_set=repeated)


def replaced_in_part(files: ManyFiles, live: pa.Table) -> str | None:
    """Find a file that is added with a vector and also stays live as it was."""
    with_vector = files.added.filter(files.added["deletionVector"].is_valid())
    if not with_vector.num_rows:
        return None
    paths = canonical_paths(with_vector["path"])
    removed = pc.is_in(paths, value_set=canonical_paths(files.removed["path"]))
    kept = with_vector.filter(pc.invert(removed))
    same_path = live.filter(
        pc.is_in(canonical_paths(live["path"]), value_set=canonical_paths(kept["path"]))
    )
    others = table_keys(same_path)
    is_other = pc.invert(pc.is_in(others, value_set=table_keys(kept)))
    for path in canonical_paths(same_path["path"].filter(is_other)).slice(0, 1).to_pylist():
        return str(path)
    return None


def warn_of_empty_files(files: ManyFiles) -> None:
    """Warn of added files without a byte, as no writer makes them."""
    empty = files.added.filter(pc.equal(files.added["size"], 0))
    for path in empty["path"].slice(0, 1).to_pylist():
        _LOG.warning(
            "The commit adds %d files with a size of 0 bytes, such as %s.",
            empty.num_rows,
            shown(path),
        )
