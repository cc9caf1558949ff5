"""Rows that wait on this machine's disk until all rows of their partitions are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from zlib import crc32

import pyarrow as pa

from optimist.core.data.storage.scratch_directory import ScratchDirectory

__all__ = ["SpilledRows"]

_BUCKETS = 64
_CODEC = "lz4"


class SpilledRows:
    """Rows in files of Arrow, in a directory of its own below `TMPDIR`.

    All rows of one partition are in one bucket. End it with `close`.
    """

    def __init__(self) -> None:
        self._directory = ScratchDirectory()
        self._open: dict[int, tuple[Any, pa.RecordBatchStreamWriter]] = {}

    @staticmethod
    def bucket_of(key: tuple[str | None, ...]) -> int:
        """Return the number of the bucket for a partition."""
        return crc32(repr(key).encode()) % _BUCKETS

    def add(self, rows: Mapping[int, list[pa.Table]]) -> None:
        """Add rows to buckets.

        Raises:
            StorageError: The disk is full, or failed.
        """
        with self._directory.errors("written"):
            for bucket, parts in rows.items():
                whole = pa.concat_tables(parts).combine_chunks()
                if bucket not in self._open:
                    self._open[bucket] = self._new_bucket(bucket, whole.schema)
                self._open[bucket][1].write_table(whole)

    def finish(self) -> tuple[int, ...]:
        """End the writing, and return the buckets that have rows.

        Raises:
            StorageError: The disk is full, or failed.
        """
        with self._directory.errors("written"):
            for sink, writer in self._open.values():
                writer.close()
                sink.close()
        return tuple(sorted(self._open))

    def read(self, bucket: int, max_bytes: int) -> Iterator[pa.Table]:
        """Yield the rows of a bucket in tables of about a size.

        Raises:
            StorageError: The disk failed.
        """
        waiting: list[pa.RecordBatch] = []
        num_bytes = 0
        for batch in self._batches(bucket):
            waiting.append(batch)
            num_bytes += batch.nbytes
            if num_bytes >= max_bytes:
                yield pa.Table.from_batches(waiting)
                waiting, num_bytes = [], 0
        if waiting:
            yield pa.Table.from_batches(waiting)

    def close(self) -> None:
        """Remove the rows from the disk."""
        for sink, _ in self._open.values():
            with suppress(OSError):
                sink.close()
        self._directory.close()

    def _batches(self, bucket: int) -> Iterator[pa.RecordBatch]:
        with self._directory.errors("read"):
            source = pa.OSFile(self._path(bucket))
        with source, pa.ipc.open_stream(source) as reader:
            while True:
                with self._directory.errors("read"):
                    batch = next(reader, None)
                if batch is None:
                    return
                yield batch

    def _new_bucket(
        self, bucket: int, schema: pa.Schema
    ) -> tuple[pa.OSFile, pa.RecordBatchStreamWriter]:
        sink = pa.OSFile(self._path(bucket), "wb")
        codec = _CODEC if pa.Codec.is_available(_CODEC) else None
        options = pa.ipc.IpcWriteOptions(compression=codec)
        return sink, pa.ipc.new_stream(sink, schema, options=options)

    def _path(self, bucket: int) -> str:
        return self._directory.path(f"{bucket}.arrow")
