"""Writes an answer as lines of plain text: with tabs for programs, or aligned for people.

No value has a tab or a line end in it, because both are shown as escapes. So `cut` and `awk` find
each column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from optimist.cli.answers.answer import Answer
from optimist.cli.answers.json_columns import plain_texts
from optimist.cli.answers.text_stream import write_lines
from optimist.core.errors.foreign_text import on_one_line

__all__ = ["fact_text", "is_right_aligned", "write_aligned", "write_tabbed"]

_TEXT = pa.large_string()


def write_tabbed(answer: Answer, stream: BinaryIO) -> None:
    """Write the facts, one a line, and then a table for each of the long parts, with tabs."""
    _write(answer, stream, _tabbed_facts, _tabbed_rows)


def write_aligned(answer: Answer, stream: BinaryIO) -> None:
    """Write the facts, and then the tables, whose columns begin at the same places."""
    _write(answer, stream, _aligned_facts, _aligned_rows)


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


def _write(
    answer: Answer,
    stream: BinaryIO,
    facts_text: Callable[[Mapping[str, object]], str],
    row_texts: Callable[[pa.Table], Any],
) -> None:
    stream.write(facts_text(answer.facts).encode("utf-8", "replace"))
    for number, (name, rows) in enumerate(answer.rows.items()):
        if number or answer.facts:
            stream.write(b"\n")
        if len(answer.rows) > 1:
            stream.write(f"{name}:\n".encode())
        if rows.num_columns:
            write_lines(stream, row_texts(rows))


def _tabbed_facts(facts: Mapping[str, object]) -> str:
    return "".join(f"{name}\t{fact_text(value)}\n" for name, value in facts.items())


def _aligned_facts(facts: Mapping[str, object]) -> str:
    width = max(map(len, facts), default=0)
    return "".join(f"{name:<{width}}  {fact_text(value)}\n" for name, value in facts.items())


def _tabbed_rows(rows: pa.Table) -> Any:
    columns = [_texts(field, rows.column(i)) for i, field in enumerate(rows.schema)]
    return pc.binary_join_element_wise(*columns, pa.scalar("\t", _TEXT))


def _aligned_rows(rows: pa.Table) -> Any:
    columns = [_padded(field, rows.column(i)) for i, field in enumerate(rows.schema)]
    lines = pc.binary_join_element_wise(*columns, pa.scalar("  ", _TEXT))
    return pc.ascii_rtrim(lines, " ")


def _texts(field: pa.Field, column: Any) -> Any:
    """Return the name and the values of a column as texts."""
    name = plain_texts(pa.array([field.name]))
    chunks = [plain_texts(chunk) for chunk in column.chunks]
    return pa.chunked_array([name, *chunks], _TEXT).combine_chunks()


def _padded(field: pa.Field, column: Any) -> Any:
    """Return the name and the values of a column as texts of one length."""
    texts = _texts(field, column)
    width = pc.max(pc.utf8_length(texts)).as_py()
    pad = pc.utf8_lpad if is_right_aligned(field.type) else pc.utf8_rpad
    return pad(texts, width)
