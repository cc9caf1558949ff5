"""Writes an answer as lines of plain text, whose columns begin at the same places."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from optimist.cli.answers.answer import Answer
from optimist.cli.answers.json_columns import plain_texts
from optimist.cli.answers.text_stream import write_lines
from optimist.core.errors.foreign_text import on_one_line

__all__ = ["fact_text", "is_right_aligned", "write_plain"]

_TEXT = pa.large_string()


def write_plain(answer: Answer, stream: BinaryIO) -> None:
    """Write the facts, one a line, and then a table for each of the long parts."""
    _write_facts(answer.facts, stream)
    for number, (name, rows) in enumerate(answer.rows.items()):
        if number or answer.facts:
            stream.write(b"\n")
        if len(answer.rows) > 1:
            stream.write(f"{name}:\n".encode())
        _write_rows(rows, stream)


def fact_text(value: object) -> str:
    """Return a fact as one line for people."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return on_one_line(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return on_one_line(json.dumps(value, ensure_ascii=False))


def is_right_aligned(kind: pa.DataType) -> bool:
    """Return whether the values of a column stand at its right edge."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(kind) for is_kind in kinds)


def _write_facts(facts: Mapping[str, object], stream: BinaryIO) -> None:
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        stream.write(f"{name:<{width}}  {fact_text(value)}\n".encode("utf-8", "replace"))


def _write_rows(rows: pa.Table, stream: BinaryIO) -> None:
    if not rows.num_columns:
        return
    columns = [_padded(field, rows.column(i)) for i, field in enumerate(rows.schema)]
    write_lines(stream, pc.binary_join_element_wise(*columns, pa.scalar("  ", _TEXT)))


def _padded(field: pa.Field, column: Any) -> Any:
    """Return a column and its name as texts of one length."""
    name = plain_texts(pa.array([field.name]))
    chunks = [plain_texts(chunk) for chunk in column.chunks]
    texts = pa.chunked_array([name, *chunks], _TEXT).combine_chunks()
    width = pc.max(pc.utf8_length(texts)).as_py()
    pad = pc.utf8_lpad if is_right_aligned(field.type) else pc.utf8_rpad
    return pad(texts, width)
