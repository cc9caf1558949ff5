"""Writing rows into files of a directory of their own, without Spark (spec 10.2, 10.15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from urllib.parse import unquote

import pyarrow as pa

from optimist.core.commands.append import as_stored, ensure_rules_kept
from optimist.core.commands.new_files import new_files
from optimist.core.commands.rewritable_files import ensure_rewritable
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.file_parts import FilePart, file_parts, parts_of
from optimist.core.data.filesystem import filesystem_for, make_durable
from optimist.core.data.parquet_reader import Positions, read_located_batches
from optimist.core.data.parquet_writer import DEFAULT_CODEC, FileSet, FileSpec
from optimist.core.data.row_tracking import carried_columns
from optimist.core.local.progress import FileProgress
from optimist.core.local.target import LocalTarget
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile
from optimist.core.read_ahead import read_ahead
from optimist.core.schema.types import PrimitiveType, StructType

__all__ = ["Change", "RowWriter"]

_WRITERS = 4
_BYTES_TOGETHER = 64 << 20
"""Files that are together about this large are written again as one."""
_VOID = PrimitiveType("void")

Change = Callable[[int, pa.RecordBatch, Positions], pa.Table]
"""The new rows for a batch of the file at a place among the files, and its rows' positions."""


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes the rows of one command.

    Attributes:
        target: The table.
        pending: Looks after the files.
        is_checked: Whether the rows must obey the table's rules: NOT NULL, and lengths of texts.
        codec: The codec to use if the table names none.
        max_rows_per_file: A file that would hold more rows is split; None for no limit.
    """

    target: LocalTarget
    pending: UncommittedFiles
    is_checked: bool = True
    codec: str = DEFAULT_CODEC
    max_rows_per_file: int | None = None

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
            added: Rows to write as well.

        Raises:
            ProtocolError: The table has a feature under which files can't be rewritten yet.
            TableError: A file is outside the table, or can't be read.
            StorageError: The file system failed.
        """
        target = self.target
        ensure_rewritable(target.table, target.snapshot, files, operation)
        parts = parts_of(file_parts(target.snapshot.data_paths, files))
        carried = carried_columns(target.snapshot.metadata)
        wanted = target.snapshot.schema if columns is None else columns
        layout = target.layout(StructType((*wanted, *carried)))

        def new_rows(place: int) -> Iterator[pa.Table]:
            for batch, positions in read_located_batches(parts[place], layout):
                yield change(place, batch, positions)

        groups = list(_together(parts, files["size"].to_pylist()))
        streams: list[Iterable[pa.Table]] = []
        streams += [chain.from_iterable(map(new_rows, group)) for group in groups]
        if added is not None and added.num_rows:
            for item in carried if streams else ():
                added = added.append_column(item.name, pa.nulls(added.num_rows, pa.int64()))
            last, groups = (streams.pop(), groups) if streams else ((), [[]])
            streams.append(chain(last, [added]))
        return self._write(streams, groups)

    def write(self, rows: pa.Table) -> WrittenFiles:
        """Write new rows."""
        return self._write([[rows]] if rows.num_rows else [], [[]] if rows.num_rows else [])

    def _write(
        self, streams: Sequence[Iterable[pa.Table]], groups: Sequence[Sequence[int]]
    ) -> WrittenFiles:
        """Write each of the streams into files of its own; the groups are for the report."""
        if not streams:
            return WrittenFiles()
        spec = self._spec()
        self.pending.register(join(spec.table_path, spec.directory))
        adds: list[AddFile] = []
        counts: list[int] = []
        num_files = sum(map(len, groups))
        done = 0

        def write_one(number: int) -> tuple[tuple[AddFile, ...], int]:
            return _write_stream(spec, self._stored(streams[number]), self.target, number)

        written = read_ahead(write_one, range(len(streams)), threads=_WRITERS, ahead=_WRITERS)
        for group, (files, count) in zip(groups, written, strict=True):
            adds += files
            counts.append(count)
            done += len(group)
            if group:
                self.target.report.tell(FileProgress("rewrite", done, num_files))
        filesystem, root = filesystem_for(spec.table_path, spec.access)
        make_durable(filesystem, root, [join(root, unquote(item.path)) for item in adds])
        return WrittenFiles(tuple(adds), sum(counts))

    def _spec(self) -> FileSpec:
        spec = new_files(self.target.txn, codec=self.codec)
        return replace(
            spec,
            directory=f"data-{self.target.table.clock.new_uuid()}",
            max_rows_per_file=self.max_rows_per_file,
        )

    def _stored(self, stream: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The rows as files hold them: checked, and without void columns."""
        schema = self.target.snapshot.schema
        voids = [item.name for item in schema if item.data_type == _VOID]
        for rows in stream:
            stored = rows
            if self.is_checked:
                own = rows.select(list(schema.names))
                stored = as_stored(own, schema, self.target.snapshot.partition_columns)
                ensure_rules_kept(stored, self.target.txn.metadata, schema)
                for name in rows.column_names[len(schema) :]:
                    stored = stored.append_column(name, rows[name])
            yield stored.drop_columns(voids)


def _write_stream(
    spec: FileSpec, rows: Iterator[pa.Table], target: LocalTarget, task: int
) -> tuple[tuple[AddFile, ...], int]:
    writer = FileSet(spec, target.table.clock, task=task)
    count = 0
    try:
        for part in rows:
            writer.write(part)
            count += part.num_rows
        return writer.close(), count
    except BaseException:
        writer.abort()
        raise


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
