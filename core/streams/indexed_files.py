"""Files of a version with their indexes in offsets, and the number that a batch may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.streams.schema_rules import StreamSchema

__all__ = ["Capacity", "IndexedFiles", "kept_paths"]


@dataclass(frozen=True, slots=True)
class IndexedFiles:
    """Files of one version with their indexes, in ascending order.

    Attributes:
        files: Rows of `FILES_SCHEMA`.
        indexes: The index of each file (int64). Skipped files leave gaps.
        is_whole: Whether a batch takes all of them or none: they share one index.
        change: The new schema for a stream with a log of schemas; None if its schema stays.
        lost_until: The next version that the log has, if it has lost this one.
    """

    files: pa.Table
    indexes: pa.Array
    is_whole: bool = False
    change: StreamSchema | None = None
    lost_until: int | None = None

    @classmethod
    def of(
        cls, files: pa.Table, exclude_regex: str | None = None, num_before: int = 0
    ) -> IndexedFiles:
        """Give each file its index.

        Files with a matching path are counted but left out.

        Args:
            files: Rows of `FILES_SCHEMA`.
            exclude_regex: Matches the paths to leave out, if any.
            num_before: The number of files of the version that come before these.
        """
        # 0, 1, 2, ... without a Python object per file.
        ones = pa.repeat(pa.scalar(1, pa.int64()), files.num_rows)
        indexes = pc.cumulative_sum(ones, start=num_before - 1)
        if exclude_regex is None or not files.num_rows:
            return cls(files, indexes)
        kept = kept_paths(files, exclude_regex)
        return cls(files.filter(kept), indexes.filter(kept))

    @classmethod
    def whole(cls, files: pa.Table, exclude_regex: str | None = None) -> IndexedFiles:
        """Make files that no batch may split.

        delta-spark writes the index of the last one for them. Each such index means after all
        files.
        """
        kept = cls.of(files, exclude_regex).files
        return cls(kept, pa.repeat(pa.scalar(0, pa.int64()), kept.num_rows), is_whole=True)

    @classmethod
    def none(cls) -> IndexedFiles:
        """Return no files."""
        return cls(FILES_SCHEMA.empty_table(), pa.array([], pa.int64()))

    @classmethod
    def joined(cls, parts: Sequence[IndexedFiles]) -> IndexedFiles:
        """Join the files of several versions in order, to be read together."""
        files = [FILES_SCHEMA.empty_table(), *(part.files for part in parts)]
        indexes = [pa.array([], pa.int64()), *(part.indexes for part in parts)]
        return cls(pa.concat_tables(files), pa.concat_arrays(indexes))

    def __len__(self) -> int:
        return int(self.files.num_rows)

    @property
    def size_bytes(self) -> int:
        """The sizes of the files, summed."""
        return int(pc.sum(self.files["size"], min_count=0).as_py())

    def next_version(self, version: int) -> int:
        """Return the version to continue with after this one."""
        return version + 1 if self.lost_until is None else self.lost_until

    def between(self, after: int, upto: int | None = None) -> IndexedFiles:
        """Return the files whose index is above `after` and, if given, not above `upto`."""
        first = int(pc.sum(pc.less_equal(self.indexes, after), min_count=0).as_py())
        last = len(self)
        if upto is not None:
            last = int(pc.sum(pc.less_equal(self.indexes, upto), min_count=0).as_py())
        length = max(0, last - first)
        return self._slice_files(first, length)

    def first(self, count: int) -> IndexedFiles:
        """Return the first `count` files."""
        return self._slice_files(0, count)

    def _slice_files(self, start: int, length: int) -> IndexedFiles:
        files, indexes = self.files.slice(start, length), self.indexes.slice(start, length)
        return IndexedFiles(files, indexes, self.is_whole)


def kept_paths(files: pa.Table, exclude_regex: str) -> pa.Array:
    """Tell for each file whether a stream takes it that skips matching paths."""
    kept = pc.invert(pc.match_substring_regex(files["path"], exclude_regex))
    return pc.fill_null(kept, True).combine_chunks()


@dataclass(slots=True)
class Capacity:
    """The remaining room of a batch. A file is admitted if there was room before it.

    Attributes:
        files: The number of files; None for no limit.
        size_bytes: The number of bytes; None for no limit.
        has_any: Whether a file was admitted.
    """

    files: int | None = None
    size_bytes: int | None = None
    has_any: bool = False

    @property
    def is_all(self) -> bool:
        """Whether there is no limit, so that one batch takes everything."""
        return self.files is None and self.size_bytes is None

    def take(self, some: IndexedFiles) -> int:
        """Admit files from the first on, as far as there is room, and return their number.

        Files that can't be split are admitted together, and always if they are the first.
        """
        if not some.is_whole:
            count = self._count_fitting(some)
        else:
            count = 0 if self.has_any and self._is_short_of(some) else len(some)
        self.has_any = self.has_any or count > 0
        if self.files is not None:
            self.files -= count
        if self.size_bytes is not None:
            self.size_bytes -= some.first(count).size_bytes
        return count

    def _count_fitting(self, some: IndexedFiles) -> int:
        count = len(some)
        if self.files is not None:
            count = min(count, max(0, self.files))
        if self.size_bytes is not None:
            ends, room = pc.cumulative_sum(some.files["size"].combine_chunks()), self.size_bytes
            fitting = int(pc.sum(pc.less(ends, room), min_count=0).as_py()) + (1 if room > 0 else 0)
            count = min(count, fitting)
        return count

    def _is_short_of(self, some: IndexedFiles) -> bool:
        """Tell whether there is no room for all of the files."""
        is_too_many = self.files is not None and len(some) > self.files
        return is_too_many or (self.size_bytes is not None and some.size_bytes > self.size_bytes)
