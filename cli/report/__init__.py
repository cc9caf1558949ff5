"""The report of a table: one page of HTML that needs nothing but itself.

| module | holds |
|---|---|
| `over_time` | the commits, and the table after each |
| `layout` | how the files lie: sizes, partitions, statistics, vectors |
| `advice` | what to do next, and what that brings |
| `sections` | the parts of the page, with their figures |
| `charts` | the charts, drawn by Vega-Lite |
| `page` | the page |
"""

from __future__ import annotations

from optimist.cli.report.table_report import TableReport, table_report

__all__ = ["TableReport", "table_report"]
