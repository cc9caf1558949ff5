"""`TableFeatures`, the names that deltalake has for the features of tables."""

from __future__ import annotations

import enum

__all__ = ["TableFeatures"]


class TableFeatures(enum.Enum):
    """A feature of tables, for `alter.add_feature`."""

    ColumnMapping = "ColumnMapping"
    DeletionVectors = "DeletionVectors"
    TimestampWithoutTimezone = "TimestampWithoutTimezone"
    V2Checkpoint = "V2Checkpoint"
    AppendOnly = "AppendOnly"
    Invariants = "Invariants"
    CheckConstraints = "CheckConstraints"
    ChangeDataFeed = "ChangeDataFeed"
    GeneratedColumns = "GeneratedColumns"
    IdentityColumns = "IdentityColumns"
    RowTracking = "RowTracking"
    DomainMetadata = "DomainMetadata"
    IcebergCompatV1 = "IcebergCompatV1"
    VariantType = "VariantType"
    VariantTypePreview = "VariantTypePreview"

    @property
    def in_protocol(self) -> str:
        """The name that the protocol of a table has for it."""
        return _OTHER_NAMES.get(self.value, self.value[0].lower() + self.value[1:])


_OTHER_NAMES = {
    "TimestampWithoutTimezone": "timestampNtz",
    "VariantTypePreview": "variantType-preview",
}
