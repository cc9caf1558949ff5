"""The limits of a log in memory, because a small Parquet file may unpack to millions of files.

Compression, dictionaries and run lengths make a checkpoint many times larger in memory than in the
store. That is their purpose, but an attacker's file uses it, too. So each batch is checked as it is
unpacked. Reading stops at more than any writer of tables would write, before the memory is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.file_table import file_keys
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import FileStatus

__all__ = [
    "DEFAULT_LIMITS",
    "LogLimits",
    "SeenFiles",
    "counted",
    "distinct",
    "ensure_bounded",
    "ensure_few",
    "ensure_readable_size",
    "most_unpacked_bytes",
    "unpacked",
]

_MOST_TIMES = 1_000
_ALWAYS_BYTES = 64 << 20
_SAMPLES = 16
_COMPARED_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class LogLimits:
    """The most that is read of a log. The options `optimist.log.…` set the limits.

    Attributes:
        max_files: Live files in one checkpoint, and as many tombstones.
        max_file_bytes: The size of one commit, compacted commit or JSON checkpoint. Each is parsed
            as a whole.
        cache_bytes: The memory for columns of a checkpoint that may be read again. A checkpoint
            whose files fit in it is kept as a whole.
    """

    max_files: int = 50_000_000
    max_file_bytes: int = 2 << 30
    cache_bytes: int = 256 << 20

    @classmethod
    def of(cls, options: EngineOptions) -> LogLimits:
        """Return the limits that the options set."""
        return cls(options.log_max_files, options.log_max_file_bytes, options.log_cache_bytes)


DEFAULT_LIMITS = LogLimits()


def ensure_readable_size(status: FileStatus, limits: LogLimits) -> None:
    """Refuse a file that is too large to parse as a whole. Call it before reading the file.

    Raises:
        TableError: The file is too large (kind `OPTIMIST_LOG_TOO_LARGE`).
    """
    if status.size_bytes > limits.max_file_bytes:
        raise TableError(
            f"The log file {shown(status.path)} has {status.size_bytes} bytes, more than the "
            f"{limits.max_file_bytes} that are allowed. Nothing was read. If the table is yours "
            "and sound, raise optimist.log.maxFileBytes.",
            kind="OPTIMIST_LOG_TOO_LARGE",
            path=status.path,
            size_bytes=status.size_bytes,
        )


def most_unpacked_bytes(size_bytes: int) -> int:
    """Return how many bytes a checkpoint's Parquet file of this stored size may unpack to."""
    return _ALWAYS_BYTES + _MOST_TIMES * size_bytes


def ensure_bounded(unpacked_bytes: int, size_bytes: int) -> None:
    """Refuse more unpacked bytes than a file of this size may have.

    Raises:
        ValueError: The file unpacks to more.
    """
    if unpacked_bytes > most_unpacked_bytes(size_bytes):
        raise ValueError(f"it unpacks to more than {_MOST_TIMES} times its {size_bytes} bytes")


def ensure_few(rows: int, limits: LogLimits) -> None:
    """Refuse a checkpoint of more rows than the limit.

    Raises:
        TableError: It has more (kind `OPTIMIST_LOG_TOO_LARGE`).
    """
    if rows > limits.max_files:
        raise TableError(
            f"A checkpoint holds more than {limits.max_files} files, the most that are allowed. "
            "Nothing was read. If the table is yours and sound, raise optimist.log.maxFiles.",
            kind="OPTIMIST_LOG_TOO_LARGE",
            max_files=limits.max_files,
        )


def unpacked(
    batches: Iterable[pa.RecordBatch], size_bytes: int, limits: LogLimits
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one Parquet file of a checkpoint, and refuse an oversized file.

    Args:
        batches: The file's adds or removes, as they are unpacked.
        size_bytes: The size of the file in the store.
        limits: The most rows that are read.

    Raises:
        TableError: The file has more rows (kind `OPTIMIST_LOG_TOO_LARGE`).
        ValueError: The rows unpack to more than a sound checkpoint does.
    """
    rows = unpacked_bytes = 0
    for batch in batches:
        rows += batch.num_rows
        unpacked_bytes += batch.nbytes
        ensure_few(rows, limits)
        ensure_bounded(unpacked_bytes, size_bytes)
        yield batch


def counted(batches: Iterable[pa.RecordBatch], limits: LogLimits) -> Iterator[pa.RecordBatch]:
    """Yield the tombstones of a whole checkpoint, and refuse too many.

    Raises:
        TableError: The checkpoint has more (kind `OPTIMIST_LOG_TOO_LARGE`).
    """
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        ensure_few(rows, limits)
        yield batch


def distinct(batches: Iterable[pa.RecordBatch], limits: LogLimits) -> Iterator[pa.RecordBatch]:
    """Yield the adds of a whole checkpoint, and refuse one that names a file twice.

    Comparing every file with every other would take as much memory and time as all the rest. So in
    a large checkpoint only a few files of each batch are kept, and searched in that batch and all
    later ones. That finds an attack at once, because it is made of repetitions.

    Raises:
        TableError: The checkpoint has more rows (kind `OPTIMIST_LOG_TOO_LARGE`).
        ValueError: A file is named more than once.
    """
    seen = SeenFiles(limits)
    for batch in batches:
        seen.ensure_new(batch)
        yield batch


class SeenFiles:
    """The files of a checkpoint so far, of which none may be named twice (see `distinct`)."""

    def __init__(self, limits: LogLimits) -> None:
        self._limits = limits
        self._rows = 0
        self._seen: list[pa.Array] = []

    def ensure_new(self, batch: pa.RecordBatch) -> None:
        """Refuse the next batch if it names a file again.

        Raises:
            TableError: The checkpoint has too many rows (kind `OPTIMIST_LOG_TOO_LARGE`).
            ValueError: A file is named more than once.
        """
        self._rows += batch.num_rows
        ensure_few(self._rows, self._limits)
        keys = file_keys(batch)
        self._seen.append(keys if self._rows <= _COMPARED_ROWS else _sample_keys(keys))
        known = pa.concat_arrays(self._seen)
        # The kept keys of this batch find themselves once. More hits are repetitions.
        is_repeated = pc.count_distinct(known).as_py() < len(known) or pc.sum(
            pc.is_in(keys, value_set=known), min_count=0
        ).as_py() > len(self._seen[-1])
        if is_repeated:
            raise ValueError("it names a file more than once")


def _sample_keys(keys: pa.Array) -> pa.Array:
    return keys.take(pa.array(range(0, len(keys), max(1, len(keys) // _SAMPLES)), pa.int64()))
