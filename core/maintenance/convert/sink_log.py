"""The files in a directory of Spark's file sink that the sink's log has committed.

A stream that writes Parquet records in `_spark_metadata` what each batch has written. Spark reads
no other files there, since failed tasks and repeated batches leave files whose rows are in other
files, too. Batch `n` is a file `n`, or `n.compact`, which holds all batches up to it. The first
line is the version. Every other line is a file as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import unquote

from optimist.core.data.storage.filesystem import filesystem_for, open_to_read
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import names_in
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import join, name_of

__all__ = ["SINK_LOG", "committed_by_sink"]

SINK_LOG = "_spark_metadata"
_COMPACT = ".compact"
_VERSION = "v1"


def committed_by_sink(table: TableRef, paths: Iterable[str]) -> frozenset[str]:
    """Return the files of a directory that the sink's log has committed.

    Args:
        table: The directory, as the table that it is to become.
        paths: Paths below it, not percent-encoded.

    Raises:
        TableError: The log lacks a batch, can't be read, or names a file that is missing (kind
            `OPTIMIST_DAMAGED_SINK_LOG`).
        StorageError: The store failed.
    """
    below, found = frozenset(paths), set()
    depths = sorted({path.count("/") + 1 for path in below}, reverse=True)
    # The log has full paths, perhaps of another mount, or from before the directory was moved.
    for whole in sorted(_committed_paths(table)):
        parts = whole.split("/")
        ends = ("/".join(parts[-depth:]) for depth in depths)
        path = next((end for end in ends if end in below), None)
        if path is None:
            raise _damaged_log(table, f"it names the file {shown(whole)}, which is not there")
        found.add(path)
    return frozenset(found)


def _committed_paths(table: TableRef) -> set[str]:
    """Return the full paths of the committed files, not percent-encoded."""
    log_path = join(table.table_path, SINK_LOG)
    names = set(names_in(log_path, table.data_access()))
    batches = {name.removesuffix(_COMPACT) for name in names}
    numbers = {int(text) for text in batches if text.isascii() and text.isdigit()}
    if not numbers:
        return set()
    newest = max(numbers)
    first = max((n for n in numbers if f"{n}{_COMPACT}" in names), default=0)
    found: set[str] = set()
    for number in range(first, newest + 1):
        if number not in numbers:
            raise _damaged_log(table, f"the batch {number} is missing")
        compact = f"{number}{_COMPACT}"
        name = compact if compact in names else str(number)
        _apply_batch(table, join(log_path, name), found)
    return found


def _apply_batch(table: TableRef, path: str, found: set[str]) -> None:
    filesystem, inner = filesystem_for(path, table.data_access())
    with storage_errors("read", path), open_to_read(filesystem, inner) as source:
        content = source.read()
    try:
        version, *lines = content.decode("utf-8").splitlines()
        if version != _VERSION:
            raise ValueError(f"its version is {shown(version)}")
        for line in filter(None, lines):
            file = json.loads(line)
            change = found.discard if file["action"] == "delete" else found.add
            change(unquote(file["path"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged_log(table, f"{shown(name_of(path))} can't be read: {shown(error)}") from None


def _damaged_log(table: TableRef, problem: str) -> TableError:
    return TableError(
        f"The log of Spark's file sink in {shown(join(table.table_path, SINK_LOG))}, which names "
        f"the committed files, is damaged: {problem}. Nothing was written. Read the directory "
        "with Spark, and write the rows to a new table.",
        kind="OPTIMIST_DAMAGED_SINK_LOG",
        path=table.table_path,
    )
