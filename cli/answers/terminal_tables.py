"""Writes an answer to a terminal, fitted to its width: what is too long ends with an ellipsis."""

from __future__ import annotations

import sys
from typing import Literal

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optimist.cli.answers.answer import Answer
from optimist.cli.answers.json_columns import plain_texts
from optimist.cli.answers.plain_tables import fact_text, is_right_aligned

__all__ = ["write_to_terminal"]


def write_to_terminal(answer: Answer) -> None:
    """Write the facts, and then a table for each of the long parts."""
    console = Console(file=sys.stdout, highlight=False)
    if answer.facts:
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(style="bold", no_wrap=True)
        facts.add_column(overflow="fold")
        for name, value in answer.facts.items():
            facts.add_row(Text(name), Text(fact_text(value)))
        console.print(facts)
    for number, (name, rows) in enumerate(answer.rows.items()):
        if number or answer.facts:
            console.print()
        if len(answer.rows) > 1:
            console.print(Text(f"{name}:", style="bold"))
        console.print(_table_of(rows, answer.folded))


def _table_of(rows: pa.Table, folded: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        justify: Literal["right", "left"] = "right" if is_right_aligned(field.type) else "left"
        cell = _folded if field.name in folded else _cut
        table.add_column(cell(plain_texts(pa.array([field.name]))[0].as_py()), justify=justify)
        texts = [text for chunk in column.chunks for text in plain_texts(chunk).to_pylist()]
        columns.append(list(map(cell, texts)))
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


def _folded(text: str) -> Text:
    return Text(text, overflow="fold")


def _cut(text: str) -> Text:
    # Not an option of the column: the table makes only such columns narrower that may wrap.
    return Text(text, overflow="ellipsis", no_wrap=True)
