"""`show`: writes an answer to the output of this process."""

from __future__ import annotations

import sys
from typing import BinaryIO, cast

from optimist.cli.answers.answer import Answer
from optimist.cli.answers.json_text import write_json
from optimist.cli.answers.plain_tables import write_aligned, write_tabbed
from optimist.core.imports import import_by_need

__all__ = ["output_stream", "show"]


MOST_ROWS_FITTED = 500
"""The rows up to which a table is fitted to a terminal, which costs a Python object a cell."""


def show(answer: Answer, *, as_json: bool) -> None:
    """Write an answer: as JSON, fitted to a terminal, or whole and with tabs to a pipe."""
    if as_json:
        write_json(answer, output_stream())
    elif not sys.stdout.isatty():
        write_tabbed(answer, output_stream())
    elif all(rows.num_rows <= MOST_ROWS_FITTED for rows in answer.rows.values()):
        import_by_need("optimist.cli.answers.terminal_tables").write_to_terminal(answer)
    else:
        write_aligned(answer, output_stream())


def output_stream() -> BinaryIO:
    """Return the bytes below `sys.stdout`, after what is already written there as text."""
    sys.stdout.flush()
    return cast(BinaryIO, sys.stdout.buffer)
