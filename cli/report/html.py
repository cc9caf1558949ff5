"""HTML in which every text is escaped, unless it was made here."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from optimist.cli.report.texts import bytes_text, count_text, number_text, time_text
from optimist.core.errors.foreign_text import shown

__all__ = ["Column", "Html", "amount", "element", "grid", "moment", "size", "text"]


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: str) -> Html:
    """Return an element. Texts in it and in its attributes are escaped.

    Args:
        tag: Its name.
        *children: What is in it: HTML, or values that are shown as text.
        **attributes: Its attributes. An underscore at the end, as in `class_`, is dropped, and
            others become hyphens.
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for name, value in attributes.items()
    )
    inner = "".join(
        child if isinstance(child, Html) else html.escape(str(child)) for child in children
    )
    return Html(f"<{tag}{given}>{inner}</{tag}>")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a grid.

    Attributes:
        name: The column of the table.
        heading: Its heading.
        text: Returns a value as text.
        is_number: Whether its values stand at the right edge, and are compared by programs.
    """

    name: str
    heading: str
    text: Callable[[Any], str]
    is_number: bool = False


def text(name: str, heading: str) -> Column:
    """Return a column of foreign texts, which are cut if they are long."""
    return Column(name, heading, lambda value: "-" if value is None else shown(value))


def amount(name: str, heading: str) -> Column:
    """Return a column of counts."""
    return Column(name, heading, _amount_text, is_number=True)


def size(name: str, heading: str) -> Column:
    """Return a column of bytes."""
    return Column(name, heading, bytes_text, is_number=True)


def moment(name: str, heading: str) -> Column:
    """Return a column of times in epoch milliseconds."""
    return Column(name, heading, time_text, is_number=True)


def grid(caption: str, rows: pa.Table, columns: Sequence[Column]) -> Html:
    """Return a table with its figures, which a narrow window scrolls sideways."""
    headings = [element("th", each.heading, scope="col", **_class_of(each)) for each in columns]
    body = [
        element("tr", *(_cell(row[each.name], each) for each in columns))
        for row in rows.to_pylist()
    ]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *headings)),
        element("tbody", *body),
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(value: Any, column: Column) -> Html:
    if column.is_number and value is not None:
        return element("td", column.text(value), data_value=str(value), **_class_of(column))
    return element("td", column.text(value), **_class_of(column))


def _class_of(column: Column) -> dict[str, str]:
    return {"class_": "number"} if column.is_number else {}


def _amount_text(value: float | None) -> str:
    return number_text(value) if isinstance(value, float) else count_text(value)
