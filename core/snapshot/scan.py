"""The files of a version that may hold the rows of a predicate (spec 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from optimist.core.errors.argument_types import optional_whole
from optimist.core.errors.short_repr import short_repr
from optimist.core.forking import ForkSafeLock
from optimist.core.log.file_choice import ALL_FILES, FileChoice, Stage, Use
from optimist.core.log.file_source import FileSource
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.options.engine import EngineOptions
from optimist.core.predicates import Predicate, SplitPredicate, ensure_columns, split_conjuncts
from optimist.core.schema.types import StructType
from optimist.core.skipping.predicate_choice import PartitionTexts, Pruning
from optimist.core.skipping.pruner import CertainFiles, FilePruner, RowCount
from optimist.core.values.field_types import LARGEST_LONG

__all__ = ["Scan", "Scanner"]

_Result = TypeVar("_Result")

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

    If all files are in memory, or may stay there, all scans share one pruner. Otherwise each scan
    reads what it needs. Threads may share it. Their scans wait for each other, and nothing else
    waits for them.

    Args:
        files: The files.
        schema: The columns of their rows.
        partition_columns: The names of the partition columns.
        options: The options for the use of statistics.
        zone: The time zone for days and local times in predicates.
    """

    def __init__(
        self,
        files: FileSource,
        schema: StructType,
        partition_columns: tuple[str, ...],
        options: EngineOptions,
        zone: str,
    ) -> None:
        self._files = files
        self._use_statistics = options.stats_skipping
        self._partition_columns = partition_columns
        self._pruning = Pruning(schema, partition_columns, zone, options.stats_trust_float_maximum)
        self._pruner: FilePruner | None = None
        self._lock = ForkSafeLock()

    def scan(self, predicate: str | Predicate | None, limit: int | None) -> Scan:
        """Scan the files (see `FilesView.scan`)."""
        limit = optional_whole(limit, "limit", least=0)
        if limit is not None:
            limit = min(limit, _MOST_ROWS)
        if predicate is None and limit is None:
            return Scan(self._files.table(), Predicate.TRUE, SplitPredicate())
        resolved = self._resolve(predicate)
        split = split_conjuncts(resolved, self._partition_columns)
        return Scan(self.files(resolved, limit), resolved, split)

    def files(self, predicate: Predicate, limit: int | None) -> pa.Table:
        """Return the files that may hold matching rows, and no more of them than a limit needs.

        Args:
            predicate: The predicate. It may name columns that the table lacks.
            limit: The number of matching rows that are enough, or None.
        """
        if predicate == Predicate.TRUE and limit is None:
            return self._files.table()
        with self._lock:
            pruner = self._shared_pruner()
            if limit is None or not self._use_statistics:
                if pruner is None:
                    return self._read(predicate, _as_table)
                return pruner.prune(predicate, use_statistics=self._use_statistics)
            if pruner is None:
                return self._read(predicate, partial(self._enough, predicate, limit))
            return pruner.enough(predicate, limit)

    def count(self, predicate: str | Predicate | None) -> RowCount:
        """Count the matching rows (see `FilesView.count`)."""
        resolved = self._resolve(predicate)
        if not self._use_statistics:
            return RowCount(0, self.files(resolved, None))
        with self._lock:
            pruner = self._shared_pruner()
            if pruner is not None:
                return pruner.count(resolved)
            found = self._read(resolved, partial(self._count, resolved))
            if found.rows > LARGEST_LONG:  # as in `FilePruner.count`
                return RowCount(0, self._read(resolved, _as_table))
            return found

    def files_where(self, column: str, keep: Callable[[pa.ChunkedArray], pa.Array]) -> pa.Table:
        """Return the files of which a column is right (see `FilesView.files_where`)."""
        stage = Stage((column,), lambda files: _in_one_piece(keep(files[column])))
        return self.files_of(FileChoice((stage,)))

    def files_of(self, choice: FileChoice) -> pa.Table:
        """Return the files that a choice wants, in its columns."""
        whole = self._files.table() if choice == ALL_FILES else self._files.whole()
        if whole is None:
            return self._files.read_chosen(choice, partial(_as_table, schema=choice.schema))
        for stage in choice.stages:
            whole = whole.filter(stage.keep(whole))
        return whole.select(choice.schema.names)

    def in_partitions(
        self, partitions: Sequence[PartitionTexts], columns: Sequence[str]
    ) -> pa.Table:
        """Return the files of some partitions (see `FilesView.in_partitions`)."""
        choice = self._pruning.choice_of_partitions(partitions)
        return self.files_of(replace(choice, schema=_schema_of(columns)))

    def read_columns(
        self, columns: Sequence[str], use: Use[_Result], predicate: str | Predicate | None
    ) -> _Result:
        """Return what `use` makes of some columns (see `FilesView.read_columns`)."""
        resolved, schema = self._resolve(predicate), _schema_of(columns)
        if self._files.whole() is not None:
            files = self.files(resolved, None)
            return use(iter(files.select(schema.names).to_batches()))
        choice = self._pruning.choice(resolved, use_statistics=self._use_statistics)
        return self._files.read_chosen(replace(choice, schema=schema), use)

    def pruner_of_all(self) -> FilePruner:
        """Return a new pruner of all files."""
        return self._pruning.of(self._files.table())

    def _shared_pruner(self) -> FilePruner | None:
        """Return the pruner of all files, or None if they are too many to stay in memory."""
        if self._pruner is None:
            whole = self._files.whole()
            self._pruner = None if whole is None else self._pruning.of(whole)
        return self._pruner

    def _read(self, predicate: Predicate, use: Use[_Result]) -> _Result:
        choice = self._pruning.choice(predicate, use_statistics=self._use_statistics)
        return self._files.read_chosen(choice, use)

    def _count(self, predicate: Predicate, batches: Iterator[pa.RecordBatch]) -> RowCount:
        rows, undecided = 0, [FILES_SCHEMA.empty_table()]
        for files in _tables(batches):
            found = self._pruning.of(files).count(predicate)
            rows += found.rows
            undecided.append(found.undecided)
        return RowCount(rows, pa.concat_tables(undecided))

    def _enough(
        self, predicate: Predicate, limit: int, batches: Iterator[pa.RecordBatch]
    ) -> pa.Table:
        """Return files that surely hold `limit` matches, and read no others, or else all files."""
        kept, certain, num_rows = [FILES_SCHEMA.empty_table()], [], 0
        for files in _tables(batches):
            kept.append(files)
            certain.append(self._pruning.of(files).certain(predicate))
            num_rows += certain[-1].num_rows
            if num_rows >= limit:
                break
        found = CertainFiles.joined(certain).first(limit)
        return pa.concat_tables(kept) if found is None else found

    def _resolve(self, predicate: str | Predicate | None) -> Predicate:
        if predicate is None:
            return Predicate.TRUE
        parsed = Predicate.of(predicate)
        return ensure_columns(parsed, self._pruning.schema)


def _tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    return (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)


def _in_one_piece(mask: pa.Array | pa.ChunkedArray) -> pa.Array:
    return mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask


def _as_table(batches: Iterator[pa.RecordBatch], schema: pa.Schema = FILES_SCHEMA) -> pa.Table:
    return pa.Table.from_batches(list(batches), schema)


def _schema_of(columns: Sequence[str]) -> pa.Schema:
    """Return the schema of a choice with these columns (see `FileChoice.schema`)."""
    wanted = {"path", "deletionVector", *columns}
    return pa.schema([field for field in FILES_SCHEMA if field.name in wanted])
