"""Names of operations, as in commitInfo, that decide how a commit is treated (spec 8.1).

All writers of Delta tables spell them alike, so the names also decide for the commits of other
engines.
"""

from __future__ import annotations

__all__ = ["BACKFILLS", "DOMAIN_CLEANUP", "ROW_TRACKING_BACKFILL", "ROW_TRACKING_UNBACKFILL"]

ROW_TRACKING_BACKFILL = "ROW TRACKING BACKFILL"
"""Gives row ids to files that have none, by adding the files again. Changes no data."""
ROW_TRACKING_UNBACKFILL = "ROW TRACKING UNBACKFILL"
"""Removes the row ids again in the same way."""
DOMAIN_CLEANUP = "DOMAIN METADATA CLEANUP"
"""Removes all metadata domains, so that their feature can be dropped."""
BACKFILLS = frozenset({ROW_TRACKING_BACKFILL, ROW_TRACKING_UNBACKFILL})
