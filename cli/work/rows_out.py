"""Writes rows as JSON lines, CSV or Parquet, batch by batch, in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet

from optimist.cli.answers.json_columns import json_lines, plain_texts
from optimist.cli.answers.show import output_stream
from optimist.cli.answers.text_stream import write_lines
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import on_one_line, quoted
from optimist.core.snapshot.row_scan import RowScan

__all__ = ["target_of", "write_rows"]

_PARQUET = "parquet"


def write_rows(rows: RowScan, row_format: str, file: str | None) -> None:
    """Write rows to a new file, or to the output of this process.

    Args:
        rows: The rows.
        row_format: `jsonl`, `csv` or `parquet`.
        file: The path of a new file; None for the output.

    Raises:
        UsageError: The file exists, or can't be created.
    """
    if file is None and row_format == _PARQUET and sys.stdout.isatty():
        raise UsageError(
            "Parquet is no text for a terminal. Nothing was written. Name a file with --file.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="--file",
        )
    with target_of(file) as stream:
        _WRITERS[row_format](rows.schema, rows.to_batches(), stream)


@contextmanager
def target_of(file: str | None) -> Iterator[BinaryIO]:
    """Open a new file, which is removed again if it was not written to its end."""
    if file is None:
        yield output_stream()
        return
    path = Path(file)
    try:
        stream = path.open("xb")
    except OSError as error:
        raise UsageError(
            f"The file {quoted(file)} can't be created: {error.strerror}. Nothing was written. "
            "Name a file that does not exist, in a directory that does.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="--file",
        ) from None
    try:
        with stream:
            yield stream
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write_json_lines(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], stream: BinaryIO
) -> None:
    del schema  # each line names the columns
    for batch in batches:
        write_lines(stream, json_lines(batch))


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], stream: BinaryIO) -> None:
    """Write CSV. An empty field is a missing value, and `""` is an empty text."""
    plain = pa.schema([(on_one_line(field.name), _csv_type(field.type)) for field in schema])
    # Text for a program stays as it is; in a terminal it may not control anything.
    is_shown = stream.isatty()
    with csv.CSVWriter(stream, plain) as writer:
        for batch in batches:
            columns = [
                _csv_column(column, field.type, is_shown=is_shown)
                for column, field in zip(batch.columns, plain, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))


def _csv_type(kind: pa.DataType) -> pa.DataType:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return kind if is_number else pa.string()


def _csv_column(column: Any, kind: pa.DataType, *, is_shown: bool) -> Any:
    if column.type == kind and not (is_shown and pa.types.is_string(kind)):
        return column
    texts = plain_texts(column).cast(pa.string())
    return texts if not column.null_count else pa.compute.if_else(column.is_valid(), texts, None)


def _write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], stream: BinaryIO) -> None:
    with parquet.ParquetWriter(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: dict[str, Callable[[pa.Schema, Iterable[pa.RecordBatch], BinaryIO], None]] = {
    "jsonl": _write_json_lines,
    "csv": _write_csv,
    _PARQUET: _write_parquet,
}
