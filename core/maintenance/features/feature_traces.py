"""The traces of a table feature in metadata, files and log, and the features that can be dropped.

A feature is dropped once the newest version does not need it. If readers need the feature, they
still need it for older versions. The log of these versions is then protected or truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.table_ref import TableRef
from optimist.core.log.checkpoint_kinds import complete_checkpoints
from optimist.core.log.commits import read_commit
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.names import LogFileKind, commit_path, listing_start
from optimist.core.protocol.actions import Action, AddFile, Metadata
from optimist.core.protocol.features import FEATURES
from optimist.core.protocol.properties import (
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.type_widening import TYPE_CHANGES
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.one_version import load_version
from optimist.core.snapshot.time_travel import earliest_recreatable_version

__all__ = [
    "ROW_TRACKING_PROPERTIES",
    "TRACES",
    "Traces",
    "history_has_traces",
    "in_use",
]

ROW_TRACKING_PROPERTIES = (
    "delta.enableRowTracking",
    "delta.rowTrackingSuspended",
    MATERIALIZED_ROW_ID,
    MATERIALIZED_ROW_COMMIT_VERSION,
)
_V2_CHECKPOINT = "v2Checkpoint"


def _is_never_active(_: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces that show that a feature is in use.

    Attributes:
        in_metadata: Tells whether metadata use it.
        column: The column of a version's files that is null if a file does not use the feature.
        is_removable: Whether DROP FEATURE can remove the traces itself.
        has_domains: Whether metadata domains use it.
    """

    in_metadata: Callable[[TableMetadata], bool] = _is_never_active
    column: str | None = None
    is_removable: bool = True
    has_domains: bool = False

    def in_version(self, snapshot: Snapshot) -> bool:
        """Tell whether a version uses the feature."""
        if self.in_metadata(TableMetadata.of(snapshot.metadata)):
            return True
        if self.has_domains and snapshot.stored_domains:
            return True
        return self.column is not None and self.files(snapshot).num_rows > 0

    def files(self, snapshot: Snapshot) -> pa.Table:
        """Return the files of a version that use the feature."""
        if self.column is None:
            return FILES_SCHEMA.empty_table()
        return snapshot.files_where(self.column, pc.is_valid)

    def in_actions(self, actions: Iterable[Action]) -> bool:
        """Tell whether a commit uses the feature."""
        return any(
            (isinstance(each, Metadata) and self.in_metadata(TableMetadata.of(each)))
            or (
                self.column == "deletionVector"
                and isinstance(each, AddFile)
                and each.deletion_vector is not None
            )
            for each in actions
        )


def _schema_has(key: str) -> Callable[[TableMetadata], bool]:
    return lambda table: key in table.schema_string


def _rule_of_feature(name: str) -> Callable[[TableMetadata], bool]:
    return FEATURES[name].is_active or _is_never_active


def _has_in_commit_timestamps(table: TableMetadata) -> bool:
    found = table.properties
    return (
        found.enable_in_commit_timestamps
        or found.in_commit_timestamp_enablement_version is not None
    )


_WIDENING = Traces(
    lambda table: table.properties.enable_type_widening or TYPE_CHANGES in table.schema_string
)
_VARIANTS = Traces(_rule_of_feature("variantType"), is_removable=False)
_SHREDDING = Traces(_rule_of_feature("variantShredding"), is_removable=False)
TRACES: Mapping[str, Traces] = {
    "deletionVectors": Traces(
        lambda table: table.properties.enable_deletion_vectors, "deletionVector"
    ),
    "columnMapping": Traces(
        lambda table: table.is_mapped or COLUMN_MAPPING_PREFIX in table.schema_string
    ),
    "typeWidening": _WIDENING,
    "typeWidening-preview": _WIDENING,
    _V2_CHECKPOINT: Traces(lambda table: table.properties.checkpoint_policy == "v2"),
    "vacuumProtocolCheck": Traces(),
    "variantType": _VARIANTS,
    "variantType-preview": _VARIANTS,
    "variantShredding": _SHREDDING,
    "variantShredding-preview": _SHREDDING,
    "timestampNtz": Traces(_rule_of_feature("timestampNtz"), is_removable=False),
    "inCommitTimestamp": Traces(_has_in_commit_timestamps),
    "rowTracking": Traces(lambda table: table.properties.enable_row_tracking, "baseRowId"),
    "checkConstraints": Traces(lambda table: bool(table.properties.constraints), None, False),
    "domainMetadata": Traces(has_domains=True),
    "clustering": Traces(),
    "checkpointProtection": Traces(),
}
"""The features that can be dropped."""


def in_use(name: str, snapshot: Snapshot) -> bool:
    """Tell whether a version uses a feature that can be dropped."""
    return TRACES[name].in_version(snapshot)


def history_has_traces(name: str, table: TableRef, latest: Snapshot) -> bool:
    """Tell whether a version that the log still has uses a feature.

    Raises:
        TableError, StorageError: The log can't be read.
    """
    traces = TRACES[name]
    first = earliest_recreatable_version(table.store, table.log_path)
    if traces.in_version(load_version(table, first, latest=latest)):
        return True
    if name == _V2_CHECKPOINT:
        files = table.store.list_from(listing_start(table.log_path, 0))
        if any(each.kind is LogFileKind.V2_CHECKPOINT for each in complete_checkpoints(files)):
            return True
    return any(
        traces.in_actions(read_commit(table.store, commit_path(table.log_path, version)))
        for version in range(first + 1, latest.version + 1)
    )
