"""The charts of the report, drawn by Vega-Lite as pictures without scripts.

The colours are names of the page's style, so that one picture serves both schemes. Each chart is
drawn twice, for wide and for narrow windows, because text in a scaled picture can't be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from optimist.cli.report.texts import plural
from optimist.core.errors import ConfigError
from optimist.core.imports import import_by_need

__all__ = ["Chart", "bars", "drawn", "lines", "stacked_over_time"]

Spec: TypeAlias = "dict[str, Any]"

WIDE, NARROW = 860, 270
_MOST_POINTS = 240
_MOST_INTERVALS = 48
_COLOURS = tuple(f"var(--series-{number})" for number in range(1, 9))
_FONT = "sans-serif"  # as wide as any font that the page chooses
_SVG = "http://www.w3.org/2000/svg"
_MEASURED_FONT_SIZE = 14
"""Larger than in the page's style, because the page's font may be wider than the one here."""
_DAY_MS = 24 * 60 * 60 * 1000
_TIME_STYLES = ((_DAY_MS // 48, "%H:%M:%S"), (3 * _DAY_MS, "%d %b %H:%M"), (300 * _DAY_MS, "%d %b"))
"""How times are shown on an axis that is shorter than so many milliseconds."""
_LABEL_LIMIT = {WIDE: 260, NARROW: 90}


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart.

    Attributes:
        title: What it shows.
        spec: The specification of Vega-Lite, without a width.
        kinds: The names of the colours, in their order; none for a chart of one colour.
        note: What a reader has to know; may be empty.
    """

    title: str
    spec: Spec
    kinds: tuple[str, ...] = ()
    note: str = ""


def lines(title: str, states: pa.Table, column: str, note: str = "") -> Chart:
    """Return a chart of one number of the table over time, as steps.

    Args:
        title: What it shows.
        states: Rows with `version`, `time` and the column, oldest first.
        column: The column, whose name says what it counts.
        note: What a reader has to know.
    """
    axis_unit = "B" if column == "bytes" else ""
    few = last_of_each_interval(states)
    values = [
        {"time": time, "value": value, "text": f"version {version}: {value:,} {column}"}
        for version, time, value in zip(
            *(few.column(name).to_pylist() for name in ("version", "time", column)), strict=True
        )
        if value is not None
    ]
    area = {"type": "area", "interpolate": "step-after", "fillOpacity": 0.12}
    spec = {
        "height": 170,
        "data": {"values": values},
        "encoding": {
            "x": _time(states.column("time").to_numpy()),
            "y": _amount("value", axis_unit),
        },
        "layer": [
            {"mark": {**area, "color": _COLOURS[0], "line": {"color": _COLOURS[0]}, "aria": False}},
            {
                "mark": {"type": "point", "size": 60, "opacity": 0.001, "filled": True},
                "encoding": {"description": {"field": "text"}},
            },
        ],
    }
    return Chart(title, spec, note=note)


def stacked_over_time(title: str, states: pa.Table, kind: str, note: str = "") -> Chart:
    """Return a chart of how many commits of each kind fell into each interval of time."""
    times = states.column("time").to_numpy()
    begin, width = _intervals(times, _MOST_INTERVALS)
    values: list[dict[str, Any]] = []
    heights: Counter[int] = Counter()
    for interval, name, count in _counts((times - begin) // width, states.column(kind)):
        start = begin + interval * width
        low = heights[interval]
        heights[interval] += count
        value = {"begin": start, "end": start + width, "low": low, "high": low + count}
        values.append({**value, "kind": name, "text": f"{name}: {plural(count, 'commit')}"})
    kinds = tuple(dict.fromkeys(value["kind"] for value in values))
    spec = {
        "height": 170,
        "data": {"values": values},
        "mark": {"type": "rect", "stroke": "var(--card)", "strokeWidth": 1},
        "encoding": {
            "x": {**_time(times), "field": "begin"},
            "x2": {"field": "end"},
            "y": _amount("low"),
            "y2": {"field": "high"},
            "color": _kinds(kinds),
            "description": {"field": "text"},
        },
    }
    return Chart(title, spec, kinds, note)


def bars(title: str, rows: Sequence[Mapping[str, Any]], *, unit: str = "", note: str = "") -> Chart:
    """Return a chart of horizontal bars, in the given order.

    Args:
        title: What it shows.
        rows: The bars: `name`, `value`, `text`, and `kind`, which says what a part is.
        unit: The unit of the values, such as `B`.
        note: What a reader has to know.
    """
    kinds = tuple(dict.fromkeys(row["kind"] for row in rows))
    spec = {
        "height": {"step": 24},
        "data": {"values": list(rows)},
        "mark": {"type": "bar", "height": 14},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "sort": None, "title": None},
            "x": _amount("value", unit),
            "color": _kinds(kinds),
            "order": {"field": "rank"},
            "description": {"field": "text"},
        },
    }
    return Chart(title, spec, kinds, note)


