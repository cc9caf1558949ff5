"""What must hold before rows are copied into new files, and how many rows files hold."""

from __future__ import annotations

import json
from collections.abc import Sequence

from optimist.core.errors import ProtocolError
from optimist.core.protocol.actions import AddFile
from optimist.core.snapshot.snapshot import Snapshot

__all__ = ["ensure_rewritable", "num_records"]


def ensure_rewritable(snapshot: Snapshot, operation: str) -> None:
    """Refuse tables whose files can't be rewritten without loss (spec 6.5, 10.11).

    Args:
        snapshot: The table.
        operation: For the message, for example `UPDATE`.

    Raises:
        ProtocolError: The table records row changes, or keeps the identity of rows, and this engine
            can't write either yet (kind `DELTA_UNSUPPORTED_FEATURES_FOR_WRITE`, field `features`).
    """
    features = []
    if snapshot.properties.enable_change_data_feed:
        features.append("changeDataFeed")
    if snapshot.properties.enable_row_tracking:
        features.append("rowTracking")
    if features:
        raise ProtocolError(
            f"{operation} on {snapshot.table_path} would have to write what "
            f"{' and '.join(features)} asks for, "
            "which is not supported yet. Nothing was written. Use another engine, or switch the "
            "table's "
            "property off.",
            kind="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            features=tuple(features),
            operation=operation,
        )


def num_records(adds: Sequence[AddFile]) -> int | None:
    """Rows in all the files by their statistics; None where one has none."""
    total = 0
    for add in adds:
        stats = json.loads(add.stats) if add.stats else {}
        count = stats.get("numRecords")
        if not isinstance(count, int):
            return None
        total += count - (add.deletion_vector.cardinality if add.deletion_vector else 0)
    return total
