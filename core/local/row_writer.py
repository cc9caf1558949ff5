"""Writing rows into files of a directory of their own, without Spark (spec 10.2, 10.15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, count, pairwise
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from optimist.core.commands.clones import ensure_own_rows
from optimist.core.commands.new_files import new_files
from optimist.core.commands.recorded_changes import records_changes
from optimist.core.commands.row_rules import as_stored, ensure_rules_kept
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.change_files import (
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
    RowFiles,
    change_spec,
)
from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.parquet.parquet_format import DEFAULT_CODEC
from optimist.core.data.parquet.parquet_reader import Positions, read_located_batches
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.row_tracking import carried_columns
from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.local.progress import FileProgress
from optimist.core.local.target import LocalTarget
from optimist.core.paths import join
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.types import StructType

__all__ = ["AFTER", "BEFORE", "DELETED", "INSERTED", "KEPT", "Change", "RowWriter", "Written"]

_RUN_BYTES = 4 << 20
_RUNS_AHEAD = 8
_WRITERS = 4
_BYTES_TOGETHER = 64 << 20
"""Files that are together about this large are written again as one."""

Kinds: TypeAlias = tuple[str | None, ...]
"""Where rows are written to: None is the table, any other a kind of change, if these are recorded.

So rows whose kinds have no None were in the table before.
"""
KEPT: Kinds = (None,)
DELETED: Kinds = (DELETE,)
INSERTED: Kinds = (None, INSERT)
BEFORE: Kinds = (UPDATE_PREIMAGE,)
AFTER: Kinds = (None, UPDATE_POSTIMAGE)

Written: TypeAlias = tuple[Kinds, pa.Table]
Change: TypeAlias = Callable[[int, pa.RecordBatch, Positions], Iterable[Written]]
"""What becomes of a batch of the file at a place among the files, whose rows have positions."""


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes the rows of one command.

    Attributes:
        target: The table.
        pending: Looks after the files.
        is_checked: Whether the rows must obey the table's rules: NOT NULL, and lengths of texts.
        codec: The codec to use if the table names none.
        max_rows_per_file: A file that would hold more rows is split; None for no limit.
        data_change: The `dataChange` of the `add` actions.
    """

    target: LocalTarget
    pending: UncommittedFiles
    is_checked: bool = True
    codec: str = DEFAULT_CODEC
    max_rows_per_file: int | None = None
    data_change: bool = True

    def rewrite(
        self,
        files: pa.Table,
        operation: str,
        change: Change,
        *,
        columns: StructType | None = None,
        added: pa.Table | None = None,
    ) -> WrittenFiles:
        """Write the rows of some files again, as `change` makes them.

        Files of one partition, up to a size, become one file; several threads write.

        Args:
            files: Rows of `Snapshot.files`.
            operation: For the message, for example `UPDATE`.
            change: Called for each batch. After the other columns it gets those in which rows of a
                table that tracks them carry their ids, and it gives them back.
            columns: The columns that `change` needs; None for all of the table.
            added: New rows to write as well.

        Raises:
            TableError: A file is outside the table, or can't be read.
            StorageError: The file system failed.
        """
        parts, new_rows = self._read(files, operation, change, columns)
        groups = list(_together(parts, files["size"].to_pylist()))
        streams: list[Iterable[Written]] = []
        streams += [chain.from_iterable(map(new_rows, group)) for group in groups]
        if added is not None and added.num_rows:
            for item in self._carried if streams else ():
                added = added.append_column(item.name, pa.nulls(added.num_rows, pa.int64()))
            last, groups = (streams.pop(), groups) if streams else ((), [[]])
            streams.append(chain(last, [(INSERTED, added)]))
        return self._write(streams, groups)

    def copy(
        self, bins: Sequence[pa.Table], operation: str
    ) -> list[tuple[WrittenFiles, tuple[int, ...]]]:
        """Write the rows of each bin one after the other, as they are; several threads write.

        Args:
            bins: Rows of `Snapshot.files`.
            operation: For the message.

        Returns:
            What was written of each bin, and how many rows each of its files had.

        Raises:
            TableError: A file is outside the table, or can't be read.
            StorageError: The file system failed.
        """
        firsts = [0, *accumulate(files.num_rows for files in bins)]
        counts = [0] * firsts[-1]

        def as_they_are(place: int, batch: pa.RecordBatch, _: Positions) -> Iterator[Written]:
            counts[place] += batch.num_rows
            yield KEPT, pa.Table.from_batches([batch])

        _, new_rows = self._read(pa.concat_tables(bins), operation, as_they_are, None)
        groups = [range(first, end) for first, end in pairwise(firsts)]
        streams = [_ahead(chain.from_iterable(map(new_rows, group))) for group in groups]
        written = self._write_each(streams, groups)
        return [
            (found, tuple(counts[group.start : group.stop]))
            for found, group in zip(written, groups, strict=True)
        ]

    def split(
        self,
        files: pa.Table,
        operation: str,
        num_files: int,
        file_numbers: Callable[[pa.RecordBatch, Positions], np.ndarray],
    ) -> WrittenFiles:
        """Write the rows of one partition into several files, each read from all of the old ones.

        Args:
            files: Rows of `Snapshot.files`.
            operation: For the message.
            num_files: How many files there are to be.
            file_numbers: Called with each batch: the number of each row's file, from 0.

        Raises:
            TableError: A file is outside the table, or can't be read.
            StorageError: The file system failed.
        """

        def rows_of(number: int) -> Iterator[Written]:
            def chosen(_: int, batch: pa.RecordBatch, positions: Positions) -> Iterator[Written]:
                mask = pa.array(file_numbers(batch, positions) == number)
                yield KEPT, pa.Table.from_batches([batch]).filter(mask)

            parts, new_rows = self._read(files, operation, chosen, None)
            return chain.from_iterable(map(new_rows, range(len(parts))))

        groups = [range(files.num_rows), *[range(0)] * (num_files - 1)]
        return self._write(list(map(rows_of, range(num_files))), groups)

    def write(self, rows: pa.Table) -> WrittenFiles:
        """Write new rows where nothing else changes; the commit itself tells of them."""
        return self._write([[(KEPT, rows)]], [[]]) if rows.num_rows else WrittenFiles()

    @property
    def records_changes(self) -> bool:
        """Whether changes are written, beside the rows that the table has afterwards.

        Raises:
            SchemaError: They are, and a column has a name of the change data feed.
        """
        return records_changes(self.target.txn)

    @property
    def _carried(self) -> StructType:
        """The columns in which rows carry their ids; none without row tracking."""
        snapshot = self.target.snapshot
        return carried_columns(snapshot.metadata, snapshot.protocol)

    def _read(
        self, files: pa.Table, operation: str, change: Change, columns: StructType | None
    ) -> tuple[Sequence[FilePart], Callable[[int], Iterator[Written]]]:
        """The files, and what gives the rows of the one at a place, changed; see `rewrite`."""
        target = self.target
        ensure_own_rows(target.table, target.snapshot, files, operation)
        parts = parts_of(file_parts(target.snapshot.data_paths, files))
        wanted = target.snapshot.schema if columns is None else columns
        layout = target.layout(StructType((*wanted, *self._carried)))

        def new_rows(place: int) -> Iterator[Written]:
            for batch, positions in read_located_batches(parts[place], layout):
                yield from change(place, batch, positions)

        return parts, new_rows

    def _write(
        self, streams: Sequence[Iterable[Written]], groups: Sequence[Sequence[int]]
    ) -> WrittenFiles:
        """Write the streams, as `_write_each`, and tell of all their files together."""
        written = self._write_each(streams, groups)
        return WrittenFiles(
            tuple(chain.from_iterable(item.adds for item in written)),
            sum(item.num_rows for item in written),
            tuple(chain.from_iterable(item.changes for item in written)),
        )

    def _write_each(
        self, streams: Sequence[Iterable[Written]], groups: Sequence[Sequence[int]]
    ) -> list[WrittenFiles]:
        """Write each of the streams into files of its own; the groups are for the report."""
        if not streams:
            return []
        spec, has_changes = self._spec(), self.records_changes
        self.pending.register(join(spec.table_path, spec.directory))
        if has_changes:
            self.pending.register(join(spec.table_path, change_spec(spec).directory))
        num_files, done = sum(map(len, groups)), 0

        def write_one(number: int) -> WrittenFiles:
            return self._write_stream(streams[number], spec, number, has_changes=has_changes)

        written: list[WrittenFiles] = []
        found = read_ahead(write_one, range(len(streams)), threads=_WRITERS, ahead=_WRITERS)
        for group, files in zip(groups, found, strict=True):
            written.append(files)
            done += len(group)
            if group:
                self.target.report.tell(FileProgress("rewrite", done, num_files))
        filesystem, root = filesystem_for(spec.table_path, spec.access)
        paths = [join(root, unquote(item.path)) for files in written for item in files.actions]
        make_durable(filesystem, root, paths)
        return written

    def _write_stream(
        self, stream: Iterable[Written], spec: FileSpec, task: int, *, has_changes: bool
    ) -> WrittenFiles:
        files = RowFiles(spec, self.target.table.clock, task=task)
        try:
            for given, rows in stream:
                kinds = given if has_changes else given[: given.count(None)]
                if kinds:
                    stored = self._stored(rows, is_new=None in kinds)
                    for kind in kinds:
                        files.write(stored, _repeated(kind, stored.num_rows))
            adds, changes = files.close()
        except BaseException:
            files.abort()
            raise
        return WrittenFiles(adds, files.num_rows, changes)

    def _spec(self) -> FileSpec:
        spec = new_files(self.target.txn, codec=self.codec)
        return replace(
            spec,
            directory=f"data-{self.target.table.clock.new_uuid()}",
            max_rows_per_file=self.max_rows_per_file,
            data_change=self.data_change,
        )

    def _stored(self, rows: pa.Table, *, is_new: bool) -> pa.Table:
        """The rows with the values that files hold; if they are new, checked."""
        if not (is_new and self.is_checked):
            return rows
        schema = self.target.snapshot.schema
        own = rows.select(list(schema.names))
        stored = as_stored(own, schema, self.target.snapshot.partition_columns)
        ensure_rules_kept(stored, self.target.txn.metadata, schema)
        for name in rows.column_names[len(schema) :]:
            stored = stored.append_column(name, rows[name])
        return stored


