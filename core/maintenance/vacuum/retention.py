"""The age that a dead file must have before VACUUM deletes it (spec 10.12)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optimist.core.errors import UsageError
from optimist.core.options.engine import EngineOptions
from optimist.core.snapshot import Snapshot

__all__ = ["Retention"]

_HOUR_MS = 60 * 60 * 1000
_LONGEST_MS = 1 << 62
"""Longer than any table has been there, and a number of Arrow."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of one VACUUM.

    Attributes:
        default_ms: The table's `delta.deletedFileRetentionDuration`.
        specified_ms: The retention that the caller gave, if it counts.
        is_checked: Whether a retention below the default is refused.
    """

    default_ms: int
    specified_ms: int | None
    is_checked: bool

    @classmethod
    def of(cls, snapshot: Snapshot, hours: float | None, options: EngineOptions) -> Retention:
        """Compute the retention from the hours that the caller gave, if any.

        As in Delta, hours other than 0 count only if `vacuum.retentionWindowIgnore.enabled` is off:
        writers and readers rely on the property.

        Raises:
            UsageError: The hours are negative or not a number (kind
                `DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE`); or fewer than the property, and the check
                is on (kind `DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT`).
        """
        default_ms = snapshot.properties.deleted_file_retention_ms
        if hours is not None and not (math.isfinite(hours) and hours >= 0):
            raise UsageError(
                f"The retention of a VACUUM can't be {hours} hours. Nothing was deleted. Give 0 or "
                "more, or leave it out.",
                kind="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
                retention_hours=hours,
            )
        is_ignored = bool(hours) and options.vacuum_ignores_retention_window
        specified_ms = (
            None if hours is None or is_ignored else min(round(hours * _HOUR_MS), _LONGEST_MS)
        )
        found = cls(default_ms, specified_ms, options.retention_duration_check_enabled)
        found._ensure_long_enough()
        return found

    @property
    def kept_ms(self) -> int:
        """The time for which files are kept after their removal."""
        return self.default_ms if self.specified_ms is None else self.specified_ms

    def _ensure_long_enough(self) -> None:
        if not self.is_checked or self.kept_ms >= self.default_ms:
            return
        raise UsageError(
            f"A retention of {self.kept_ms / _HOUR_MS:g} hours is below the table's "
            f"{self.default_ms / _HOUR_MS:g} hours (delta.deletedFileRetentionDuration): VACUUM "
            "could delete files of writes in progress and of versions that are being read. Nothing "
            "was deleted. Leave the retention out; or, if no one else uses the table, set "
            "spark.databricks.delta.retentionDurationCheck.enabled to false.",
            kind="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            retention_ms=self.kept_ms,
            default_ms=self.default_ms,
        )
