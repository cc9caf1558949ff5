"""A Parquet file for a store, written to a temporary file of this machine first.

However large it gets, it is never in memory, and it can be checked before anybody else sees it.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core.data.parquet.parquet_format import arrow_codec, data_page_version, wanted_codec
from optimist.core.errors import StorageError, TableError
from optimist.core.errors.kinds import MALFORMED_CHECKPOINT
from optimist.core.log.stored_groups import MAGIC, StoredFile, StoredGroup, write_tail
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.protocol.properties import TableProperties

__all__ = ["SpooledParquet", "example_file", "put_once"]

_READ_ROWS = 131_072
_UNIQUE_LEAVES = frozenset({"add.path", "add.stats", "remove.path"})
"""Texts without repeated values, for which a dictionary costs time and saves nothing."""
_PARTITIONS = "add.partitionValues_parsed."
_REPETITIVE_NUMBERS = (_PARTITIONS, "add.stats_parsed.nullCount.")
"""Other numbers, such as sizes and bounds, differ from file to file."""


class SpooledParquet:
    """Writes batches and then sends the file to a store.

    As a context manager it removes the file.

    It uses the table's compression codec, or the default one if Arrow lacks that codec, since every
    table should get checkpoints.

    Attributes:
        num_rows: The number of rows written so far.
        size_bytes: The size of the file, once it is finished.
    """

    def __init__(self, schema: pa.Schema, properties: TableProperties) -> None:
        self._file = tempfile.TemporaryFile(prefix="optimist-")  # noqa: SIM115 - see __exit__
        self._writer = _writer(self._file, schema, properties)
        self._groups: list[StoredGroup | int] = []
        self._copied_bytes = 0
        self.num_rows = 0
        self.size_bytes = 0

    def __enter__(self) -> SpooledParquet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()
        self._file.close()

    def add_metadata(self, texts: Mapping[str, str]) -> None:
        """Put texts into the file's footer, by their keys."""
        self._writer.add_key_value_metadata(dict(texts))

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch, as a row group of its own."""
        self._writer.write_batch(batch, row_group_size=max(batch.num_rows, 1))
        self._groups.append(self._copied_bytes)
        self.num_rows += batch.num_rows

    def copy(self, group: StoredGroup) -> None:
        """Append a row group of another file (see `example_file`) as it is stored."""
        self._file.write(group.data)
        self._groups.append(replace(group, data=b""))
        self._copied_bytes += len(group.data)
        self.num_rows += group.num_rows

    def finish(self) -> int:
        """Finish the file, and count its adds from the file itself (spec 5.8.8)."""
        self._writer.close()
        if self._copied_bytes:
            self._name_copies()
        self.size_bytes = self._file.seek(0, 2)
        self._file.seek(0)
        # Not closed here: that would close the file below it, which is not sent yet.
        # Without a buffer that keeps all sizes of the file: it is on this machine.
        file = pq.ParquetFile(self._file, pre_buffer=False)
        return sum(
            len(batch) - batch.column(0).null_count
            for batch in file.iter_batches(_READ_ROWS, columns=["add.size"])
        )

    def _name_copies(self) -> None:
        """Write the footer anew, with the copied row groups.

        The writer does not know of the copies, so it has counted the bytes without them.
        """
        own = StoredFile(self._file, self._copied_bytes)
        written = own.groups()
        placed = []
        at = len(MAGIC)
        for each in self._groups:
            group = next(written) if isinstance(each, int) else each
            if isinstance(each, int) and group.start + each != at:
                raise _misplaced()
            placed.append((group, at))
            at += group.size_bytes
        self._file.truncate(at)
        self._file.seek(at)
        write_tail(self._file.write, own.footer, placed, at)

    def publish(self, store: LogStore, path: str) -> bool:
        """Create the file at `path`, as `put_once` does."""
        return put_once(lambda: store.put_file_if_absent(path, self._file), path)


def example_file(schema: pa.Schema, properties: TableProperties) -> StoredFile | None:
    """Return a file of one row, whose row groups are stored as those of every such file.

    None means that this version of Arrow writes what `StoredFile` does not know.
    """
    sink = io.BytesIO()
    with _writer(sink, schema, properties) as writer:
        writer.write_table(pa.table([pa.nulls(1, field.type) for field in schema], schema=schema))
    try:
        return StoredFile(sink)
    except (ValueError, LookupError):
        return None


def put_once(put: Callable[[], PutOutcome], path: str) -> bool:
    """Create a file of a checkpoint. A file that exists already is as good as ours.

    Returns:
        Whether this call may have created it.

    Raises:
        StorageError: The store failed, or gave no answer twice (kind
            `OPTIMIST_WRITE_OUTCOME_UNKNOWN`).
    """
    first = outcome = put()
    if outcome is PutOutcome.UNKNOWN:
        # The same bytes again: if the lost request did arrive, the answer is EXISTS.
        outcome = put()
    if outcome is PutOutcome.UNKNOWN:
        raise StorageError(
            f"The checkpoint {path} may or may not have been written, because the store gave no "
            "answer. The table is complete either way.",
            kind="OPTIMIST_WRITE_OUTCOME_UNKNOWN",
            path=path,
            retryable=True,
        )
    return first is not PutOutcome.EXISTS


def _writer(file: BinaryIO, schema: pa.Schema, properties: TableProperties) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        file,
        schema,
        compression=arrow_codec(wanted_codec(properties)),
        data_page_version=data_page_version(properties),
        use_dictionary=_repetitive_leaves(schema),
        write_statistics=_leaves_with_statistics(schema),
        write_page_index=True,
        write_page_checksum=True,
    )


def _misplaced() -> TableError:
    return TableError(
        "A row group is not where it was written in the file of the next checkpoint. Nothing was "
        "published. The table's files are read in another way.",
        kind=MALFORMED_CHECKPOINT,
    )


def _repetitive_leaves(schema: pa.Schema) -> list[str]:
    """Return the leaves with a dictionary: texts, and numbers that many rows share."""
    leaves = (item for field in schema for item in _leaves_of(field))
    return [
        leaf
        for leaf, kind in leaves
        if leaf not in _UNIQUE_LEAVES
        and (pa.types.is_string(kind) or leaf.startswith(_REPETITIVE_NUMBERS))
    ]


def _leaves_with_statistics(schema: pa.Schema) -> list[str]:
    """Return the leaves with statistics: all but partition values that may be NaN.

    Parquet's statistics leave NaN out, so by them a reader would skip the files of that partition.
    """
    leaves = (item for field in schema for item in _leaves_of(field))
    return [
        leaf
        for leaf, kind in leaves
        if not (pa.types.is_floating(kind) and leaf.startswith(_PARTITIONS))
    ]


def _leaves_of(field: pa.Field, prefix: str = "") -> Iterator[tuple[str, pa.DataType]]:
    path = prefix + field.name
    kind = field.type
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _leaves_of(inner, f"{path}.")
    elif pa.types.is_map(kind):
        yield f"{path}.key_value.key", kind.key_type
        yield f"{path}.key_value.value", kind.item_type
    elif pa.types.is_list(kind):
        yield f"{path}.list.element", kind.value_type
    else:
        yield path, kind
