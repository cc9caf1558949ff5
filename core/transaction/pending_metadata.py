"""`PendingMetadata`: the metadata and the protocol that one transaction sets (spec 1.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.protocol.actions import Action, AddFile, Metadata, Protocol
from optimist.core.protocol.binding_properties import ensure_properties_parse
from optimist.core.protocol.field_keys import metadata_that_counts
from optimist.core.protocol.gates import ensure_writable, merge, with_features
from optimist.core.protocol.schema_checks import verify_new_metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.snapshot import Snapshot
from optimist.core.transaction import metadata_update
from optimist.core.transaction.conflicts.row_ids import ensure_rows_are_numbered
from optimist.core.transaction.identity_marks import IDENTITY_ONLY, farthest_numbers, with_marks
from optimist.core.transaction.metadata_update import MetadataChange

__all__ = ["PendingMetadata"]


class PendingMetadata:
    """What one transaction changes of the table's metadata and protocol.

    Args:
        table: The table.
        snapshot: The version that the transaction read.
        new_metadata: The metadata, if it is decided already.
        new_protocol: The protocol, if it is decided already.
    """

    def __init__(
        self,
        table: TableRef,
        snapshot: Snapshot,
        *,
        new_metadata: Metadata | None = None,
        new_protocol: Protocol | None = None,
    ) -> None:
        self._table = table
        self._snapshot = snapshot
        self._new_metadata = new_metadata
        self._new_protocol = new_protocol
        self._numbers_given: dict[str, int] = {}

    @property
    def metadata(self) -> Metadata:
        """The table's metadata with this change."""
        return self._new_metadata or self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """The table's protocol with this change."""
        return self._new_protocol or self._snapshot.protocol

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions that make the change."""
        pending = (self._new_metadata, self._new_protocol)
        return tuple(each for each in pending if each is not None)

    @property
    def metadata_to_commit(self) -> Metadata | None:
        """The table's metadata after the commit, or None for a new table without any."""
        return self._new_metadata or (self._snapshot.metadata if self._exists else None)

    def update(self, metadata: Metadata, features: Collection[str] = ()) -> None:
        """Set the metadata of the table, or of the new table if there is none yet."""
        if self._exists:
            self._set_metadata(metadata, features=features)
        else:
            self.begin_table(metadata, features)

    def begin_table(self, metadata: Metadata, features: Collection[str] = ()) -> None:
        """Set the metadata of a table that is created or replaced."""
        table = self._table
        new = metadata_update.new_table_metadata(metadata, table.options, table.clock)
        self._set_metadata(new, how=MetadataChange.REPLACE, features=features)

    def overwrite(self, metadata: Metadata) -> None:
        """Replace schema, partitioning and properties, and keep the table's id."""
        kept = replace(metadata, id=self._snapshot.metadata.id)
        self._set_metadata(kept, how=MetadataChange.OVERWRITE)

    def restore(self, metadata: Metadata, protocol: Protocol) -> None:
        """Go back to the metadata of an older version. The protocol only gains features."""
        merged = merge(self._snapshot.protocol, protocol)
        self._new_protocol = None if merged == self._snapshot.protocol else merged
        if metadata != self._snapshot.metadata:
            self._set_metadata(metadata_that_counts(metadata, protocol), how=MetadataChange.RESTORE)

    def clone(self, metadata: Metadata, source: Metadata, protocol: Protocol) -> None:
        """Take over the metadata of another table, as `update_metadata_for_table_clone` does."""
        given = merge(self._snapshot.protocol, protocol) if self._exists else protocol
        derived, more = metadata_update.derive_metadata_and_protocol(
            metadata_that_counts(metadata, protocol),
            current=source,
            protocol=given,
            options=self._table.options,
            clock=self._table.clock,
        )
        reached = more or given
        is_new = not self._exists or reached != self._snapshot.protocol
        self._new_protocol = reached if is_new else None
        self._new_metadata = derived
        verify_new_metadata(derived, self.protocol, self._table.options, previous=source)
        self._ensure_may_be_written(derived)

    def take_from(self, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Set the metadata and protocol found among the actions, and return the other actions.

        Raises:
            UsageError: One of them was set before.
            SchemaError, ConfigError, ProtocolError: The metadata is not valid.
        """
        protocols = [each for each in actions if isinstance(each, Protocol)]
        if len(protocols) + (self._new_protocol is not None and bool(protocols)) > 1:
            raise UsageError(
                "Cannot change the protocol more than once in a transaction. Nothing was "
                "committed. Set it once.",
                kind="OPTIMIST_PROTOCOL_CHANGED_TWICE",
            )
        self._new_protocol = protocols[0] if protocols else self._new_protocol
        for action in actions:
            if isinstance(action, Metadata):
                self.update(action)
        return tuple(each for each in actions if not isinstance(each, Metadata | Protocol))

    def note_identity_numbers(self, names: Collection[str], adds: Sequence[AddFile]) -> None:
        """Note which numbers of identity columns the new files hold."""
        schema = TableMetadata.of(metadata_that_counts(self.metadata, self.protocol)).schema
        self._numbers_given |= farthest_numbers(schema, names, adds)

    def move_identity_marks(self, tags: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Move the marks of identity columns past the noted numbers, and return the commit's tags.

        A tag says so if no other metadata changes.
        """
        marked = self.metadata
        if self._numbers_given:
            marked = with_marks(marked, self._numbers_given)
        if marked == self.metadata:
            return tags
        is_only = self._new_metadata is None
        self._new_metadata = marked
        return {IDENTITY_ONLY: "true", **(tags or {})} if is_only else tags

    @property
    def _exists(self) -> bool:
        return self._snapshot.version >= 0

    def _set_metadata(
        self,
        metadata: Metadata,
        *,
        how: MetadataChange = MetadataChange.ALTER,
        features: Collection[str] = (),
    ) -> None:
        if self._new_metadata is not None:
            raise UsageError(
                "Cannot change the metadata more than once in a transaction. Nothing was "
                "committed. Set it once.",
                kind="OPTIMIST_METADATA_CHANGED_TWICE",
            )
        previous = self._snapshot.metadata if self._exists else None
        derived, protocol = metadata_update.derive_metadata_and_protocol(
            metadata,
            current=previous,
            protocol=self._new_protocol or (self._snapshot.protocol if self._exists else None),
            options=self._table.options,
            clock=self._table.clock,
            how=how,
        )
        self._new_protocol = protocol or self._new_protocol
        if not self._exists or with_features(self.protocol, features) != self._snapshot.protocol:
            self._new_protocol = with_features(self.protocol, features)
        self._new_metadata = derived
        if how is not MetadataChange.RESTORE:
            # `self.protocol` by now is the one that the new metadata needs, and judges it.
            judged_by = None if how is MetadataChange.REPLACE else previous
            verify_new_metadata(derived, self.protocol, self._table.options, previous=judged_by)
        self._ensure_may_be_written(derived)
        if self._exists and how in (MetadataChange.ALTER, MetadataChange.OVERWRITE):
            ensure_rows_are_numbered(derived, self._snapshot)

    def _ensure_may_be_written(self, metadata: Metadata) -> None:
        """Check now what the commit would check after all rows have been written."""
        path, version = self._table.table_path, self._snapshot.version
        ensure_writable(self.protocol, metadata, table_path=path, version=version)
        ensure_properties_parse(metadata, table_path=path, version=version)
