"""Writes an answer as one JSON document."""

from __future__ import annotations

import json
from typing import BinaryIO

import pyarrow as pa

from optimist.cli.answers.answer import Answer
from optimist.cli.answers.json_columns import json_lines
from optimist.cli.answers.text_stream import bytes_of_texts

__all__ = ["write_json"]

_BATCH_ROWS = 16_384
_SEPARATOR = ",\n  "


def write_json(answer: Answer, stream: BinaryIO) -> None:
    """Write the facts, and then each of the long parts as an array with one row a line."""
    separator = "{"
    for name, value in answer.facts.items():
        stream.write(f"{separator}\n {json.dumps(name)}: {json.dumps(value)}".encode())
        separator = ","
    for name, rows in answer.rows.items():
        stream.write(f"{separator}\n {json.dumps(name)}: [".encode())
        _write_rows(rows, stream)
        stream.write(b"]")
        separator = ","
    stream.write(b"\n}\n" if separator == "," else b"{}\n")


def _write_rows(rows: pa.Table, stream: BinaryIO) -> None:
    is_first = True
    for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
        if batch.num_rows:
            data = bytes_of_texts(json_lines(batch), _SEPARATOR, "")
            stream.write(data[1:] if is_first else data)  # no comma before the first row
            is_first = False