def _ahead(rows: Iterable[Written]) -> Iterator[Written]:
    """The same rows, read by a thread of their own while others are written.

    How much waits is told by the rows themselves: a small file may hold very many.
    """
    runs = _runs(rows)
    taken = read_ahead(lambda _: next(runs, None), count(), threads=1, ahead=_RUNS_AHEAD)
    for run in taken:
        if run is None:
            return
        yield from run


def _runs(rows: Iterable[Written]) -> Iterator[list[Written]]:
    """The rows in runs of about so many bytes, each worth handing over to another thread."""
    run: list[Written] = []
    num_bytes = 0
    for each in rows:
        run.append(each)
        num_bytes += each[1].nbytes
        if num_bytes >= _RUN_BYTES:
            yield run
            run, num_bytes = [], 0
    if run:
        yield run


def _repeated(kind: str | None, count: int) -> pa.ChunkedArray | None:
    return None if kind is None else pa.chunked_array([pa.repeat(pa.scalar(kind), count)])


def _together(parts: Sequence[FilePart], sizes: Sequence[int]) -> Iterator[list[int]]:
    """The places of the files in groups, those of one partition next to each other."""

    def partition(place: int) -> list[tuple[str, str]]:
        return sorted((name, text or "") for name, text in parts[place].partition_values.items())

    group: list[int] = []
    num_bytes = 0
    for place in sorted(range(len(parts)), key=partition):
        group.append(place)
        num_bytes += sizes[place]
        if num_bytes >= _BYTES_TOGETHER:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group
