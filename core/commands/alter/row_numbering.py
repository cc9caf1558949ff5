"""Row tracking for a table that has rows already: all rows get ids first (spec 6.5).

1. The request is checked before anything is written.
2. The feature joins the protocol, in a commit of its own. From then on every writer gives ids to
   the files that it adds, so the number of files without ids only falls.
3. The files without ids are added again unchanged, in batches of one commit each, and so get ids.
4. When no file lacks ids, the property is set. `ensure_rows_are_numbered` checks it again.

If the run is killed between two of these commits, nothing is lost and nothing is promised yet:
files that have ids keep them, and the next run that sets the property continues with the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow.compute as pc

from optimist.core.commands.alter.alteration import Alteration
from optimist.core.commands.alter.properties import set_properties
from optimist.core.errors import SchemaError
from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import supports, with_features
from optimist.core.protocol.properties import ENABLE_ROW_TRACKING, canonical_name
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.transaction.conflicts.operations import (
    ROW_TRACKING_BACKFILL,
    Operation,
    json_text,
)
from optimist.core.transaction.conflicts.row_ids import is_row_tracking_on, unnumbered
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["asks_for_row_ids", "ensure_can_be_numbered", "number_files", "support_row_ids"]

_FEATURE = "rowTracking"


def asks_for_row_ids(properties: Mapping[str, str]) -> bool:
    """Tell whether these properties switch row tracking on."""
    return any(
        canonical_name(str(key)) == ENABLE_ROW_TRACKING and str(value).lower() == "true"
        for key, value in properties.items()
    )


def ensure_can_be_numbered(txn: OptimisticTransaction, properties: Mapping[str, str]) -> None:
    """Refuse early what setting the properties would refuse after the rows were numbered.

    Raises:
        ConfigError: See `set_properties`.
        SchemaError: Row tracking is suspended (kind
            `DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION`), or a file has no row count, so that
            its rows can't be numbered (`DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS`).
    """
    wanted = set_properties(txn, properties).metadata or txn.metadata
    if any(TableMetadata.of(m).properties.row_tracking_suspended for m in (txn.metadata, wanted)):
        raise SchemaError(
            f"Rows of {txn.table.table_path} get no ids while delta.rowTrackingSuspended is true. "
            "Nothing was written. Set it to false first, by a change of its own, and then "
            "delta.enableRowTracking to true.",
            kind="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            properties=(ENABLE_ROW_TRACKING, "delta.rowTrackingSuspended"),
        )
    txn.update_metadata(_without_row_tracking(wanted))
    left = unnumbered(txn.snapshot)
    unknown = left.filter(pc.is_null(FileStatistics(left, txn.snapshot.schema).num_records))
    for path in unknown.slice(0, 1)["path"].to_pylist():
        raise SchemaError(
            f"The rows of {txn.table.table_path} can't be numbered: {unknown.num_rows} of its "
            f"files have no row count (numRecords in their statistics), such as {path}. Nothing "
            "was written. Write these rows again, or have the statistics computed.",
            kind="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
            path=path,
        )


def support_row_ids(txn: OptimisticTransaction) -> Alteration | None:
    """Add the table feature, and return None if the table has it."""
    if supports(txn.protocol, _FEATURE):
        return None
    protocol = with_features(txn.protocol, [_FEATURE])
    operation = Operation("UPGRADE PROTOCOL", {"newProtocol": _text_of(protocol)})
    if txn.snapshot.properties.enable_row_tracking:
        # A writer without the feature set it in vain; with the feature it would promise ids.
        return Alteration(operation, _without_row_tracking(txn.metadata), features=(_FEATURE,))
    return Alteration(operation, actions=(protocol,))


def number_files(txn: OptimisticTransaction, batch: int) -> Alteration | None:
    """Give ids to the next files that have none, or return None if no file is left.

    Args:
        txn: A transaction on the newest version.
        batch: The number of such commits that this run has made before.
    """
    left = unnumbered(txn.snapshot).slice(0, txn.table.options.backfill_max_files)
    if left.num_rows == 0 or not is_row_tracking_on(txn.protocol, txn.metadata):
        return None
    txn.depend_on(left)
    again = tuple(replace(add, data_change=False) for add in add_files(left))
    return Alteration(Operation(ROW_TRACKING_BACKFILL, {"batchId": str(batch)}), actions=again)


def _without_row_tracking(metadata: Metadata) -> Metadata:
    kept = {key: text for key, text in metadata.configuration.items() if key != ENABLE_ROW_TRACKING}
    return replace(metadata, configuration=kept)


def _text_of(protocol: Protocol) -> str:
    """Format the protocol as Delta writes it into the history."""
    return json_text(
        {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": protocol.reader_features,
            "writerFeatures": protocol.writer_features,
        }
    )
