"""The writer of rows into new files in their own directory, without Spark (spec 10.2, 10.15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from optimist.core.commands.clones import ensure_own_rows
from optimist.core.commands.new_files import new_files, records_changes
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
from optimist.core.data.column_shape import arrow_rows
from optimist.core.data.declared_text import declared_lengths
from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.parquet.parquet_format import DEFAULT_CODEC
from optimist.core.data.parquet.parquet_reader import Positions, read_located_batches
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.data.row_tracking import carried_columns
from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.local.target import LocalTarget
from optimist.core.paths import join
from optimist.core.runtime.processors import count_processors
from optimist.core.runtime.progress import FileProgress
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.runtime.streamed_ahead import AheadLimits, stream_ahead
from optimist.core.schema.types import StructType

__all__ = ["AFTER", "BEFORE", "DELETED", "INSERTED", "KEPT", "Change", "RowWriter", "Written"]

_RUN_BYTES = 4 << 20
_RUN_FILES = 16
_AHEAD = AheadLimits(streams=2, cost=96 << 20, held_bytes=8 << 20)
"""How far rows are read ahead of one file's writer."""
_WRITERS = 4
_GROUP_BYTES = 12 << 20
"""While a row group is written the next one is read, so small ones keep both threads at work."""
_BYTES_TOGETHER = 64 << 20
"""Files that together have about this size are written again as one file."""
_LEAST_TOGETHER = 8 << 20
"""Files that together have about this size are a file of their own if a thread has nothing to do.

One thread encodes a file, and that takes longer than to read and to change its rows.
"""

Kinds: TypeAlias = tuple[str | None, ...]
"""The targets of rows: None is the table, others are kinds of change in the change feed.

Rows whose kinds lack None were in the table before.
"""
KEPT: Kinds = (None,)
DELETED: Kinds = (DELETE,)
INSERTED: Kinds = (None, INSERT)
BEFORE: Kinds = (UPDATE_PREIMAGE,)
AFTER: Kinds = (None, UPDATE_POSTIMAGE)

