"""The HTML of values that users hold, for notebooks: facts and rows, every text escaped.

A notebook asks a value for HTML as soon as a cell ends with it. So nothing here reads a file, asks
a store or raises: where the HTML can't be made, the notebook shows the `repr`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

from optimist.core.errors.foreign_text import shown
from optimist.core.errors.size_text import bytes_text

__all__ = ["field_html", "html_page", "or_no_html", "rows_html"]

_Value = TypeVar("_Value")

_MOST_ROWS = 20
_MOST_CELLS = 50
_CELL_LIMIT = 120
_FACT_LIMIT = 500
_LEFT = 'style="text-align:left;vertical-align:top"'


def or_no_html(method: Callable[[_Value], str | None]) -> Callable[[_Value], str | None]:
    """Return a `_repr_html_` that gives None in place of an error."""

    @wraps(method)
    def safe(value: _Value) -> str | None:
        try:
            return method(value)
        except Exception:  # noqa: BLE001 - a notebook shows the short form then
            return None

    return safe


def html_page(title: str, facts: Mapping[str, object], *tables: str) -> str:
    """Return a title, facts in two columns, and tables that are HTML already."""
    known = {name: value for name, value in facts.items() if value is not None}
    rows = "".join(f"<tr>{_fact(name, value)}</tr>" for name, value in known.items())
    body = f"<table>{rows}</table>" if rows else ""
    return f"<div><strong>{html.escape(shown(title))}</strong>{body}{''.join(tables)}</div>"


def rows_html(headings: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0) -> str:
    """Return rows as a table, and how many more there are.

    Args:
        headings: The headings.
        rows: The rows that are shown.
        more: The number of rows that are not.
    """
    columns = [shown(heading, _CELL_LIMIT) for heading in headings[:_MOST_CELLS]]
    head = "".join(f"<th {_LEFT}>{html.escape(heading)}</th>" for heading in columns)
    body = "".join(f"<tr>{_cells(row[:_MOST_CELLS])}</tr>" for row in rows)
    rest = f"<div>and {more:,} more</div>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


@or_no_html
def field_html(value: Any) -> str:
    """Return the fields of a dataclass as HTML. Set it as `_repr_html_ = field_html`.

    A field that is a table in memory is shown with its first rows, and one whose name begins with
    `_` is not shown.
    """
    facts: dict[str, object] = {}
    tables = []
    for each in fields(value):
        held = getattr(value, each.name)
        if each.name.startswith("_"):
            continue
        if hasattr(held, "to_pylist") and hasattr(held, "column_names"):
            first = held.slice(0, _MOST_ROWS)
            cells = [list(row.values()) for row in first.to_pylist()]
            facts[each.name] = f"{held.num_rows:,} rows"
            if cells:
                tables.append(rows_html(held.column_names, cells, held.num_rows - len(cells)))
        elif hasattr(held, "to_pylist"):
            facts[each.name] = f"{len(held):,} items"
        elif not callable(held):
            facts[each.name] = held
    return html_page(type(value).__name__, facts, *tables)


def _fact(name: str, value: object) -> str:
    heading = f"<th {_LEFT}>{html.escape(name)}</th>"
    return f"{heading}<td {_LEFT}>{_cell(value, name, _FACT_LIMIT)}</td>"


def _cells(row: Sequence[object]) -> str:
    return "".join(f"<td {_LEFT}>{_cell(value)}</td>" for value in row)


def _cell(value: object, name: str = "", limit: int = _CELL_LIMIT) -> str:
    return html.escape(_text(value, name, limit))


def _text(value: object, name: str, limit: int) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        is_size = "size" in name or "bytes" in name
        return f"{bytes_text(value)} ({value:,} bytes)" if is_size else f"{value:,}"
    return shown(value if isinstance(value, str) else repr(value), limit)
