"""Random histories of row tracking: on, off, dropped, and RESTORE to any version (spec 6.5)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random  # noqa: TID251 - a history is its seed

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, UsageError

TRACKED = {"delta.enableRowTracking": "true"}
PROPERTIES = (
    {},
    TRACKED,
    {"delta.feature.rowTracking": "supported"},
    {**TRACKED, "delta.enableDeletionVectors": "true"},
)
STEPS = (
    *("append", "append", "delete", "optimize", "drop", "drop", "track"),
    *("feature", "restore", "restore"),
)
REFUSALS = {
    "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
    "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",  # of a version within DROP FEATURE
}


class NumberedHistory:
    """A table, and the row ids that its tracked versions had.

    Args:
        path: Where the table is to be.
        seed: Decides what happens.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.random = Random(seed)
        self.log = DeltaLog.for_path(path, {})
        schema = pa.schema([("id", pa.int64())])
        self.log.create(schema, properties=self.random.choice(PROPERTIES))
        self.ids: dict[int, dict[int, int]] = {}
        self._num_rows = 0

    def live(self, num_steps: int) -> None:
        """Let so many things happen, and look at the row ids after each of them."""
        for _ in range(num_steps):
            step = self.random.choice(STEPS)
            try:
                restored = getattr(self, f"_{step}")()
            except (SchemaError, UsageError) as error:
                assert error.kind in REFUSALS
                continue
            self.ensure_unique()
            if restored in self.ids and self.log.snapshot().has_active("rowTracking"):
                assert self._row_ids() == self.ids[restored]

    def ensure_unique(self) -> None:
        """No two rows of the newest version share an id, and none is above the mark."""
        snapshot = self.log.snapshot()
        ranges = sorted(
            (each["baseRowId"], json.loads(each["stats"])["numRecords"])
            for each in snapshot.files.to_pylist()
            if each["baseRowId"] is not None
        )
        for (begin, count), (following, _) in pairwise(ranges):
            assert begin + count <= following, ranges
        highest = sum(ranges[-1]) - 1 if ranges else -1
        if snapshot.has_active("rowTracking"):
            found = self.ids[snapshot.version] = self._row_ids()
            assert len(set(found.values())) == len(found)
            highest = max([highest, *found.values()])
        if highest >= 0 and not snapshot.properties.row_tracking_suspended:
            mark = snapshot.domain_metadata["delta.rowTracking"].configuration
            assert json.loads(mark)["rowIdHighWaterMark"] >= highest

    def _row_ids(self) -> dict[int, int]:
        rows = self.log.to_arrow(columns=["id", "_metadata.row_id"]).to_pylist()
        return dict(tuple(row.values()) for row in rows)

    def _append(self) -> None:
        count = self.random.randint(1, 9)
        self.log.append(pa.table({"id": range(self._num_rows, self._num_rows + count)}))
        self._num_rows += count

    def _delete(self) -> None:
        first = self.random.randrange(self._num_rows + 1)
        self.log.delete(f"id >= {first} AND id < {first + self.random.randint(1, 9)}")

    def _optimize(self) -> None:
        self.log.optimize()

    def _drop(self) -> None:
        self.log.drop_feature("rowTracking")

    def _track(self) -> None:
        self.log.alter.set_properties(TRACKED)

    def _feature(self) -> None:
        self.log.alter.add_feature("rowTracking")

    def _restore(self) -> int:
        version = self.random.randrange(self.log.snapshot().version + 1)
        self.log.restore(version)
        return version