Written: TypeAlias = tuple[Kinds, pa.Table]
Change: TypeAlias = Callable[[int, pa.RecordBatch, Positions], Iterable[Written]]
"""Changes a batch of rows, given the index of its file and the positions of its rows."""


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes the rows of one command.

    Attributes:
        target: The table.
        pending: Keeps track of the written files.
        is_checked: Whether rows are checked against NOT NULL and the lengths of strings.
        codec: The codec if the table names none.
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
        added: Iterable[pa.Table] | None = None,
        with_dictionaries: bool = False,
    ) -> WrittenFiles:
        """Write the rows of some files again, after `change` has changed them.

        Small files of one partition become one file. Several threads write.

        Args:
            files: Rows of `Snapshot.files`.
            operation: The command's name for messages, for example `UPDATE`.
            change: Called for each batch. With row tracking, the batch ends with the row id
                columns, which it must return.
            columns: The columns that `change` needs; None for all columns of the table.
            added: New rows to write, too, made while they are written.
            with_dictionaries: Whether `change` also takes, and returns, texts as numbers into a
                dictionary.

        Raises:
            TableError: A file is outside the table, or can't be read.
            StorageError: The file system failed.
        """
        parts, new_rows = self._prepare_reading(
            files, operation, change, columns, with_dictionaries=with_dictionaries
        )
        sizes = files["size"].to_pylist()
        groups = list(_group_files(parts, sizes))
        streams = self._read_groups(new_rows, groups, sizes)
        if added is not None:
            ids = self._id_columns.names if streams else ()
            last, groups = (streams.pop(), groups) if streams else ((), [[]])
            streams.append(chain(last, ((INSERTED, _with_no_ids(rows, ids)) for rows in added)))
        return self._write_streams(streams, groups)

    def copy(
        self, bins: Sequence[pa.Table], operation: str
    ) -> list[tuple[WrittenFiles, tuple[int, ...]]]:
        """Write the rows of each bin in order and unchanged.

        Several threads write.

        Args:
            bins: Rows of `Snapshot.files`.
            operation: The command's name for messages.

        Returns:
            The written files of each bin, and the number of rows in each of its old files.

        Raises:
            TableError: A file is outside the table, or can't be read.
            StorageError: The file system failed.
        """
        firsts = [0, *accumulate(files.num_rows for files in bins)]
        counts = [0] * firsts[-1]

        def copy_batch(index: int, batch: pa.RecordBatch, _: Positions) -> Iterator[Written]:
            counts[index] += batch.num_rows
            yield KEPT, pa.Table.from_batches([batch])

        files = pa.concat_tables(bins)
        _, new_rows = self._prepare_reading(
            files, operation, copy_batch, None, with_dictionaries=True
        )
        groups = [range(first, end) for first, end in pairwise(firsts)]
        streams = self._read_groups(new_rows, groups, files["size"].to_pylist())
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
        """Write the rows of one partition into several files, each read from all old files.

        Args:
            files: Rows of `Snapshot.files`.
            operation: The command's name for messages.
            num_files: The number of files to make.
            file_numbers: Called with each batch; returns the number of each row's file, from 0.

        Raises:
            TableError: A file is outside the table, or can't be read.
            StorageError: The file system failed.
        """

        def read_rows_for(number: int) -> Iterator[Written]:
            def choose_rows(
                _: int, batch: pa.RecordBatch, positions: Positions
            ) -> Iterator[Written]:
                mask = pa.array(file_numbers(batch, positions) == number)
                yield KEPT, pa.Table.from_batches([batch]).filter(mask)

            parts, new_rows = self._prepare_reading(files, operation, choose_rows, None)
            return chain.from_iterable(map(new_rows, range(len(parts))))

        groups = [range(files.num_rows), *[range(0)] * (num_files - 1)]
        return self._write_streams(list(map(read_rows_for, range(num_files))), groups)

    def write(self, rows: Iterable[pa.Table]) -> WrittenFiles:
        """Write new rows of a command that changes nothing else, without change files."""
        return self._write_streams([((KEPT, part) for part in rows)], [[]])

    @property
    def records_changes(self) -> bool:
        """Whether changes are written to change files, besides the table's rows.

        Raises:
            SchemaError: They are, and a column has the name of one of the feed's columns.
        """
        return records_changes(self.target.txn)

    @property
    def _id_columns(self) -> StructType:
        """The columns in which rows carry their ids, if the table tracks rows."""
        snapshot = self.target.snapshot
        return carried_columns(snapshot.metadata, snapshot.protocol)

    def _prepare_reading(
        self,
        files: pa.Table,
        operation: str,
        change: Change,
        columns: StructType | None,
        *,
        with_dictionaries: bool = False,
    ) -> tuple[Sequence[FilePart], Callable[[int], Iterator[Written]]]:
        """Return the files, and a function that reads and changes one's rows (see `rewrite`)."""
        target = self.target
        ensure_own_rows(target.table, target.snapshot, files, operation)
        parts = parts_of(file_parts(target.snapshot.data_paths, files))
        wanted = target.snapshot.schema if columns is None else columns
        layout = target.layout(StructType((*wanted, *self._id_columns)))
        if with_dictionaries and not self._checks_texts:
            layout = replace(layout, keeps_dictionaries=True)

        def new_rows(index: int) -> Iterator[Written]:
            for batch, positions in read_located_batches(parts[index], layout):
                yield from change(index, batch, positions)

        return parts, new_rows

    def _read_groups(
        self,
        new_rows: Callable[[int], Iterator[Written]],
        groups: Sequence[Sequence[int]],
        sizes: Sequence[int],
    ) -> list[Iterable[Written]]:
        """Return the rows of each group of files, read ahead of their writer if that saves time.

        It does not where files on a disk have writers enough for all processors.
        """
        is_ahead = len(groups) < _processors() or not is_on_disk(self.target.table.table_path)
        if is_ahead:
            return [_read_files_ahead(new_rows, group, sizes) for group in groups]
        return [chain.from_iterable(map(new_rows, group)) for group in groups]

    @property
    def _checks_texts(self) -> bool:
        """Whether rows are checked against rules that look at texts."""
        constraints = self.target.txn.table_metadata.properties.constraints
        return self.is_checked and bool(constraints or any(map(declared_lengths, self._schema)))

    def _write_streams(
        self, streams: Sequence[Iterable[Written]], groups: Sequence[Sequence[int]]
    ) -> WrittenFiles:
        """Write the streams as `_write_each` does, and join their results."""
        written = self._write_each(streams, groups)
        return WrittenFiles(
            tuple(chain.from_iterable(item.adds for item in written)),
            sum(item.num_rows for item in written),
            tuple(chain.from_iterable(item.changes for item in written)),
        )

    def _write_each(
        self, streams: Sequence[Iterable[Written]], groups: Sequence[Sequence[int]]
    ) -> list[WrittenFiles]:
        """Write each stream into files of its own.

        The groups are for the progress report.
        """
        if not streams:
            return []
        spec, has_changes = self._file_spec(), self.records_changes
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
                    stored = self._rows_to_store(rows, is_new=None in kinds)
                    for kind in kinds:
                        files.write(stored, _repeat_kind(kind, stored.num_rows))
            adds, changes = files.close()
        except BaseException:
            files.abort()
            raise
        return WrittenFiles(adds, files.num_rows, changes)

    def _file_spec(self) -> FileSpec:
        spec = new_files(self.target.txn, codec=self.codec)
        return replace(
            spec,
            directory=f"data-{self.target.table.clock.new_uuid()}",
            max_rows_per_file=self.max_rows_per_file,
            group_bytes=_GROUP_BYTES,
            data_change=self.data_change,
        )

    def _rows_to_store(self, rows: pa.Table, *, is_new: bool) -> pa.Table:
        """Return the rows with the values for files, checked if they are new."""
        schema, rows = self._schema, self._in_schema(rows)
        if not (is_new and self.is_checked):
            return rows
        own = rows.select(list(schema.names))
        stored = as_stored(own, schema, self.target.snapshot.partition_columns)
        ensure_rules_kept(stored, self.target.txn.metadata, schema)
        for name in rows.column_names[len(schema) :]:
            stored = stored.append_column(name, rows[name])
        return stored

    @property
    def _schema(self) -> StructType:
        """The table's schema after the command."""
        return self.target.txn.table_metadata.schema

    def _in_schema(self, rows: pa.Table) -> pa.Table:
        """Return rows that were read before the command changed the schema in the new one."""
        if self._schema == self.target.snapshot.schema:
            return rows
        found = arrow_rows(rows, self._schema)
        for name in self._id_columns.names:
            if name in rows.column_names:
                found = found.append_column(name, rows[name])
        return found


