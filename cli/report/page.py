"""The page: its head, its sections, and a style for light and dark.

The page runs no script and asks for nothing: a policy in its head forbids both, whatever a table's
names hold. Every text is escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from optimist.cli.report.charts import Chart, drawn
from optimist.cli.report.html import Html, element
from optimist.cli.report.sections import Section

__all__ = ["page_of"]

_STYLE = "page.css"


def page_of(
    title: str,
    subtitle: str,
    facts: Sequence[tuple[str, str, str]],
    sections: Sequence[Section],
    footer: str,
) -> str:
    """Return the page as HTML.

    Args:
        title: The heading.
        subtitle: A line below it.
        facts: The main figures: name, value, remark.
        sections: The sections.
        footer: The last line.
    """
    style = resources.files("optimist.cli.report").joinpath(_STYLE).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = (
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        Html(f"<style>{style}</style>"),
    )
    links = [element("a", each.title, href=f"#{each.key}") for each in sections]
    tiles = [
        element("div", element("dt", name), element("dd", value), element("dd", remark))
        for name, value, remark in facts
    ]
    body = (
        element("header", element("h1", title), element("p", subtitle)),
        element("dl", *tiles, class_="tiles"),
        element("nav", *links, aria_label="Sections"),
        element("main", *map(_section, sections)),
        element("footer", element("p", footer)),
    )
    page = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _section(section: Section) -> Html:
    parts = [_figure(part) if isinstance(part, Chart) else part for part in section.parts]
    folded: tuple[Html, ...] = ()
    if section.tables:
        summary = element("summary", "The same figures as tables")
        folded = (element("details", summary, *section.tables),)
    title = element("h2", section.title, id=f"{section.key}-title")
    return element(
        "section",
        title,
        element("p", section.intro, class_="intro"),
        *parts,
        *folded,
        id=section.key,
        aria_labelledby=f"{section.key}-title",
    )


def _figure(chart: Chart) -> Html:
    wide, narrow = drawn(chart)
    return element(
        "figure",
        element("figcaption", element("h3", chart.title), *_note(chart), *_legend(chart)),
        element("div", Html(wide), class_="wide"),
        element("div", Html(narrow), class_="narrow", aria_hidden="true"),
    )


def _note(chart: Chart) -> tuple[Html, ...]:
    return (element("p", chart.note),) if chart.note else ()


def _legend(chart: Chart) -> tuple[Html, ...]:
    if len(chart.kinds) < 2:
        return ()
    items = [
        element("span", element("span", class_=f"key series-{number}"), name)
        for number, name in enumerate(chart.kinds, 1)
    ]
    return (element("div", *items, class_="legend"),)
