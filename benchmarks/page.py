"""Writes what was measured into a page of the documentation, part by part.

A whole run takes hours, so a run may measure some parts: their sections are replaced, and the
others stay as an earlier run wrote them. Each says when and where it was measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from report import HEADINGS, Results, Row, machine, rows_by_part

__all__ = ["write_page"]

_BEGINNING = """\
# Measured figures

`make bench BENCH=--page` writes this page; `make bench BENCH="--page --only writers"` measures one part, and leaves the other sections as they are.
Each section says when and on which machine it was measured; the figures of one section come from one run.

- A ratio is ours divided by theirs: where seconds or bytes are measured, less is better; where commits a second are, more.
- "Peak" is the most memory that the process had, with Python and its libraries.
- Where a row names other engines, they take the places of the columns' names.
- "delta-spark" is measured where its jar can be downloaded, in a process and an environment of its own.
- A load above 1 means that the machine had other work: then trust the ratios, not the seconds.
"""  # noqa: E501
_PARTS: Mapping[str, tuple[str, str]] = {
    "appends": (
        "Appends",
        "Each append adds 100 rows; the engines take turns.",
    ),
    "writers": (
        "Many writers",
        "Each writer is a process that appends 100 rows, 20 times, to the same table, with the "
        "engine's own number of retries.",
    ),
    "opening": (
        "Opening a table",
        "The log is that of another writer, with 20 commits after its checkpoint; each measurement "
        "is a process of its own, whose imports are not timed.",
    ),
    "growth": (
        "Growth with the table",
        "Each partition has 1,000 files at any size, so the answer does not grow; a process opens "
        "the table by its path, and its CPU time includes its imports.",
    ),
    "frames": (
        "Planning on Spark",
        "The time from `read` to the first task, in a session that has read the version before.",
    ),
    "scans": (
        "Queries with deletion vectors",
        "Spark reads the rows for both engines: natively for ours, and through deltalake's "
        "PyArrow dataset for theirs.",
    ),
    "checkpoints": (
        "Checkpoints",
        "The time is that of the checkpoint alone, for a table that is open already.",
    ),
    "rows": (
        "Commands on rows",
        'The table has 100 files; "local" is ours without Spark, and "plain" is Spark alone, '
        "which only reads and writes the same bytes.",
    ),
    "care": (
        "OPTIMIZE, Z-ORDER and CONVERT",
        "Each engine has a copy of the table of its own for each round.",
    ),
    "groups": (
        "Appends of many threads in groups",
        "A request to S3 takes as long as on a slow network; threads of one process share commits.",
    ),
    "columns": (
        "Few columns of many",
        "The arrow plane stands in the first column, the native one in the second.",
    ),
    "drop_in": (
        "What the drop-in costs",
        'Of a Spark session with `format("delta")` and SQL over Delta tables.',
    ),
    "streams": (
        "Streams",
        "A micro-batch reads 1,000 rows of one table and appends them to another.",
    ),
    "without_spark": (
        "Without Spark",
        "Each piece of work is a process of its own, which loads no other engine; "
        "seconds are those of the work, and the memory may not exceed deltalake's.",
    ),
}
"""Of each part its heading and one sentence on how it is measured, in the order of the page."""


def write_page(page: Path, results: Results) -> Path:
    """Replace the sections of the parts that were measured; return the page's path."""
    sections = _sections_of(page.read_text(encoding="utf-8")) if page.exists() else {}
    facts = machine()
    for part, rows in rows_by_part(results).items():
        heading, method = _PARTS[part]
        sections[heading] = _section(heading, method, rows, facts)
    in_order = [sections[heading] for heading, _ in _PARTS.values() if heading in sections]
    page.write_text("\n".join([_BEGINNING, *in_order]), encoding="utf-8")
    return page


def _sections_of(text: str) -> dict[str, str]:
    """Return the sections of a page by their headings."""
    found = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return {
        heading: f"## {heading}\n{body.rstrip()}\n"
        for heading, body in zip(found[::2], found[1::2], strict=True)
    }


def _section(heading: str, method: str, rows: list[Row], facts: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    where = (
        f"Measured on {facts['measured_at'][:10]} with {versions} and Python {facts['python']}, "
        f"on {facts['cores']} cores and {facts['memory_gib']:.0f} GiB "
        f"(load {facts['load_average'][0]:.1f} at the end)."
    )
    table = [HEADINGS, ("---", "--:", "--:", "--:", "---"), *rows]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in table]
    return "\n".join([f"## {heading}", "", method, where, "", *lines, ""])
