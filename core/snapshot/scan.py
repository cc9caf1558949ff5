"""The files of a version that may hold the rows of a predicate (spec 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from optimist.core.errors.argument_types import optional_whole
from optimist.core.errors.short_repr import short_repr
from optimist.core.forking import ForkSafeLock
from optimist.core.options.engine import EngineOptions
from optimist.core.predicates import Predicate, SplitPredicate, ensure_columns, split_conjuncts
from optimist.core.schema.types import StructType
from optimist.core.skipping.pruner import FilePruner, RowCount

__all__ = ["Scan", "Scanner"]

_MOST_ROWS = 2**62
"""A limit above it would be no number of Arrow's, and no table has so many rows."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of a snapshot that may hold rows matching a predicate.

    Attributes:
        files: One row per file, columns as in `Snapshot.files`.
        predicate: The predicate with its columns in the schema's spelling, or `Predicate.TRUE` for
            all rows.
        split: Its conjuncts, split into those on partition columns, which decide exactly, and the
            others.
    """

    files: pa.Table
    predicate: Predicate
    split: SplitPredicate

    __repr__ = short_repr


class Scanner:
    """A scanner of the same files any number of times, which keeps the parsed statistics.

    Threads may share it. Their scans wait for each other, and nothing else waits for them.

    Args:
        files: Returns the files, columns of `FILES_SCHEMA`.
        schema: The columns of their rows.
        partition_columns: The names of the partition columns.
        options: The options for the use of statistics.
    """

    def __init__(
        self,
        files: Callable[[], pa.Table],
        schema: StructType,
        partition_columns: tuple[str, ...],
        options: EngineOptions,
    ) -> None:
        self._files = files
        self._schema = schema
        self._partition_columns = partition_columns
        self._options = options
        self._pruner: FilePruner | None = None
        self._lock = ForkSafeLock()

    def scan(self, predicate: str | Predicate | None, limit: int | None) -> Scan:
        """Scan the files (see `FilesView.scan`)."""
        limit = optional_whole(limit, "limit", least=0)
        if limit is not None:
            limit = min(limit, _MOST_ROWS)
        if predicate is None and limit is None:
            return Scan(self._files(), Predicate.TRUE, SplitPredicate())
        resolved = self._resolve(predicate)
        split = split_conjuncts(resolved, self._partition_columns)
        use_statistics = self._options.stats_skipping
        with self._lock:
            if limit is not None and use_statistics:
                files = self._shared_pruner().enough(resolved, limit)
            else:
                files = self._shared_pruner().prune(resolved, use_statistics=use_statistics)
        return Scan(files, resolved, split)

    def count(self, predicate: str | Predicate | None) -> RowCount:
        """Count the matching rows (see `FilesView.count`)."""
        resolved = self._resolve(predicate)
        if not self._options.stats_skipping:
            return RowCount(0, self.scan(resolved, None).files)
        with self._lock:
            return self._shared_pruner().count(resolved)

    def pruner(self, zone: str) -> FilePruner:
        """Return a new pruner (see `FilesView.pruner`)."""
        return FilePruner(
            self._files(),
            self._schema,
            self._partition_columns,
            zone=zone,
            trust_float_maximum=self._options.stats_trust_float_maximum,
        )

    def _shared_pruner(self) -> FilePruner:
        if self._pruner is None:
            self._pruner = self.pruner(self._options.zone)
        return self._pruner

    def _resolve(self, predicate: str | Predicate | None) -> Predicate:
        if predicate is None:
            return Predicate.TRUE
        parsed = Predicate.of(predicate)
        return ensure_columns(parsed, self._schema)