def _read_files_ahead(
    new_rows: Callable[[int], Iterator[Written]], group: Sequence[int], sizes: Sequence[int]
) -> Iterator[Written]:
    """Read the rows of some files in order, by threads of their own, while others are written."""

    def read(run: Sequence[int]) -> Iterator[Written]:
        return chain.from_iterable(map(new_rows, run))

    return stream_ahead(read, _split_into_runs(group, sizes), lambda item: item[1].nbytes, _AHEAD)


def _split_into_runs(
    group: Sequence[int], sizes: Sequence[int]
) -> Iterator[tuple[Sequence[int], int]]:
    """Split files into runs that are worth a thread, each with its size."""
    start = num_bytes = 0
    for end, number in enumerate(group, start=1):
        num_bytes += sizes[number]
        if num_bytes >= _RUN_BYTES or end - start >= _RUN_FILES or end == len(group):
            yield group[start:end], num_bytes
            start, num_bytes = end, 0


def _processors() -> int:
    """Return how many writers keep all processors at work."""
    return min(_WRITERS, count_processors())


def _with_no_ids(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return new rows with columns for the ids of rows, which they do not have yet."""
    for name in names:
        rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.int64()))
    return rows


def _repeat_kind(kind: str | None, count: int) -> pa.ChunkedArray | None:
    return None if kind is None else pa.chunked_array([pa.repeat(pa.scalar(kind), count)])


def _group_files(parts: Sequence[FilePart], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Group the indices of files, so that files of one partition are together."""

    def partition(index: int) -> list[tuple[str, str]]:
        return sorted((name, text or "") for name, text in parts[index].partition_values.items())

    share = -(-sum(sizes) // _processors())
    enough = max(_LEAST_TOGETHER, min(_BYTES_TOGETHER, share))
    group: list[int] = []
    num_bytes = 0
    for index in sorted(range(len(parts)), key=partition):
        group.append(index)
        num_bytes += sizes[index]
        if num_bytes >= enough:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group
