"""How far a stream has come, by what it has written: the checkpoint of a Spark query, or a file.

Spark writes a file `offsets/N` before it runs the batch N, and `commits/N` when that is done. The
file of offsets has a line with its format (`v1`), a line of JSON about the batch, and a line for
each source of the query: its offset, or `-`. The source's own JSON is Delta's, whichever engine
wrote it (spec 11.1).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, TableError, TableNotFoundError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import join
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.streams.offset import StreamOffset

__all__ = ["StreamProgress", "read_progress"]

_LARGEST_BYTES = 4 << 20
_NONE = "-"


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """How far a stream has come with one of its sources.

    Attributes:
        position: Everything up to it was read; None before the first batch is done.
        source: The number of the source in the query, from 0; None for a file with a position.
        batch: The last batch that is done; None if there is none.
        done_ms: When it was done, or the position written, in epoch milliseconds.
        running: The batch that was begun and is not done; None if there is none.
    """

    position: StreamOffset | None
    source: int | None = None
    batch: int | None = None
    done_ms: int | None = None
    running: int | None = None


def read_progress(place: TableRef, table_id: str) -> list[StreamProgress]:
    """Return how far a stream has come, for each of its sources that reads a table.

    Args:
        place: The directory of a checkpoint, or a file with a position of `DeltaLog.follow`. It is
            not a table but is accessed like one.
        table_id: The table's id.

    Raises:
        TableNotFoundError: There is no such thing at the path.
        TableError: It is damaged, or of other tables.
        StorageError: The store failed.
    """
    store, path = place.store, place.table_path
    file = _status_of(store, path)
    if file is not None:
        return [_progress_of_file(store, file, table_id)]
    offsets, done = (_numbered(store, join(path, name)) for name in ("offsets", "commits"))
    if not offsets:
        raise TableNotFoundError(
            f"There is neither the checkpoint of a query that has begun in {shown(path)}, with a "
            "directory offsets, nor a file with a position. Check the path.",
            kind="PATH_NOT_FOUND",
            path=path,
        )
    planned = max(offsets)
    finished = max((number for number in done if number in offsets), default=None)
    running = planned if finished is None or planned > finished else None
    if finished is None:
        return [StreamProgress(None, running=running)]
    lines = _text_of(store, offsets[finished]).split("\n")[2:]
    found = [
        StreamProgress(offset, source, finished, done[finished].modified_ms, running)
        for source, offset in _offsets_in(lines)
        if offset.table_id == table_id
    ]
    if not found:
        raise _of_other_tables(path, "checkpoint")
    return found


def _numbered(store: LogStore, directory: str) -> dict[int, FileStatus]:
    """Return the files of a directory whose names are numbers; none if it is absent."""
    try:
        listed = list(store.list_from(join(directory, "0")))
    except LogFileNotFoundError:
        return {}
    return {int(each.name): each for each in listed if each.name.isascii() and each.name.isdigit()}


def _offsets_in(lines: list[str]) -> Iterator[tuple[int, StreamOffset]]:
    """Yield the offsets of Delta's tables, each with the number of its source."""
    for source, line in enumerate(lines):
        if line.strip() == _NONE:
            continue
        text = line[line.find("{") :]
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "reservoirId" in found:
            yield source, StreamOffset.from_json(text)


def _status_of(store: LogStore, path: str) -> FileStatus | None:
    """Return a file's status; None for a directory, and for what is not there."""
    try:
        status = next(iter(store.list_from(path)), None)
    except LogFileNotFoundError:
        return None
    return status if status is not None and status.path == path else None


def _progress_of_file(store: LogStore, file: FileStatus, table_id: str) -> StreamProgress:
    position = StreamOffset.from_json(_text_of(store, file).strip())
    if position.table_id != table_id:
        raise _of_other_tables(file.path, "position")
    return StreamProgress(position, done_ms=file.modified_ms)


def _text_of(store: LogStore, status: FileStatus) -> str:
    if status.size_bytes > _LARGEST_BYTES:
        raise TableError(
            f"{shown(status.path)} has {status.size_bytes:,} bytes, which is no file of a stream's "
            "progress. It was not read. Check the path.",
            kind="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
            path=status.path,
        )
    return store.read_bytes(status.path).decode("utf-8", "replace")


def _of_other_tables(path: str, what: str) -> TableError:
    return TableError(
        f"The {what} in {shown(path)} is not of this table: the stream reads others, or the table "
        "was made anew since. Check the path.",
        kind="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        path=path,
    )
