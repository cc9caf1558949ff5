"""What a version needs to answer for its rows and files: scans, predicates, statistics.

These names are imported on first use, so that a program that only looks at the log does not load
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimist.core.imports import names_by_need

if TYPE_CHECKING:
    from optimist.core.expressions.moments import Moment
    from optimist.core.predicates.moments import predicate_at
    from optimist.core.skipping.live_rows import live_rows
    from optimist.core.skipping.statistics import FileStatistics
    from optimist.core.snapshot.local_scan import RowRequest
    from optimist.core.snapshot.row_scan import RowScan
    from optimist.core.snapshot.scan import Scanner

__all__ = [
    "FileStatistics",
    "Moment",
    "RowRequest",
    "RowScan",
    "Scanner",
    "live_rows",
    "predicate_at",
]

_MODULES = {
    "FileStatistics": "optimist.core.skipping.statistics",
    "Moment": "optimist.core.expressions.moments",
    "RowRequest": "optimist.core.snapshot.local_scan",
    "RowScan": "optimist.core.snapshot.row_scan",
    "Scanner": "optimist.core.snapshot.scan",
    "live_rows": "optimist.core.skipping.live_rows",
    "predicate_at": "optimist.core.predicates.moments",
}
__getattr__ = names_by_need(__name__, _MODULES)
