"""Writes an answer to a terminal, fitted to its width."""

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
        console.print(_table_of(rows))


def _table_of(rows: pa.Table) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        justify: Literal["right", "left"] = "right" if is_right_aligned(field.type) else "left"
        name = plain_texts(pa.array([field.name]))[0].as_py()
        table.add_column(Text(name), justify=justify, overflow="fold")
        columns.append([text for chunk in column.chunks for text in plain_texts(chunk).to_pylist()])
    for cells in zip(*columns, strict=True):
        table.add_row(*map(Text, cells))
    return table