def drawn(chart: Chart) -> tuple[str, str]:
    """Return a chart as SVG, for wide and for narrow windows.

    Raises:
        ConfigError: The package that draws is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
    """
    try:
        vega = import_by_need("vl_convert")
    except ModuleNotFoundError:
        raise ConfigError(
            "The report needs the package vl-convert-python. Nothing was written. Install it with: "
            "pip install 'optimist[report]'",
            kind="OPTIMIST_MISSING_PACKAGE",
            package="vl-convert-python",
        ) from None
    wide, narrow = (
        _cleaned(vega.vegalite_to_svg({**chart.spec, **_look(width)}, allowed_base_urls=[]))
        for width in (WIDE, NARROW)
    )
    return wide, narrow


def last_of_each_interval(states: pa.Table) -> pa.Table:
    """Return at most so many rows as a chart can show: the last of each interval of time."""
    if states.num_rows <= _MOST_POINTS:
        return states
    times = states.column("time").to_numpy()
    begin, width = _intervals(times, _MOST_POINTS)
    at = (times - begin) // width
    is_last = np.append(at[1:] != at[:-1], True)
    is_last[0] = True
    return states.filter(pa.array(is_last))


def _time(times: np.ndarray) -> dict[str, object]:
    span_ms = int(times.max() - times.min()) if len(times) else 0
    style = next((style for limit_ms, style in _TIME_STYLES if span_ms < limit_ms), "%Y-%m")
    axis = {"grid": False, "labelOverlap": True, "format": style}
    scale = {"type": "utc"}
    return {"field": "time", "type": "temporal", "title": None, "scale": scale, "axis": axis}


def _amount(name: str, unit: str = "") -> dict[str, object]:
    axis = {"tickCount": 4, "tickMinStep": 1, "domain": False, "ticks": False}
    label = {"labelExpr": f"datum.value % 1 ? '' : format(datum.value, '~s') + '{unit}'"}
    return {"field": name, "type": "quantitative", "title": None, "axis": axis | label}


def _kinds(names: Sequence[str]) -> dict[str, object]:
    colours = [_COLOURS[number % len(_COLOURS)] for number in range(len(names))]
    scale = {"domain": list(names), "range": colours}
    return {"field": "kind", "type": "nominal", "scale": scale, "legend": None}


def _intervals(times: np.ndarray, most: int) -> tuple[int, int]:
    """Return where the first of equal intervals of time begins, and how long they are."""
    if not len(times):
        return 0, 1
    first, last = int(times.min()), int(times.max())
    return first, max(1, -(-(last - first + 1) // most))


def _counts(at: np.ndarray, kinds: pa.ChunkedArray) -> list[tuple[int, str, int]]:
    """Count the rows of each interval and kind; rare kinds count together."""
    rows = pa.table({"at": pa.array(at), "kind": kinds})
    sums = rows.group_by(["at", "kind"], use_threads=False).aggregate([([], "count_all")])
    named = zip(
        *(sums.column(name).to_pylist() for name in ("at", "kind", "count_all")), strict=True
    )
    return sorted(named)


def _look(width: int) -> Spec:
    """Return what all charts have in common."""
    quiet = {"labelColor": "var(--muted)", "labelFont": _FONT, "labelFontSize": _MEASURED_FONT_SIZE}
    lines_of = {
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": width,
        "background": None,
        "padding": {"left": 6, "right": 6, "top": 2, "bottom": 2},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": {
            "view": {"stroke": None},
            "axis": {**quiet, **lines_of, "labelLimit": _LABEL_LIMIT[width]},
        },
    }


def _cleaned(svg: str) -> str:
    """Return a picture with its descriptions as titles, which appear over the marks."""
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        label = parent.attrib.get("aria-label")
        if label is not None and parent.tag == f"{{{_SVG}}}path":
            title = ElementTree.SubElement(parent, f"{{{_SVG}}}title")
            title.text = label
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode")
